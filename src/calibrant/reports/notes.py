"""What a reader should know about the data before believing the numbers."""

from collections.abc import Iterable, Sequence

import numpy as np

from calibrant._array import to_numpy
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.multivariate import are_shares
from calibrant.estimators.forecast_errors.quantile_cells import judged_at
from calibrant.estimators.scoring_rules.proper_scores import LogLoss
from calibrant.inference.exact_tests.cluster_signs import DOUBTFUL, SIGNS
from calibrant.recalibration.base import floor_of
from calibrant.reports.class_report.class_problem import ClassProblem
from calibrant.reports.core.folds import Folds
from calibrant.reports.core.problem import ReportProblem
from calibrant.reports.forecast_report.forecast_problem import ForecastProblem
from calibrant.results import how_many, number

MAX_NAMES = 10
"""Names that a list shows."""

MIN_SHARE_OF_DOUBLES = 0.05
"""The share of doubles from which it is said."""


def weight_notes(weights: np.ndarray | None, idle: int = 0) -> list[str]:
    """How many rows of equal weight tell as much, ``(sum w)^2 / sum w^2``; and how many were left out, as they have none.

    >>> weight_notes(np.array([1.0, 1.0, 4.0]), idle=1)
    ['Weights are unequal: these 3 rows tell as much as 2 of equal weight.', '1 row without weight is left out.']
    """
    if weights is None:
        return []
    found, effective = [], float(weights.sum() ** 2 / (weights**2).sum())
    if effective <= 0.999 * len(weights):
        found.append(
            f"Weights are unequal: these {len(weights):,} rows tell as much as {effective:,.0f} of equal weight."
        )
    if idle:
        found.append(f"{how_many(idle, 'row')} without weight {'is' if idle == 1 else 'are'} left out.")
    return found


def cluster_notes(problem: ReportProblem) -> list[str]:
    """What is known with clusters, and what is left out because of them."""
    if problem.clusters is None or isinstance(problem.clusters, Folds):
        return []
    n, count = len(problem), len(problem.clusters)
    found = [
        f"{n:,} rows in {count:,} clusters: rows of a cluster may depend on each other in any way, clusters are independent. "
        "Numbers whose limits are not known to allow for that are shown without; so are pictures."
    ]
    if problem.inflation > 1.05:
        found.append(
            f"Errors are alike within clusters (correlation {problem.alike:.2f}): these rows tell as much as "
            f"{n / problem.inflation:,.0f} independent ones."
        )
    if problem.untested is None:
        found.append(f"p-values come from {SIGNS.format(count=count)}.")
    if problem.untested is None and problem.surprises < DOUBTFUL:
        found.append(
            "Few rare events are expected in these clusters: tests may reject calibrated predictions two or three times too often."
        )
    return found


def duplicated(rows: np.ndarray, what: str) -> list[str]:
    """How many rows repeat an earlier one, bit by bit.

    >>> duplicated(np.array([[0.5], [0.5], [0.2], [0.5]]), "predictions")
    ['50.0 % of the predictions repeat an earlier one: there are 2 different ones.']
    """
    table = np.ascontiguousarray(rows)
    if table.ndim != 2 or len(table) < 2:
        return []
    different = len(np.unique(table[:, 0] if table.shape[1] == 1 else _as_bytes(table)))
    share = 1 - different / len(table)
    if share < MIN_SHARE_OF_DOUBLES:
        return []
    return [f"{100 * share:.1f} % of the {what} repeat an earlier one: there are {different:,} different ones."]


def _as_bytes(table: np.ndarray) -> np.ndarray:
    """Each row as one value that can be compared."""
    return table.view(np.dtype((np.void, table.dtype.itemsize * table.shape[1])))[:, 0]


def precision(values: np.ndarray) -> list[str]:
    """Whether numbers came in fewer digits than doubles have.

    >>> precision(np.array([0.1], dtype=np.float32))
    ['Probabilities are in single precision: differences below 1e-7 are rounding.']
    """
    names = {2: ("half", "1e-3"), 4: ("single", "1e-7")}
    if values.dtype.kind != "f" or values.dtype.itemsize not in names:
        return []
    name, size = names[values.dtype.itemsize]
    return [f"Probabilities are in {name} precision: differences below {size} are rounding."]


def listed(names: Iterable[object]) -> str:
    """Names, the first ten of them.

    >>> listed("abc"), listed(range(12))
    ('a, b, c', '0, 1, 2, 3, 4, 5, 6, 7, 8, 9 …')
    """
    found = [str(name) for name in names]
    return f"{', '.join(found[:MAX_NAMES])}{' …' if len(found) > MAX_NAMES else ''}"


MIN_CLASS_ROWS = 10
"""Classes with fewer rows than this say little by themselves."""

CERTAIN = 0.01
"""The share of probabilities of exactly 0 or 1 from which it is said."""


def class_notes(problem: ClassProblem) -> Sequence[str]:
    """Rows and weights, classes, certainty, doubles, order."""
    p = to_numpy(problem.predictions.probs)
    found = [
        *weight_notes(problem.weights, problem.idle),
        *cluster_notes(problem),
        *(_classes(problem) if isinstance(problem.predictions, Categorical) else _labels(problem)),
        *_certainty(problem, p),
        *duplicated(p if p.ndim == 2 and p.shape[1] != 2 else p.reshape(len(p), -1)[:, -1:], "predictions"),
        *precision(p),
    ]
    if isinstance(problem.predictions, Bernoulli) and problem.clusters is None:
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
    few = (seen > 0) & (seen < MIN_CLASS_ROWS)
    if few.any():
        notes.append(f"Fewer than {MIN_CLASS_ROWS} rows each: {listed(names[few])}.")
    share = seen / seen.sum()
    if share.max() > 0.9:
        notes.append(f"{100 * share.max():.1f} % of rows are of class {names[int(np.argmax(share))]}.")
    return notes


def _labels(problem: ClassProblem) -> list[str]:
    predictions = problem.predictions
    assert isinstance(predictions, Bernoulli)
    seen, names = to_numpy(problem.targets).sum(axis=0), np.array(predictions.label_names, dtype=object)
    few = (seen < MIN_CLASS_ROWS) | (len(problem) - seen < MIN_CLASS_ROWS)
    return [f"Fewer than {MIN_CLASS_ROWS} rows with, or without, the label: {listed(names[few])}."] if few.any() else []


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


def forecast_notes(problem: ForecastProblem) -> Sequence[str]:
    """Order, weights, doubles, ends, and what members are taken for."""
    levels, fan = middle_levels(problem), problem.fan
    coords = to_numpy(problem.predictions.coords) if fan is None else fan.quantiles
    found = [] if fan is None else [f"{judged_at(fan).capitalize()}."]
    found += cluster_notes(problem)
    if problem.is_ensemble:
        found.append(
            "Members are taken as draws from the forecast: under calibration the outcome is one more of them. Scores and "
            "the kernel error are shown without a test."
        )
    if are_shares(problem.predictions):
        found.append(
            "Parts have a fixed sum, so they cannot all be too high. Levels say how far out an outcome lies in its forecast, on "
            "a side that is as good as random: both ends are far out, the middle is deep inside. Each part has a test of its own."
        )
    found += weight_notes(problem.weights, problem.idle)
    if problem.weights is not None and np.ptp(problem.weights) > 0:
        exact = "; p-values are exact" if problem.clusters is None else ""
        found.append(f"Bands of pictures are those of as many rows of equal weight{exact}.")
    found += duplicated(coords.reshape(len(coords), -1), "forecasts")
    found += _repeated(to_numpy(problem.targets), problem.kind) if fan is None else []
    outside = int(((levels <= 0) | (levels >= 1)).sum())
    if outside:
        found.append(
            f"{how_many(outside, 'outcome lies where its', 'outcomes lie where their')} forecast has no probability at all."
        )
    return found


def middle_levels(problem: ForecastProblem) -> np.ndarray:
    """The level of each outcome; of quantile forecasts, the middle of what is known of it."""
    if problem.fan is None:
        return to_numpy(problem.pit.targets)
    low, high = problem.fan.levels_around(to_numpy(problem.pit.targets))
    return (low + high) / 2


def _repeated(targets: np.ndarray, kind: str) -> list[str]:
    """Whether outcomes of a continuous kind repeat, which rounding or limits of a gauge explain."""
    if kind != "numbers" or targets.ndim != 1:
        return []
    values, counts = np.unique(targets, return_counts=True)
    most = int(np.argmax(counts))
    if counts[most] <= max(2, 0.01 * len(targets)):
        return []
    share = 100 * counts[most] / len(targets)
    return [f"{share:.1f} % of outcomes are {values[most]:g}: a forecast without single values cannot foresee that."]
