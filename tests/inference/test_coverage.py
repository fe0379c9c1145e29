import time

import numpy as np
import pytest
from scipy.stats import beta, norm, poisson, t

from calibrant import Ensemble, MultivariateNormal, Normal, coverage
from calibrant._validate import InputError
from calibrant.distributions import Poisson
from calibrant.estimators import by_spread
from calibrant.inference import interval_of_share


def test_shares_by_hand(rng):
    batch = Normal.example(rng, 80)
    y = 1.5 * batch.sample(rng, 1)[0]
    table = coverage(y, batch, levels=[0.5, 0.9])
    for row, (level, half) in enumerate(((0.5, 0.674490), (0.9, 1.644854))):
        hits = int((np.abs(y - batch.loc) <= half * batch.scale).sum())
        assert table["observed"][row] == pytest.approx(hits / 80)
        assert (table["low"][row], table["high"][row]) == pytest.approx(tuple(interval_of_share(hits, 80)))
        assert table["width"][row] == pytest.approx(2 * half * batch.scale.mean(), rel=1e-5)
        assert table["expected"][row] == pytest.approx(level)
        assert table["n"][row] == 80


def test_intervals_hold_the_level():
    """Clopper-Pearson: at least 95 % of 400 calibrated data sets, within binomial bounds."""
    rng = np.random.default_rng(2)
    inside = 0
    for _ in range(400):
        batch = Normal.example(rng, 40)
        table = coverage(batch.sample(rng, 1)[0], batch, levels=0.8)
        inside += table["low"][0] <= 0.8 <= table["high"][0]
    assert inside / 400 > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 400)


def test_counts_expect_more_than_the_level(counts, rng):
    """Both ends belong to the interval: what is expected says so, and calibrated counts agree with it."""
    batch = counts.example(rng, 20_000)
    y = batch.sample(rng, 1)[0]
    table = coverage(y, batch, levels=[0.5, 0.9])
    assert np.all(table["expected"] > [0.6, 0.92])
    assert np.all((table["low"] <= table["expected"]) & (table["expected"] <= table["high"]))


def test_members_expect_what_they_hold():
    batch = Ensemble(np.tile(np.arange(10.0), (3, 1)))
    table = coverage([0.0, 5.0, 12.0], batch, levels=0.8)
    assert table["expected"].tolist() == pytest.approx([0.9])  # from the first member to the ninth
    assert table["observed"].tolist() == pytest.approx([2 / 3])


def test_groups_and_weights(rng):
    scale = np.repeat([1.0, 3.0], 200)
    y = rng.normal(0, 2.0, 400)
    batch = Normal(np.zeros(400), scale)
    table = coverage(y, batch, levels=[0.5, 0.9], by=by_spread(batch, 2))
    assert table["group"].tolist() == [1, 1, 3, 3]
    assert table["level"].tolist() == [0.5, 0.9, 0.5, 0.9]
    assert np.all(table["high"][:2] < table["expected"][:2])  # too sure where it says it is sure
    assert np.all(table["low"][2:] > table["expected"][2:])  # too timid where it is not
    alone = coverage(y[:200], batch[:200], levels=[0.5, 0.9])
    assert table["observed"][:2] == pytest.approx(alone["observed"])
    times = rng.integers(0, 3, 400)
    weighted = coverage(y, batch, levels=0.9, sample_weight=times)
    rows = np.repeat(np.arange(400), times)
    assert weighted["observed"] == pytest.approx(coverage(y[rows], batch[rows], levels=0.9)["observed"])
    kept = coverage(y, batch, levels=0.9, sample_weight=np.repeat([1.0, 0.0], 200), by=scale)
    assert kept["group"].tolist() == [1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"levels": [0.5, 1.0]}, "levels must lie strictly between 0 and 1; got 1.0"),
        ({"levels": []}, "levels must hold at least one level"),
        ({"confidence_level": 0}, "confidence_level must lie strictly between 0 and 1"),
        ({"by": [1, 2, 3]}, "by has 3 rows and y_true has 2"),
        ({"by": [[1, 2]]}, "by must be one value per row"),
        ({"sample_weight": [1.0, -1.0]}, "sample_weight must not be negative"),
    ],
)
def test_settings_that_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        coverage([0.0, 1.0], Normal([0.0, 0.0], 1.0), **options)


def test_families_that_are_refused():
    with pytest.raises(InputError, match="coverage needs quantiles, which Categorical predictions do not have"):
        coverage([0, 1], [0.2, 0.4])
    with pytest.raises(InputError, match="coverage needs quantiles, which MultivariateNormal"):
        coverage([[0.0, 1.0]], MultivariateNormal([[0.0, 1.0]], 1.0))


def test_one_row():
    table = coverage([0.0], Normal([0.0], 1.0), levels=0.5)
    assert (table["observed"][0], table["high"][0]) == (1, 1)


def test_large_ensembles_in_about_a_second(rng):
    y, batch = rng.normal(size=14_600), Ensemble(rng.normal(size=(14_600, 50)))
    start = time.perf_counter()
    coverage(y, batch)
    assert time.perf_counter() - start < 10  # a shared machine


def test_of_counts_in_clusters_by_all_pairs(rng):
    """Intervals of counts hold more than their level, each row its own share, which its variance follows."""
    size, groups, level = 4, 30, 0.8
    mean = np.exp(rng.normal(0, 1.5, size * groups))
    y = rng.poisson(mean * np.repeat(rng.gamma(3, 1 / 3, groups), size))
    low, high = poisson(mean).interval(level)
    p = poisson(mean).cdf(high) - poisson(mean).cdf(low - 1)
    e, observed, n = (y >= low) & (y <= high), np.mean((y >= low) & (y <= high)), size * groups
    e = e - p
    v, label = p * (1 - p), np.repeat(np.arange(groups), size)
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j and label[i] == label[j]]
    spread = (e @ e) / v.sum()
    alike = sum(e[i] * e[j] for i, j in pairs) / (spread * sum(np.sqrt(v[i] * v[j]) for i, j in pairs))
    assert 0.02 < alike < 1
    worth = n / (1 + alike * (size - 1)) * (norm.ppf(0.025) / t(groups - 1).ppf(0.025)) ** 2
    inside = observed * worth
    expected = beta(inside, worth - inside + 1).ppf(0.025), beta(inside + 1, worth - inside).ppf(0.975)
    table = coverage(y, Poisson(mean), levels=[level], clusters=label)
    assert (table["low"][0], table["high"][0]) == pytest.approx(expected, rel=1e-9)
