import pytest

torch = pytest.importorskip("torch")

from calibrant.losses.line_sums import SPAN, LineSums  # noqa: E402


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
