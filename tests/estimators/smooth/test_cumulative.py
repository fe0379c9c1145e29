import numpy as np
import pytest

from calibrant import Bernoulli, Categorical, ClassWise, ExactTest, TopLabel
from calibrant.checks import check_estimator
from calibrant.estimators import KolmogorovSmirnov, Kuiper


def walk(y, p, w=None):
    """From the definition: the sum over all rows up to each score."""
    w = np.ones(len(p)) if w is None else w
    return np.array([0.0, *(np.sum((w * (p - y))[p <= t]) / w.sum() for t in np.unique(p))])


@pytest.mark.parametrize("weighted", [False, True])
def test_the_definitions(weighted, rng):
    p = rng.random(200).round(2)
    y = (rng.random(200) < p).astype(int)
    w = rng.integers(0, 4, 200).astype(float) if weighted else None
    steps = walk(y, p, w)
    assert KolmogorovSmirnov()(y, p, sample_weight=w).value == pytest.approx(np.abs(steps).max(), rel=1e-12)
    assert Kuiper()(y, p, sample_weight=w).value == pytest.approx(np.ptp(steps), rel=1e-12)


def test_published_values_on_real_networks(network):
    name, y, p = network
    exact = {"wideresnet-16-4-cifar-10": 0.0537162954211235, "densenet-bc-100-cifar-100": 0.14215283188670874}[name]
    assert KolmogorovSmirnov(TopLabel())(y, p.astype(np.float64)).value == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("kind", [KolmogorovSmirnov, Kuiper])
def test_conformance(kind, rng):
    p = rng.random(50).round(1)
    check_estimator(kind(), (rng.random(50) < p) * 1, Categorical(p))
    classes = Categorical.example(rng, 40)
    check_estimator(kind(lens=ClassWise()), classes.sample(rng, 1)[0].astype(int), classes)
    labels = rng.random((30, 2))
    check_estimator(kind(), (rng.random((30, 2)) < labels) * 1, Bernoulli(labels))


@pytest.mark.parametrize("kind", [KolmogorovSmirnov, Kuiper])
def test_the_level_of_the_exact_test_holds(kind):
    rng, rejected = np.random.default_rng(3), 0
    for seed in range(600):
        p = rng.beta(0.7, 0.4, 60)
        y = (rng.random(60) < p).astype(int)
        rejected += ExactTest(kind(), n_resamples=99)(y, p, rng=seed).pvalue <= 0.05
    assert 14 <= rejected <= 49  # 99.9 % of a binomial distribution with mean 30


@pytest.mark.parametrize(
    ("y", "p", "farthest", "range_"),
    [
        ([1], [0.3], 0.7, 0.7),
        ([1, 0], [0.5, 0.5], 0.0, 0.0),
        ([0, 1], [0.0, 1.0], 0.0, 0.0),
        ([1, 0], [0.0, 1.0], 0.5, 0.5),
    ],
)
def test_small_and_constant_data(y, p, farthest, range_):
    assert KolmogorovSmirnov()(y, p).value == pytest.approx(farthest)
    assert Kuiper()(y, p).value == pytest.approx(range_)
