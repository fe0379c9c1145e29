"""What to do about several labels a row: each by itself."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.bernoulli import Bernoulli
from calibrant.distributions.categorical import Categorical
from calibrant.reports.advice import (
    LEAST,
    NOTHING,
    UNSURE,
    USUAL,
    Advised,
    advise,
    code,
    command,
    on_the_rows,
    promise,
    too_few,
)
from calibrant.reports.after import picture_of
from calibrant.reports.class_problem import ClassProblem
from calibrant.reports.model import Advice, Verdict
from calibrant.reports.problem import Problem
from calibrant.reports.trials import Trials, thinned, tried
from calibrant.results import Table, how_many

MOST = 20
"""Labels that are looked at."""

ROWS = 100_000
"""Rows of all labels together that recalibrators learn from."""


def advise_on(problem: Problem, *, verdict: Verdict, source: Sequence[str] | None = None) -> Advised:
    """What to do about any problem; about several labels, what to do about each."""
    if not isinstance(problem, ClassProblem) or not isinstance(problem.predictions, Bernoulli) or len(problem) < LEAST:
        return advise(problem, verdict=verdict, source=source)
    some = thinned(problem, most=ROWS // min(MOST, problem.predictions.n_labels))
    singles = [_single(some, i) for i in range(min(MOST, problem.predictions.n_labels))]
    looked = [i for i, one in enumerate(singles) if too_few(one) is None]
    found = {i: trials for i in looked if (trials := tried(singles[i])) is not None}
    if not found:
        return Advised(Advice("No label has enough rows of both kinds to learn from.", (), None, None, None))
    labels = problem.predictions.label_names
    sentences = (*_left_out(len(labels), len(singles), len(found)), *on_the_rows(len(problem), len(some)))
    helped = _helped(found, verdict)
    table = _table(labels, found, helped)
    if not helped:
        return Advised(Advice(UNSURE if verdict.is_alarm else NOTHING, sentences, table, None, None))
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
    """A row a label, the largest gain first."""
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
