"""What to do about predictions: which recalibrator helps on rows it has not seen, and how to learn it."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.reports.class_report.class_problem import ClassProblem
from calibrant.reports.core.model import Advice, Picture, Reason, Verdict
from calibrant.reports.core.problem import ReportProblem
from calibrant.reports.forecast_report.forecast_problem import ForecastProblem
from calibrant.reports.trials import FOLDS, Trial, Trials, is_sample, picture_of, problem_after, spelled, thinned, tried
from calibrant.results import Finding, Interval, Table, how_many, percent

MIN_ROWS = 50
"""Rows that a map can be learned from."""

ROUGH = 500
"""Fewer rows than this leave much to chance."""

MAX_RESAMPLES = 199
"""Resamples behind the bands of errors after recalibration."""

EVENTS = 10
"""Rows of other classes than the most frequent one."""

FAIR = "The CRPS before is that of the distribution which members were drawn from: smoothing alone is no gain."

WORDS = {
    Reason.NOTHING_WRONG: "Nothing to put right.",
    Reason.NO_RECALIBRATOR: "No recalibrator takes these predictions so far.",
    Reason.LITTLE: "Little is wrong, and no map that was tried is sure to mend it.",
    Reason.SLICE: "No map of the predictions alone mends this: all rows together are right, and a slice is not. Recalibrate that "
    "slice by itself, or let the model see what sets it apart.",
    Reason.UNSURE: "Too few rows to choose a map: those that were tried may help as well as harm.",
    Reason.UNMENDED: "No map that was tried mends this: on rows they had not seen they change next to nothing.",
}
"""Why no map is offered; too few rows are counted, too."""

NEEDED: dict[Finding | None, float] = {
    Finding.TOO_LOW: 0.0,
    Finding.TOO_HIGH: 0.0,
    Finding.OVER_CONFIDENT: 0.0,
    Finding.UNDER_CONFIDENT: 0.0,
    Finding.TOO_NARROW: 0.0,
    Finding.TOO_WIDE: 0.0,
    Finding.SLICE: 2.0,
}
"""Standard errors by which a map must gain, by what the verdict found: none where a simple map mends just that."""

USUAL, SURE = 1.0, 2.0
"""Those for findings that a map may mend or not, and those where little is wrong."""

SMALL_SHARE, SMALL_NATS = 0.02, 0.01
"""Gains that are next to nothing: shares of a score, and nats of densities, whose log loss has no shares."""


class Advised(NamedTuple):
    """The advice, and a picture of what it would do."""

    advice: Advice
    picture: Picture | None = None


def advise(problem: ReportProblem, *, verdict: Verdict, source: Sequence[str] | None = None) -> Advised:
    """Try the recalibrators that suit a problem on held-out rows, and say which to use, or why none.

    Without an alarm there is nothing to put right. After one a map that gains on held-out rows is offered; by how much it
    must gain depends on what was found (:data:`NEEDED`): the tests behind an alarm see a fault long before the mean change
    of a score is beyond chance. ``source`` are the words of a command that name the file and its columns. Large data are
    thinned, at random, which the advice says. Which map is best: :attr:`~calibrant.reports.trials.Trials.best`.
    """
    n = len(problem)
    if (few := too_few(problem)) is not None:
        return Advised(Advice(few, (), None, None, None, Reason.TOO_FEW_ROWS))
    some = replace(thinned(problem), n_resamples=min(problem.n_resamples, MAX_RESAMPLES))
    trials = tried(some)
    if trials is None:
        return Advised(unadvised(Reason.NO_RECALIBRATOR))
    errors = [Error.of(some), *(Error.of(problem_after(some, trial.parts)) for trial in trials.trials[1:])]
    table, chosen = table_of(trials, errors), choice(trials, verdict)
    about = [
        *on_the_rows(n, len(some), problem.clusters is not None),
        *([FAIR] if is_sample(problem.predictions) else []),
        *trials.refused,
    ]
    about += [f"{note}." for note in trials.notes]
    if chosen.recalibrator is None:
        why = reason(trials, problem, verdict) if verdict.is_alarm else Reason.NOTHING_WRONG
        return Advised(unadvised(why, (*_tries(trials), *about), table))
    after = errors[trials.trials.index(chosen)]
    sentences = (_removed(errors[0], after), *_grounds(trials, chosen), *about)
    advice = Advice(promise(trials, chosen, problem), sentences, table, command(source, chosen), code(chosen))
    return Advised(advice, picture_of(some, chosen.parts, chosen.name))


def unadvised(why: Reason, sentences: tuple[str, ...] = (), table: Table | None = None) -> Advice:
    """Advice that offers no map."""
    return Advice(WORDS[why], sentences, table, None, None, why)


def too_few(problem: ReportProblem) -> str | None:
    """Why nothing can be learned: few rows, or hardly any but those of one class."""
    n = len(problem) if problem.weights is None else int((problem.weights > 0).sum())
    if problem.untested is not None:
        return f"{problem.untested[:1].upper()}{problem.untested[1:]}: nothing is known of what a map would put right."
    if n < MIN_ROWS:
        return f"{how_many(n, 'row is', 'rows are')} too few to learn from."
    if isinstance(problem.predictions, Categorical):
        others = n - int(np.bincount(to_numpy(problem.targets)).max())
        if others < EVENTS:
            return f"All but {how_many(others, 'row')} are of one class: too few of others to learn from."
    return None


def choice(trials: Trials, verdict: Verdict) -> Trial:
    """The map that is offered after a verdict, or the predictions as they are."""
    if not verdict.is_alarm:
        return trials.unchanged
    return trials.chosen(max(SURE if verdict.tone == "good" else 0.0, NEEDED.get(verdict.finding, USUAL)))


def reason(trials: Trials, problem: ReportProblem, verdict: Verdict) -> Reason:
    """Why no map is offered although something is wrong."""
    if verdict.finding is Finding.SLICE:
        return Reason.SLICE
    if verdict.tone == "good":
        return Reason.LITTLE
    change, error = trials.change(trials.best, trials.unchanged)
    small = SMALL_NATS if is_density(trials, problem) else SMALL_SHARE * abs(trials.mean(trials.unchanged))
    return Reason.UNSURE if 2 * error - change > small else Reason.UNMENDED


def promise(trials: Trials, chosen: Trial, problem: ReportProblem) -> str:
    """What the chosen map would do to the score, with the standard error of that, and its share of the score."""
    change, error = trials.change(chosen, trials.unchanged)
    share = "" if is_density(trials, problem) else f" ({percent(-change / trials.mean(trials.unchanged))})"
    return f"{chosen.name} would lower the {spelled(trials.score)} by {-change:.2g} ± {error:.1g}{share}."


def is_density(trials: Trials, problem: ReportProblem) -> bool:
    """Whether the score is the log loss of densities, which may be negative and has no shares."""
    return trials.score == "log loss" and problem.kind not in ("binary", "multi-class", "multi-label", "counts")


@dataclass(frozen=True)
class Error:
    """A calibration error, with what calibrated predictions would show; with clusters that is not known."""

    value: float
    band: Interval | None

    @classmethod
    def of(cls, problem: ReportProblem) -> "Error":
        """That of the report; of forecasts, of their levels."""
        problem = problem.pit if isinstance(problem, ForecastProblem) else problem
        if problem.clusters is not None:
            return cls(float(problem.estimate(problem.error)), None)
        test = problem.test(problem.error)
        return cls(test.statistic, test.null_band())

    @property
    def beyond_chance(self) -> float:
        """How much larger it is than calibrated predictions would show in the middle of their band."""
        return max(self.value - (0.0 if self.band is None else (self.band.low + self.band.high) / 2), 0.0)


def table_of(trials: Trials, errors: Sequence[Error]) -> Table:
    """A row per recalibrator and one for the predictions as they are, the smallest score first."""
    order = sorted(range(len(errors)), key=lambda i: trials.mean(trials.trials[i]))
    found = [trials.trials[i] for i in order]
    changes = [trials.change(trial, trials.unchanged) for trial in found]
    return Table(
        recalibrator=[trial.name for trial in found],
        score=[trials.score] * len(found),
        before=[trials.mean(trials.unchanged)] * len(found),
        after=[trials.mean(trial) for trial in found],
        change=[change for change, _ in changes],
        standard_error=[error for _, error in changes],
        calibration_error=[errors[i].value for i in order],
        **_bands([errors[i].band for i in order]),
    )


def _bands(bands: Sequence[Interval | None]) -> dict[str, list[float]]:
    """The ends of null bands, where there are any."""
    known = [band for band in bands if band is not None]
    return {"null_low": [band.low for band in known], "null_high": [band.high for band in known]} if known else {}


def command(source: Sequence[str] | None, chosen: Trial) -> str | None:
    """The words that learn the map in a shell.

    >>> from calibrant.recalibration import Temperature
    >>> command(["my file.csv", "--y-pred", "p_*"], Trial(Temperature(), (), None))
    "calibrant recalibrate 'my file.csv' --y-pred 'p_*' --method 'Temperature()' --save map.json"
    """
    if source is None:
        return None
    return shlex.join(["calibrant", "recalibrate", *source, "--method", chosen.name, "--save", "map.json"])


def code(chosen: Trial, rows: str = "") -> str:
    """The lines that learn the map in Python, from some ``rows`` or columns of what is at hand."""
    kind = type(chosen.recalibrator)
    return (
        f"from calibrant.recalibration import {kind.__name__}\n\n"
        f"fitted = {chosen.name}.fit(y_true{rows}, y_pred{rows})\n"
        f"better = fitted(new_predictions{rows})"
    )


def on_the_rows(n: int, learned: int, has_clusters: bool) -> list[str]:
    """What held-out rows are, how many there were, and whether they are few."""
    which = "it and its cluster" if has_clusters else "it"
    found = [f"Each row is seen through a map that was fitted without {which}, on {FOLDS - 1} of {FOLDS} folds."]
    if learned < n:
        found.append(f"Learned and judged on {learned:,} of {n:,} rows, drawn at random.")
    if learned < ROUGH:
        found.append(f"{learned:,} rows leave much to chance: judge the map again on new ones.")
    return found


def _removed(before: Error, after: Error) -> str:
    """How much of the calibration error goes."""
    if before.band is None or after.band is None:
        return f"Calibration error: {percent(before.value)} → {percent(after.value)}."
    band = f"{percent(after.band.low)} to {percent(after.band.high)}"
    words = f"Calibration error: {percent(before.value)} → {percent(after.value)}"
    if before.value <= before.band.high:
        return f"{words}; calibrated predictions would show {band}."
    if after.value <= after.band.high:
        return f"{words}, no more than chance: calibrated predictions would show {band}."
    share = 1 - after.beyond_chance / before.beyond_chance
    left = f"removes {100 * share:.0f} %" if share > 0 else "removes nothing"
    return f"{words}, which {left} of what is beyond chance; calibrated predictions would show {band}."


ROUNDING = 1e-12
"""Scores of one map in two forms differ by no more."""


def _grounds(trials: Trials, chosen: Trial) -> list[str]:
    """What speaks for it if the gain alone does not; why it is not the one of the smallest score; that it is one of several."""
    found = []
    if not trials.is_certain(chosen):
        found.append("The gain alone is within chance: it is the verdict that calls for a map, and this one fits best.")
    if trials.lowest is not chosen:
        change, error = trials.change(chosen, trials.lowest)
        smallest = f"{trials.lowest.name} has the smallest {spelled(trials.score)}, by {change:.1g} ± {error:.1g}"
        if abs(change) > ROUNDING:
            found.append(f"{smallest}: the simpler map is preferred.")
    if len(trials.trials) > 2:
        found.append(f"The best of {len(trials.trials) - 1} by these very rows: its score is a little too good.")
    return found


def _tries(trials: Trials) -> list[str]:
    """The best that was tried, where it is not good enough."""
    others = [trial for trial in trials.trials[1:] if trials.mean(trial) < float("inf")]
    if not others:
        return []
    best = min(others, key=trials.mean)
    change, error = trials.change(best, trials.unchanged)
    words = f"The best of {len(trials.trials) - 1} that were tried, {best.name},"
    return [f"{words} changes the {spelled(trials.score)} by {change:+.2g} ± {error:.1g}."]


MAX_LABELS = 20
"""Labels that are looked at."""

ROWS = 100_000
"""Rows of all labels together that recalibrators learn from."""


def advise_on(problem: ReportProblem, *, verdict: Verdict, source: Sequence[str] | None = None) -> Advised:
    """What to do about any problem; about several labels, what to do about each."""
    if (
        not isinstance(problem, ClassProblem)
        or not isinstance(problem.predictions, Bernoulli)
        or len(problem) < MIN_ROWS
    ):
        return advise(problem, verdict=verdict, source=source)
    some = thinned(problem, most=ROWS // min(MAX_LABELS, problem.predictions.n_labels))
    singles = [_single(some, i) for i in range(min(MAX_LABELS, problem.predictions.n_labels))]
    looked = [i for i, one in enumerate(singles) if too_few(one) is None]
    found = {i: trials for i in looked if (trials := tried(singles[i])) is not None}
    if not found:
        few = "No label has enough rows of both kinds to learn from."
        return Advised(Advice(few, (), None, None, None, Reason.TOO_FEW_ROWS))
    labels = problem.predictions.label_names
    rows = on_the_rows(len(problem), len(some), problem.clusters is not None)
    sentences = (*_left_out(len(labels), len(singles), len(found)), *rows)
    helped = _helped(found, verdict)
    table = _table(labels, found, helped)
    if not helped:
        return Advised(unadvised(Reason.UNSURE if verdict.is_alarm else Reason.NOTHING_WRONG, sentences, table))
    top = min(helped, key=lambda i: _gain(helped[i]))
    chosen = helped[top].best
    promised = promise(helped[top], chosen, singles[top])
    headline = f"{len(helped)} of {len(found)} labels would gain. {labels[top]}: {promised}"
    words = None if source is None else [word.replace("*", labels[top]) for word in source]
    advice = Advice(headline, sentences, table, command(words, chosen), code(chosen, f"[:, {top}]"))
    return Advised(advice, picture_of(singles[top], chosen.parts, f"{chosen.name} of {labels[top]}"))


def _helped(found: Mapping[int, Trials], verdict: Verdict) -> dict[int, Trials]:
    """Labels whose gain is beyond chance among so many; after an alarm at least the likeliest, if it gains at all."""
    if not verdict.is_alarm:
        return {}
    sure = {i: trials for i, trials in found.items() if trials.is_certain(trials.best, len(found))}
    likeliest = max(found, key=lambda i: (found[i].nats(found[i].best), -_gain(found[i])))
    if sure or found[likeliest].chosen(USUAL) is found[likeliest].unchanged:
        return sure
    return {likeliest: found[likeliest]}


def _left_out(labels: int, looked: int, found: int) -> list[str]:
    """What the advice does not speak of."""
    more = [f"The first {looked} labels of {labels}."] if looked < labels else []
    few = (
        [f"{how_many(looked - found, 'label has', 'labels have')} too few rows of either kind to learn from."]
        if found < looked
        else []
    )
    return [*more, *few]


def _gain(trials: Trials) -> float:
    return trials.change(trials.best, trials.unchanged)[0]


def _single(problem: ClassProblem, label: int) -> ClassProblem:
    """One label as an event of its own."""
    assert isinstance(problem.predictions, Bernoulli)
    p, y = to_numpy(problem.predictions.probs)[:, label], to_numpy(problem.targets)[:, label]
    return replace(problem, targets=y.astype(np.uint8), predictions=Categorical(p))


def _table(labels: Sequence[str], found: Mapping[int, Trials], helped: Mapping[int, Trials]) -> Table:
    """A row per label, the largest gain first."""
    shown = {i: trials.best if i in helped else trials.unchanged for i, trials in found.items()}
    changes = {i: found[i].change(shown[i], found[i].unchanged) for i in found}
    order = sorted(found, key=lambda i: changes[i][0])
    return Table(
        label=[labels[i] for i in order],
        recalibrator=[shown[i].name for i in order],
        score=[found[i].score for i in order],
        before=[found[i].mean(found[i].unchanged) for i in order],
        after=[found[i].mean(shown[i]) for i in order],
        change=[changes[i][0] for i in order],
        standard_error=[changes[i][1] for i in order],
    )
