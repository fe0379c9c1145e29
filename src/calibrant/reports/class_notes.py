"""What a reader should know about class probabilities before believing the numbers."""

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr

from calibrant._array import to_numpy
from calibrant.distributions.bernoulli import Bernoulli
from calibrant.distributions.categorical import Categorical
from calibrant.estimators.scores import LogLoss
from calibrant.inference.dependence import Memory
from calibrant.recalibration.held_out import floor_of
from calibrant.reports.class_problem import ClassProblem, claims
from calibrant.reports.data_notes import duplicated, effective_rows, listed, precision
from calibrant.results import how_many, number

RARE = 10
"""Classes with fewer rows than this say little by themselves."""

CERTAIN = 0.01
"""The share of probabilities of exactly 0 or 1 from which it is said."""


def class_notes(problem: ClassProblem) -> Sequence[str]:
    """Rows and weights, classes, certainty, doubles, order."""
    p = to_numpy(problem.predictions.probs)
    found = [
        *effective_rows(problem.weights),
        *(_classes(problem) if isinstance(problem.predictions, Categorical) else _labels(problem)),
        *_certainty(problem, p),
        *duplicated(p if p.ndim == 2 and p.shape[1] != 2 else p.reshape(len(p), -1)[:, -1:], "predictions"),
        *precision(p),
        *_order(problem),
    ]
    if isinstance(problem.predictions, Bernoulli):
        found.append(
            "The verdict tests every label by itself, which holds however labels depend on each other. Bands and p-values of means "
            "over labels are for labels that are independent given the predictions."
        )
    return found


def _classes(problem: ClassProblem) -> list[str]:
    predictions = problem.predictions
    assert isinstance(predictions, Categorical)
    seen = np.bincount(to_numpy(problem.targets), minlength=predictions.n_classes)
    notes, names = [], np.array(predictions.class_names, dtype=object)
    if (seen == 0).any():
        notes.append(f"Never seen in the data: {listed(names[seen == 0])}.")
    few = (seen > 0) & (seen < RARE)
    if few.any():
        notes.append(f"Fewer than {RARE} rows each: {listed(names[few])}.")
    share = seen / seen.sum()
    if share.max() > 0.9:
        notes.append(f"{100 * share.max():.1f} % of rows are of class {names[int(np.argmax(share))]}.")
    return notes


def _labels(problem: ClassProblem) -> list[str]:
    predictions = problem.predictions
    assert isinstance(predictions, Bernoulli)
    seen, names = to_numpy(problem.targets).sum(axis=0), np.array(predictions.label_names, dtype=object)
    few = (seen < RARE) | (len(problem) - seen < RARE)
    return [f"Fewer than {RARE} rows with, or without, the label: {listed(names[few])}."] if few.any() else []


def _certainty(problem: ClassProblem, p: np.ndarray) -> list[str]:
    notes = []
    events = problem.lens.events(problem.predictions)
    certain = float(np.mean([((e.probability == 0) | (e.probability == 1)).mean() for e in events]))
    if certain == 1:
        notes.append(
            "All predictions are exactly 0 or 1: these are decisions, not probabilities. Give the probabilities."
        )
    elif certain > CERTAIN:
        notes.append(f"{100 * certain:.1f} % of the probabilities are exactly 0 or 1.")
    losses = LogLoss().losses(problem.targets, problem.predictions)
    if impossible := int(np.isinf(losses).sum()):
        notes.append(f"{how_many(impossible, 'row')} had probability 0 for what happened: the log loss is infinite.")
        if isinstance(problem.predictions, Categorical):
            floor = floor_of(len(problem))
            floored = float(np.average(np.minimum(losses, -np.log(floor)), weights=problem.weights))
            words = f"Where smaller probabilities than {number(floor)}, half an event in n + 1 rows, count as that"
            notes[-1] += f" {words}, it is {number(floored)}."
    if len(p) > 1 and (p == p[:1]).all():
        notes.append("All predictions are the same: only their mean can be judged.")
    return notes


def _order(problem: ClassProblem) -> list[str]:
    """Whether rows after each other err alike; of classes, whether the favoured one is right."""
    p, right = claims(problem)
    p, right = (x.reshape(len(p), -1).astype(np.float64) for x in (p, right))
    spread = np.sqrt(np.maximum((p * (1 - p)).sum(axis=1), 1e-12))
    memory = Memory.of(ndtr((right - p).sum(axis=1) / spread))
    return [memory.in_words("errors")] if memory.is_beyond_chance else []
