import numpy as np
import pytest

from calibrant import EqualMass, EqualWidth
from calibrant._validate import InputError
from calibrant.recalibration import HistogramBinning


@pytest.mark.parametrize("c", [0, 0.5, 1])
@pytest.mark.parametrize(("by", "binning"), [("mass", EqualMass(7)), ("width", EqualWidth(7))])
def test_frequencies_in_the_bins_of_the_library(by, binning, c, rng):
    """A second route: the bins that estimators use, one after the other."""
    p = rng.random(200).round(2)
    y = (rng.random(200) < p).astype(int)
    fitted = HistogramBinning(7, by, c).fit(y, p, folds=0)
    index = binning.bins(p).index(p)
    for b in range(7):
        inside = index == b
        assert fitted(p[inside]) == pytest.approx((y[inside].sum() + c) / (inside.sum() + 2 * c))


def test_edges_lie_halfway_between_scores():
    fitted = HistogramBinning(3).fit([0, 1] * 3, [0.1, 0.2, 0.3, 0.5, 0.6, 0.8], folds=0)
    assert fitted.map.edges == pytest.approx([0.25, 0.55])


def test_scores_next_to_each_other_are_still_apart():
    below = np.nextafter(0.5, 1)  # from here the middle rounds up
    p = np.array([below, np.nextafter(below, 1)])
    assert HistogramBinning(2, pseudocount=0).fit([0, 1], p, folds=0)(p).tolist() == [0, 1]


def test_names_of_classes_do_not_matter(rng):
    p = rng.random(150)
    y = (rng.random(150) < p).astype(int)
    at = rng.random(50)
    one, other = HistogramBinning().fit(y, p, folds=0), HistogramBinning().fit(1 - y, 1 - p, folds=0)
    assert one(at) == pytest.approx(1 - other(1 - at))


def test_bins_without_rows_lie_between_their_neighbours():
    fitted = HistogramBinning(5, "width", 0).fit([0, 1, 1, 1], [0.25, 0.3, 0.7, 0.75], folds=0)
    assert fitted([0.1, 0.3, 0.5, 0.7, 0.9]) == pytest.approx([0.5, 0.5, 0.75, 1, 1])
    assert fitted.notes == ("2 of 5 bins have rows",)


def test_the_pseudocount_keeps_the_log_loss_finite(rng):
    p = rng.beta(0.1, 0.1, 500)
    y = (rng.random(500) < p).astype(int)
    assert np.isfinite(HistogramBinning().fit(y, p).scores["after"][0])
    assert np.isinf(HistogramBinning(100, pseudocount=0).fit(y, p).scores["after"][0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_bins": 0}, "n_bins must be a whole number of at least 1; got 0"),
        ({"by": "size"}, "by must be 'mass' or 'width'; got 'size'"),
        ({"pseudocount": -1}, "pseudocount must be a number of at least 0; got -1"),
    ],
)
def test_bad_settings(options, message):
    with pytest.raises(InputError, match=message):
        HistogramBinning(**options)
