import pytest

from calibrant import KDE
from calibrant.estimators import Sharpness

torch = pytest.importorskip("torch")

from calibrant.losses.dirichlet_errors import FusedKDE  # noqa: E402
from calibrant.losses.fused_error import ClassRows  # noqa: E402


@pytest.mark.parametrize("bandwidth", [2.0, 0.05])  # of wide kernels ratios are corrected, of narrow ones at some rows
@pytest.mark.parametrize("n", [2, 3, 60])
@pytest.mark.parametrize("debias", [True, "partial", False])
@pytest.mark.parametrize("p", [None, 1, 2, 3])
def test_of_any_number_of_rows(n, debias, p, bandwidth):
    generator = torch.Generator().manual_seed(n)
    z = torch.randn(n, 3, generator=generator)
    y = torch.randint(0, 3, (n,), generator=generator)
    rows = ClassRows.of(z, y)
    fused = FusedKDE(p, bandwidth, debias)(rows, wants_gradient=False)
    estimator = Sharpness(bandwidth, debias) if p is None else KDE(p, bandwidth, debias, root=False)
    assert fused.value.item() == pytest.approx(estimator(y.numpy(), rows.p.numpy()).value, rel=1e-11)
    assert fused.slope is None
