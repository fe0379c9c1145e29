"""What to do about predictions: which recalibrator helps on rows it has not seen, and how to learn it."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from calibrant.reports.after import picture_of, problem_after
from calibrant.reports.candidates import FOLDS, Trial, Trials, thinned, tried
from calibrant.reports.class_problem import ClassProblem
from calibrant.reports.forecast_problem import ForecastProblem
from calibrant.reports.model import Advice, Picture
from calibrant.reports.problem import Problem
from calibrant.results import Interval, Table, percent

LEAST = 50
"""Rows that a map can be learned from."""

ROUGH = 500
"""Fewer rows than this leave much to chance."""

REDRAWS = 199
"""Redraws behind the bands of errors after recalibration."""


class Advised(NamedTuple):
    """The advice, and a picture of what it would do."""

    advice: Advice
    picture: Picture | None = None


def advise(problem: Problem, *, is_calibrated: bool, source: Sequence[str] | None = None) -> Advised:
    """Try the recalibrators that suit a problem on held-out rows, and say which to use, if any.

    ``source`` are the words of a command that name the file and its columns. Large data are thinned, at random, which the
    advice says. The choice: :attr:`calibrant.reports.candidates.Trials.chosen`.
    """
    if len(problem) < LEAST:
        return Advised(_without_candidates(f"{len(problem):,} rows are too few to learn from."))
    some = replace(thinned(problem), n_resamples=min(problem.n_resamples, REDRAWS))
    trials = tried(some)
    if trials is None:
        return Advised(_without_candidates("No recalibrator takes these predictions so far."))
    errors = {trial.name: _Error.of(problem_after(some, trial.parts)) for trial in trials.trials}
    chosen, table = trials.chosen, _table(trials, errors)
    sentences = [*_on_the_rows(len(problem), len(some)), *trials.refused]
    if chosen.recalibrator is None:
        headline = "Nothing to put right." if is_calibrated else "No map does better than leaving the predictions alone."
        return Advised(Advice(headline, (*_tries(trials), *sentences), table, None, None))
    before, after = errors[trials.trials[0].name], errors[chosen.name]
    advice = Advice(
        promise(trials, chosen),
        (_removed(before, after), *_choice(trials), *sentences),
        table,
        command(source, chosen.name),
        code(chosen),
    )
    return Advised(advice, picture_of(some, chosen.parts, chosen.name))


def promise(trials: Trials, chosen: Trial) -> str:
    """What a map would do to the score, with the standard error of that.

    The share is that of the score; of densities, whose log loss may be negative, there is none.
    """
    change, error = trials.change(chosen, trials.trials[0])
    before = trials.mean(trials.trials[0])
    share = f" ({percent(-change / before)})" if before > 0 and trials.score != "log loss" or _is_mass(chosen) else ""
    return f"{chosen.name} would lower the {_spelled(trials.score)} by {-change:.2g} ± {error:.1g}{share}."


@dataclass(frozen=True)
class _Error:
    """A calibration error, with what calibrated predictions would show."""

    value: float
    band: Interval

    @classmethod
    def of(cls, problem: Problem) -> "_Error":
        problem = problem.levels if isinstance(problem, ForecastProblem) else problem
        test = problem.test(problem.error)
        return cls(test.statistic, test.null_band())

    @property
    def beyond_chance(self) -> float:
        """How much larger it is than calibrated predictions would show in the middle of their band."""
        return max(self.value - (self.band.low + self.band.high) / 2, 0.0)
