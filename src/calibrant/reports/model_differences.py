"""How far models of the same targets lie apart, and which of them is better."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.special import fdtrc

from calibrant._array import to_numpy
from calibrant._clusters import Clusters
from calibrant._validate import InputError
from calibrant.distributions.empirical.quantiles import SAME_LEVEL, Quantiles, fan_of, forecast_at
from calibrant.distributions.multivariate import dimensions
from calibrant.estimators.binned.binning import EqualMass
from calibrant.estimators.binned.debiased import DebiasedECE
from calibrant.estimators.cluster_skewness import MIN_CLUSTERS
from calibrant.estimators.forecast_errors.pit_error import PITError
from calibrant.estimators.scoring_rules.forecast_scores import CRPS, EnergyScore, Pinball
from calibrant.estimators.scoring_rules.proper_scores import Brier, LogLoss, Score
from calibrant.inference.multiplicity import holm
from calibrant.inference.paired_difference import PairedDifference, likely_difference, paired_limits, pvalue_of_zero
from calibrant.inference.squared_errors import Squared
from calibrant.reports.class_report.class_problem import ClassProblem
from calibrant.reports.core.model import Verdict
from calibrant.reports.core.problem import ReportProblem
from calibrant.reports.evaluation import Report
from calibrant.reports.forecast_report.forecast_problem import ForecastProblem
from calibrant.results import Table, number, percent
from calibrant.results.text import enumeration

LEVEL = 0.95


@dataclass(frozen=True)
class Comparand:
    """What models are compared by: its name, what sentences call it, whether it is a calibration error, and one in percent."""

    name: str
    noun: str
    is_error: bool = False
    is_share: bool = False


LOG_LOSS = Comparand("Log loss", "log loss")
BRIER_SCORE = Comparand("Brier score", "Brier score")
CRPS_LOSS = Comparand("CRPS", "CRPS")
ENERGY_SCORE = Comparand("Energy score", "energy score")
PINBALL_LOSS = Comparand("Pinball loss", "pinball loss")
OF_BINS = Comparand("Root mean square calibration error", "calibration error", is_error=True, is_share=True)
OF_PIT = Comparand("Root mean square PIT error", "PIT error", is_error=True, is_share=True)


class Losses(NamedTuple):
    """A score with the losses of every model, ``(models, n)``."""

    measure: Comparand
    score: Score
    rows: np.ndarray


class Apart(NamedTuple):
    """A difference, the ends of its interval, and the p-value of there being none."""

    value: float
    low: float
    high: float
    pvalue: float


class ModelDifference(NamedTuple):
    """Two models by one measure: the value of each, how far they lie apart, and the p-value that allows for all comparisons."""

    measure: Comparand
    a: str
    b: str
    value_a: float
    value_b: float
    apart: Apart
    pvalue: float

    def seen_from(self, model: str) -> "ModelDifference":
        """The same with this model first."""
        if model == self.a:
            return self
        d = self.apart
        turned = Apart(-d.value, -d.high, -d.low, d.pvalue)
        return ModelDifference(self.measure, self.b, self.a, self.value_b, self.value_a, turned, self.pvalue)


def losses_of(problems: Sequence[ReportProblem]) -> Iterator[Losses]:
    """Scores that all models have and that are finite for all, the best judge first."""
    for measure, score in _scores_for(problems).items():
        try:
            rows = np.stack([to_numpy(score.losses(one.targets, one.predictions)) for one in problems])
        except InputError:  # no density
            continue
        if np.isfinite(rows).all():
            yield Losses(measure, score, rows)


def _scores_for(problems: Sequence[ReportProblem]) -> dict[Comparand, Score]:
    """What to judge by; where one model forecasts quantiles alone, the pinball loss at levels that all of them have."""
    shared = shared_levels(problems)
    if shared is not None:
        return {PINBALL_LOSS: Pinball(shared)} if shared else {}
    if isinstance(problems[0], ClassProblem):
        return {LOG_LOSS: LogLoss(), BRIER_SCORE: Brier()}
    if dimensions(problems[0].predictions):
        return {LOG_LOSS: LogLoss(), ENERGY_SCORE: EnergyScore()}
    return {LOG_LOSS: LogLoss(), CRPS_LOSS: CRPS()}


def shared_levels(problems: Sequence[ReportProblem]) -> tuple[float, ...] | None:
    """The levels that all quantile forecasts have; ``None`` where no model forecasts quantiles alone."""
    fans = [fan for one in problems if (fan := fan_of(one.predictions)) is not None]
    if not fans:
        return None
    return tuple(float(u) for u in fans[0].levels if all((np.abs(fan.levels - u) <= SAME_LEVEL).any() for fan in fans))


def at_shared_levels(problems: Sequence[ReportProblem]) -> list[ReportProblem]:
    """The same models, all by their quantiles at levels that they share, where one of them forecasts quantiles alone.

    So the errors that are compared look at the same levels.
    """
    shared = shared_levels(problems)
    if shared is None or len(shared) < 2:
        return list(problems)
    fans = [Quantiles.rearranged(forecast_at(one.predictions, shared, "compare"), shared) for one in problems]
    return [replace(one, predictions=fan) for one, fan in zip(problems, fans, strict=True)]


def paired_mean(
    a: np.ndarray, b: np.ndarray, weights: np.ndarray | None, likely: tuple[float, float] | None = None
) -> Apart:
    """The mean of ``a - b`` over rows, with its interval and the p-value of zero.

    >>> found = paired_mean(np.repeat([0.0, 1.0], [20, 80]), np.zeros(100), None)
    >>> found.low > 0.6, found.pvalue < 1e-4
    (True, True)
    """
    w = np.ones(len(a)) if weights is None else weights
    if (w > 0).sum() < 2:
        return Apart(float(w @ (a - b) / w.sum()), -np.inf, np.inf, 1.0)
    limits = paired_limits(a, b, weights, likely)
    low, high = limits(LEVEL)
    return Apart(limits.mean, low, high, pvalue_of_zero(limits))


def all_equal(losses: np.ndarray, weights: np.ndarray | None, clusters: Clusters | None = None) -> float:
    """The p-value of all models ``(models, n)`` having the same mean loss: Hotelling's test, of two models Student's.

    With clusters it is that of the sums over them, and nothing is shown by fewer than twelve.

    >>> round(all_equal(np.array([[1.0, 2.0, 3.0], [0.0, 2.0, 2.0]]), None), 4)
    0.1835
    """
    m = len(losses) - 1
    w = np.ones(losses.shape[1]) if weights is None else weights
    share, n = w / w.sum(), int((w > 0).sum())
    if n <= m:
        return 1.0
    apart = losses[1:] - losses[0]
    mean = apart @ share
    off = (apart - mean[:, None]) * share
    if clusters is not None:
        off, n = np.stack([clusters.sums(row) for row in off]), len(clusters)
        if n < max(MIN_CLUSTERS, m + 2):
            return 1.0
    covariance = off @ off.T * n / (n - 1)
    square = float(mean @ np.linalg.pinv(covariance, hermitian=True) @ mean)
    return float(fdtrc(m, n - m, square * (n - m) / (m * (n - 1))))


def error_of(problem: ReportProblem) -> tuple[Comparand, Squared, ReportProblem]:
    """The calibration error that is compared, the estimator, and the problem it looks at.

    It is the root of a mean square that pairs of rows estimate without bias. By ECE, whose bias is larger where predictions are
    near 1/2, a model that is as calibrated and less sharp was called worse in 38 % of 60 data sets of 400 rows at the level of
    5 %; by resamples of the largest gap of PIT values, models that are wrong in different ways in 12 %.
    """
    if isinstance(problem, ForecastProblem):
        return OF_PIT, PITError("cramer-von-mises"), problem.pit
    assert isinstance(problem, ClassProblem)
    error, targets, predictions = DebiasedECE(EqualMass(15), lens=problem.lens).reduce(
        problem.targets, problem.predictions
    )
    return OF_BINS, error, replace(problem, targets=targets, predictions=predictions)  # type: ignore[arg-type]


def differences_of(problems: Mapping[str, ReportProblem], scores: Sequence[Losses]) -> list[ModelDifference]:
    """One per score or error and a pair of models; p-values allow for all of them (Holm)."""
    names, every = list(problems), list(problems.values())
    pairs = list(combinations(range(len(names)), 2))
    checked = [(one.targets, one.predictions, one.weights) for one in every]
    weights = every[0].weights
    w = np.ones(len(every[0])) if weights is None else weights
    rows: list[tuple[Comparand, int, int, float, float, Apart]] = []
    for score in scores:
        means = score.rows @ w / w.sum()
        for a, b in pairs:
            if (clusters := every[0].clusters) is None:
                seen = score.rows[a] - score.rows[b]
                likely = likely_difference(score.score, checked[a], checked[b], seen)
                found = paired_mean(score.rows[a], score.rows[b], weights, likely)
            else:
                (d,) = PairedDifference(score.score).between(checked, [(a, b)], clusters=clusters)
                found = Apart(d.value, d.interval.low, d.interval.high, d.pvalue)
            rows.append((score.measure, a, b, means[a], means[b], found))
    if every[0].clusters is None:  # no limits are known that allow for clusters
        rows += _errors(every, pairs)
    pvalues = holm([found.pvalue for *_, found in rows]).tolist()
    return [
        ModelDifference(measure, names[a], names[b], float(value_a), float(value_b), found, pvalue)
        for (measure, a, b, value_a, value_b, found), pvalue in zip(rows, pvalues, strict=True)
    ]


def table_of(differences: Sequence[ModelDifference]) -> Table:
    """A row per measure and a pair of models: both values, ``a - b``, its interval and p-values.

    ``pvalue`` allows for all rows of the table, ``pvalue_alone`` for one.
    """
    return Table(
        measure=[d.measure.name for d in differences],
        a=np.array([d.a for d in differences], dtype=object),
        b=np.array([d.b for d in differences], dtype=object),
        value_a=[d.value_a for d in differences],
        value_b=[d.value_b for d in differences],
        difference=[d.apart.value for d in differences],
        low=[d.apart.low for d in differences],
        high=[d.apart.high for d in differences],
        pvalue=[d.pvalue for d in differences],
        pvalue_alone=[d.apart.pvalue for d in differences],
    )


def _errors(
    problems: Sequence[ReportProblem], pairs: Sequence[tuple[int, int]]
) -> list[tuple[Comparand, int, int, float, float, Apart]]:
    """Differences of calibration errors, which are roots of mean squares."""
    problems = at_shared_levels(problems)
    measure, estimator, _ = error_of(problems[0])
    looked = [error_of(problem)[2] for problem in problems]
    checked = [(one.targets, one.predictions, one.weights) for one in looked]
    found = PairedDifference(estimator, confidence_level=LEVEL).between(checked, pairs)
    roots = [(max(float(d.a), 0.0), max(float(d.b), 0.0)) for d in found]
    return [
        (measure, a, b, *values, Apart(d.value, d.interval.low, d.interval.high, d.pvalue))
        for (a, b), values, d in zip(pairs, roots, found, strict=True)
    ]


SHOWN = 0.05
"""P-values, adjusted for all comparisons, up to which a difference is taken as shown."""


class Standing(NamedTuple):
    """By one measure: the model with the smallest value, those it is shown to be better than, and all others."""

    measure: Comparand
    best: str
    beaten: tuple[str, ...]
    tied: tuple[str, ...]

    @classmethod
    def of(cls, differences: Sequence[ModelDifference], measure: Comparand) -> "Standing":
        """From the differences of this measure."""
        found = [d for d in differences if d.measure == measure]
        values = {model: value for d in found for model, value in ((d.a, d.value_a), (d.b, d.value_b))}
        best = min(values, key=values.__getitem__)
        own = _differences_from(best, found)
        beaten = tuple(d.b for d in own if d.pvalue <= SHOWN)
        return cls(measure, best, beaten, tuple(d.b for d in own if d.pvalue > SHOWN))


def _differences_from(model: str, differences: Sequence[ModelDifference]) -> list[ModelDifference]:
    """Those of one model from all others, as seen from it."""
    return [d.seen_from(model) for d in differences if model in (d.a, d.b)]


def judge_models(
    differences: Sequence[ModelDifference], reports: Mapping[str, Report], score: Comparand | None, error: Comparand
) -> Verdict:
    """The verdict from paired differences of the first score and of the calibration error."""
    measures = [error, *([] if score is None else [score])]
    standings = [Standing.of(differences, one) for one in measures if any(d.measure == one for d in differences)]
    headline = _headline(standings, list(reports))
    evidence = [
        _evidence(differences, standing) for standing in reversed(standings)
    ]  # scores are known better than errors
    evidence += [f"{name}: {report.verdict.headline}" for name, report in reports.items()]
    is_shown = any(standing.beaten for standing in standings)
    return Verdict("good" if is_shown else "unsure", headline, tuple(evidence))


def _headline(standings: Sequence[Standing], names: Sequence[str]) -> str:
    shown = [standing for standing in standings if standing.beaten]
    if not shown:
        return f"{enumeration(names)} cannot be told apart on these rows."
    claims = [_claim(standing, len(names)) for standing in shown]
    first = f"{shown[0].best} {claims[0]}"
    if len(shown) == 2:
        is_same = shown[0].best == shown[1].best
        return f"{first}, {'and' if is_same else f'but {shown[1].best}'} {claims[1]}."
    if len(standings) == 1:
        return f"{first}."
    missing = standings[0] if shown[0] is standings[1] else standings[1]
    by = "in calibration" if missing is standings[0] else f"by {missing.measure.noun}"
    return f"{first}; {by} the models cannot be told apart."


def _claim(standing: Standing, models: int) -> str:
    """What is said of the best: that it is better than others, and than which."""
    than = f" than {enumeration(standing.beaten)}" if models > 2 or standing.measure.is_error else ""
    if standing.measure.is_error:
        return f"is better calibrated{than}"
    degree = "lower" if models == 2 or standing.tied else "lowest"
    return f"has the {degree} {standing.measure.noun}{than if standing.tied else ''}"


def _evidence(differences: Sequence[ModelDifference], standing: Standing) -> str:
    """The values of the best and of the nearest one that it beats, or of the nearest of all, with their difference."""
    measure = standing.measure
    own = _differences_from(standing.best, [d for d in differences if d.measure == measure])
    nearest = min([d for d in own if d.pvalue <= SHOWN] or own, key=lambda d: abs(d.apart.value))
    write, apart = percent if measure.is_share else number, nearest.apart
    values = f"{measure.name}: {write(nearest.value_a)} of {nearest.a}, {write(nearest.value_b)} of {nearest.b}; "
    if not np.isfinite([apart.low, apart.high]).all():
        return f"{values}how far they lie apart these rows do not show: too little surprising is expected in them."
    return (
        f"{values}{write(nearest.value_b - nearest.value_a)} apart, 95 % interval {write(-apart.high)} to {write(-apart.low)}, "
        f"p = {number(nearest.pvalue)}, allowing for all comparisons."
    )
