"""Of weights only the ratios matter, in every public callable that takes them: a new one joins the list, or a test fails."""

import inspect
import warnings
from contextlib import suppress
from functools import cache, partial
from importlib import import_module

import numpy as np
import pytest

from calibrant import (
    CRPS,
    ECE,
    KCE,
    KDE,
    SKCE,
    AggregatedTest,
    Bootstrap,
    Brier,
    Categorical,
    ClassWise,
    DebiasedECE,
    Ensemble,
    EqualMass,
    EqualWidth,
    ExactTest,
    InputError,
    LogLoss,
    Normal,
    PairedDifference,
    Pinball,
    PITError,
    ReliabilityCurve,
    SmoothECE,
    Sweep,
    Variational,
    certify,
    coverage,
    estimators,
    groups,
    inference,
    plots,
    recalibration,
    reports,
    streams,
)
from calibrant._names import PUBLIC, homes
from calibrant.kernels import Exponential, Gaussian
from calibrant.results import jsonable
from calibrant.sklearn import RecalibrationWarning

N = 80
ALL = np.arange(N)
RNG = np.random.default_rng(5)
P2 = RNG.random(N).round(2)
Y2 = (RNG.random(N) < P2**1.5) * 1
P3 = RNG.dirichlet(np.ones(3), N).round(2) + 1e-3
P3 /= P3.sum(axis=1, keepdims=True)
Y3 = (P3.cumsum(axis=1) > RNG.random((N, 1))).argmax(axis=1)
NORMAL = Normal(RNG.normal(size=N).round(1), RNG.uniform(0.5, 2, N).round(1))
YN = RNG.normal(0, 1.4, N)
MEMBERS = Ensemble(RNG.normal(size=(N, 7)) + YN[:, None])
BY = np.arange(N) % 3
WEIGHTS = {"whole": RNG.integers(0, 4, N).astype(float), "real": np.exp(RNG.normal(size=N))}

TWO = (Y2, P2)
EVEN = (Y2, 0.3 + P2 / 3)
THREE = (Y3, P3)
NUMBERS = (YN, NORMAL)
VECTORS = (YN, MEMBERS)


def of_rows(problem, rows):
    """These rows of targets and predictions, of one model or several by name."""
    return tuple({k: v[rows] for k, v in part.items()} if isinstance(part, dict) else part[rows] for part in problem)


def called(measure, problem, **options):
    """A call with weights, on some rows."""
    return lambda w, rows=ALL: measure(*of_rows(problem, rows), sample_weight=w, **options)


def fitted(recalibrator, problem):
    """Answers of the map and its held-out scores."""

    def answers(w, rows=ALL):
        found = recalibrator.fit(*of_rows(problem, rows), sample_weight=w, folds=2)
        after = found(problem[1])
        answer = after if isinstance(after, np.ndarray) else after.quantile(np.array([0.1, 0.5, 0.9]))
        return {"answers": answer, "scores": found.scores, "notes": found.notes}

    return answers


def shown(name, problem, **options):
    """The tables of a picture."""
    display = getattr(plots, name).from_predictions
    return lambda w, rows=ALL: display(*of_rows(problem, rows), sample_weight=w, **options).tables


def streamed(estimator, problem):
    """A state of two parts."""

    def result(w, rows=ALL):
        state = streams.state(estimator)
        for part in (ALL[: N // 2], ALL[N // 2 :]):
            here = np.isin(rows, part)
            state = state.update(*of_rows(problem, rows[here]), sample_weight=w[here])
        return state.finalize()

    return result


def classified(w, rows=ALL):
    """A recalibrated classifier, and its score; the model inside has no penalty, to which the size of weights would matter."""
    from sklearn.naive_bayes import GaussianNB

    from calibrant.sklearn import RecalibratedClassifier

    x = np.column_stack([P2, np.sin(np.arange(N))])
    model = RecalibratedClassifier(GaussianNB(), recalibration.Temperature(), cv=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecalibrationWarning)
        model.fit(x[rows], Y2[rows], sample_weight=w)
    return {"p": model.predict_proba(x), "score": model.score(x[rows], Y2[rows], sample_weight=w)}


def regressed(w, rows=ALL):
    """A recalibrated regressor, and its score."""
    from sklearn.linear_model import LinearRegression

    from calibrant.sklearn import RecalibratedRegressor

    model = RecalibratedRegressor(LinearRegression(), cv=2)
    x = YN[:, None] + np.sin(np.arange(N))[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecalibrationWarning)
        model.fit(x[rows], YN[rows], sample_weight=w)
    score = model.score(x[rows], YN[rows], sample_weight=w)
    return {"q": model.predict_dist(x).quantile(np.array([0.1, 0.9])), "score": score}


def soft(w, rows=ALL):
    """The soft-binned error."""
    from calibrant.losses import SoftBinnedECE

    return SoftBinnedECE()(*of_rows(THREE, rows), sample_weight=w)


def judged(problem):
    """The whole report."""

    def report(w, rows=ALL):
        by = {"part": BY[rows]}
        return reports.evaluate(*of_rows(problem, rows), by=by, sample_weight=w, n_resamples=99, rng=1).to_dict()

    return report


class OfPairs:
    """A kernel on pairs whose name, unlike a function's, has no address: names of cases are the same in every process."""

    def __call__(self, p, y, q, z):
        return np.exp(-np.abs(p[:, None] - q[None, :]).sum(axis=2) - np.abs(y - z.T))

    def __repr__(self):
        return "of_pairs"


ERRORS = {
    "two": (
        TWO,
        [
            ECE(),
            ECE(EqualMass(6), norm=2),
            ECE(EqualWidth(5), norm=np.inf),
            ECE(Sweep()),
            ECE(Sweep("width")),
            DebiasedECE(EqualMass(8)),
            DebiasedECE(EqualWidth(8), norm=1),
            DebiasedECE(EqualMass(8), method="variance", singletons="keep"),
            SmoothECE(),
            estimators.DensityECE(),
            estimators.TailScan(),
            estimators.KolmogorovSmirnov(),
            estimators.Kuiper(),
            estimators.AURC(),
            estimators.SelectiveAccuracy(0.7),
            estimators.ICI(),
            estimators.ICI(estimators.IsotonicCurve(), summary="p90"),
            estimators.ICI(summary="median"),
            estimators.ICI(estimators.KernelSmooth(0.1), summary="max"),
            estimators.AUC(),
            estimators.CalibrationIntercept(),
            estimators.CalibrationRatio(),
            estimators.CalibrationSlope(),
            Brier(),
            LogLoss(),
            KDE(),
            SKCE(),
            Variational(),
            Variational(recalibrator=recalibration.Platt()),
            estimators.MonotoneECE(),
        ],
    ),
    "three": (
        THREE,
        [
            ECE(),
            DebiasedECE(lens=ClassWise()),
            estimators.CanonicalECE(estimators.MedianVariance(8), norm=2),
            estimators.CanonicalECE(estimators.MedianVariance()),
            estimators.CanonicalECE(estimators.KMeans(5)),
            estimators.CanonicalECE(estimators.Grid(3)),
            estimators.CanonicalECE(estimators.Grid("doane"), 2, label_binned=True),
            estimators.TailScan(ClassWise()),
            SKCE(),
            SKCE(unbiased=False),
            KCE(),
            KDE(),
            KDE(bandwidth=0.1),
            estimators.Sharpness(bandwidth=0.1),
            estimators.TangentKDE(),
            estimators.MMCE(),
            estimators.RandomFeatureSKCE(n_features=50),
            estimators.SumSKCE((SKCE(Exponential(0.3)), SKCE(Gaussian(1.0)))),
            estimators.PairSKCE(OfPairs()),
            estimators.UCME(locations=estimators.SampledLocations(5)),
            Brier(),
            LogLoss(),
            Variational(),
        ],
    ),
    "numbers": (
        NUMBERS,
        [
            CRPS(),
            CRPS(n_draws=20, seed=3),
            Pinball(),
            Pinball(0.9),
            estimators.IntervalScore(0.8),
            PITError(),
            PITError("cramer-von-mises"),
            PITError("kuiper"),
            estimators.QuantileError(),
            estimators.CentralCoverage(),
            estimators.ShareBetween(0.1, 0.9),
            estimators.MarginalError(norm=2),
            estimators.ThresholdError([0.0, 0.5]),
            estimators.ENCE(4),
            estimators.ZMean(),
            estimators.ZVariance(),
            estimators.MeanStd(),
            estimators.MeanWidth(0.5),
            SKCE(),
        ],
    ),
    "members": (VECTORS, [estimators.EnergyScore(), CRPS(fair=True), PITError()]),
}

MAPS = {
    "two": (
        TWO,
        [
            recalibration.Intercept(),
            recalibration.Platt(),
            recalibration.Quadratic(),
            recalibration.BetaScaling(),
            recalibration.SplineScaling(),
            recalibration.Isotonic(),
            recalibration.Isotonic(centred=True, smoothed=True),
            recalibration.HistogramBinning(10),
            recalibration.HistogramBinning(8, by="width", pseudocount=1),
            recalibration.ScalingBinning(10),
            recalibration.VennAbers(),
            recalibration.Default(),
            recalibration.NadarayaWatson(),
            recalibration.PartitionWise(),
            recalibration.TemperatureBy(Brier()),
        ],
    ),
    "three": (
        THREE,
        [
            recalibration.Temperature(),
            recalibration.VectorScaling(),
            recalibration.MatrixScaling(),
            recalibration.DirichletScaling(),
            recalibration.StructuredMatrix(),
            recalibration.SharedSpline(),
            recalibration.SimplexRidge(),
            recalibration.NadarayaWatson(),
            recalibration.PartitionWise(),
            recalibration.OneVsRest(recalibration.Isotonic(smoothed=True)),
            recalibration.Default(),
            recalibration.Stack((recalibration.Temperature(), recalibration.VectorScaling())),
            recalibration.Best((recalibration.Temperature(), recalibration.VectorScaling())),
            recalibration.Boosted("sklearn", first=recalibration.Temperature(), trees=3, folds=3),
        ],
    ),
    "numbers": (
        NUMBERS,
        [
            recalibration.Temperature(),
            recalibration.VarianceScaling(bias=True),
            recalibration.QuantileRecalibration(),
        ],
    ),
    "members": (VECTORS, [recalibration.Dressing()]),
}

TESTS = [
    (inference.ExactTest(ECE(), 39), TWO),
    (inference.ExactTest(SKCE(), 39), THREE),
    (inference.ExactTest(PITError(), 39), NUMBERS),
    (AggregatedTest(n_resamples=39), THREE),
    (inference.ConsistencyTest(ECE(), 39), TWO),
    (inference.HosmerLemeshow(3), EVEN),
    (inference.Spiegelhalter(), EVEN),
    (Bootstrap(Brier(), 39), TWO),
    (inference.WithInterval(estimators.CalibrationSlope(), 39), TWO),
    (inference.WithInterval(SKCE(), 39), THREE),
    (inference.Jackknife(estimators.CalibrationSlope()), TWO),
    (inference.GammaTest(), THREE),
    (inference.SpectralTest(), THREE),
    (inference.BootstrapTest(n_resamples=39), THREE),
    (inference.WildBootstrapTest(n_resamples=39), THREE),
    (inference.CMETest(n_resamples=39), THREE),
    (inference.CMETest(reference="F"), THREE),
    (inference.LocalErrors(n_resamples=39), TWO),
    (inference.Witness(n_resamples=39), THREE),
    (ReliabilityCurve(n_resamples=39), TWO),
    (ReliabilityCurve(n_resamples=39, curve=estimators.KernelSmooth()), TWO),
    (ReliabilityCurve(n_resamples=39, curve=estimators.IsotonicCurve(), band="confidence"), TWO),
    (ReliabilityCurve(n_resamples=39, band="confidence"), TWO),
]
UNSEEDED = (inference.HosmerLemeshow, inference.Spiegelhalter, inference.Jackknife)

MODELS = {"a": P3, "b": P3**2 / (P3**2).sum(axis=1, keepdims=True)}

CASES = {
    **{f"{kind} {one!r}": called(one, problem) for kind, (problem, some) in ERRORS.items() for one in some},
    **{f"{kind} {one!r}": fitted(one, problem) for kind, (problem, some) in MAPS.items() for one in some},
    **{repr(t): called(t, problem, **({} if isinstance(t, UNSEEDED) else {"rng": 1})) for t, problem in TESTS},
    "PITCurve": called(inference.PITCurve(), NUMBERS),
    "PITHistogram": called(inference.PITHistogram(), NUMBERS),
    "coverage": called(coverage, NUMBERS),
    "coverage by": lambda w, rows=ALL: coverage(*of_rows(NUMBERS, rows), by=BY[rows], sample_weight=w),
    "groups": lambda w, rows=ALL: groups(ECE(), *of_rows(TWO, rows), by=BY[rows], sample_weight=w),
    "groups of a test": lambda w, rows=ALL: groups(
        ExactTest(ECE(), 39), *of_rows(TWO, rows), by=BY[rows], sample_weight=w, rng=1
    ),
    "decompose": called(estimators.decompose, TWO),
    "decompose log": called(estimators.decompose, TWO, score="log"),
    "decompose_by_kernel": called(estimators.decompose_by_kernel, TWO),
    "PairedDifference score": called(PairedDifference(Brier()), (Y3, *MODELS.values()), rng=1),
    "PairedDifference error": called(PairedDifference(SKCE(), n_resamples=39), (Y3, *MODELS.values()), rng=1),
    "inference.differences": called(partial(inference.differences, Brier()), (Y3, MODELS), rng=1),
    "reports.compare": called(reports.compare, (Y3, MODELS), n_resamples=99, rng=1),
    "reports.evaluate two": judged(TWO),
    "reports.evaluate three": judged(THREE),
    "reports.evaluate numbers": judged(NUMBERS),
    "certify": called(certify, TWO, margin=0.3),
    "reports.judge": called(reports.judge, TWO, n_resamples=99, rng=1),
    "before_and_after": called(reports.before_and_after, (*TWO, P2**1.2), n_resamples=99, rng=1),
    "reliability": shown("ReliabilityDisplay", TWO, n_resamples=39, rng=1),
    "classwise": shown("ClasswiseDisplay", THREE, n_resamples=39, rng=1),
    "confusion": shown("ConfusionDisplay", THREE, n_resamples=39, rng=1),
    "RiskCoverageDisplay": shown("RiskCoverageDisplay", THREE),
    "simplex": shown("SimplexDisplay", THREE, n_resamples=39, rng=1),
    "witness": shown("WitnessDisplay", THREE, n_resamples=39, rng=1),
    "comparison": lambda w, rows=ALL: (
        plots.ComparisonDisplay.from_predictions(Brier(), *of_rows((Y3, MODELS), rows), sample_weight=w, rng=1).tables
    ),
    "curves": lambda w, rows=ALL: (
        plots.CurvesDisplay.from_predictions(*of_rows((Y2, {"a": P2, "b": P2**2}), rows), sample_weight=w).tables
    ),
    "coverage plot": shown("CoverageDisplay", NUMBERS),
    "pit curve": shown("PITCurveDisplay", NUMBERS),
    "pit histogram": shown("PITHistogramDisplay", NUMBERS),
    "spread": shown("SpreadDisplay", NUMBERS, n_resamples=39, rng=1),
    "state of ECE": streamed(ECE(EqualWidth(5)), TWO),
    "state of DebiasedECE": streamed(DebiasedECE(EqualWidth(5)), TWO),
    "state of Brier": streamed(Brier(), THREE),
    "state of CalibrationRatio": streamed(estimators.CalibrationRatio(), TWO),
    "state of RandomFeatureSKCE": streamed(estimators.RandomFeatureSKCE(Gaussian(0.5), n_features=20), THREE),
    "RecalibratedClassifier": classified,
    "RecalibratedRegressor": regressed,
    "SoftBinnedECE": soft,
}
STATES = [name for name in CASES if name.startswith("state of")]

SUMS_OF_WEIGHTS = ("weight", "predicted", "observed")
"""Columns of tables that may be sums of weights, and then are those of the weights as they are given."""

UNTOLD = ("estimator", "version", "created", "seconds", "source")
"""What says nothing of the data."""


def flat(x, path=""):
    """Numbers and words of a result by their place; sums of weights as shares of the largest."""
    if isinstance(x, dict):
        for key, part in x.items():
            if key in SUMS_OF_WEIGHTS and isinstance(part, list) and part and not isinstance(part[0], str):
                part = [value / max(max(part), 1e-300) for value in part]
            if key not in UNTOLD:
                yield from flat(part, f"{path}/{key}")
    elif isinstance(x, list):
        for i, part in enumerate(x):
            yield from flat(part, f"{path}/{i}")
    else:
        yield path, x


def told(x):
    return dict(flat(jsonable(x)))


LISTED = {
    *(type(one).__name__ for _, some in [*ERRORS.values(), *MAPS.values()] for one in some),
    *(type(test).__name__ for test, _ in TESTS),
    *("PITCurve", "PITHistogram", "coverage", "groups", "decompose", "decompose_by_kernel", "PairedDifference"),
    *(
        "certify",
        "compare",
        "differences",
        "evaluate",
        "judge",
        "before_and_after",
        "ReliabilityDisplay",
        "ClasswiseDisplay",
        "ConfusionDisplay",
    ),
    *(
        "SimplexDisplay",
        "RiskCoverageDisplay",
        "WitnessDisplay",
        "ComparisonDisplay",
        "CurvesDisplay",
        "CoverageDisplay",
        "PITCurveDisplay",
        "SpreadDisplay",
    ),
    *("PITHistogramDisplay", "BinnedState", "RecalibratedClassifier", "RecalibratedRegressor", "SoftBinnedECE"),
}
REFUSE = {
    "RankTest": (inference.RankTest(n_resamples=39), VECTORS),
    "BoundTest": (inference.BoundTest(), THREE),
    "BlockTest": (inference.BlockTest(), THREE),
}
ELSEWHERE = {
    "report": "evaluate, and a file",
    **dict.fromkeys(
        ("reliability", "classwise", "confusion", "simplex", "witness", "comparison", "curves", "risk_coverage"),
        "the display, drawn",
    ),
    **dict.fromkeys(("coverage", "pit_curve", "pit_histogram", "spread"), "the display, drawn"),
    "State": "a protocol",
    "StreamMetric": "a state",
    "frame_states": "takes the name of a column",
    "bin_query": "takes the name of a column",
    "read": "takes the name of a column",
    "calibration_error": "ECE and its kin, whose weights these are; tests/sklearn compares them with repeated rows",
    "Learned": "what it means to a model of the caller is up to that",
    "ShuffleTest": "an ExactTest with other resamples; tested with it",
}


def takers():
    """Public names that take weights, but those that others derive from."""
    for package in PUBLIC:
        for name, home in homes(package).items():
            found = getattr(import_module(home), name)
            methods = [getattr(found, m, None) for m in ("__call__", "fit", "update", "from_predictions")]
            calls = methods if inspect.isclass(found) else [found]
            if not inspect.isabstract(found) and any(
                "sample_weight" in inspect.signature(call).parameters for call in calls if inspect.isroutine(call)
            ):
                yield name


def test_all_that_takes_weights_is_in_the_list():
    pytest.importorskip("torch")  # whose losses have public names
    missing = set(takers()) - LISTED - set(REFUSE) - set(ELSEWHERE)
    assert missing <= {"MatrixTest", "LensedEstimator", "MeanOverEvents", "Score"}, missing


@pytest.mark.parametrize("name", REFUSE)
def test_what_counts_rows_refuses_weights(name):
    test, problem = REFUSE[name]
    with pytest.raises(InputError, match="sample_weight"):
        test(*problem, sample_weight=np.ones(N))


ROUNDED = ("KDE(", "Sharpness(", "decompose_by_kernel", "RecalibratedRegressor")
"""What takes roots of weights, which are rounded."""

SEARCHED = ("Temperature(", "StructuredMatrix(", "RecalibratedClassifier", "reports.evaluate")
"""What searches a flat minimum, where half of the digits decide nothing."""


def assert_same(one, other, *, name, rel=0.0, skip="nothing"):
    """The same numbers at the same places, and the same words where the numbers are the same to the last digit."""
    one, other = ({k: v for k, v in x.items() if skip not in k} for x in (one, other))
    assert one.keys() == other.keys(), name
    for place, value in one.items():
        if isinstance(value, float) and isinstance(other[place], float):
            assert other[place] == pytest.approx(value, rel=rel, abs=rel / 100), (name, place)
        elif rel == 0:
            assert other[place] == value, (name, place)


POWERS = {"some": (997,), "every": (-996, -13, 997)}
SCALES = {"some": (1e-300, 1e-4, 1e300), "every": (1e-300, 1e-30, 1e-4, 1e8, 1e30, 1e300)}
POWERS_OF_PARTS = {"some": (250,), "every": (-250, 250)}
SCALES_OF_PARTS = {"some": (1e-80, 1e30), "every": (1e-80, 1e-4, 1e30)}


@cache
def usual(name, kind):
    return told(CASES[name](WEIGHTS[kind]))


@pytest.mark.parametrize("which", ["some", pytest.param("every", marks=pytest.mark.study)])
@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("name", CASES)
class TestScale:
    def test_a_power_of_two_changes_no_digit(self, name, kind, which):
        powers = (POWERS_OF_PARTS if name in STATES else POWERS)[which]
        rel = 1e-12 if any(word in name for word in ROUNDED) else 0.0
        for power in powers:
            assert_same(usual(name, kind), told(CASES[name](np.ldexp(WEIGHTS[kind], power))), name=name, rel=rel)

    def test_the_scale_of_weights_changes_nothing(self, name, kind, which):
        scales = (SCALES_OF_PARTS if name in STATES else SCALES)[which]
        rel = 1e-5 if any(word in name for word in SEARCHED) else 1e-9
        for scale in scales:
            assert_same(usual(name, kind), told(CASES[name](scale * WEIGHTS[kind])), name=name, rel=rel)


@pytest.mark.parametrize("name", CASES)
def test_a_row_without_weight_is_left_out(name):
    w = WEIGHTS["whole"]
    rows = np.flatnonzero(w)
    left_out, absent = usual(name, "whole"), told(CASES[name](w[rows], rows))
    # the notes of a report say how many rows there are without weight
    assert_same(left_out, absent, name=name, skip="notes" if name.startswith("reports") else "nothing")


ONE = np.where(ALL == 3, 2.0, 0.0)
FAR_APART = {
    "one row": ONE,
    "nine orders": np.where(ALL % 2, 1e9, 1.0) * WEIGHTS["real"],
    "one row above all": np.where(ALL == 3, 1e9, 1.0),
    "fifty orders": np.geomspace(1e-50, 1, N),
    "as far as doubles go": np.where(ALL % 2, 1e300, 1e-300),
}


@pytest.mark.parametrize("kind", FAR_APART)
@pytest.mark.parametrize("name", CASES)
def test_weights_far_apart_give_an_answer_or_words(name, kind):
    """No warning, no other exception; what has no value or interval says why, as it does of few rows."""
    with suppress(InputError):
        CASES[name](FAR_APART[kind])


@pytest.mark.parametrize(
    ("measure", "problem"),
    [
        (ECE(EqualWidth(5)), TWO),
        (DebiasedECE(EqualWidth(5)), TWO),
        (Brier(), THREE),
        (CRPS(), NUMBERS),
        (PITError(), NUMBERS),
        (estimators.CalibrationSlope(), TWO),
        (SKCE(Gaussian(1.0)), THREE),
    ],
    ids=repr,
)
def test_rows_of_a_billionth_of_the_weight_do_not_show(measure, problem):
    w = np.where(ALL % 2, 1e9, 1.0)
    heavy = np.flatnonzero(ALL % 2)
    alone = measure(*of_rows(problem, heavy)).value
    assert measure(*problem, sample_weight=w).value == pytest.approx(alone, rel=1e-6)


def test_what_is_less_than_a_faint_part_of_the_largest_weight_is_nothing():
    w = np.where(ALL % 2, 1.0, 1e-70)
    assert Brier()(*TWO, sample_weight=w).n == N // 2


IMPORTANCE = (
    DebiasedECE,
    estimators.DensityECE,
    estimators.TailScan,
    estimators.TangentKDE,
    KDE,
    SKCE,
    KCE,
    Variational,
)
IMPORTANCE = (*IMPORTANCE, estimators.Sharpness, estimators.RandomFeatureSKCE, estimators.UCME)
IMPORTANCE = (*IMPORTANCE, estimators.SumSKCE, estimators.PairSKCE)
CHOOSE = (
    estimators.ICI(),
    estimators.ICI(summary="median"),
    estimators.MarginalError(norm=2),
    estimators.MonotoneECE(),
)
"""What chooses a bandwidth, locations, thresholds or a number of bins by the rows."""


@pytest.mark.parametrize(("kind", "i"), [(kind, i) for kind, (_, some) in ERRORS.items() for i in range(len(some))])
def test_means_scores_and_binned_errors_are_those_of_repeated_rows(kind, i):
    """And what takes a bias off or leaves rows out is not: a row of weight 3 is one draw."""
    problem, some = ERRORS[kind]
    if problem is VECTORS and isinstance(some[i], PITError):
        pytest.skip("ranks among members are drawn, row by row")
    w = WEIGHTS["whole"]
    weighted = some[i](*problem, sample_weight=w).value
    repeated = some[i](*of_rows(problem, np.repeat(ALL, w.astype(int)))).value
    is_same = weighted == pytest.approx(repeated, rel=1e-9)
    assert is_same != (isinstance(some[i], IMPORTANCE) or some[i] in CHOOSE)


def test_of_importance_the_debiased_error_has_no_bias():
    """The mean of its signed square over calibrated outcomes is 0, and that of repeated rows is not."""
    rng = np.random.default_rng(0)
    w, error = WEIGHTS["whole"], DebiasedECE(EqualMass(8))
    times = np.repeat(ALL, w.astype(int))
    drawn = Categorical(P2).sample(rng, 3000)
    weighted, repeated = (
        error.given(Categorical(P2), w)(drawn),
        error.given(Categorical(P2[times]), None)(drawn[:, times]),
    )
    for values, is_unbiased in ((weighted, True), (repeated, False)):
        squares = np.sign(values) * values**2
        away = abs(squares.mean()) / (squares.std() / np.sqrt(len(squares)))
        assert (away < 4) == is_unbiased


@pytest.mark.parametrize(
    ("w", "message"),
    [
        (1e95, r"sample_weight of a part must lie between 1e-90 and 1e\+90, or be 0; found 1e\+95: divide the weights"),
        (1e-95, r"found 1e-95"),
    ],
)
def test_a_stream_cannot_know_the_largest_weight(w, message):
    with pytest.raises(InputError, match=message):
        streams.state(Brier()).update(*TWO, sample_weight=np.full(N, w))


@pytest.mark.parametrize("estimator", [ECE(EqualWidth(5)), DebiasedECE(EqualWidth(5)), Brier()], ids=repr)
def test_states_are_linear(estimator):
    """Parts of very different weight add up, whatever the size of either."""
    w = np.where(ALL < N // 2, 1e-30, 1e30) * WEIGHTS["real"]
    parts = streamed(estimator, TWO)(w).value
    assert parts == pytest.approx(estimator(*TWO, sample_weight=w).value, rel=1e-9)
