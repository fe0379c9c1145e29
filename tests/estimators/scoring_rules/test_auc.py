import numpy as np
import pytest
from scipy.stats import binom, norm
from sklearn.metrics import roc_auc_score

from calibrant import Categorical, PairedDifference, TopLabel
from calibrant._validate import InputError
from calibrant.estimators import AUC, EachDraw


def of_pairs(y, p, w):
    """The definition: over all pairs of an event and another row; and DeLong's variance from the shares of each row."""
    yes, no = y == 1, y == 0
    right = (p[yes][:, None] > p[no]) + 0.5 * (p[yes][:, None] == p[no])
    v, u = w[yes] / w[yes].sum(), w[no] / w[no].sum()
    area = v @ right @ u
    n, m = yes.sum(), no.sum()
    variance = n / (n - 1) * (v**2 @ (right @ u - area) ** 2) + m / (m - 1) * (u**2 @ (v @ right - area) ** 2)
    return area, np.sqrt(variance)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_equals_the_sum_over_pairs_with_ties(rng, is_weighted):
    p = rng.integers(0, 8, 200) / 8
    y = (rng.random(200) < p) * 1
    w = rng.exponential(size=200) if is_weighted else np.ones(200)
    result = AUC()(y, p, sample_weight=w if is_weighted else None)
    area, error = of_pairs(y, p, w)
    assert result.value == pytest.approx(area, rel=1e-12)
    assert result.value == pytest.approx(roc_auc_score(y, p, sample_weight=w), rel=1e-12)
    assert result.standard_error == pytest.approx(error, rel=2e-2)  # of n rows in all, not of two samples


def test_resamples_of_one_kind_count_as_chance(rng):
    p = rng.random(6)
    estimator, _, predictions = AUC().reduce(np.array([0, 0, 0, 1, 1, 1]), Categorical(np.column_stack([1 - p, p])))
    drawn = np.array([[0] * 6, [1] * 6, [0, 1, 0, 1, 1, 0]])
    fast = estimator.given(predictions, None)(drawn)
    assert fast[:2].tolist() == [0.5, 0.5]
    assert fast[2:] == pytest.approx(EachDraw(estimator, predictions, None)(drawn[2:]), rel=1e-12)


def binormal(rng, m, n, area):
    """Events and other rows with normal scores."""
    return rng.normal(np.sqrt(2) * norm.ppf(area), 1, m), rng.normal(size=n)


def strays(rng, m, n, area):
    """All is told apart but for strays: some events rank below everything."""
    return np.where(rng.random(m) < area, 5.0, -5.0) + rng.random(m), rng.random(n)


@pytest.mark.parametrize("world", [binormal, strays])
@pytest.mark.parametrize(
    ("m", "n", "area"), [(5, 300, 0.9), (10, 10, 0.9), (12, 1000, 0.97), (300, 8, 0.7), (40, 40, 0.9)]
)
def test_the_interval_holds_where_events_are_few_or_told_apart(rng, world, m, n, area):
    sets, y, missed = 300, np.repeat([1, 0], [m, n]), 0
    for _ in range(sets):
        scores = norm.cdf(np.concatenate(world(rng, m, n, area)) / 6)
        missed += area not in AUC()(y, scores).confidence_interval()
    assert missed <= binom.ppf(0.9999, sets, 0.05)


def test_perfect_ranks_have_a_lower_end(rng):
    """A share q of events below all others is not seen in 20 with chance 0.98 (1 - q)^20: the exact limit is 0.832."""
    low, high = AUC()([0] * 500 + [1] * 20, np.linspace(0, 1, 520)).confidence_interval()
    assert 0.77 < low < 0.832
    assert high == 1


def test_few_events_have_no_interval():
    result = AUC()([0] * 30 + [1] * 4, np.linspace(0, 1, 34))
    assert result.value == 1
    with pytest.raises(ValueError, match="of 4 events and 30 other rows; 5 of each have an interval"):
        result.confidence_interval()


def test_one_score_ranks_nothing():
    result = AUC()([0, 1] * 20, [0.3] * 40)
    assert (result.value, result.withheld) == (0.5, "every score is 0.3, which ranks nothing")


@pytest.mark.parametrize(("y", "kind"), [([1, 1], "an event"), ([0, 0], "without the event")])
def test_one_kind_of_rows_is_refused(y, kind):
    with pytest.raises(InputError, match=f"every row of y_true is {kind}: AUC ranks events above the others"):
        AUC()(y, [0.2, 0.7])


def test_rows_without_weight_are_no_events():
    with pytest.raises(InputError, match="every row of y_true is without the event"):
        AUC()([0, 0, 1], [0.1, 0.2, 0.3], sample_weight=[1, 1, 0])


def test_the_confidence_tells_right_answers_from_wrong_ones(rng):
    p = rng.dirichlet(np.ones(4), 300)
    y = np.array([rng.choice(4, p=row) for row in p])
    right = y == p.argmax(axis=1)
    assert AUC(TopLabel())(y, p).value == pytest.approx(roc_auc_score(right, p.max(axis=1)), rel=1e-12)


def test_differences_are_withheld(rng):
    """Resamples held the difference of areas in 81 % of data sets with 25 events told apart well."""
    p = rng.random(100)
    y = (rng.random(100) < p) * 1
    assert "compare the intervals of both models" in PairedDifference(AUC(), 99)(y, p, p**2).withheld
