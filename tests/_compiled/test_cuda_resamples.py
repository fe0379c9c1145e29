import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from calibrant._compiled.cuda_resamples import LabelSums  # noqa: E402


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-13)])
@pytest.mark.parametrize(("n", "k"), [(1, 3), (130, 3), (300, 6)])
def test_sums_of_resamples_are_those_of_the_matrix(gpu, rng, n, k, gaussian, dtype, tolerance):
    p, w = rng.dirichlet(np.ones(k), n), rng.uniform(0.5, 1.5, n)
    y = rng.integers(0, k, (5, n))
    distance = np.sqrt(((p[:, None] - p) ** 2).sum(axis=2)) / 0.3
    kernel = np.exp(-(distance**2) / 2 if gaussian else -distance) * (w[:, None] * w)
    r = np.eye(k)[y] - p
    h = kernel * np.einsum("mik,mjk->mij", r, r)
    own = np.einsum("mii->m", h)
    points = torch.tensor(p, device=gpu)
    sums = LabelSums(points, points, torch.tensor(w, device=gpu), 0.3, gaussian, dtype)
    labels = torch.tensor(y, device=gpu)
    assert np.abs(sums(labels).cpu().numpy() - (h.sum(axis=(1, 2)) - own)).max() <= tolerance * kernel.sum()
    assert np.allclose(sums.diagonal(labels).cpu().numpy(), own, rtol=1e-12)
