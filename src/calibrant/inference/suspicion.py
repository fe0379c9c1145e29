"""Rows that may belong together although nobody said so: columns that look like labels, errors that agree, memory."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.special import ndtri

from calibrant._array import to_numpy
from calibrant._clusters import Clusters
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.estimators.cluster_skewness import MIN_CLUSTERS
from calibrant.estimators.mean_limits import skewed_quantile
from calibrant.inference.dependence import MIN_PIT, Memory, error_series, steps_of
from calibrant.lenses.class_lenses import default_lens
from calibrant.typing import Array

FALSE_ALARMS = 0.001
"""Of independent rows, the share of columns, or orders, that are accused."""

MIN_ROWS = 30
"""Fewer rows accuse nothing."""

PIECES, ROWS_PER_PIECE = 50, 100
"""The most pieces that rows are cut into along their predictions, and the rows in each at least."""

REPEATS = 0.05
"""The share of rows whose value an earlier row has, from which values repeat."""

MAX_SIZE = 50
"""Rows with equal predictions, or with equal texts in a column of any name, that may be one cluster."""

LABELS = frozenset(
    re.findall(
        r"\w+",
        "account case client customer document doc episode group guid household id ids image item key participant passage "
        "patient person prompt question session site sku station story subject text topic user uuid video visit",
    )
)
TIMES = frozenset(("date", "datetime", "day", "hour", "month", "time", "timestamp", "week"))
"""Words in the names of columns of labels, and of times."""


class Sign(StrEnum):
    """What makes rows look dependent."""

    LABELS = "labels"
    COLUMN = "column"
    PREDICTIONS = "predictions"
    TIME = "time"
    ORDER = "order"


@dataclass(frozen=True)
class Suspicion:
    """That rows belong together: by which sign, of which column, how errors are correlated, and how many values it has.

    ``LABELS`` rests on the name and on repeated values alone; the others on errors that agree by more than chance.
    """

    sign: Sign
    memory: Memory
    column: str = ""
    count: int = 0

    @property
    def misleads(self) -> bool:
        """Whether errors agree, so that limits for independent rows do not hold."""
        return self.sign is not Sign.LABELS

    def in_words(self) -> str:
        """What is said of it, with the remedy."""
        r = f"{self.memory.correlation:+.2f}"
        misled = "p-values and intervals are for independent rows and MISLEAD here"
        if self.sign is Sign.LABELS:
            return (
                f"{self.column} looks like a label of rows that belong together ({self.count:,} values in {self.memory.n:,} rows), "
                f"and rows are taken as independent here. If they are not, say so: --clusters {self.column}, in Python clusters=."
            )
        if self.sign is Sign.COLUMN:
            return (
                f"Rows with the same {self.column} err alike (correlation {r}): {misled}. Say that they belong together: "
                f"--clusters {self.column}, in Python clusters=."
            )
        if self.sign is Sign.PREDICTIONS:
            return (
                f"Rows with the same prediction err alike (correlation {r}): {misled}. Say which rows belong together: --clusters "
                "and the name of a column, in Python clusters=."
            )
        if self.sign is Sign.TIME:
            return (
                f"In the order of {self.column}, errors and the next ones are alike (correlation {r}): {misled}. Say so: "
                f"--time {self.column}, in Python time=."
            )
        return self.memory.in_words("errors")


def suspicions(
    targets: Array,
    predictions: Distribution,
    columns: dict[str, np.ndarray],
    sliced: dict[str, np.ndarray] | None = None,
) -> list[Suspicion]:
    """What makes these rows look dependent, the most telling sign first; ``columns`` have a value for each row.

    Columns that rows are ``sliced`` by are not accused for their names. Errors are taken in relation to the predictions, so that a
    wrong calibration curve, which makes neighbours on it err alike, is no sign.

    >>> rng = np.random.default_rng(0)
    >>> text = np.repeat(np.arange(100), 5)
    >>> p = rng.random(500)
    >>> y = (np.repeat(rng.random(100), 5) < p) * 1
    >>> [found.sign for found in suspicions(y, Categorical(p), {"text_id": text})]
    [<Sign.COLUMN: 'column'>]
    """
    if len(predictions) < MIN_ROWS:
        return []
    errors, slices = Errors.of(targets, predictions), sliced or {}
    named = {name: values for name, values in (columns | slices).items() if is_label(name, values)}
    found = [Suspicion(Sign.COLUMN, m, name, c) for name, values in named.items() for m, c in errors.within(values)]
    found = sorted(found, key=lambda s: s.memory.correlation * (1 - s.memory.n / s.count))[
        :1
    ]  # by how much variances grow
    found = found or [Suspicion(Sign.PREDICTIONS, m) for m, _ in errors.within(equal_predictions(predictions))]
    if not found:
        ordered = [(Sign.TIME, name, times) for name, times in _times(columns | slices).items()]
        ordered.append((Sign.ORDER, "", np.arange(len(errors))))
        found = [Suspicion(sign, m, name) for sign, name, step in ordered for m in errors.along(step)][:1]
    if not any(s.sign is Sign.COLUMN for s in found):
        counts = {
            name: len(np.unique(v)) for name, v in named.items() if words_of(name) & LABELS and name not in slices
        }
        said = [(name, count) for name, count in counts.items() if len(errors) <= MAX_SIZE * count][:1]
        found += [Suspicion(Sign.LABELS, Memory(0.0, len(errors)), name, count) for name, count in said]
    return found


@dataclass(frozen=True, eq=False)
class Errors:
    """Errors of rows, and their second and third moments were rows independent, ``(n,)``.

    Those of classes are residuals after an isotonic fit, so that neither a wrong curve nor a rare event looks like agreement;
    those of numbers are normal scores of PIT values, less a line in each piece of the rows along their forecasts.
    """

    values: np.ndarray
    variance: np.ndarray
    third: np.ndarray

    @classmethod
    def of(cls, targets: Array, predictions: Distribution) -> "Errors":
        """Of a checked problem."""
        if isinstance(predictions, Categorical | Bernoulli):
            return cls._of_classes(to_numpy(targets), predictions)
        return cls._of_scores(ndtri(np.clip(error_series(targets, predictions), MIN_PIT, 1 - MIN_PIT)), predictions)

    @classmethod
    def _of_classes(cls, targets: np.ndarray, predictions: Categorical | Bernoulli) -> "Errors":
        events = default_lens(predictions).events(predictions)
        p = np.stack([event.probability.astype(np.float64) for event in events], axis=1)
        happened = np.sum([event.observed(targets) for event in events], axis=0, dtype=np.float64)
        happened = np.asarray(happened)
        values = happened - _rising(p.sum(axis=1), happened)
        q = (happened - values)[:, None] if len(events) == 1 else p
        variance, third = (q * (1 - q)).sum(axis=1), (q * (1 - q) * (1 - 2 * q)).sum(axis=1)
        if len(events) > 1:  # labels of a row depend on each other
            more = float(values @ values) / max(float(variance.sum()), 1e-300)
            variance, third = variance * more, third * more**1.5
        return cls(values, variance, third)

    @classmethod
    def _of_scores(cls, z: np.ndarray, predictions: Distribution) -> "Errors":
        n = len(z)
        first, rank = to_numpy(predictions.coords).reshape(n, -1)[:, 0], np.empty(n)
        rank[np.argsort(first, kind="stable")] = np.arange(n)
        piece = (rank * min(max(n // ROWS_PER_PIECE, 1), PIECES) / n).astype(np.intp)
        for line in (np.ones(n), rank - _mean(rank, piece)):
            z = z - line * (np.bincount(piece, z * line) / np.maximum(np.bincount(piece, line**2), 1))[piece]
        return cls(z, _mean(z**2, piece), _mean(z**3, piece))

    def __len__(self) -> int:
        return len(self.values)

    def within(self, labels: np.ndarray) -> list[tuple[Memory, int]]:
        """The correlation of rows of the same label and the number of labels, if rows agree by more than chance."""
        together = Clusters.of_codes(np.unique(labels, return_inverse=True)[1])
        if len(together) < MIN_CLUSTERS or len(self) - len(together) < REPEATS * len(self):
            return []

        def pairs(x: np.ndarray) -> float:
            return float((together.sums(x) ** 2).sum() - (x**2).sum()) / 2

        v, cubes = self.variance, self.variance**3
        triples = (
            float((together.sums(v) ** 3 - 3 * together.sums(v) * together.sums(v**2) + 2 * together.sums(cubes)).sum())
            / 6
        )
        agreed = pairs(self.values)
        if not _is_beyond(agreed, pairs(v), pairs(self.third) + 6 * triples):
            return []
        return [(Memory(min(agreed / pairs(v**0.5), 1.0), len(self)), len(together))]

    def along(self, step: np.ndarray) -> list[Memory]:
        """The correlation of rows with those of the next step in time, if they agree by more than chance."""
        if step.max() < MIN_ROWS:
            return []
        values, v, third = (np.bincount(step, x) for x in (self.values, self.variance, self.third))
        agreed = float(values[1:] @ values[:-1])
        if not _is_beyond(agreed, float(v[1:] @ v[:-1]), float(third[1:] @ third[:-1])):
            return []
        return [Memory(agreed / float(np.linalg.norm(values[1:]) * np.linalg.norm(values[:-1])), len(v))]


def _is_beyond(total: float, variance: float, third: float) -> bool:
    """Whether a sum of products of independent errors is seldom so large, by its second and third moments."""
    if variance <= 0:
        return False
    return total > variance**0.5 * skewed_quantile(third / variance**1.5, 1 - FALSE_ALARMS)


def _mean(values: np.ndarray, piece: np.ndarray) -> np.ndarray:
    """The mean of the piece of each row."""
    return np.asarray((np.bincount(piece, values) / np.bincount(piece))[piece])


def _rising(p: np.ndarray, happened: np.ndarray) -> np.ndarray:
    """What happens at each probability, by a curve that does not fall."""
    from scipy.optimize import isotonic_regression  # slow to import

    found, which, rows = np.unique(p, return_inverse=True, return_counts=True)
    which = which.reshape(-1)
    curve: np.ndarray = isotonic_regression(np.bincount(which, happened, len(found)) / rows, weights=rows).x
    return curve[which]


def equal_predictions(predictions: Distribution) -> np.ndarray:
    """The number of each row's prediction; all different where too many rows have the same, as rounded ones do."""
    values = predictions.probs if isinstance(predictions, Categorical | Bernoulli) else predictions.coords
    table = np.ascontiguousarray(to_numpy(values).reshape(len(predictions), -1))
    rows = table.view(np.dtype((np.void, table.dtype.itemsize * table.shape[1])))[:, 0]
    which = np.unique(rows, return_inverse=True)[1].reshape(-1)
    return which if np.bincount(which).mean() <= MAX_SIZE else np.arange(len(which))


def may_tell(name: str) -> bool:
    """Whether a column is called like labels of rows that belong together, or like times.

    >>> may_tell("patient_id"), may_tell("timestamp"), may_tell("age")
    (True, True, False)
    """
    return bool(words_of(name) & (LABELS | TIMES))


def is_label(name: str, values: np.ndarray) -> bool:
    """Whether values repeat and may be labels: by the name of the column, or texts that few rows share.

    >>> is_label("patient_id", np.arange(90) // 3), is_label("age", np.arange(90) // 3), is_label("id", np.arange(90))
    (True, False, False)
    """
    is_text = values.dtype.kind in "UST" or (values.dtype == object and all(isinstance(x, str) for x in values))
    if not is_text and values.dtype.kind not in "iu":
        return False
    n, count = len(values), len(np.unique(values))
    if count < MIN_CLUSTERS or n - count < REPEATS * n:
        return False
    if words_of(name) & TIMES:
        return False
    return bool(words_of(name) & LABELS) or (is_text and n <= MAX_SIZE * count)


def words_of(name: str) -> set[str]:
    """The words of a column's name, in small letters.

    >>> sorted(words_of("questionID")), sorted(words_of("user_id2"))
    (['id', 'question'], ['id', 'user'])
    """
    return {word.lower() for word in re.findall(r"[A-Z]{2,}(?![a-z])|[A-Z]?[a-z]+", name)}


def _times(columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Columns that are called like times and can be read as such: the number of the step of each row."""
    found = {}
    for name, values in columns.items():
        may_be_duration = (
            words_of(name) & TIMES == {"time"} and values.dtype.kind in "iuf"
        )  # such as that of a follow-up
        if words_of(name) & TIMES and not may_be_duration:
            try:
                found[name] = steps_of(values, len(values))
            except InputError:  # no time after all
                continue
    return found
