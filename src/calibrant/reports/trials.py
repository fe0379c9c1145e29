"""Which recalibrators suit the predictions of a report, and what each does to rows it has not seen."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.categorical import Categorical
from calibrant.distributions.cells import has_levels
from calibrant.distributions.coordinates import dimensions
from calibrant.distributions.ensemble import Ensemble
from calibrant.estimators.crps import CRPS
from calibrant.recalibration.base import Recalibrator
from calibrant.recalibration.default import Default
from calibrant.recalibration.dressing import Dressing
from calibrant.recalibration.folds import folds_of_rows
from calibrant.recalibration.held_out import LOSSES, HeldOut, held_out, losses_in_order, mean_change, scores_of
from calibrant.recalibration.isotonic import Isotonic
from calibrant.recalibration.matrix import VectorScaling
from calibrant.recalibration.quantile import QuantileRecalibration
from calibrant.recalibration.scaling import Beta, Platt
from calibrant.recalibration.spline import SplineScaling
from calibrant.recalibration.temperature import Temperature
from calibrant.recalibration.variance import FAMILIES as SCALED_FAMILIES
from calibrant.recalibration.variance import VarianceScaling
from calibrant.reports.problem import Problem
from calibrant.results import brief

FOLDS = 5
"""As many as `fit` has where nothing is said: its scores are those of the report."""

NUMBERS = 100_000
"""Predicted numbers, of all classes or members of all rows, that recalibrators learn from."""

FEWEST, MOST = 2_000, 30_000
"""Rows that are never too many to learn from, and those that are enough."""

AS_THEY_ARE = "as they are"

P = TypeVar("P", bound=Problem)


def candidates_for(predictions: Distribution) -> tuple[Recalibrator, ...]:
    """Recalibrators that are cheap and suit these predictions, the simplest first; none for vectors of most families.

    >>> candidates_for(Categorical([[0.2, 0.3, 0.5]]))
    (Temperature(), VectorScaling(), Default())
    """
    if isinstance(predictions, Categorical):
        if predictions.n_classes > 2:
            return (Temperature(), VectorScaling(), Default())
        return (Temperature(), Platt(), Beta(), SplineScaling(), Isotonic(smoothed=True))
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


@dataclass(frozen=True, eq=False)
class Trial:
    """What one recalibrator, or none, makes of every row: its predictions fold by fold, and their losses."""

    recalibrator: Recalibrator | None
    parts: tuple[HeldOut, ...]
    losses: np.ndarray

    @property
    def name(self) -> str:
        """Its settings, in short."""
        return AS_THEY_ARE if self.recalibrator is None else brief(self.recalibrator)


@dataclass(frozen=True, eq=False)
class Trials:
    """All candidates on the same held-out rows, judged by one ``score``; the first is to leave predictions as they are.

    ``refused`` says why others could not be fitted. ``weights`` sum to 1. A promise needs a gain of ``certainty`` standard
    errors.
    """

    score: str
    trials: tuple[Trial, ...]
    weights: np.ndarray
    refused: tuple[str, ...]
    certainty: float = 2.0

    def mean(self, trial: Trial) -> float:
        """Its mean loss."""
        return float(trial.losses @ self.weights)

    def change(self, trial: Trial, since: Trial) -> tuple[float, float]:
        """By how much the mean loss is larger than another's, and the standard error of that."""
        mean, error = mean_change(since.losses, trial.losses, self.weights)
        return float(mean), float(error)

    @property
    def unchanged(self) -> Trial:
        """Predictions as they are."""
        return self.trials[0]

    @property
    def lowest(self) -> Trial:
        """The one with the least mean loss."""
        return min(self.trials, key=self.mean)

    @property
    def chosen(self) -> Trial:
        """The simplest whose loss is within one standard error of the least, if it gains enough; else as they are.

        Breiman, Friedman, Olshen & Stone (1984) for the one standard error. A map is a promise: of calibrated predictions,
        fewer than one data set in twenty gets one.
        """
        unchanged, lowest = self.unchanged, self.lowest
        near = [trial for trial in self.trials[1:] if _is_within(*self.change(trial, lowest), errors=1)]
        if lowest is unchanged or not near:
            return unchanged
        gain, error = self.change(near[0], unchanged)
        return near[0] if gain < -self.certainty * error else unchanged


def _is_within(change: float, error: float, *, errors: float) -> bool:
    return bool(np.isfinite(change)) and change <= errors * error


def tried(problem: Problem) -> Trials | None:
    """Every candidate on held-out rows; ``None`` where there is no candidate, or no finite score to judge by."""
    targets, weights = to_numpy(problem.targets), problem.weights
    w = np.full(len(problem), 1 / len(problem)) if weights is None else weights / weights.sum()
    fold = folds_of_rows(len(problem), FOLDS)
    fits, refused = [], []
    for one in candidates_for(problem.predictions):
        try:
            fits.append((one, held_out(one, targets, problem.predictions, weights, fold, problem.engine)))
        except InputError as error:
            refused.append(f"{brief(one)} cannot be fitted: {error}")
    before = HeldOut(np.arange(len(problem)), problem.predictions)
    for score in _scores_in_common(targets, [(before,), *(parts for _, parts in fits)]) if fits else ():
        losses = losses_before(score, problem.predictions, targets)
        if np.isfinite(losses).all():
            unchanged = Trial(None, (before,), losses)
            others = [Trial(one, parts, losses_in_order(score, targets, parts)) for one, parts in fits]
            return Trials(score, (unchanged, *others), w, tuple(refused))
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


def _scores_in_common(targets: np.ndarray, tries: Sequence[Sequence[HeldOut]]) -> Iterator[str]:
    """Scores that all predictions have, the best judge first."""
    have = [scores_of(parts[0].predictions, targets) for parts in tries]
    return (name for name in have[0] if all(name in names for names in have))


def thinned(problem: P, most: int = MOST) -> P:
    """The problem of as many of its rows, drawn at random, as recalibrators need; rows without weight are left out."""
    rows = np.arange(len(problem)) if problem.weights is None else np.flatnonzero(problem.weights)
    most = min(most, max(FEWEST, NUMBERS // _width(problem.predictions)))
    if len(rows) > most:
        rows = np.sort(np.random.default_rng(problem.fresh_seeds).choice(rows, most, replace=False))
    return problem if len(rows) == len(problem) else problem.rows(rows)


def _width(predictions: Distribution) -> int:
    """How many numbers a row predicts."""
    if isinstance(predictions, Categorical):
        return predictions.n_classes
    if isinstance(predictions, Ensemble):
        return int(np.prod(predictions.members.shape[1:]))
    return max(1, 10 * dimensions(predictions))  # levels of vectors take draws
