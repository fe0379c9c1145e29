import pickle

import numpy as np
import pytest

from calibrant import SKCE, Categorical, ExactTest, Normal
from calibrant._validate import InputError
from calibrant.estimators import EachDraw, RandomFeatureSKCE
from calibrant.estimators.kernel_errors.random_features import MAX_FEATURES, MIN_FEATURES, affordable_features
from calibrant.kernels import Energy, Exponential, Gaussian, Identity


def by_hand(y, p, kernel, n_features, seed, w):
    frequencies = kernel.frequencies(np.random.default_rng(seed), n_features, p.shape[1])
    phase = p @ frequencies.T
    k = (np.cos(phase) @ np.cos(phase).T + np.sin(phase) @ np.sin(phase).T) / n_features
    r = (np.eye(p.shape[1])[y] - p) * w[:, None]
    h = k * (r @ r.T)
    return (h.sum() - np.trace(h)) / (w.sum() ** 2 - (w**2).sum())


@pytest.mark.parametrize("kernel", [Exponential(0.4), Gaussian(0.4)], ids=repr)
@pytest.mark.parametrize("weighted", [True, False])
def test_the_statistic_by_hand(kernel, weighted, rng):
    p, y = rng.dirichlet(np.ones(3), 80), rng.integers(0, 3, 80)
    w = rng.random(80) if weighted else np.ones(80)
    value = RandomFeatureSKCE(kernel, n_features=20, seed=3)(y, p, sample_weight=w if weighted else None).value
    assert value == pytest.approx(by_hand(y, p, kernel, 20, 3, w), rel=1e-4)


@pytest.mark.parametrize("family", [Categorical, Normal])
def test_many_features_approach_the_kernel(family, rng):
    predictions = family.example(rng, 200)
    y = predictions.sample(rng, 1)[0]
    exact = SKCE()(y, predictions)
    random = RandomFeatureSKCE(n_features=20_000)(y, predictions)
    assert random.value == pytest.approx(exact.value, abs=0.2 * exact.standard_error)
    assert random.route == "random features"


@pytest.mark.parametrize("family", [Categorical, Normal])
@pytest.mark.parametrize("n_features", [30, 51])
@pytest.mark.parametrize("weighted", [True, False])
def test_resamples_in_bulk_equal_one_by_one(family, n_features, weighted, rng, monkeypatch):
    """By sums over rows, and by pairs where there are fewer rows than features: 30 and 51 frequencies are 60 and 102 features."""
    for limit in ("BATCH", "CACHED"):
        monkeypatch.setattr(f"calibrant.estimators.kernel_errors.random_features.{limit}", 1500)
    predictions, weights = family.example(rng, 100), rng.random(100) if weighted else None
    estimator, drawn = RandomFeatureSKCE(n_features=n_features), predictions.sample(rng, 12)
    fast = estimator.given(predictions, weights)
    assert fast(drawn) == pytest.approx(EachDraw(estimator, predictions, weights)(drawn), rel=1e-4, abs=1e-8)
    by_pairs, by_sums = fast._by_pairs(drawn), fast._by_sums(drawn)
    assert by_pairs == pytest.approx(by_sums, rel=1e-4, abs=1e-4)
    assert pickle.loads(pickle.dumps(fast))(drawn) == pytest.approx(fast(drawn), rel=1e-12)


def test_large_tests_take_features_and_say_so(rng):
    p = rng.dirichlet(np.ones(4), 300)
    y = Categorical(p).sample(rng, 1)[0]
    exact = ExactTest(SKCE(), 19)(y, p)
    assert exact.notes == ()
    random = ExactTest(SKCE(), 19, budget=1e6)(y, p)
    assert "19 resamples of all pairs exceed the budget of 1e+06: RandomFeatureSKCE(" in random.notes[0]
    assert (
        random.statistic
        == RandomFeatureSKCE(SKCE()(y, p).estimator.on_predictions, Identity(), MIN_FEATURES)(y, p).value
    )


def test_the_level_is_exact_with_few_random_features():
    rng, rejected = np.random.default_rng(0), 0
    for _ in range(400):
        p = rng.dirichlet(np.ones(3), 12)
        y = Categorical(p).sample(rng, 1)[0]
        rejected += ExactTest(RandomFeatureSKCE(n_features=3), 19)(y, p, rng=rng).pvalue <= 0.05
    assert 7 <= rejected <= 37  # 99.9 % of Binomial(400, 0.05)


def test_how_many_random_features(rng):
    predictions = Categorical(rng.dirichlet(np.ones(4), 1000))
    kernels = Exponential(1.0), Identity()
    assert affordable_features(*kernels, predictions, 99, 1e15) == MAX_FEATURES
    assert affordable_features(*kernels, predictions, 99, 1.0) == MIN_FEATURES
    assert affordable_features(*kernels, predictions, 100, 100 * 1000 * 4 * 250.0) == 100
    assert affordable_features(Energy(), Identity(), predictions, 99, 1.0) is None


def test_two_classes_and_blocks_never_need_random_features(rng):
    binary = Categorical(rng.random(100_000))
    assert SKCE().affordable(binary, 999, 2e11) == SKCE()
    several = Categorical(rng.dirichlet(np.ones(3), 50))
    for estimator in (SKCE(block=5), SKCE(unbiased=False)):
        assert estimator.affordable(several, 999, 1.0) is estimator


def test_kernels_without_random_features():
    with pytest.raises(InputError, match=r"Energy\(\) has no random features"):
        RandomFeatureSKCE(Energy())([0, 1], [0.2, 0.4])
    with pytest.raises(InputError, match="has no features under Normal"):
        RandomFeatureSKCE(on_targets=Energy())([0.0, 1.0], Normal([0.0, 1.0], 1.0))


def test_waves_that_single_precision_does_not_see_are_left_out(rng, monkeypatch):
    predictions = Normal.example(rng, 200)
    estimator, drawn = RandomFeatureSKCE(Exponential(0.5), Gaussian(1.0), n_features=20), predictions.sample(rng, 9)
    fewer = estimator.given(predictions, None)
    monkeypatch.setattr("calibrant.estimators.kernel_errors.random_features.SMALL", 0.0)
    every = estimator.given(predictions, None)
    assert fewer.features.width < 0.8 * every.features.width
    assert fewer(drawn) == pytest.approx(every(drawn), rel=1e-4, abs=1e-8)
    squares = [one.features.squares(drawn[0]) for one in (fewer, every)]
    assert squares[0] == pytest.approx(squares[1], abs=1e-7)
