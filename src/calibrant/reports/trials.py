"""Which recalibrators suit the predictions of a report, and what each does to rows it has not seen."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from scipy.special import ndtri

from calibrant._array import to_numpy
from calibrant._clusters import Clusters
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.empirical.ensemble import Ensemble
from calibrant.distributions.empirical.quantiles import Quantiles, forecast_at
from calibrant.distributions.multivariate import dimensions
from calibrant.distributions.quadrature import has_levels
from calibrant.estimators.scoring_rules.forecast_scores import CRPS
from calibrant.plots.comparisons.before_after_plot import paired
from calibrant.recalibration.base import (
    LOSSES,
    HeldOut,
    Recalibrator,
    finite,
    floored_words,
    folds_of_rows,
    held_out,
    in_order,
    losses_in_order,
    mean_change,
    mean_weights,
    nats,
    scores_of,
)
from calibrant.recalibration.nonparametric.isotonic import Isotonic
from calibrant.recalibration.nonparametric.spline import SplineScaling
from calibrant.recalibration.predictive.dressing import Dressing
from calibrant.recalibration.predictive.quantile import QuantileRecalibration
from calibrant.recalibration.predictive.variance import FAMILIES as SCALED_FAMILIES
from calibrant.recalibration.predictive.variance import VarianceScaling
from calibrant.recalibration.scaling.log_odds import BetaScaling, Intercept, Platt
from calibrant.recalibration.scaling.matrix import VectorScaling
from calibrant.recalibration.scaling.temperature import Temperature
from calibrant.recalibration.stacking.default import Default
from calibrant.reports.class_report.class_outline import reliability_of
from calibrant.reports.class_report.class_problem import ClassProblem
from calibrant.reports.core.model import Picture
from calibrant.reports.core.problem import ReportProblem
from calibrant.reports.forecast_report.forecast_outline import histogram_of
from calibrant.reports.forecast_report.forecast_problem import (
    ForecastProblem,
    PITOfParts,
    PITProblem,
    pit_of_targets,
    resamples_of_pit,
)
from calibrant.results import brief

FOLDS = 5
"""As many as `fit` has where nothing is said: its scores are those of the report."""

NUMBERS = 100_000
"""Predicted numbers, of all classes or members of all rows, that recalibrators learn from."""

MIN_ROWS, MAX_ROWS = 2_000, 30_000
"""Rows that are never too many to learn from, and those that are enough."""

AS_THEY_ARE = "as they are"

SIMPLE: dict[type[Recalibrator], int] = {Intercept: 1, Temperature: 1, Platt: 2, Dressing: 4}
"""Maps of few numbers, and how many; those of others depend on the predictions, or there are many."""

ODDS = 20.0
"""How many times as likely what happened must become to be beyond chance: one in so many."""

MARGIN = 2.0
"""Standard errors by which a flexible map must be better than a simple one."""

P = TypeVar("P", bound=ReportProblem)


def candidates_for(predictions: Distribution) -> tuple[Recalibrator, ...]:
    """Recalibrators that are cheap and suit these predictions, the simplest first; none for vectors of most families.

    >>> candidates_for(Categorical([[0.2, 0.3, 0.5]]))
    (Temperature(), VectorScaling(), Default())
    """
    if isinstance(predictions, Categorical):
        if predictions.n_classes > 2:
            return (Temperature(), VectorScaling(), Default())
        return (Intercept(), Temperature(), Platt(), BetaScaling(), SplineScaling(), Isotonic(smoothed=True))
    found: list[Recalibrator] = []
    if type(predictions).__name__ in SCALED_FAMILIES:
        found += [VarianceScaling(), VarianceScaling(bias=True)]
    elif isinstance(predictions, Ensemble):
        found += [Dressing()] if not predictions.is_vector and predictions.weights is None else []
    elif predictions[:1].temper(1.0) is not NotImplemented:
        found.append(Temperature())
    if not dimensions(predictions) and has_levels(predictions):
        found.append(QuantileRecalibration())
    return tuple(found)


def free_numbers(recalibrator: Recalibrator, predictions: Distribution) -> int | None:
    """How many numbers a simple map is made of; ``None`` for flexible ones.

    >>> p = Categorical([0.2, 0.4])
    >>> free_numbers(Platt(), p), free_numbers(SplineScaling(), p)
    (2, None)
    """
    if isinstance(recalibrator, VectorScaling) and isinstance(predictions, Categorical):
        return 2 * predictions.n_classes - 1
    if isinstance(recalibrator, VarianceScaling):
        return 2 if recalibrator.bias else 1
    return SIMPLE.get(type(recalibrator))


@dataclass(frozen=True, eq=False)
class Trial:
    """What one recalibrator, or none, makes of every row: its predictions fold by fold, and their losses.

    ``numbers`` are those that the map is made of, where it is a simple one.
    """

    recalibrator: Recalibrator | None
    parts: tuple[HeldOut, ...]
    losses: np.ndarray
    numbers: int | None = None

    @property
    def name(self) -> str:
        """Its settings, in short."""
        return AS_THEY_ARE if self.recalibrator is None else brief(self.recalibrator)


@dataclass(frozen=True, eq=False)
class Trials:
    """All candidates on the same held-out rows, judged by one ``score``; the first is to leave predictions as they are.

    ``refused`` says why others could not be fitted, ``notes`` what the score does not say. ``weights`` sum to 1. Rows of one of the
    ``clusters`` were held out together.
    """

    score: str
    trials: tuple[Trial, ...]
    weights: np.ndarray
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    clusters: Clusters | None = None

    def mean(self, trial: Trial) -> float:
        """Its mean loss."""
        return float(trial.losses @ self.weights)

    def change(self, trial: Trial, since: Trial) -> tuple[float, float]:
        """By how much the mean loss is larger than another's, and the standard error of that."""
        mean, error = mean_change(since.losses, trial.losses, self.weights, self.clusters)
        return float(mean), float(error)

    @property
    def rows(self) -> float:
        """How many rows of equal weight tell as much."""
        return float(1 / (self.weights @ self.weights))

    def nats(self, trial: Trial) -> float:
        """The logarithm of how many times as likely it makes what happened, of scores that are log losses of independent rows."""
        if self.clusters is not None:
            return 0.0
        return nats(self.score, self.change(trial, self.unchanged)[0], self.rows)

    @property
    def unchanged(self) -> Trial:
        """Predictions as they are."""
        return self.trials[0]

    @property
    def lowest(self) -> Trial:
        """The one with the least mean loss."""
        return min(self.trials, key=self.mean)

    @property
    def best(self) -> Trial:
        """The map to use if one is to be used.

        Of simple maps the one with the least loss, where every number of a map costs half a nat in all; a flexible one if
        it is better than that by :data:`MARGIN` standard errors, or where there is no simple one.
        """
        simple = [trial for trial in self.trials[1:] if trial.numbers is not None]
        flexible = [trial for trial in self.trials[1:] if trial.numbers is None]
        if not simple:
            return min(flexible, key=self.mean)
        first = min(simple, key=self._cost)
        if not flexible:
            return first
        change, error = self.change(other := min(flexible, key=self.mean), first)
        return other if change < -MARGIN * error else first

    def _cost(self, trial: Trial) -> float:
        """The mean loss, and what the numbers of the map cost where the loss is measured in nats."""
        is_log = "log loss" in self.score
        return self.mean(trial) + (0.5 * (trial.numbers or 0) / self.rows if is_log else 0.0)

    def chosen(self, needed: float) -> Trial:
        """The best map if it gains, by more than so many standard errors; else the predictions as they are."""
        gain, error = self.change(self.best, self.unchanged)
        return self.best if gain < -needed * error and gain < 0 else self.unchanged

    def is_certain(self, trial: Trial, looks: int = 1) -> bool:
        """Whether a gain is beyond chance by itself, at one of so many looks.

        By two standard errors of the mean, or by what happened being 20 times as likely, and more for several looks.
        """
        gain, error = self.change(trial, self.unchanged)
        far = max(2.0, float(ndtri(1 - 0.025 / looks)))
        return gain < -far * error or self.nats(trial) >= np.log(ODDS * looks)


def tried(problem: ReportProblem) -> Trials | None:
    """Every candidate on held-out rows; ``None`` where there is no candidate, or no finite score to judge by."""
    targets, predictions, weights = to_numpy(problem.targets), problem.predictions, problem.weights
    w = mean_weights(weights, len(problem))
    fold = folds_of_rows(len(problem), FOLDS, clusters=problem.clusters)
    fits, refused = [], []
    for one in candidates_for(predictions):
        try:
            fits.append((one, held_out(one, targets, predictions, weights, fold, problem.engine)))
        except InputError as error:
            refused.append(f"{brief(one)} cannot be fitted: {error}")
    before = HeldOut(np.arange(len(problem)), predictions)
    for score in _scores_in_common(targets, [(before,), *(parts for _, parts in fits)]) if fits else ():
        own = losses_before(score, predictions, targets)
        name, losses = finite(
            score, np.stack([own, *(losses_in_order(score, targets, parts) for _, parts in fits)]), w, predictions
        )
        if np.isfinite(losses[0]).all():
            others = [
                Trial(one, parts, row, free_numbers(one, predictions))
                for (one, parts), row in zip(fits, losses[1:], strict=True)
            ]
            notes = floored_words(int(np.isinf(own).sum()), len(own)) if name != score else ()
            every = (Trial(None, (before,), losses[0], 0), *others)
            return Trials(name, every, w, tuple(refused), notes, problem.clusters)
    return None


def losses_before(score: str, predictions: Distribution, targets: np.ndarray) -> np.ndarray:
    """Losses of predictions as they are; of an ensemble, those of what its members were drawn from.

    Else smoothing would be a gain wherever there are few members, of calibrated ones too. Ferro (2014).
    """
    if score == "CRPS" and is_sample(predictions):
        return CRPS(fair=True).losses(targets, predictions)
    return LOSSES[score](predictions, targets)


def is_sample(predictions: Distribution) -> bool:
    """Whether several members stand for the distribution they were drawn from."""
    return isinstance(predictions, Ensemble) and predictions.weights is None and predictions.members.shape[1] > 1


def spelled(score: str) -> str:
    """A score as sentences call it."""
    return {"Brier": "Brier score", "pinball": "pinball loss"}.get(score, score)


def _scores_in_common(targets: np.ndarray, tries: Sequence[Sequence[HeldOut]]) -> Iterator[str]:
    """Scores that all predictions have, the best judge first."""
    have = [scores_of(parts[0].predictions, targets) for parts in tries]
    return (name for name in have[0] if all(name in names for names in have))


def thinned(problem: P, most: int = MAX_ROWS) -> P:
    """The problem of as many of its rows, drawn at random, as recalibrators need; rows without weight are left out."""
    rows = np.arange(len(problem)) if problem.weights is None else np.flatnonzero(problem.weights)
    most = min(most, max(MIN_ROWS, NUMBERS // _width(problem.predictions)))
    if len(rows) > most:
        rows = np.sort(np.random.default_rng(problem.fresh_seeds).choice(rows, most, replace=False))
    return problem if len(rows) == len(problem) else problem.rows(rows)


def _width(predictions: Distribution) -> int:
    """How many numbers are predicted per row."""
    if isinstance(predictions, Categorical):
        return predictions.n_classes
    if isinstance(predictions, Ensemble):
        return int(np.prod(predictions.members.shape[1:]))
    return max(1, 10 * dimensions(predictions))  # PIT values of vectors take draws


def problem_after(problem: ReportProblem, parts: Sequence[HeldOut]) -> ReportProblem:
    """The problem with the predictions of all folds; of forecasts, with the PIT values of targets in them."""
    if isinstance(problem, ClassProblem):
        return replace(problem, predictions=in_order(parts).checked())  # targets are columns already
    assert isinstance(problem, ForecastProblem)
    if (fan := problem.fan) is not None:
        return _of_quantiles(problem, fan, parts)
    pit, targets = np.empty(len(problem)), to_numpy(problem.targets)
    resamples = []
    for part in parts:
        own = targets[part.rows]
        pit[part.rows] = pit_of_targets(own, part.predictions)
        resamples.append((part.rows, resamples_of_pit(own, part.predictions)))
    is_uniform = all(one is None for _, one in resamples)
    return problem.at(pit, None if is_uniform else PITOfParts(tuple(resamples), len(problem)))


def _of_quantiles(problem: ForecastProblem, fan: Quantiles, parts: Sequence[HeldOut]) -> ReportProblem:
    """The problem with new quantiles at the same levels."""
    values = np.empty((len(problem), len(fan.levels)))
    for part in parts:
        values[part.rows] = forecast_at(part.predictions, fan.levels, "recalibration")
    return replace(problem, predictions=type(fan)(values, fan.levels)).pit


def claims_of(problem: ReportProblem) -> Picture:
    """What was claimed, and what happened: the reliability diagram of classes, the histogram of PIT values of forecasts."""
    if isinstance(problem, ClassProblem):
        return reliability_of(problem)
    pit = problem.pit if isinstance(problem, ForecastProblem) else problem
    assert isinstance(pit, PITProblem)
    return histogram_of(pit)


def picture_of(problem: ReportProblem, parts: Sequence[HeldOut], name: str) -> Picture:
    """Both sides in one picture."""
    before, after = claims_of(problem), claims_of(problem_after(problem, parts))
    return Picture(
        "before_after",
        "Before and after recalibration",
        f"The predictions as they are, and what {name} makes of rows that it has not seen. {before.caption}",
        f"Before: {before.description} After {name}: {after.description}",
        paired(before.tables, after.tables),
    )
