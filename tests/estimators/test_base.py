"""Conformance of every estimator, so that a new one inherits its tests by joining the list."""

import pickle
from dataclasses import dataclass, replace
from math import inf

import numpy as np
import pytest

from calibrant import (
    ECE,
    SKCE,
    Bernoulli,
    Brier,
    Categorical,
    ClassWise,
    DebiasedECE,
    EqualMass,
    EqualWidth,
    LogLoss,
    PositiveClass,
    SmoothECE,
    Sweep,
    TopLabel,
)
from calibrant._validate import InputError
from calibrant.checks import check_estimator
from calibrant.estimators import (
    AUC,
    AURC,
    ICI,
    CalibrationIntercept,
    CalibrationRatio,
    CalibrationSlope,
    CanonicalECE,
    DensityECE,
    EachDraw,
    EventEstimator,
    Grid,
    IsotonicCurve,
    KernelSmooth,
    KMeans,
    KolmogorovSmirnov,
    Kuiper,
    MedianVariance,
    MonotoneECE,
    OfEvent,
    SelectiveAccuracy,
    TailScan,
)
from calibrant.lenses import Lens

ESTIMATORS = [
    ECE(lens=TopLabel()),
    ECE(norm=2, lens=ClassWise()),
    ECE(EqualMass(7), norm=inf, lens=PositiveClass(1)),
    ECE(EqualMass(5), lens=TopLabel(), label_binned=True),
    ECE(Sweep(), lens=TopLabel()),
    ECE(Sweep("width"), norm=2, lens=ClassWise()),
    KolmogorovSmirnov(TopLabel()),
    Kuiper(ClassWise()),
    TailScan(TopLabel()),
    TailScan(ClassWise()),
    CanonicalECE(MedianVariance(8), norm=2),
    CanonicalECE(KMeans(5)),
    CanonicalECE(Grid("doane"), label_binned=True),
    DebiasedECE(lens=TopLabel()),
    DebiasedECE(EqualWidth(8), norm=1, lens=ClassWise()),
    MonotoneECE(TopLabel()),
    SmoothECE(lens=TopLabel()),
    SmoothECE(0.1, ClassWise()),
    DensityECE(lens=TopLabel()),
    Brier(),
    LogLoss(),
]

KNOW_THE_NUMBER_OF_ROWS = (DebiasedECE, MonotoneECE, SmoothECE, DensityECE, TailScan)
"""Repeated rows are more rows to these, so that a weight of two is not two rows."""


@pytest.fixture
def problem(rng):
    p = rng.dirichlet(np.ones(3), 120).round(2) + 1e-3  # ties, and no exact zero
    p /= p.sum(axis=1, keepdims=True)
    return Categorical(p).sample(rng, 1)[0].astype(np.int64), p


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
class TestEstimator:
    def test_order_of_rows_changes_nothing(self, estimator, problem, rng):
        y, p = problem
        order = rng.permutation(len(y))
        assert estimator(y[order], p[order]).value == pytest.approx(estimator(y, p).value, rel=1e-12)

    def test_weights_equal_repetition_of_rows(self, estimator, problem, rng):
        if isinstance(estimator, KNOW_THE_NUMBER_OF_ROWS):
            pytest.skip("the number of rows matters")
        y, p = problem
        times = rng.integers(0, 4, len(y))
        repeated = estimator(np.repeat(y, times), np.repeat(p, times, axis=0)).value
        assert estimator(y, p, sample_weight=times).value == pytest.approx(repeated, rel=1e-12)

    @pytest.mark.parametrize("factor", [0.1, 1.5, 3.0])
    def test_of_weights_only_the_ratios_matter(self, estimator, problem, factor, rng):
        """Whole weights are no exception: value, standard error and resamples."""
        y, p = problem
        w = rng.integers(0, 4, len(y)).astype(float)
        one, other = (estimator(y, p, sample_weight=c * w) for c in (1.0, factor))
        assert other.value == pytest.approx(one.value, rel=1e-9)
        assert (one.standard_error is None) == (other.standard_error is None)
        if one.standard_error is not None:
            assert other.standard_error == pytest.approx(one.standard_error, rel=1e-9)
        reduced, _, smaller = estimator.reduce(y, Categorical(p))
        drawn = smaller.sample(rng, 3)
        resamples = [reduced.given(smaller, c * w)(drawn) for c in (1.0, factor)]
        assert resamples[1] == pytest.approx(resamples[0], rel=1e-9)

    def test_unit_weights_change_nothing(self, estimator, problem):
        y, p = problem
        assert estimator(y, p, sample_weight=np.ones(len(y))).value == pytest.approx(estimator(y, p).value, rel=1e-13)

    def test_float32_is_close_to_float64(self, estimator, problem):
        y, p = problem
        p32 = p.astype(np.float32)
        assert estimator(y, p32).value == pytest.approx(estimator(y, p32.astype(np.float64)).value, rel=1e-6)

    def test_resamples_in_bulk_equal_resamples_one_by_one(self, estimator, problem, rng):
        """The fast path against the plain call, with and without weights."""
        predictions = Categorical(problem[1])
        for weights in (None, rng.random(len(predictions))):
            reduced, _, smaller = estimator.reduce(problem[0], predictions)
            drawn = smaller.sample(rng, 20)
            fast = reduced.given(smaller, weights)(drawn)
            slow = EachDraw(reduced, smaller, weights)(drawn)
            assert fast == pytest.approx(slow, rel=1e-12)

    def test_the_reduced_problem_has_the_same_value(self, estimator, problem):
        y, p = problem
        reduced, targets, predictions = estimator.reduce(y, Categorical(p))
        assert reduced(targets, predictions).value == pytest.approx(estimator(y, p).value, rel=1e-13)

    def test_result_carries_its_settings(self, estimator, problem):
        result = estimator(*problem)
        assert result.n == 120
        assert type(result.estimator) is type(estimator)
        assert isinstance(result.value, float)

    def test_the_statistic_travels_to_other_processes(self, estimator, problem, rng):
        predictions = Categorical(problem[1])
        statistic = estimator.given(predictions, None)
        drawn = predictions.sample(rng, 3)
        assert np.array_equal(pickle.loads(pickle.dumps(statistic))(drawn), statistic(drawn))

    def test_estimators_are_values(self, estimator):
        assert estimator == pickle.loads(pickle.dumps(estimator))
        assert hash(estimator) == hash(pickle.loads(pickle.dumps(estimator)))
        with pytest.raises(AttributeError):
            estimator.norm = 3


@pytest.mark.parametrize("estimator", [ECE(), ECE(EqualMass(4), norm=2), TailScan(), Brier(), LogLoss()], ids=repr)
def test_multi_label_resamples_in_bulk_equal_one_by_one(estimator, rng):
    predictions = Bernoulli(rng.random((50, 3)))
    drawn = predictions.sample(rng, 10)
    for weights in (None, rng.random(50)):
        fast = estimator.given(predictions, weights)(drawn)
        assert fast == pytest.approx(EachDraw(estimator, predictions, weights)(drawn), rel=1e-12)


@pytest.mark.parametrize("estimator", [ECE(), SKCE()])
def test_what_is_no_engine_is_refused_also_where_there_is_no_use_for_one(estimator):
    with pytest.raises(InputError, match=r"engine is the text 'threads:2': give engines.connect\('threads:2'\)"):
        estimator([0, 1, 1], [0.2, 0.3, 0.9], engine="threads:2")


ESTIMATORS_EVENTS = [
    ICI(lens=TopLabel()),
    ICI(IsotonicCurve(), "median", TopLabel()),
    ICI(KernelSmooth(0.1), "p90", ClassWise()),
    ICI(IsotonicCurve(), "max", PositiveClass(2)),
    AUC(TopLabel()),
    AUC(ClassWise()),
    CalibrationSlope(TopLabel()),
    CalibrationSlope(ClassWise()),
    CalibrationIntercept(PositiveClass(0)),
    CalibrationRatio(ClassWise()),
    CalibrationRatio(TopLabel()),
    AURC(TopLabel()),
    SelectiveAccuracy(0.7, TopLabel()),
]


@dataclass(frozen=True)
class Excess(EventEstimator):
    """How much more often events happen than predicted."""

    lens: Lens | None = None

    name = "excess"
    signed = True

    def of_event(self, scores, observed, weights):
        return OfEvent(float(np.average(observed - scores, weights=weights)), notes=("a note",))


@pytest.mark.parametrize("estimator", ESTIMATORS_EVENTS, ids=repr)
class TestEveryEventEstimator:
    def test_conforms(self, estimator, problem):
        check_estimator(estimator, problem[0], Categorical(problem[1]))

    def test_weights_equal_repetition_of_rows(self, estimator, problem, rng):
        y, p = problem
        times = rng.integers(0, 4, len(y))
        repeated = estimator(np.repeat(y, times), np.repeat(p, times, axis=0)).value
        if (
            isinstance(estimator, ICI)
            and isinstance(estimator.curve, KernelSmooth)
            and estimator.curve.bandwidth is None
        ):
            pytest.skip("rows choose the bandwidth by leaving each out, which its copies would see through")
        assert estimator(y, p, sample_weight=times).value == pytest.approx(repeated, rel=1e-9)

    def test_single_precision(self, estimator, problem):
        y, p32 = problem[0], problem[1].astype(np.float32)
        assert estimator(y, p32).value == pytest.approx(estimator(y, p32.astype(np.float64)).value, rel=1e-6)

    def test_the_mean_over_events_is_in_the_table(self, estimator, problem):
        result = estimator(*problem)
        if not isinstance(estimator.lens, ClassWise):
            assert result.table is None
            return
        assert result.table["event"].tolist() == ["0", "1", "2"]
        assert result.value == pytest.approx(result.table["value"].mean(), rel=1e-14)
        single = [type(estimator)(**{**vars(estimator), "lens": PositiveClass(c)})(*problem) for c in range(3)]
        assert result.table["value"] == pytest.approx([one.value for one in single], rel=1e-12)

    def test_several_labels(self, estimator, rng):
        labels = Bernoulli(rng.random((60, 2)))
        settings = {**vars(estimator), "lens": None}
        result = type(estimator)(**settings)(labels.sample(rng, 1)[0].astype(int), labels)
        assert result.lens == "multi-label"
        assert result.table.n_rows == 2

    def test_columns_and_tensors(self, estimator, problem, convert):
        y, p = (problem[0] == 1).astype(int), problem[1][:, 1].astype(np.float32).astype(np.float64)
        binary = type(estimator)(**{**vars(estimator), "lens": None})
        assert binary(convert(y), convert(p)).value == pytest.approx(binary(y, p).value, rel=1e-5)

    def test_a_bad_lens(self, estimator):
        with pytest.raises(InputError, match=r"lens must be a lens such as TopLabel\(\); got 'top'"):
            type(estimator)(lens="top")


def test_signed_errors_may_cancel_and_the_result_says_so():
    result = Excess(ClassWise())([1, 1, 0], [0.5, 0.5, 0.5])
    assert result.value == pytest.approx(0, abs=1e-15)
    assert result.table["value"] == pytest.approx([-1 / 6, 1 / 6], rel=1e-12)
    assert result.notes == ("mean over 2 events, whose errors may cancel: the table has each", "a note")
    assert Excess()([1], [0.5]).notes == ("a note",)


def test_infinities_of_both_signs_have_no_mean():
    result = CalibrationIntercept(ClassWise())([1, 1], [0.5, 0.6])
    assert np.isnan(result.value)
    assert result.table["value"].tolist() == [-np.inf, np.inf]


@pytest.mark.parametrize("estimator", [AUC(), ICI()], ids=repr)
def test_the_table_of_an_average_has_what_each_event_has(estimator, rng):
    """Value and standard error, class by class; the average is their mean."""
    p = rng.dirichlet(np.ones(3), 200)
    y = np.array([rng.choice(3, p=row) for row in p])
    found = replace(estimator, lens=ClassWise())(y, p)
    alone = [replace(estimator, lens=PositiveClass(k))(y, p) for k in range(3)]
    assert found.table["value"] == pytest.approx([one.value for one in alone], rel=1e-12)
    errors = [one.standard_error for one in alone if one.standard_error is not None]
    assert list(found.table.get("standard_error", [])) == pytest.approx(errors, rel=1e-12)


@pytest.mark.parametrize("kind", sorted({type(e) for e in ESTIMATORS if hasattr(e, "lens")} | {DensityECE}, key=repr))
def test_a_lens_is_a_lens(kind):
    with pytest.raises(InputError, match=r"lens must be a lens such as TopLabel\(\); got 'top'"):
        kind(lens="top")
