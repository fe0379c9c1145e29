import pytest

torch = pytest.importorskip("torch")

from calibrant.losses import SoftBinnedECE  # noqa: E402
from calibrant.losses.class_rows import ClassRows  # noqa: E402
from calibrant.losses.soft_bin_error import FusedSoftBins  # noqa: E402


@pytest.mark.parametrize("temperature", [1e-6, 0.01, 1.0])
@pytest.mark.parametrize("bins", [1, 15])
def test_of_any_sharpness(bins, temperature):
    generator = torch.Generator().manual_seed(0)
    rows = ClassRows.of(torch.randn(50, 3, generator=generator), torch.randint(0, 3, (50,), generator=generator))
    fused = FusedSoftBins(bins, temperature, 1.5, None)(rows, wants_gradient=True)
    expected = SoftBinnedECE(bins, temperature, 1.5)(rows.labels.numpy(), rows.p.numpy()).value
    assert fused.value.item() == pytest.approx(expected, rel=1e-10)
    assert torch.isfinite(fused.slope).all()
