import numpy as np
import pytest

from calibrant import EqualMass, EqualWidth
from calibrant._validate import InputError
from calibrant.estimators.binned.binning import Tally, lp_norm, tally, unit_of


@pytest.mark.parametrize("n_bins", [1, 3, 7, 10, 15, 20, 100, 1000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_edges_land_where_the_decimal_says(n_bins, dtype):
    """Every score j / B, as written, belongs to the bin below it; one step above, to the bin above."""
    edges = (np.arange(1, n_bins) / n_bins).astype(dtype)
    bins = EqualWidth(n_bins).bins(edges)
    assert np.array_equal(bins.index(edges), np.arange(n_bins - 1))
    assert np.array_equal(bins.index(np.nextafter(edges, dtype(1))), np.arange(1, n_bins))
    assert np.array_equal(bins.index(np.nextafter(edges, dtype(0))), np.arange(n_bins - 1))


def test_the_decimal_example():
    bins = EqualWidth(100).bins(np.zeros(1))
    assert bins.index(np.array([0.07, 0.29, 0.57, 0.58])).tolist() == [6, 28, 56, 57]


def test_ends_belong_to_the_outer_bins():
    bins = EqualWidth(10).bins(np.zeros(1))
    assert bins.index(np.array([0.0, 1e-300, 0.1, 1.0])).tolist() == [0, 0, 0, 9]


def test_arithmetic_agrees_with_search(rng):
    scores = rng.random(20_000).round(3)
    bins = EqualWidth(15).bins(scores)
    assert np.array_equal(bins.index(scores), np.maximum(np.searchsorted(np.arange(16) / 15, scores) - 1, 0))


@pytest.mark.parametrize(("n", "n_bins"), [(10, 4), (100, 15), (7, 7), (5, 15), (1, 3), (31, 2)])
def test_equal_mass_cuts_as_array_split(n, n_bins, rng):
    scores = rng.permutation(np.linspace(0.05, 0.95, n))
    counts = np.bincount(EqualMass(n_bins).bins(scores).index(scores))
    assert counts.tolist() == [len(part) for part in np.array_split(np.arange(n), n_bins) if len(part)]


def test_equal_mass_keeps_ties_together(rng):
    scores = np.repeat([0.1, 0.4, 0.4, 0.9], [3, 4, 5, 2])
    index = EqualMass(3).bins(scores).index(scores)  # cuts fall inside the run of 0.4 and move to its end
    assert index.tolist() == [0] * 12 + [1] * 2
    shuffled = rng.permutation(len(scores))
    assert np.array_equal(EqualMass(3).bins(scores[shuffled]).index(scores[shuffled]), index[shuffled])


def test_equal_mass_of_constant_scores_is_one_bin():
    assert len(EqualMass(15).bins(np.full(30, 0.7))) == 1


def test_equal_mass_with_scores_of_exactly_0_and_1():
    scores = np.array([0.0, 0.0, 0.0, 0.5, 1.0, 1.0])
    assert EqualMass(3).bins(scores).index(scores).tolist() == [0, 0, 0, 1, 2, 2]


@pytest.mark.parametrize("n_bins", [2, 4, 15])
def test_whole_weights_cut_as_repeated_rows(n_bins, rng):
    scores = rng.random(60).round(1)
    times = rng.integers(0, 5, 60)
    weighted = EqualMass(n_bins).bins(scores, times.astype(float))
    assert np.array_equal(weighted.edges, EqualMass(n_bins).bins(np.repeat(scores, times)).edges)


def test_fractional_weights_share_the_total_evenly(rng):
    scores, weights = rng.random(5000), rng.random(5000)
    bins = EqualMass(10).bins(scores, weights)
    share = np.bincount(bins.index(scores), weights=weights) / weights.sum()
    assert share == pytest.approx(np.full(10, 0.1), abs=1 / weights.sum())
    assert np.array_equal(EqualMass(10).bins(scores, weights * 1e-9).edges, bins.edges)


@pytest.mark.parametrize("binning", [EqualWidth, EqualMass])
@pytest.mark.parametrize("n_bins", [0, -1, 2.5, True, "15"])
def test_the_number_of_bins_is_checked(binning, n_bins):
    with pytest.raises(InputError, match="n_bins must be a whole number of at least 1; got"):
        binning(n_bins)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_bins", [1, 2, 15, 33, 34, 300])
def test_many_scores_are_found_in_the_bins_of_few(n_bins, dtype, rng):
    """Comparing with every edge finds what a search does, ties with edges included; so does a partition for a sort."""
    for scores in (rng.random(45_000), rng.random(45_000).round(2)):
        bins = EqualMass(n_bins).bins(scores.astype(dtype))
        ordered = np.sort(scores.astype(dtype))
        assert set(bins.edges[1:-1]) <= set(ordered)
        at = np.append(scores.astype(dtype), bins.edges)
        np.testing.assert_array_equal(bins.index(at), np.searchsorted(bins.edges[1:-1], at, side="left"))
        assert bins.index(at).dtype == np.intp
        ends = np.unique([part[-1] for part in np.array_split(ordered, n_bins)[:-1]])
        np.testing.assert_array_equal(bins.edges[1:-1], ends[ends < ordered[-1]])


def test_weights_very_far_apart_are_shares_and_no_repetitions():
    """Tiny weights made every other one a whole multiple, but for rounding, and the number of rows overflowed."""
    weights = np.array([1e-300, 0.3, 0.7, 0.45])
    assert unit_of(weights) is None
    scores = np.array([0.1, 0.2, 0.6, 0.9])
    assert EqualMass(2).bins(scores, weights).index(scores).tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("bins", [EqualWidth(6), EqualMass(6), EqualMass(6, "split")], ids=repr)
def test_a_tally_counts_what_is_in_each_bin(bins, rng):
    p = rng.random(300).round(2)
    observed, weights = rng.random(300) < p, rng.random(300)
    for w in (None, weights) if bins != EqualMass(6, "split") else (None,):
        made = bins.bins(p, w)
        cell = made.of_rows(p, slice(None))
        each = np.ones(300) if w is None else w
        t = tally(p, observed, made, w)
        for found, values in ((t.weight, each), (t.predicted, each * p), (t.observed, each * observed)):
            assert found == pytest.approx(np.bincount(cell, weights=values, minlength=len(made)), rel=1e-12)
        assert t.gap == pytest.approx((t.predicted - t.observed) / np.where(t.weight > 0, t.weight, 1), abs=1e-15)


def test_tallies_of_parts_add_up(rng):
    p = rng.random(1_000)
    observed, bins = rng.random(1_000) < p, EqualWidth(9).bins(p)
    parts = [tally(p[i::7], observed[i::7], bins, None) for i in range(7)]
    total = sum(parts[::-1], Tally.empty(bins))
    whole = tally(p, observed, bins, None)
    assert total.score.tolist() == whole.score.tolist()
    assert total.mass.tolist() == whole.mass.tolist()


def test_an_empty_tally_has_no_gap():
    assert Tally.empty(EqualWidth(3).bins(np.zeros(1))).gap.tolist() == [0, 0, 0]


@pytest.mark.parametrize("weighted", [False, True])
def test_cells_that_are_known_need_not_be_found(weighted, rng):
    p = rng.random(200)
    observed, weights = rng.random(200) < p, rng.random(200) if weighted else None
    bins = EqualMass(6).bins(p, weights)
    found, known = (tally(p, observed, bins, weights, cell) for cell in (None, bins.index(p)))
    assert (found.mass.tolist(), found.score.tolist()) == (known.mass.tolist(), known.score.tolist())


def test_ties_are_together_or_split():
    with pytest.raises(InputError, match="ties must be 'together' or 'split'; got 'apart'"):
        EqualMass(5, "apart")


@pytest.mark.parametrize("size", [1e-200, 0.3, 1e200])
def test_norms_of_any_size(size):
    """Sixth powers of such numbers are zero or infinite."""
    assert lp_norm(size * np.array([3.0, 0, 4]), np.array([1.0, 1, 2]), 6) == pytest.approx(
        size * ((3.0**6 + 2 * 4.0**6) / 4) ** (1 / 6), rel=1e-12, abs=0
    )
