import numpy as np
import pytest

from calibrant import Categorical, TopLabel
from calibrant._validate import InputError
from calibrant.checks import check_estimator
from calibrant.estimators import DensityECE


def by_summing(y, p, norm, t):
    """Triweight densities summed over rows and their mirror images."""
    bandwidth = p[y == 1].std() * (2 * len(p)) ** -0.2

    def density(scores):
        points = np.sort(np.concatenate([scores, np.where(scores < 0.5, -scores, 2 - scores)]))
        ends = np.searchsorted(points, np.stack([t - 3 * bandwidth, t + 3 * bandwidth]))
        near = (points[a:b] - x for x, a, b in zip(t, *ends, strict=True))
        return np.array([((1 - (u / (3 * bandwidth)) ** 2) ** 3).sum() for u in near])

    right, all_ = density(p[y == 1]), density(p)
    frequency = np.minimum(right / np.maximum(all_, 1e-300), 1)
    return np.trapezoid(np.abs(t - frequency) ** norm * all_, t) / np.trapezoid(all_, t)


@pytest.mark.parametrize("norm", [1, 2])
def test_the_definition(norm, rng):
    p = rng.beta(2, 1, 300)
    y = (rng.random(300) < p**2).astype(int)
    exact = by_summing(y, p, norm, np.linspace(0, 1, 3001)) ** (1 / norm)
    assert DensityECE(norm)(y, p).value == pytest.approx(exact, rel=1e-5)


PUBLISHED = {
    "wideresnet-16-4-cifar-10": (0.04772722337927073, 0.0070589101390042324),
    "densenet-bc-100-cifar-100": (0.13529287119414532, 0.028645328525722647),
}
"""Of the authors' package, first and second powers. Its grid ends a fraction of a cell below 1, where most of the scores are."""


def test_the_published_values_but_for_their_grid(network):
    name, y, p = network
    for norm, value in zip((1, 2), PUBLISHED[name], strict=True):
        assert DensityECE(norm, TopLabel())(y, p.astype(np.float64)).value ** norm == pytest.approx(value, rel=0.008)


def test_the_published_grid_gives_the_published_value(network):
    name, y, p = network
    grid = np.linspace(-0.6, 1.6, 2**14)
    targets, predictions = TopLabel()(y, p.astype(np.float64))
    scores = predictions.probability(1)
    theirs = by_summing(targets, scores, 1, grid[(grid > 0) & (grid < 1)])
    assert theirs == pytest.approx(PUBLISHED[name][0], rel=1e-5)
    ours = by_summing(targets, scores, 1, np.linspace(0, 1, 2001))
    assert DensityECE()(targets, scores).value == pytest.approx(ours, rel=1e-4)


def test_conformance(rng):
    p = rng.random(60)
    check_estimator(DensityECE(), (rng.random(60) < p) * 1, Categorical(p))


def test_weights_count_rows(rng):
    p, times = rng.random(50), rng.integers(1, 4, 50)
    y = (rng.random(50) < p).astype(int)
    repeated = DensityECE()(np.repeat(y, times), np.repeat(p, times)).value
    # the number of rows enters the bandwidth: repeated rows are more of them
    assert DensityECE()(y, p, sample_weight=times.astype(float)).value == pytest.approx(repeated, rel=0.1)


def test_what_has_no_density():
    with pytest.raises(InputError, match="the event never happened"):
        DensityECE()([0, 0], [0.2, 0.3])
    with pytest.raises(InputError, match="all scores where the event happened are equal"):
        DensityECE()([1, 1, 0], [0.2, 0.2, 0.5])
    with pytest.raises(InputError, match="norm must be a finite number of at least 1; got inf"):
        DensityECE(np.inf)
