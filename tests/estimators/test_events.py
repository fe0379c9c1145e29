from dataclasses import dataclass

import numpy as np
import pytest

from calibrant import Bernoulli, Categorical, ClassWise, PositiveClass, TopLabel
from calibrant._validate import InputError
from calibrant.checks import check_estimator
from calibrant.estimators import (
    ICI,
    CalibrationIntercept,
    CalibrationRatio,
    CalibrationSlope,
    EventEstimator,
    IsotonicCurve,
    KernelSmooth,
    OfEvent,
)
from calibrant.lenses import Lens

ESTIMATORS = [
    ICI(lens=TopLabel()),
    ICI(IsotonicCurve(), "median", TopLabel()),
    ICI(KernelSmooth(0.1), "p90", ClassWise()),
    ICI(IsotonicCurve(), "max", PositiveClass(2)),
    CalibrationSlope(TopLabel()),
    CalibrationSlope(ClassWise()),
    CalibrationIntercept(PositiveClass(0)),
    CalibrationRatio(ClassWise()),
    CalibrationRatio(TopLabel()),
]


@dataclass(frozen=True)
class Excess(EventEstimator):
    """How much more often events happen than predicted."""

    lens: Lens | None = None

    name = "excess"
    signed = True

    def of_event(self, scores, observed, weights):
        return OfEvent(float(np.average(observed - scores, weights=weights)), notes=("a note",))


@pytest.fixture
def problem(rng):
    p = rng.dirichlet(np.ones(3), 120).round(2) + 1e-3  # ties, and no exact zero
    p /= p.sum(axis=1, keepdims=True)
    return Categorical(p).sample(rng, 1)[0].astype(np.int64), p


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
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
