import numpy as np
import pytest
from scipy.stats import false_discovery_control

from calibrant import InputError
from calibrant.inference import benjamini_hochberg, holm, westfall_young


def test_holm_by_hand():
    assert holm([0.01, 0.02, 0.03, 0.5]) == pytest.approx([0.04, 0.06, 0.06, 0.5])
    assert holm([0.6, 0.7]).tolist() == [1.0, 1.0]


def test_untested_hypotheses_count():
    assert holm([0.001, 0.002], hypotheses=10) == pytest.approx([0.01, 0.018])


def test_family_wise_error(rng):
    """At most 5 % of families of 20 true hypotheses see any rejection."""
    any_rejected = [holm(rng.random(20)).min() <= 0.05 for _ in range(2000)]
    assert np.mean(any_rejected) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 2000)


def test_benjamini_hochberg_by_hand():
    """``p m / rank``, and never more than for a larger p-value: 0.04, 0.06, 0.052 -> 0.052, 0.5."""
    assert benjamini_hochberg([0.01, 0.5, 0.039, 0.03]) == pytest.approx([0.04, 0.5, 0.052, 0.052])
    assert benjamini_hochberg([0.6, 0.7]).tolist() == [0.7, 0.7]
    assert benjamini_hochberg([]).tolist() == []


def test_benjamini_hochberg_is_scipys(rng):
    for p in (rng.random(50) ** 3, np.round(rng.random(30), 1), rng.random(1)):
        assert benjamini_hochberg(p) == pytest.approx(false_discovery_control(p), rel=1e-14)


def test_untested_hypotheses_count_for_discoveries_too(rng):
    """The same as p-values of one for those that were not tested."""
    p = rng.random(5) ** 4
    assert benjamini_hochberg(p, hypotheses=12) == pytest.approx(benjamini_hochberg([*p, *[1.0] * 7])[:5], rel=1e-14)


def test_false_discovery_rate(rng):
    """Of 20 hypotheses 15 are true: on average at most 75 % of 5 % of the rejected ones are, and nearly so many."""
    shares = []
    for _ in range(2000):
        p = np.r_[rng.random(15), rng.random(5) * 1e-3]
        rejected = benjamini_hochberg(p) <= 0.05
        shares.append(rejected[:15].sum() / max(rejected.sum(), 1))
    error = np.std(shares) / 2000**0.5
    assert abs(np.mean(shares) - 0.75 * 0.05) < 4 * error


def test_discoveries_are_never_fewer_than_holms(rng):
    p = rng.random(40) ** 4
    assert np.all(benjamini_hochberg(p) <= holm(p))


def test_the_largest_of_all_by_hand():
    """Two of three resamples reach 1 somewhere, none reaches 5; ties count, and so does rounding."""
    adjusted = westfall_young(np.array([[1.0, 5.0], [1.0 + 1e-15, 0.0]]), np.array([1.0, 2.0, 0.5]))
    np.testing.assert_array_equal(adjusted, [[0.75, 0.25], [0.75, 1.0]])


def test_the_largest_of_all_holds_its_level_under_dependence(rng):
    """At most 5 % of families of ten equal statistics see any rejection, and not much less."""
    shared = np.abs(rng.normal(size=(2000, 100, 1)) + 0.3 * rng.normal(size=(2000, 100, 10)))
    any_rejected = [westfall_young(t[0], t[1:].max(axis=1)).min() <= 0.05 for t in shared]
    assert abs(np.mean(any_rejected) - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 2000)


@pytest.mark.parametrize("adjusted", [holm, benjamini_hochberg])
@pytest.mark.parametrize(
    ("pvalues", "message"),
    [
        ([0.5, 1.5], "numbers from 0 to 1 in one row"),
        ([-0.1], "numbers from 0 to 1 in one row"),
        ([[0.1], [0.2]], r"got shape \(2, 1\)"),
        ([0.1, np.nan], "pvalues"),
        (["a", "b"], "pvalues must hold real numbers"),
        ([[0.1], [0.2, 0.3]], "pvalues has rows of different lengths"),
    ],
)
def test_what_are_no_pvalues(adjusted, pvalues, message):
    with pytest.raises(InputError, match=message):
        adjusted(pvalues)


@pytest.mark.parametrize("adjusted", [holm, benjamini_hochberg])
def test_hypotheses_are_those_that_were_tested_and_more(adjusted):
    assert adjusted([]).tolist() == []
    with pytest.raises(InputError, match="hypotheses must count all that were tested, 2; got 1"):
        adjusted([0.1, 0.2], hypotheses=1)


def test_the_largest_of_each_resample_is_one_number():
    with pytest.raises(InputError, match=r"largest must be one number per resample; got shape \(2, 2\)"):
        westfall_young([1.0, 2.0], np.ones((2, 2)))
