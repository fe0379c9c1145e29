"""Rows in the order of time: whether those after each other are alike, and blocks of them that are tested together."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import ndtr, ndtri

from calibrant._array import to_numpy
from calibrant._validate import InputError, as_array, check_count, check_same_length
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.empirical.quantiles import fan_of
from calibrant.distributions.multivariate import are_shares
from calibrant.distributions.reading.conversion import UNNAMED, Classes, as_problem
from calibrant.estimators.forecast_errors.pit import PIT, usual_prerank
from calibrant.lenses.class_lenses import default_lens
from calibrant.typing import Array, ArrayLike

MIN_STANDARD_ERRORS = 3.3
"""Standard errors from which a correlation is no chance: one false alarm in a thousand."""

BIAS, MAX_BIAS, MIN_BLOCKS = 0.1, 0.2, 20
"""Shares of the variance that blocks may lose at their ends: usually, and where else there would be fewer blocks than that."""

MIN_PIT = 1e-9
"""PIT values nearer to 0 or 1 count as this far out."""


@dataclass(frozen=True)
class Memory:
    """Correlation of the PIT values of each row with those of the next, on the scale of normal scores.

    Independent rows have a correlation of 0 with a standard error of ``1 / sqrt(n)``, whatever the predictions, if these are
    calibrated; a bias alone does not look like memory, as the mean is taken off.

    >>> rng = np.random.default_rng(0)
    >>> Memory.of(rng.random(500)).is_beyond_chance, Memory.of(np.repeat(rng.random(100), 5)).is_beyond_chance
    (False, True)
    """

    correlation: float
    n: int

    @classmethod
    def of(cls, pit: np.ndarray) -> "Memory":
        """From PIT values between 0 and 1, in the order of the rows."""
        return cls.of_scores(ndtri(np.clip(pit, MIN_PIT, 1 - MIN_PIT)))

    @classmethod
    def of_scores(cls, scores: np.ndarray) -> "Memory":
        """From numbers of any scale, in the order of the rows."""
        z = scores - scores.mean()
        total = float(z @ z)
        return cls(float(z[1:] @ z[:-1]) / total if total > 0 else 0.0, len(z))

    @property
    def is_beyond_chance(self) -> bool:
        """Whether independent rows would show this in one of a thousand cases at most."""
        return bool(self.n > 10 and abs(self.correlation) * np.sqrt(self.n) > MIN_STANDARD_ERRORS)

    @property
    def block(self) -> int:
        """Rows that belong in a block, at least 2, for sums over blocks to vary nearly as they would if these were independent.

        Of a correlation r that fades from row to row, blocks of b rows lose ``2 r / (1 - r^2) / b`` of the variance at their ends:
        a tenth, or a fifth where there would be fewer than twenty blocks. To r its standard error is added.
        """
        r = min(abs(self.correlation) + 1 / np.sqrt(self.n), 0.99)
        lost = 2 * r / (1 - r**2)
        return int(max(2, min(np.ceil(lost / BIAS), max(np.ceil(lost / MAX_BIAS), self.n // MIN_BLOCKS))))

    def in_words(self, what: str = "PIT values") -> str:
        """The warning."""
        return (
            f"Rows after each other are alike (correlation {self.correlation:+.2f} of their {what}): p-values and bands are for "
            f"independent rows and MISLEAD here. Use blocks of at least {self.block} rows: --block {self.block}, in Python "
            f"evaluate(..., block={self.block})."
        )


@dataclass(frozen=True, eq=False)
class TimeBlocks:
    """Rows in blocks of ``length`` steps in time, ``labels`` (n,) from 0 on; the last one may be longer.

    Rows of the same time are one step. ``memory`` is the larger of the correlations of errors, and of their sizes, with the next.

    >>> blocks = TimeBlocks.of([1, 0, 1, 1], [0.5, 0.5, 0.5, 0.5], [3, 1, 4, 2], block=2)
    >>> blocks.labels, blocks.length
    (array([1, 0, 1, 0]), 2)
    """

    labels: np.ndarray
    length: int
    memory: Memory

    @classmethod
    def of(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        time: ArrayLike | None = None,
        block: int | None = None,
        classes: Classes = UNNAMED,
    ) -> Self:
        """Blocks as long as the memory asks for, or of so many steps; without times the order is that of the rows."""
        targets, predictions = as_problem(y_true, y_pred, classes)
        n = len(predictions)
        if block is not None:
            check_count(block, "block")
        step = np.arange(n) if time is None else steps_of(time, n)
        memory = max((_of_steps(x, step) for x in _scores(targets, predictions)), key=lambda m: abs(m.correlation))
        steps = int(step.max() + 1)
        length = min(memory.block if block is None else block, steps)
        return cls(np.minimum(step // length, steps // length - 1), length, memory)

    def in_words(self) -> str:
        """What is said of them, without the full stop."""
        steps = "rows" if self.memory.n == len(self.labels) else "steps in time"
        return (
            f"In the order of time, errors have a correlation of {self.memory.correlation:+.2f} with the next ones: blocks of "
            f"{self.length} {steps} are taken to belong together, and different blocks to be independent"
        )


def time_blocks(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    time: ArrayLike | None = None,
    *,
    block: int | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> np.ndarray:
    """Which rows of a time series belong together: labels ``(n,)`` of blocks of consecutive rows, for ``clusters=``.

    Rows are put in the order of ``time``, numbers or dates; rows of the same time stay together. Without ``block``, a number of
    steps, blocks are long enough for the memory of the errors: a correlation that fades from step to step loses a tenth of the
    variance at the ends of blocks. Other memory, such as that of seasons, needs longer ones. Künsch (1989).

    >>> import numpy as np
    >>> from calibrant import AggregatedTest
    >>> from calibrant.inference import time_blocks
    >>> rng = np.random.default_rng(0)
    >>> y_pred = np.repeat(rng.random(200), 5)                    # five hours alike
    >>> y_true = (np.repeat(rng.random(200), 5) < y_pred) * 1
    >>> blocks = time_blocks(y_true, y_pred)
    >>> AggregatedTest()(y_true, y_pred, clusters=blocks).pvalue > 0.05
    True
    """
    return TimeBlocks.of(y_true, y_pred, time, block, Classes(labels, pos_label)).labels


def error_series(targets: Array, predictions: Distribution) -> np.ndarray:
    """One number between 0 and 1 per row, ``(n,)``: PIT values, or of classes how much more happened than was claimed.

    Of several classes it is whether the favoured one was right, of labels what happened of all of them, of shares of a whole the
    one that varies most.
    """
    if isinstance(predictions, Categorical | Bernoulli):
        events = default_lens(predictions).events(predictions)
        p = np.stack([event.probability.astype(np.float64) for event in events], axis=1)
        happened = np.stack([event.observed(to_numpy(targets)) for event in events], axis=1)
        spread = np.sqrt(np.maximum((p * (1 - p)).sum(axis=1), 1e-12))
        return ndtr((happened - p).sum(axis=1) / spread)
    y = to_numpy(targets)
    if (fan := fan_of(predictions)) is not None:
        return np.mean(fan.levels_around(y), axis=0)
    if are_shares(predictions):
        return PIT().of(y, predictions)[:, int(y.std(axis=0).argmax())]
    return PIT(prerank=usual_prerank(predictions)).of(y, predictions)


def _scores(targets: Array, predictions: Distribution) -> list[np.ndarray]:
    """Normal scores of errors, and their sizes."""
    z = ndtri(np.clip(error_series(targets, predictions), MIN_PIT, 1 - MIN_PIT))
    return [z, np.abs(z)]


def _of_steps(scores: np.ndarray, step: np.ndarray) -> Memory:
    """The memory of the means of the rows of each step."""
    return Memory.of_scores(np.bincount(step, scores) / np.bincount(step))


def steps_of(time: ArrayLike, n: int) -> np.ndarray:
    """The number of the step of each row, from 0 on."""
    values = _comparable(to_numpy(as_array(time, "time")))
    if values.ndim != 1:
        raise InputError(
            f"time must be one value per row; got shape {values.shape}: give the column that orders the rows"
        )
    check_same_length(len(values), n, "time", "y_true")
    missing = np.isnat(values) if values.dtype.kind in "mM" else ~np.isfinite(values)
    if missing.any():
        raise InputError(
            f"time has {int(missing.sum()):,} missing or infinite values, first in row {int(missing.argmax())}: drop these "
            "rows, or give them a time"
        )
    return np.unique(values, return_inverse=True)[1].reshape(-1)


def _comparable(values: np.ndarray) -> np.ndarray:
    """Numbers or dates; texts are read as dates."""
    if values.dtype.kind in "iufmM":
        return values
    texts = [str(value).strip().removesuffix("Z") for value in values.reshape(-1).tolist()]
    try:
        return np.array(texts, dtype="datetime64[us]").reshape(values.shape)
    except ValueError as error:
        raise InputError(
            f"time must be numbers or dates such as 2024-05-31 or 2024-05-31T14:30; got {texts[0]!r}: write them so, or give the "
            "number of each row in time"
        ) from error
