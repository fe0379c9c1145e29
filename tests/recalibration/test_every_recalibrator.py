"""Conformance of every recalibrator, so that a new one inherits its tests by joining the list."""

import importlib
import inspect
import pkgutil
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, softmax

from calibrant import Brier, Categorical, Ensemble, Laplace, LogLoss, Normal, recalibration
from calibrant.checks import check_recalibrator
from calibrant.recalibration import (
    Best,
    BetaScaling,
    Boosted,
    Default,
    DirichletScaling,
    Dressing,
    HistogramBinning,
    Intercept,
    Isotonic,
    Learned,
    MatrixScaling,
    NadarayaWatson,
    OneVsRest,
    PartitionWise,
    Platt,
    Quadratic,
    QuantileRecalibration,
    Recalibrator,
    ScalingBinning,
    SharedSpline,
    SimplexRidge,
    SplineScaling,
    Stack,
    StructuredMatrix,
    Temperature,
    TemperatureBy,
    VarianceScaling,
    VectorScaling,
    VennAbers,
)
from calibrant.recalibration.base import FLOORED

BOTH = (Temperature(), VectorScaling())


class Classifier:
    """Logistic regression on one's own, so that no library is needed: a few steps of gradient descent."""

    def __repr__(self):
        return "Classifier()"  # the same in every process that runs tests

    def fit(self, x, y, sample_weight=None):
        self.classes_, which = np.unique(y, return_inverse=True)
        w = np.ones(len(y)) if sample_weight is None else sample_weight
        x = self.extended(x)
        self.slopes = np.zeros((x.shape[1], len(self.classes_)))
        for _ in range(100):
            rest = np.eye(len(self.classes_))[which] - softmax(x @ self.slopes, axis=1)
            self.slopes += x.T @ (w[:, None] * rest) / (w @ (x**2).sum(axis=1))
        return self

    def extended(self, x):
        return np.column_stack([x, np.ones(len(x))])

    def predict_proba(self, x):
        return softmax(self.extended(x) @ self.slopes, axis=1)

    def __eq__(self, other):
        return type(self) is type(other)

    __hash__ = object.__hash__


TWO = [
    Intercept(),
    Platt(),
    Quadratic(),
    BetaScaling(),
    BetaScaling(monotone=False),
    SplineScaling(),
    Isotonic(),
    Isotonic(centred=True, smoothed=True),
    HistogramBinning(10),
    HistogramBinning(8, by="width", pseudocount=1),
    ScalingBinning(10),
    VennAbers(),
]
ANY = [
    Temperature(),
    TemperatureBy(Brier()),
    VectorScaling(),
    MatrixScaling(),
    DirichletScaling(),
    StructuredMatrix(),
    StructuredMatrix(diagonal=True),
    StructuredMatrix(mixed=True),
    SharedSpline(),
    SimplexRidge(),
    NadarayaWatson(),
    PartitionWise(),
    OneVsRest(Platt()),
    OneVsRest(Isotonic(smoothed=True)),
    Default(),
    Stack(BOTH),
    Best(BOTH),
    Boosted("sklearn", first=Temperature(), trees=3, folds=3),
    Boosted("lightgbm", first=Temperature(), trees=3, folds=3),
    Boosted("catboost", first=Temperature(), trees=3, folds=3),
    Learned(Classifier()),
]
NUMBERS = [
    (Temperature(), Normal),
    (Temperature(), Laplace),
    (VarianceScaling(), Normal),
    (VarianceScaling(bias=True), Laplace),
    (QuantileRecalibration(), Normal),
    (QuantileRecalibration(), Laplace),
    (Best((VarianceScaling(), QuantileRecalibration())), Normal),
    (Dressing(), Ensemble),
]
CASES = [*((one, 2) for one in TWO), *((one, k) for one in ANY for k in (2, 3)), *NUMBERS]

CLAIMS = {
    Boosted: {"relabelling": None, "many": 50},  # bins of some libraries; a tree a class
    Learned: {"is_saved": False},
    MatrixScaling: {"many": 300},  # k^2 coefficients
    DirichletScaling: {"many": 300},
}
"""What a recalibrator does not claim, and why."""


def needed(recalibrator):
    """Skip where a library is not installed."""
    if isinstance(recalibrator, Boosted):
        pytest.importorskip(recalibrator.library)


def named(case):
    return case.__name__ if isinstance(case, type) else repr(case)


def test_every_recalibrator_is_in_the_list():
    found = set()
    for module in pkgutil.walk_packages(recalibration.__path__, f"{recalibration.__name__}."):
        kinds = [kind for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass)]
        found |= {kind for kind in kinds if issubclass(kind, Recalibrator) and not inspect.isabstract(kind)}
    assert found == {type(one) for one, _ in CASES}


@pytest.mark.parametrize(("recalibrator", "on"), CASES, ids=named)
def test_it_conforms(recalibrator, on, rng):
    needed(recalibrator)
    check_recalibrator(recalibrator, rng, on, **CLAIMS.get(type(recalibrator), {}))


def log_odds(p):
    return np.log(p[:, 1]) - np.log(p[:, 0])


def both(q):
    return np.stack([1 - q, q], axis=1)


def centred(p):
    return np.log(p) - np.log(p).mean(axis=1, keepdims=True)


def mixed(p):
    return 0.6 * p + 0.4 * p[:, [1, 2, 0]]


def jump(p):
    return np.where(p[:, :1] > p[:, 1:2], [0.7, 0.2, 0.1], [0.1, 0.2, 0.7])


def one_by_one(p):
    q = expit([0.3, -0.5, 0.2] + np.array([0.5, 0.7, 0.4]) * np.log(p / (1 - p)))
    return q / q.sum(axis=1, keepdims=True)


def members(loc, scale):
    return Ensemble(loc[:, None] + scale[:, None] * np.linspace(-1, 1, 7))


MATRIX = np.array([[0.7, 0.3, 0.0], [-0.2, 0.5, 0.0], [0.0, 0.2, 0.9]])
BIAS = np.array([0.5, 0.0, -0.5])

OWN_TWO = [
    (Temperature(), lambda p: both(expit(0.5 * log_odds(p)))),
    (Intercept(), lambda p: both(expit(0.8 + log_odds(p)))),
    (Platt(), lambda p: both(expit(0.4 + 0.5 * log_odds(p)))),
    (ScalingBinning(), lambda p: both(expit(0.4 + 0.5 * log_odds(p)))),
    (Quadratic(), lambda p: both(expit(0.5 * log_odds(p) + 0.15 * log_odds(p) ** 2))),
    (BetaScaling(), lambda p: both(expit(0.2 + 0.3 * np.log(p[:, 1]) - 0.9 * np.log(p[:, 0])))),
    (SplineScaling(), lambda p: both(expit(log_odds(p) + 1.5 * np.sin(2 * log_odds(p))))),
    (Isotonic(smoothed=True), lambda p: both(np.where(p[:, 1] > 0.4, 0.7, 0.2))),
    (HistogramBinning(), lambda p: both(np.where(p[:, 1] > 0.5, 0.3, 0.6))),
    (VennAbers(), lambda p: both(np.where(p[:, 1] > 0.4, 0.7, 0.2))),
    (Default(), lambda p: both(expit(log_odds(p) + 1.5 * np.sin(2 * log_odds(p))))),
]
OWN_THREE = [
    (TemperatureBy(Brier()), lambda p: softmax(0.5 * np.log(p), axis=1)),
    (Temperature(), lambda p: softmax(0.5 * np.log(p), axis=1)),
    (VectorScaling(), lambda p: softmax(centred(p) * [0.5, 1.0, 0.8] + BIAS, axis=1)),
    (MatrixScaling(), lambda p: softmax(centred(p) @ MATRIX.T + BIAS, axis=1)),
    (DirichletScaling(), lambda p: softmax(np.log(p) @ MATRIX.T + BIAS, axis=1)),
    (StructuredMatrix(), lambda p: softmax(np.log(p) @ MATRIX.T + BIAS, axis=1)),
    (StructuredMatrix(diagonal=True), lambda p: softmax(np.log(p) * [0.5, 1.0, 0.8] + BIAS, axis=1)),
    (SharedSpline(), lambda p: softmax(0.5 * np.log(p) + np.sin(4 * p), axis=1)),
    (SimplexRidge(), mixed),
    (NadarayaWatson(), mixed),
    (PartitionWise(), jump),
    (Default(), mixed),
    (OneVsRest(Platt()), one_by_one),
    (OneVsRest(Isotonic(smoothed=True)), one_by_one),
    (Stack(BOTH), lambda p: softmax(centred(p) * [0.5, 1.0, 0.8] + BIAS, axis=1)),
    (Best(BOTH), lambda p: softmax(centred(p) * [0.5, 1.0, 0.8] + BIAS, axis=1)),
    *((Boosted(library, first=Temperature()), jump) for library in ("sklearn", "lightgbm", "catboost")),
    (Learned(Classifier()), lambda p: softmax(centred(p) @ MATRIX.T + BIAS, axis=1)),
]
OWN_NUMBERS = [
    (Temperature(), Normal, lambda rng, n: 2 * rng.normal(size=n)),
    (VarianceScaling(bias=True), Normal, lambda rng, n: 0.5 + 1.5 * rng.normal(size=n)),
    (QuantileRecalibration(), Normal, lambda rng, n: rng.exponential(size=n) - 1),
    (Dressing(), members, lambda rng, n: 3 * rng.normal(size=n)),
]


def drawn(truth, k, rng, n=1_500):
    p = softmax(1.5 * rng.normal(size=(n, k)), axis=1)
    return (truth(p).cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), p


@pytest.mark.parametrize(
    ("recalibrator", "truth", "k"),
    [*((*case, 2) for case in OWN_TWO), *((*case, 3) for case in OWN_THREE)],
    ids=lambda x: repr(x) if isinstance(x, Recalibrator) else "",
)
def test_held_out_rows_gain_on_its_own_ground(recalibrator, truth, k, rng):
    """Five standard errors of the change, on rows whose truth is of the recalibrator's own form."""
    needed(recalibrator)
    scores = recalibrator.fit(*drawn(truth, k, rng), folds=3).scores
    assert scores["change"][0] < -5 * scores["error"][0]


@pytest.mark.parametrize(
    ("recalibrator", "family", "errors"), OWN_NUMBERS, ids=lambda x: repr(x) if isinstance(x, Recalibrator) else ""
)
def test_held_out_numbers_gain_on_their_own_ground(recalibrator, family, errors, rng):
    loc, scale = rng.normal(size=800), rng.uniform(0.5, 2, 800)
    scores = recalibrator.fit(loc + scale * errors(rng, 800), family(loc, scale), folds=3).scores
    assert scores["change"][0] < -5 * scores["error"][0]


def test_every_recalibrator_has_a_ground_of_its_own():
    assert {type(one) for one, *_ in (*OWN_TWO, *OWN_THREE, *OWN_NUMBERS)} == {type(one) for one, _ in CASES}


BARE = (Isotonic(), HistogramBinning(8, by="width", pseudocount=0))
"""What keeps frequencies of 0 and 1, and says so."""


@pytest.mark.parametrize(
    ("recalibrator", "k"), [case for case in CASES if isinstance(case[1], int) and case[0] not in BARE], ids=named
)
def test_the_zeros_and_ones_of_a_forest_are_mended(recalibrator, k, rng):
    """Shares of ten votes, with a softer truth: no held-out log loss is infinite, and no change is not a number."""
    needed(recalibrator)
    seen = rng.dirichlet(np.ones(k), 500)
    votes = np.stack([rng.multinomial(10, row) for row in seen]) / 10
    truth = 0.6 * seen + 0.4 / k
    y = (truth.cumsum(axis=1) > rng.random((500, 1))).argmax(axis=1)
    fitted = recalibrator.fit(y, votes, folds=3)
    assert fitted.scores["score"][0] == FLOORED
    assert fitted.scores["change"][0] < 0
    assert not fitted.is_worse
    assert "rows had probability 0 for what happened, none after the map" in fitted.notes[0]
    assert "nan" not in repr(fitted)


FREE = {
    Temperature: ["temperature"],
    Intercept: ["intercept"],
    Platt: ["intercept", "slope"],
    Quadratic: ["intercept", "slope", "curvature"],
    BetaScaling: ["intercept", "low", "high"],
    HistogramBinning: ["values"],
    VectorScaling: ["weights", "intercepts"],
    VarianceScaling: ["factor", "shift"],
}
"""Numbers of maps that have the greatest likelihood, with nothing else in the objective."""


def slopes(found, y, predictions, name):
    """Central differences of the log loss of the map itself, in each of its numbers of a name."""
    value = np.asarray(getattr(found, name), dtype=np.float64)

    def loss(change):
        moved = value + change
        return LogLoss()(y, replace(found, **{name: moved if value.ndim else float(moved)})(predictions)).value

    steps = 1e-5 * np.eye(value.size).reshape(-1, *value.shape)
    return np.array([(loss(step) - loss(-step)) / 2e-5 for step in steps])


@pytest.mark.parametrize(
    ("recalibrator", "on"),
    [
        *(
            (one, 2)
            for one in (
                Temperature(),
                Intercept(),
                Platt(),
                Quadratic(),
                BetaScaling(),
                HistogramBinning(5, pseudocount=0),
            )
        ),
        *((one, 3) for one in (Temperature(), VectorScaling())),
        *((one, Normal) for one in (Temperature(), VarianceScaling(bias=True))),
    ],
    ids=named,
)
def test_no_number_of_the_map_could_be_better(recalibrator, on, rng):
    """The gradient by another route: the log loss of maps whose numbers are a little different."""
    if isinstance(on, int):
        y, p = drawn(lambda p: softmax(0.6 * np.log(p) + np.linspace(0, 0.3, on), axis=1), on, rng, 400)
        predictions = Categorical(p)
    else:
        predictions = on.example(rng, 400)
        y = predictions.sample(rng, 1)[0] * 1.3 + 0.2
    found = recalibrator.fit(y, predictions, folds=0).map
    for name in FREE[type(recalibrator)]:
        assert np.abs(slopes(found, y, predictions, name)).max() < 1e-6, name
