"""What to do about several labels a row: each by itself."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from calibrant._array import to_numpy
from calibrant.distributions.bernoulli import Bernoulli
from calibrant.distributions.categorical import Categorical
from calibrant.reports.advice import (
    ALONE,
    LEAST,
    NOTHING,
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
from calibrant.reports.model import Advice
from calibrant.reports.problem import Problem
from calibrant.reports.trials import Trials, thinned, tried
from calibrant.results import Table, how_many

MOST = 20
"""Labels that are looked at."""

ROWS = 100_000
"""Rows of all labels together that recalibrators learn from."""


def advise_on(problem: Problem, *, is_calibrated: bool, source: Sequence[str] | None = None) -> Advised:
    """What to do about any problem; about several labels, what to do about each."""
    if not isinstance(problem, ClassProblem) or not isinstance(problem.predictions, Bernoulli) or len(problem) < LEAST:
        return advise(problem, is_calibrated=is_calibrated, source=source)
    some = thinned(problem, most=ROWS // min(MOST, problem.predictions.n_labels))
    singles = [_single(some, i) for i in range(min(MOST, problem.predictions.n_labels))]
    looked = [i for i, one in enumerate(singles) if too_few(one) is None]
    # As many looks as labels: a promise needs more to stand on.
    certainty = max(2.0, float(ndtri(1 - 0.025 / max(1, len(looked)))))
    found = {i: replace(trials, certainty=certainty) for i in looked if (trials := tried(singles[i])) is not None}
    if not found:
        return Advised(Advice("No label has enough rows of both kinds to learn from.", (), None, None, None))
    labels = problem.predictions.label_names
    helped = {i: trials for i, trials in found.items() if trials.chosen is not trials.unchanged}
    sentences = (*_left_out(len(labels), len(singles), len(found)), *on_the_rows(len(problem), len(some)))
    table = _table(labels, found)
    if not helped:
        return Advised(Advice(NOTHING if is_calibrated else ALONE, sentences, table, None, None))
    top = min(helped, key=lambda i: _gain(helped[i]))
    chosen = helped[top].chosen
    headline = f"{len(helped)} of {len(found)} labels would gain. {labels[top]}: {promise(helped[top], singles[top])}"
    words = None if source is None else [word.replace("*", labels[top]) for word in source]
    advice = Advice(headline, sentences, table, command(words, chosen), code(chosen, f"[:, {top}]"))
    return Advised(advice, picture_of(singles[top], chosen.parts, f"{chosen.name} of {labels[top]}"))


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
    return trials.change(trials.chosen, trials.unchanged)[0]


def _single(problem: ClassProblem, label: int) -> ClassProblem:
    """One label as an event of its own."""
    assert isinstance(problem.predictions, Bernoulli)
    p, y = to_numpy(problem.predictions.probs)[:, label], to_numpy(problem.targets)[:, label]
    return replace(problem, targets=y.astype(np.uint8), predictions=Categorical(p))


def _table(labels: Sequence[str], found: Mapping[int, Trials]) -> Table:
    """A row a label, the largest gain first."""
    order = sorted(found, key=lambda i: _gain(found[i]))
    trials = [found[i] for i in order]
    changes = [one.change(one.chosen, one.unchanged) for one in trials]
    return Table(
        label=[labels[i] for i in order],
        recalibrator=[one.chosen.name for one in trials],
        score=[one.score for one in trials],
        before=[one.mean(one.unchanged) for one in trials],
        after=[one.mean(one.chosen) for one in trials],
        change=[change for change, _ in changes],
        standard_error=[error for _, error in changes],
    )
