from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest

from calibrant import ECE, SKCE, EqualWidth, Normal
from calibrant._validate import InputError
from calibrant.inference import ConsistencyTest, monte_carlo
from calibrant.inference.classical import CONSISTENCY_NOTE
from calibrant.kernels import Exponential, Gaussian


def test_pvalue_against_enumeration():
    """Three rows: 27 sets of rows drawn with replacement, times 8 sets of targets."""
    p, y = np.array([0.2, 0.5, 0.9]), np.array([1, 0, 1])
    estimator = ECE(EqualWidth(2))
    observed, exact = estimator(y, p).value, 0.0
    for rows in product(range(3), repeat=3):
        q = p[list(rows)]
        for outcome in product([0, 1], repeat=3):
            chance = np.prod(np.where(outcome, q, 1 - q)) / 27
            exact += chance if estimator(np.array(outcome), q).value >= observed - 1e-12 else 0.0
    found = ConsistencyTest(estimator, n_resamples=5000)(y, p).pvalue
    assert abs(found - exact) < 4 * np.sqrt(exact * (1 - exact) / 5000) + 1 / 5000


def test_it_rejects_too_often(rejections, bounds):
    """At twenty rows, 12 % of calibrated data sets instead of the 5 % asked for; the result says so."""
    assert rejections(ConsistencyTest(ECE(), 59), "binary", 20, 300) > bounds(300)[1]
    assert ConsistencyTest(ECE(), 9)([0, 1], [0.2, 0.7]).notes == (CONSISTENCY_NOTE,)


def test_kernels_are_those_of_the_data(rng):
    """An open length scale is resolved once, not for each resample."""
    p, y = rng.random(30), rng.integers(0, 2, 30)
    test = ConsistencyTest(SKCE(), 20)
    resolved = ConsistencyTest(test(y, p).estimate.estimator, 20)
    assert np.array_equal(test(y, p).null_distribution, resolved(y, p).null_distribution)


def test_any_family_and_any_statistic(rng):
    predictions = Normal.example(rng, 40)
    y = predictions.sample(rng, 1)[0]
    assert 0.02 <= ConsistencyTest(SKCE(Exponential(1.0), Gaussian(1.0)), 49)(y, predictions).pvalue <= 1
    result = ConsistencyTest(lambda targets, q: float(abs(np.mean(targets - q.loc))), 49)(y, predictions)
    assert 0.02 <= result.pvalue <= 1


def test_weights_travel_with_their_rows(rng):
    p, y = rng.random(60), rng.integers(0, 2, 60)

    def astray(targets, predictions, sample_weight):
        return float(np.abs(sample_weight - predictions.probs).max())

    result = ConsistencyTest(astray, 9)(y, p, sample_weight=p)
    assert not result.null_distribution.any()


def test_errors_are_found(rng):
    p = rng.random(300)
    y = (rng.random(300) < 0.25 + p / 2).astype(int)
    assert ConsistencyTest(ECE(), 99)(y, p).pvalue == 0.01


def test_same_seed_same_digits_whatever_the_workers(rng, monkeypatch):
    monkeypatch.setattr(monte_carlo, "CHUNK", 1000)  # several chunks
    p, y = rng.random(50), rng.integers(0, 2, 50)
    alone = ConsistencyTest(ECE(), 99)(y, p, rng=5)
    with ThreadPoolExecutor(2) as pool:
        other = ConsistencyTest(ECE(), 99)(y, p, rng=5, engine=pool)
    assert other.pvalue == alone.pvalue
    assert np.array_equal(other.null_distribution, alone.null_distribution)


def test_degenerate_input(degenerate):
    for estimator in (ECE(), SKCE()):
        assert 0.02 <= ConsistencyTest(estimator, 49)(*degenerate).pvalue <= 1


def test_no_residuals_no_evidence():
    assert ConsistencyTest(ECE(), 49)([0, 1, 1], [0.0, 1.0, 1.0]).pvalue == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"estimator": "ECE"}, r"estimator must be an estimator such as ECE\(\); got 'ECE'"),
        ({"n_resamples": 0}, "n_resamples must be a whole number of at least 1; got 0"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        ConsistencyTest(**{"estimator": ECE(), **settings})
