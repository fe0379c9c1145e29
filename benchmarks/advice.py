"""What the report advises in cohorts whose truth is known: a map that helps, or the reason why there is none.

External validation: a risk model meets patients elsewhere. Log-odds of its risks are normal about -2.6 with a standard deviation
of 1, an event in ten; the truth has them moved, more or less spread, or bent. A forest gives shares of ten votes, 0 and 1 among
them. Run ``python benchmarks/advice.py`` (an hour or so); ``python benchmarks/advice.py 20`` draws fewer cohorts.

Columns: alarms of the verdict; alarms without a map, which must have a reason; maps without an alarm, of which there must be none;
maps that lower and that raise the expected log loss of fresh patients; its mean change, and that of the best single map.
"""

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from calibrant import Categorical
from calibrant.reports import judge
from calibrant.reports.advice import choice, reason, too_few
from calibrant.reports.class_report.class_problem import ClassProblem
from calibrant.reports.trials import Trial, candidates_for, tried

RESAMPLES = 199
FRESH = 20_000


@dataclass(frozen=True)
class Cohort:
    """Patients: how many, and the true log-odds as a function of the predicted ones; ``votes`` makes it a forest."""

    name: str
    n: int
    truth: Callable[[np.ndarray], np.ndarray]
    votes: int = 0

    def draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and true probabilities."""
        z = rng.normal(-2.6, 1.0, n)
        if not self.votes:
            return expit(z), expit(self.truth(z))
        z = 2.0 * (z + 2.6)
        return rng.binomial(self.votes, expit(z)) / self.votes, expit(self.truth(z))


COHORTS = [
    *(Cohort("calibrated", n, lambda z: z) for n in (500, 1_000)),
    *(Cohort("too low, +0.5", n, lambda z: z + 0.5) for n in (500, 700, 1_000)),
    *(Cohort("too high, -0.5", n, lambda z: z - 0.5) for n in (500, 1_000)),
    *(Cohort("too low, slope 0.8", n, lambda z: 0.8 * z + 0.1) for n in (500, 1_000)),
    *(Cohort("slope 0.5", n, lambda z: 0.5 * z - 1.2) for n in (500, 1_000)),
    Cohort("bent", 1_000, lambda z: np.where(z > -2.6, z - 0.8, z + 0.3)),
    *(Cohort("forest of ten trees", n, lambda z: 0.5 * z, votes=10) for n in (300, 1_000)),
]


@dataclass(frozen=True)
class Outcome:
    """What was said of one cohort, and what the maps would do to fresh patients: the one offered, and each."""

    is_alarm: bool
    offered: str | None
    reason: str | None
    gain: float | None
    gains: tuple[float, ...]


def outcome_of(cohort: Cohort, seed: int) -> Outcome:
    """One cohort, judged and advised."""
    rng = np.random.default_rng([seed, cohort.n, len(cohort.name)])
    p, truth = cohort.draw(rng, cohort.n)
    y = (rng.random(cohort.n) < truth) * 1
    verdict = judge(y, p, n_resamples=RESAMPLES, rng=seed)
    problem = ClassProblem(y, Categorical(p), None, RESAMPLES, np.random.SeedSequence(seed), None)
    fresh = cohort.draw(np.random.default_rng(99), FRESH)
    gains = tuple(_change(one, y, p, *fresh) for one in candidates_for(problem.predictions))
    if (few := too_few(problem)) is not None:
        return Outcome(verdict.is_alarm, None, few, None, gains)
    trials = tried(problem)
    assert trials is not None
    chosen: Trial = choice(trials, verdict)
    if chosen.recalibrator is None:
        why = reason(trials, problem, verdict) if verdict.is_alarm else None
        return Outcome(verdict.is_alarm, None, why, None, gains)
    gain = gains[[trial.name for trial in trials.trials[1:]].index(chosen.name)]
    return Outcome(verdict.is_alarm, chosen.name, None, gain, gains)


def _change(recalibrator, y: np.ndarray, p: np.ndarray, fresh: np.ndarray, truth: np.ndarray) -> float:  # type: ignore[no-untyped-def]
    """Expected log loss of fresh patients after the map, less before; 0 and 1 before count as half a vote."""
    after = np.clip(recalibrator.fit(y, p, folds=0)(fresh), 1e-12, 1 - 1e-12)
    before = np.clip(fresh, 0.05, 0.95) if np.any((fresh == 0) | (fresh == 1)) else fresh
    losses = [-(truth * np.log(q) + (1 - truth) * np.log1p(-q)) for q in (after, before)]
    return float(np.mean(losses[0] - losses[1]))


def main(sets: int = 200) -> None:
    """All cohorts, a line each."""
    print(
        f"{'cohort':24}{'n':>6}{'alarms':>8}{'no map':>8}{'map, no alarm':>15}{'helps':>7}{'harms':>7}{'change':>10}{'best':>10}"
    )
    for cohort in COHORTS:
        found = [outcome_of(cohort, seed) for seed in range(sets)]
        alarms = [x for x in found if x.is_alarm]
        none = [x for x in alarms if x.offered is None]
        assert all(x.reason for x in none), "an alarm without a map and without a reason"
        quiet = sum(x.offered is not None for x in found if not x.is_alarm)
        gains = np.array([x.gain for x in found if x.gain is not None])
        offered = np.array([x.gains for x in found if x.gain is not None])
        best = f"{offered.mean(axis=0).min():+.4f}" if len(offered) else ""
        mean = f"{gains.mean():+.4f}" if len(gains) else ""
        counts = f"{len(alarms):8}{len(none):8}{quiet:15}{(gains < 0).sum():7}{(gains > 0).sum():7}"
        print(f"{cohort.name:24}{cohort.n:6}{counts}{mean:>10}{best:>10}", flush=True)
        print("   ", dict(Counter(x.offered for x in found)), dict(Counter(x.reason for x in none)), flush=True)


if __name__ == "__main__":
    main(*[int(argument) for argument in sys.argv[1:]])
