"""Clusters are checked and counted, whatever their labels are."""

import datetime

import numpy as np
import pytest

from calibrant import ECE, SKCE, AggregatedTest, Brier, ExactTest, InputError, Monitor, certify
from calibrant._clusters import Clusters, as_clusters
from calibrant.inference import (
    BlockTest,
    BoundTest,
    CMETest,
    ConsistencyTest,
    GammaTest,
    HosmerLemeshow,
    LocalErrors,
    RankTest,
    ShuffleTest,
    Spiegelhalter,
    WildBootstrapTest,
)
from calibrant.plots import ComparisonDisplay, ConfusionDisplay, SimplexDisplay, SpreadDisplay, WitnessDisplay

Y, P = np.tile([0, 1], 30), np.tile([0.4, 0.6], 30)


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "b", "c"],
        [7, 3, 7, 9],
        np.array([7.0, 3.0, 7.0, 9.0]),
        np.array(["b", 3, "b", None], dtype=object)[[0, 1, 2, 1]][[0, 1, 2, 3]],
        [datetime.date(2020, 1, 2), datetime.date(2020, 1, 1), datetime.date(2020, 1, 2), datetime.date(2021, 1, 1)],
        np.array(["2020-01-02", "2020-01-01", "2020-01-02", "2021-01-01"], dtype="datetime64[D]"),
        [True, False, True, False],
    ],
    ids=["text", "int", "float", "mixed", "date", "datetime", "bool"],
)
def test_labels_of_any_kind(labels):
    codes = as_clusters(labels, 4).codes
    assert codes[0] == codes[2] != codes[1]


def test_labels_of_any_library(convert):
    found = as_clusters(convert(np.array([5, 2, 5, 9])), 4)
    assert found.codes.tolist() == [1, 0, 1, 2]
    assert len(found) == 3


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_text(library):
    column = pytest.importorskip(library).Series(["b", "a", "b", "c"])
    assert len(as_clusters(column, 4)) == 3


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("labels", [["b", None, "b"], [1, None, 1]])
def test_missing_labels_of_columns(library, labels):
    column = pytest.importorskip(library).Series(labels)
    with pytest.raises(
        InputError, match="clusters has 1 missing label, first in row 1: give such rows labels of their own"
    ):
        as_clusters(column, 3)


@pytest.mark.parametrize(
    "labels",
    [
        ["a", None, "b"],
        [1.0, float("nan"), 2.0],
        np.array(["2020", "NaT", "2021"], dtype="datetime64[Y]"),
        np.array([1, float("nan"), "x"], dtype=object),
    ],
    ids=["None", "NaN", "NaT", "object"],
)
def test_missing_labels(labels):
    with pytest.raises(InputError, match=r"clusters has 1 missing label, first in row 1.*or drop them"):
        as_clusters(labels, 3)


def test_pandas_has_a_missing_value_of_its_own():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(InputError, match="clusters has 1 missing label"):
        as_clusters(pandas.Series([1, pandas.NA, 1], dtype="Int64"), 3)


def test_what_is_refused():
    with pytest.raises(InputError, match=r"clusters has 3 rows and y_true has 2: they must be equal"):
        as_clusters([0, 0, 1], 2)
    with pytest.raises(
        InputError, match=r"clusters has the label 'a' in all 2 rows, and chance needs several.*leave it out"
    ):
        as_clusters(["a", "a"], 2)
    with pytest.raises(InputError, match=r"clusters must be one label per row; got shape \(2, 1\)"):
        as_clusters(np.zeros((2, 1)), 2)
    with pytest.raises(InputError, match="sample_weight leaves rows of a single cluster"):
        Brier()([0, 1, 1], [0.2, 0.7, 0.5], clusters=[0, 0, 1], sample_weight=[1, 1, 0])


def test_rows_without_weight_take_their_clusters_with_them():
    clusters, weights = np.arange(60) // 3, np.tile([1.0, 2.0, 0.0], 20)
    kept = weights > 0
    whole = AggregatedTest(n_resamples=99)(Y, P, clusters=clusters, sample_weight=weights)
    part = AggregatedTest(n_resamples=99)(Y[kept], P[kept], clusters=clusters[kept], sample_weight=weights[kept])
    assert whole.pvalue == part.pvalue


def test_sums_against_loops(rng):
    codes, x = rng.integers(0, 4, 50), rng.normal(size=50)
    clusters = Clusters.of_codes(codes)
    assert clusters.sums(x) == pytest.approx([x[codes == c].sum() for c in range(4)])
    assert clusters.sums().tolist() == [int((codes == c).sum()) for c in range(4)]
    assert clusters[codes > 1].codes.min() == 0


@pytest.mark.parametrize(
    "test", [ExactTest(ECE(), 99), AggregatedTest(n_resamples=99), WildBootstrapTest(n_resamples=99)], ids=repr
)
def test_every_row_a_cluster_of_its_own(test):
    """Rows are independent then: the result is the same, and says so."""
    alone, same = test(Y, P, clusters=np.arange(60)), test(Y, P)
    assert alone.pvalue == same.pvalue
    assert alone.notes[-1] == "every row is a cluster of its own: rows are taken as independent"


@pytest.mark.parametrize(
    "test",
    [
        *(BlockTest(), BoundTest(), CMETest(), ConsistencyTest(ECE()), GammaTest()),
        *(HosmerLemeshow(), RankTest(), ShuffleTest(SKCE(), 5), Spiegelhalter()),
    ],
    ids=lambda t: type(t).__name__,
)
def test_tests_of_independent_rows_name_those_that_take_clusters(test):
    with pytest.raises(
        InputError, match=r"takes no clusters, as it is for independent rows: use AggregatedTest\(\)\(y_true"
    ):
        test(Y, P, clusters=np.arange(60) // 3)


def of_models(y, p, **options):
    return ComparisonDisplay.from_predictions(ECE(), y, {"a": p}, **options)


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        (certify, "certify takes no clusters.*take one row of each cluster"),
        (Monitor().update, "Monitor takes no clusters.*give it one row of each cluster"),
        (of_models, "ComparisonDisplay takes no clusters.*use calibrant.compare"),
        (ConfusionDisplay.from_predictions, "ConfusionDisplay takes no clusters.*use plots.reliability"),
        (SimplexDisplay.from_predictions, "SimplexDisplay takes no clusters.*use plots.reliability"),
        (SpreadDisplay.from_predictions, "SpreadDisplay takes no clusters.*plots.pit_histogram of numbers"),
        (WitnessDisplay.from_predictions, "WitnessDisplay takes no clusters.*use plots.reliability"),
        (LocalErrors(), r"LocalErrors takes no clusters.*use ReliabilityCurve"),
    ],
    ids=lambda x: None if isinstance(x, str) else getattr(x, "__qualname__", type(x).__name__),
)
def test_what_is_for_independent_rows_says_so(measure, words):
    with pytest.raises(InputError, match=words):
        measure(Y, P, clusters=np.arange(60) // 3)


def test_labels_of_different_lengths_are_refused():
    with pytest.raises(InputError, match="clusters must be one label per row; got rows of different lengths"):
        as_clusters([[1], [1, 2]], 2)


def test_what_pandas_has_for_missing_labels_is_refused():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(InputError, match="clusters has 1 missing label, first in row 1"):
        as_clusters(["a", pandas.NA], 2)
