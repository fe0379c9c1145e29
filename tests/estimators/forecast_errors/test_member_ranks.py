import itertools
import time

import numpy as np
import pytest

from calibrant.estimators.forecast_errors.pit import MemberRanks


def uniform_counts(levels, rng):
    """Ten bins of the random levels between the ends; chi-square of uniform ones has mean 9 and variance 18."""
    low, high = levels
    counts = np.histogram(low + rng.random(low.shape) * (high - low), bins=10, range=(0, 1))[0]
    return ((counts - len(low) / 10) ** 2 / (len(low) / 10)).sum()


def test_ranks_among_members():
    low, high = MemberRanks(np.array([[1.0, 2.0, 3.0]]))(np.array([[0.0], [2.0], [2.5], [9.0]]))
    assert (4 * low).ravel().tolist() == [0, 1, 2, 3]
    assert (4 * high).ravel().tolist() == [1, 3, 3, 4]


@pytest.mark.parametrize("digits", [8, 0])  # without ties, and with many
def test_a_target_like_the_members_is_uniform(digits, rng):
    pool = rng.normal(size=(20_000, 5)).round(digits)
    assert uniform_counts(MemberRanks(pool[:, 1:])(pool[:, 0]), rng) < 9 + 5 * np.sqrt(18)
    assert uniform_counts(MemberRanks(pool[:, 1:])(1.3 * pool[:, 0]), rng) > 9 + 5 * np.sqrt(18)


def test_missing_members_do_not_count(rng):
    pool = rng.normal(size=(20_000, 8)).round(1)
    some = np.where(np.arange(7) < rng.integers(1, 8, (20_000, 1)), pool[:, 1:], np.nan)
    ranks = MemberRanks(some)
    assert np.array_equal(ranks.numbers, np.isfinite(some).sum(axis=1))
    assert uniform_counts(ranks(pool[:, 0]), rng) < 9 + 5 * np.sqrt(18)
    alone = MemberRanks(np.array([[1.0, 3.0]]))(np.array([2.0]))
    padded = MemberRanks(np.array([[1.0, 3.0, np.nan]]))(np.array([2.0]))
    assert np.array_equal(alone, padded)


def slow_prerank(pool, kind):
    """By definition: ranks in each coordinate, or the bands of two members that hold a point, ties without."""
    if kind == "average":
        return [np.mean([(pool[:, k] <= x[k]).sum() for k in range(pool.shape[1])]) for x in pool]
    inside = []
    for i, x in enumerate(pool):
        others = [p for j, p in enumerate(pool) if j != i]
        bands = [np.minimum(a, b) < x for a, b in itertools.combinations(others, 2)]
        tops = [np.maximum(a, b) > x for a, b in itertools.combinations(others, 2)]
        inside.append(np.mean([(low & high).sum() for low, high in zip(bands, tops, strict=True)]))
    return inside


@pytest.mark.parametrize("kind", ["average", "band"])
def test_preranks_by_definition(kind, rng):
    pool = rng.normal(size=(12, 6, 3))
    low, high = MemberRanks(pool[:, 1:], kind)(pool[:, 0])
    for row in range(12):
        order = np.array(slow_prerank(pool[row], kind))
        assert 6 * low[row] == pytest.approx(np.sum(order[1:] < order[0] - 1e-9))
        assert 6 * high[row] == pytest.approx(np.sum(order[1:] <= order[0] + 1e-9) + 1)


@pytest.mark.parametrize("kind", ["average", "band"])
@pytest.mark.parametrize("digits", [8, 0])
def test_vectors_like_the_members_are_uniform(kind, digits, rng):
    pool = (rng.normal(size=(20_000, 6, 1)) + rng.normal(size=(20_000, 6, 3))).round(digits)
    assert uniform_counts(MemberRanks(pool[:, 1:], kind)(pool[:, 0]), rng) < 9 + 5 * np.sqrt(18)


def test_what_each_prerank_sees(rng):
    """Shifted targets have high average ranks; targets too far out have shallow bands."""
    members, y = rng.normal(size=(2_000, 20, 3)), rng.normal(size=(2_000, 3))
    assert MemberRanks(members, "average")(y + 1)[0].mean() > 0.7
    assert MemberRanks(members, "band")(3 * y)[1].mean() < 0.3


def test_stacks_are_their_members(rng):
    members = rng.normal(size=(7, 5, 2)).round(1)
    y = rng.normal(size=(4, 7, 2)).round(1)
    for kind in ("average", "band"):
        low, high = MemberRanks(members, kind)(y)
        singles = [MemberRanks(members, kind)(one) for one in y]
        assert np.array_equal(low, [s[0] for s in singles])
        assert np.array_equal(high, [s[1] for s in singles])


def test_large_ensembles_in_about_a_second(rng):
    start = time.perf_counter()
    MemberRanks(rng.normal(size=(14_600, 50)))(rng.normal(size=14_600))
    assert time.perf_counter() - start < 10  # a shared machine
