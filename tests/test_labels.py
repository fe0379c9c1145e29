"""Every public call takes ``labels=`` and ``pos_label=`` alike, and the event is never silently the other class."""

import inspect

import numpy as np
import pytest

import calibrant
from calibrant import (
    ECE,
    AggregatedTest,
    Bootstrap,
    Brier,
    DebiasedECE,
    EqualMass,
    ExactTest,
    InputError,
    Monitor,
    Normal,
    PairedDifference,
    PositiveClass,
    ReliabilityCurve,
    TopLabel,
    Variational,
    certify,
    evaluate,
    groups,
    state,
)
from calibrant._names import PACKAGES, homes
from calibrant.distributions.reading.conversion import Classes
from calibrant.estimators import CalibrationRatio, decompose, decompose_by_kernel
from calibrant.inference import (
    CMETest,
    ConsistencyTest,
    HosmerLemeshow,
    Jackknife,
    Spiegelhalter,
    WildBootstrapTest,
    Witness,
)
from calibrant.monitoring import Windows
from calibrant.recalibration import Intercept, Platt
from calibrant.reports import before_and_after, judge
from calibrant.reports.evaluation import Together, planned
from calibrant.reports.model_comparison import _plans
from calibrant.streams import StreamMetric, frame_states, merged

N = 300
rng = np.random.default_rng(3)
P = rng.uniform(0.02, 0.9, N)
Y = (rng.random(N) < P**2.5) * 1
WORDS = np.array(["ill", "well"])[1 - Y]
BOTH = np.stack([P, 1 - P], axis=1)
EVENT = {"labels": ["ill", "well"], "pos_label": "ill"}
"""Of two columns the first is the event, which is neither the usual one nor the second."""
RATIO = CalibrationRatio()


def pictures(name, *tables):
    def measure(*data, **names):
        display = getattr(calibrant.plots, name.title().replace("_", "") + "Display")
        found = display.from_predictions(*data, n_resamples=99, **names).tables
        return [found[table].to_dict() for table in tables]

    return measure


def streamed(y, p, **names):
    metric = StreamMetric(RATIO, **names)
    metric.update(p[:100], y[:100])
    metric.update(p[100:], y[100:])
    return float(metric.compute())


def framed(y, p, **names):
    columns = {"y": y, "p": p} if p.ndim == 1 else {"y": y, "a": p[:, 0], "b": p[:, 1]}
    frame = pytest.importorskip("polars").DataFrame(columns)
    mapper = frame_states(RATIO, y_pred="p" if p.ndim == 1 else ["a", "b"], **names)
    return float(merged(row["state"][0] for row in mapper([frame])).finalize())


CALLS = {
    "an estimator": lambda *a, **k: RATIO(*a, **k).value,
    "an error": lambda *a, **k: ECE(EqualMass(7))(*a, **k).table["observed"].tolist(),
    "bins": lambda *a, **k: DebiasedECE()(*a, **k).value,
    "an exact test": lambda *a, **k: ExactTest(RATIO, 99, "two-sided")(*a, **k).statistic,
    "many tests": lambda *a, **k: AggregatedTest(n_resamples=99)(*a, **k).estimate.value,
    "a bootstrap": lambda *a, **k: list(Bootstrap(RATIO, 99)(*a, **k).interval),
    "a jackknife": lambda *a, **k: Jackknife(RATIO)(*a, **k).standard_error,
    "slices": lambda *a, **k: groups(RATIO, *a, by=np.arange(N) % 3, **k)["value"].tolist(),
    "a curve": lambda *a, **k: ReliabilityCurve(n_resamples=99)(*a, **k)["observed"].tolist(),
    "a certificate": lambda *a, **k: certify(*a, 0.2, **k).upper,
    "a decomposition": lambda *a, **k: decompose(*a, **k).miscalibration,
    "a decomposition by a kernel": lambda *a, **k: decompose_by_kernel(*a, **k).miscalibration,
    "confidence": lambda *a, **k: Variational(Brier(), Intercept()).confidence(*a, **k)["value"].tolist(),
    "refinement": lambda *a, **k: Variational(Brier(), Intercept()).refinement(*a, **k)["value"].tolist(),
    "a classical test": lambda *a, **k: HosmerLemeshow()(*a, **k).pvalue,
    "another": lambda *a, **k: Spiegelhalter()(*a, **k).pvalue,
    "consistency": lambda *a, **k: ConsistencyTest(RATIO, n_resamples=99)(*a, **k).statistic,
    "a kernel test": lambda *a, **k: WildBootstrapTest(n_resamples=99)(*a, **k).statistic,
    "mean embeddings": lambda *a, **k: CMETest(n_resamples=99)(*a, **k).statistic,
    "a witness": lambda *a, **k: np.sort(Witness()(*a, **k)["value"]).tolist(),
    "a difference": lambda y, p, **k: PairedDifference(Brier())(y, p, 0.5 + 0 * p, **k).value,
    "a table of models": lambda y, p, **k: calibrant.inference.differences(Brier(), y, {"a": p, "b": 0 * p + 0.5}, **k)[
        "difference"
    ].tolist(),
    "a comparison": lambda y, p, **k: (
        [
            list(problem.means())
            for problem, _ in _plans(
                y, {"a": p, "b": 0 * p + 0.5}, None, 99, None, None, Together(), Classes(**k)
            ).values()
        ]
    ),
    "a risk-coverage curve": lambda *a, **k: (
        calibrant.plots.RiskCoverageDisplay.from_predictions(*a, **k).tables["curve"]["risk"].tolist()
    ),
    "a verdict": lambda *a, **k: judge(*a, n_resamples=99, **k).finding,
    "before and after": lambda y, p, **k: (
        before_and_after(y, p, p, n_resamples=99, **k).before.pictures[0].tables["curve"]["observed"].tolist()
    ),
    "a monitor": lambda *a, **k: Monitor().update(*a, **k).log_evalue,
    "windows": lambda *a, **k: Windows(size=200, n_resamples=99).update(*a, **k)[1][0].predicted,
    "a state": lambda *a, **k: state(RATIO).update(*a, **k).finalize().value,
    "several states": lambda *a, **k: state(RATIO, Brier()).update(*a, **k).finalize()[0].value,
    "a metric": streamed,
    "states of frames": framed,
    "a lens": lambda *a, **k: PositiveClass()(*a, **k)[0].mean(),
    "a reliability diagram": pictures("reliability", "curve"),
    "a picture of a model": lambda y, p, **k: (
        calibrant.plots.ComparisonDisplay.from_predictions(RATIO, y, {"a": p}, n_resamples=99, **k)
        .tables["models"]
        .to_dict()
    ),
    "a picture before and after": lambda y, p, **k: (
        calibrant.plots.BeforeAfterDisplay.from_predictions(y, p, p, n_resamples=99, **k)
        .tables["before_curve"]
        .to_dict()
    ),
}


def same(a, b):
    if isinstance(a, str):
        return a == b
    if isinstance(a, dict):
        return all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == pytest.approx(b, rel=1e-9, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("call", CALLS)
def test_the_event_is_the_one_that_is_named(call):
    measure = CALLS[call]
    plain = measure(Y, P)
    assert same(measure(WORDS, BOTH, **EVENT), plain)
    assert same(measure(WORDS, P, pos_label="ill"), plain)
    if call not in ("a monitor",):  # whose bets are on events of which none is like the opposite
        assert same(measure(WORDS, BOTH[:, ::-1], labels=["well", "ill"]), plain)


def test_some_calls_would_have_told_the_other_class():
    """Otherwise the test before would show nothing."""
    assert not same(RATIO(Y, P).value, RATIO(1 - Y, 1 - P).value)
    assert judge(Y, P, n_resamples=99).finding != judge(1 - Y, 1 - P, n_resamples=99).finding


@pytest.mark.parametrize("recalibrator", [Platt(), Intercept()])
def test_maps_keep_the_order_of_columns(recalibrator):
    """A map is of columns: which of two is the event changes nothing."""
    found = recalibrator.fit(WORDS, BOTH, **EVENT)
    plain = recalibrator.fit(1 - Y, BOTH)
    assert found(BOTH) == pytest.approx(plain(BOTH))
    assert found.labels == ("ill", "well")
    alone = recalibrator.fit(WORDS, P, pos_label="ill")
    assert alone(P) == pytest.approx(recalibrator.fit(Y, P)(P))


def test_a_page_of_before_and_after_stays_with_the_event():
    found = Platt().fit(WORDS, BOTH, **EVENT)
    page = before_and_after(WORDS, BOTH, found.held_out, n_resamples=99, **EVENT)
    plain = before_and_after(Y, P, Platt().fit(Y, P).held_out, n_resamples=99)
    assert page.verdict.headline == plain.verdict.headline
    curves = [found.after.pictures[0].tables["curve"]["observed"] for found in (page, plain)]
    assert curves[0] == pytest.approx(curves[1], nan_ok=True)


def test_the_result_says_which_class_is_the_event():
    assert RATIO(WORDS, BOTH, **EVENT).lens == "positive class (ill)"
    assert ECE()(WORDS, P, pos_label="ill").lens == "positive class (ill)"


def test_a_part_of_a_stream_may_lack_the_event():
    total = (
        state(RATIO).update(WORDS[Y == 0], P[Y == 0], pos_label="ill").update(WORDS[Y == 1], P[Y == 1], pos_label="ill")
    )
    assert total.finalize().value == pytest.approx(RATIO(Y, P).value)
    assert Monitor().update(WORDS[Y == 0], P[Y == 0], pos_label="ill").n == (Y == 0).sum()


def test_names_of_classes_are_of_no_use_to_forecasts():
    with pytest.raises(InputError, match="labels and pos_label name classes, and y_pred is a Normal distribution"):
        calibrant.CRPS()([0.0, 1.0], Normal([0.0, 1.0], 1.0), labels=["a", "b"])


FORECASTS = {"State", "coverage", "exceeds", "within", "as_problem", "bin_query", "report_of"}
FORECAST_HOMES = (
    "forecast",
    "pit",
    "rank_test",
    "spread",
    "io.",
    "lab.",
    "checks",
    "engines",
    "distributions",
    "losses",
)


def public_calls():
    for package in PACKAGES:
        for name, home in homes(package).items():
            value = getattr(__import__(f"calibrant.{package}", fromlist=[name]), name)
            if name in FORECASTS or any(part in home.removeprefix("calibrant.") for part in FORECAST_HOMES):
                continue
            for method in (
                (value,)
                if inspect.isfunction(value)
                else (getattr(value, part, None) for part in ("__call__", "from_predictions", "fit", "update"))
            ):
                if inspect.isroutine(method):
                    yield f"{name}.{getattr(method, '__name__', '')}", method


def test_every_public_call_on_targets_and_predictions_takes_names():
    pytest.importorskip("torch")  # whose losses have public names
    seen = 0
    for name, method in public_calls():
        parameters = inspect.signature(method).parameters
        if "y_true" in parameters and ({"y_pred", "models", "pred_a"} & set(parameters)):
            has_options = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
            assert {"labels", "pos_label"} <= set(parameters) or has_options, name
            seen += 1
    assert seen > 60


def test_slices_come_in_any_form():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    site, age = np.array(["a", "b"])[np.arange(N) % 2], np.arange(N)
    frame = pandas.DataFrame({"site": site, "age": age})
    for by in (frame, polars.DataFrame({"site": site, "age": age}), {"site": site, "age": age}):
        assert titles(by) == ["By site", "By age"]
    for by in (frame["site"], polars.Series("site", site), frame[["site"]]):
        assert titles(by) == ["By site"]
    assert titles(site.tolist()) == ["By group"]
    table = groups(ECE(), Y, P, by=site)
    for form in (frame[["site"]], frame["site"], {"site": site}, polars.Series(site)):
        assert groups(ECE(), Y, P, by=form)["value"].tolist() == table["value"].tolist()


def titles(by):
    """What the report is sliced by: planned, and not made."""
    _, outline = planned(Y, P, by, None, 99, None, None)
    return [str(step) for step, _ in outline.sections if step.startswith("By")]


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (["site"], r"by=\['site'\] names columns: give them, such as by=frame\[\[...\]\] or by=\{'site': column\}"),
        ("site", r"by='site' names columns"),
        ({"a": [1, 2]}, r"by\['a'\] has 2 rows and y_true has 300"),
        (np.zeros((N, 2)), r"group must be one value per row; got shape \(300, 2\)"),
    ],
)
def test_slices_that_are_no_columns_are_refused(by, message):
    with pytest.raises(InputError, match=message):
        evaluate(Y, P, by=by, n_resamples=99)


def test_groups_take_one_column():
    with pytest.raises(InputError, match=r"by has the columns \['a', 'b'\]: give one of them"):
        groups(ECE(lens=TopLabel()), Y, P, by={"a": Y, "b": Y})
