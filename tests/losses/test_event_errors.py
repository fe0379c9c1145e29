import pytest

torch = pytest.importorskip("torch")

from calibrant.losses import SoftBinnedECE  # noqa: E402
from calibrant.losses.event_errors import SPAN, FusedSoftBins, LineSums  # noqa: E402
from calibrant.losses.fused_error import ClassRows  # noqa: E402


@pytest.mark.parametrize("rate", [0.5, 3.0, 40.0, SPAN])
@pytest.mark.parametrize("n", [1, 2, 57])
def test_they_are_sums_over_all_pairs(n, rate):
    generator = torch.Generator().manual_seed(n)
    x = torch.rand(n, generator=generator, dtype=torch.float64)
    x[n // 2 :] = x[: n - n // 2].clone()  # pairs of equal numbers
    v = torch.randn(n, generator=generator, dtype=torch.float64)
    sums = LineSums.of(x, v, rate)
    away = x[:, None] - x[None, :]
    kernel = torch.exp(-rate * away.abs())
    assert torch.allclose(sums.product, kernel @ v, rtol=1e-12, atol=1e-13)
    assert torch.allclose(sums.slope, -(kernel * torch.sign(away)) @ v, rtol=1e-12, atol=1e-13)


def test_what_is_no_number_stays_none():
    x = torch.tensor([0.2, torch.nan, 0.1], dtype=torch.float64)
    assert torch.isnan(LineSums.of(x, x, 2.0).product).any()
    assert torch.isnan(LineSums.of(x * torch.nan, x, 2.0).product).all()


@pytest.mark.parametrize("temperature", [1e-6, 0.01, 1.0])
@pytest.mark.parametrize("bins", [1, 15])
def test_of_any_sharpness(bins, temperature):
    generator = torch.Generator().manual_seed(0)
    rows = ClassRows.of(torch.randn(50, 3, generator=generator), torch.randint(0, 3, (50,), generator=generator))
    fused = FusedSoftBins(bins, temperature, 1.5, None)(rows, wants_gradient=True)
    expected = SoftBinnedECE(bins, temperature, 1.5)(rows.labels.numpy(), rows.p.numpy()).value
    assert fused.value.item() == pytest.approx(expected, rel=1e-10)
    assert torch.isfinite(fused.slope).all()
