import numpy as np
import pytest
from scipy.stats import binom

from calibrant import ECE, Brier, Categorical, EqualMass, ExactTest
from calibrant.inference.exact_tests.aggregated import Pool


@pytest.fixture
def drawn(rng):
    p = rng.random(80)
    y, predictions = (rng.random(80) < p) * 1, Categorical(p)
    statistics = {"error": ECE(EqualMass(5)).given(predictions, None), "score": Brier().given(predictions, None)}
    return y, p, Pool.draw(statistics, y, predictions, 99, two_sided=["score"], rng=3)


def test_each_statistic_is_tested_as_by_itself(drawn):
    y, p, pool = drawn
    error, score = ExactTest(ECE(EqualMass(5)), 99)(y, p, rng=3), ExactTest(Brier(), 99, "two-sided")(y, p, rng=3)
    assert (pool.pvalue("error"), pool.null_band("error")) == (error.pvalue, error.null_band())
    assert pool.pvalue("score") == score.pvalue
    assert pool.observed("error") == pytest.approx(error.statistic)
    assert pool.excess("error") == pytest.approx(error.statistic - error.null_distribution.mean())
    assert pool.n_resamples == 99


def test_many_columns_come_from_one_statistic(drawn):
    y, p, _ = drawn
    pool = Pool.draw({"both": lambda targets: targets[:, :2] * 1.0}, y, Categorical(p), 19)
    assert pool.values["both"].shape == (20, 2)
    assert pool.values["both"][-1].tolist() == y[:2].tolist()


def test_adjusted_pvalues_are_those_of_the_largest_score(rng):
    values = rng.normal(size=(200, 6)) * np.arange(1, 7)
    values[-1, 2] = 20.0
    pool = Pool({"a": values[:, :2], "b": values[:, 2:]})
    z = (values - values.mean(axis=0)) / values.std(axis=0)
    assert pool.adjusted(["a", "b"]) == pytest.approx([(z.max(axis=1) >= x).mean() for x in z[-1]])
    assert pool.adjusted(["a", "b"])[2] == 1 / 200


def test_a_family_counts_as_one(rng):
    """Fifty columns of noise in one family, beside one signal: the signal is found as if there were two statistics."""
    values = rng.normal(size=(400, 51))
    values[-1, 0] = 6.0
    pool = Pool({"signal": values[:, :1], "noise": values[:, 1:]})
    assert pool.together(["signal"], [["noise"]]) == 1 / 400
    assert pool.together(["signal"], [[]]) == pool.pvalue("signal")


def test_the_level_of_all_together_is_exact(rng):
    """Of exchangeable rows: 5 % of p-values are at most 5 %, within the 99.9 % binomial bound."""
    low, high = binom.ppf([0.0005, 0.9995], 400, 0.05)
    pvalues = []
    for _ in range(400):
        values = rng.normal(size=(40, 8)) @ rng.normal(size=(8, 8))
        pool = Pool({"a": values[:, :1], "b": values[:, 1:2], "c": values[:, 2:]}, frozenset("b"))
        pvalues.append(pool.together(["a", "b"], [["c"]]))
    assert low <= np.sum(np.array(pvalues) <= 0.05) <= high


def test_what_is_infinite_stands_out_without_end():
    values = np.array([[0.1], [0.3], [0.2], [np.inf]])
    assert Pool({"a": values}).together(["a"]) == 0.25
    assert Pool({"a": values}).adjusted(["a"]).tolist() == [0.25]


def test_the_strongest_has_the_smallest_rank(rng):
    values = rng.normal(size=(100, 3))
    values[-1] = [0.0, 9.0, 5.0]
    pool = Pool({"a": values[:, :1], "b": values[:, 1:2], "c": values[:, 2:]})
    assert pool.strongest(["a", "b", "c"]) == "b"
