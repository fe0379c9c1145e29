import numpy as np
import pytest

from calibrant.estimators import SampledLocations
from calibrant.kernels import Euclidean, Exponential, Gaussian
from calibrant.kernels.metrics import median_distance

torch = pytest.importorskip("torch")

from calibrant.losses.pair_errors import KernelLaw, _drawn, median_of_pairs, squared_distances  # noqa: E402


@pytest.fixture
def p():
    return torch.softmax(3 * torch.randn(40, 6, generator=torch.Generator().manual_seed(0)).double(), 1)


@pytest.mark.parametrize("kernel", [Exponential(0.5), Gaussian(0.3)], ids=repr)
def test_kernels_are_those_of_the_estimators(p, kernel):
    law = KernelLaw(isinstance(kernel, Gaussian), kernel.unit)
    assert torch.allclose(law.over(p[:9], p, law.unit(p))[0], kernel(p[:9], p), rtol=1e-8)


def test_near_rows_keep_their_distance():
    p = torch.tensor([[0.3, 0.3, 0.4]], dtype=torch.float64).repeat(3, 1)
    p[1] += torch.tensor([1e-5, -1e-5, 0])
    d = squared_distances(p, p).clamp(min=0).sqrt()
    assert d[0, 1].item() == pytest.approx(2**0.5 * 1e-5, rel=1e-4)
    assert d[0, 2] == 0


def test_no_row_is_away_from_itself():
    p = torch.softmax(3 * torch.randn(500, 30, generator=torch.Generator().manual_seed(0)).double(), 1)
    assert squared_distances(p, p).diagonal().max() < 0


@pytest.mark.parametrize("n", [2, 3, 4, 17, 40])
def test_the_median_is_that_of_numpy(p, n):
    expected = median_distance(p[:n].numpy(), Euclidean())
    assert median_of_pairs(p[:n]).item() == pytest.approx(expected, rel=1e-9)


def test_the_median_of_equal_rows(p):
    assert median_of_pairs(p[:1].repeat(5, 1)) == 1
    some = torch.cat([p[:1].repeat(9, 1), p[1:2]])
    assert median_of_pairs(some).item() == pytest.approx(median_distance(some.numpy(), Euclidean()), rel=1e-9)


def test_locations_are_those_that_are_sampled():
    class Measure:
        pass

    rows = np.arange(30)
    (chosen, _), _ = SampledLocations(7, 3).choose(Measure(), rows, rows)
    assert _drawn(30, 7, 3) == chosen.tolist()
