"""Checks at the boundary: what the public calls refuse, and the words they refuse it with."""

import math
from collections import Counter
from collections.abc import Sequence, Sized
from difflib import get_close_matches
from numbers import Real
from typing import Any

import numpy as np

from calibrant._array import (
    common,
    detached,
    is_array,
    is_floating,
    is_integer,
    is_traced,
    namespace,
    to_numpy,
    unreadable,
)
from calibrant.results import how_many
from calibrant.typing import Array, ArrayLike

SUM_SLACK = 1e-3
"""How far the probabilities of a row may be from summing to one (float32 softmax, rounded files)."""

MAX_COUNT = 2**53
"""Rows, and whatever else is counted, at most."""

RANGE_SLACK = 1e-6
"""How far a probability may lie outside [0, 1] through rounding."""

MAX_WEIGHT = 2.0**64
"""The largest weight of a problem lies between one over this and this, or all are brought there."""

MAX_WEIGHT_OF_PARTS = 1e90
"""The largest weight in a stream, and one over the smallest, so that its third power is a number."""

FAINT = 2.0**-200
"""Weights below this share of the largest are 0: they change no digit, and their squares would be lost."""


class InputError(ValueError):
    """The caller's data or settings cannot be used; the message says which, why, and what to do.

    >>> from calibrant import ECE, InputError
    >>> try:
    ...     ECE()([1, 0], [0.9, 1.2])
    ... except InputError as error:
    ...     print(str(error).partition(";")[0])
    y_pred must lie in [0, 1]
    """


def as_array(x: ArrayLike, name: str) -> Array:
    """``x`` as an array of its own library; lists, columns and frames become NumPy."""
    if isinstance(x, np.ma.MaskedArray):
        raise InputError(f"{name} is a masked array: drop the masked rows first")
    if isinstance(x, np.ndarray):
        return common(np.asarray(x))  # not a subclass, whose operators may mean something else
    if is_array(x):
        if reason := unreadable(x):
            raise InputError(f"{name} is {reason}")
        return common(x)
    if isinstance(x, list | tuple | range):
        return _from_sequence(x, name)
    return to_numpy(_from_frame(x, name).to_numpy())


def as_column(x: ArrayLike, name: str) -> np.ndarray:
    """A column to slice by, ``(n,)`` on the host; mixed and missing values become text."""
    column = to_numpy(as_array(x, name))
    if column.ndim != 1:
        raise InputError(f"{name} must be one value a row; got shape {column.shape}")
    if column.dtype != object:
        return column
    try:
        return column.astype(str)
    except ValueError as error:
        row = next(i for i, x in enumerate(column) if isinstance(x, Sequence | np.ndarray) and not isinstance(x, str))
        raise InputError(
            f"{name} must be one value a row; got {column[row]!r} in row {row}: join its parts to one text"
        ) from error


def frame_columns(x: ArrayLike) -> tuple[Any, ...] | None:
    """The column names when ``x`` is a pandas, polars or other data frame, else ``None``."""
    if is_array(x) or isinstance(x, list | tuple | range) or not hasattr(x, "columns"):
        return None
    return tuple(_from_frame(x, "y_pred").columns)


def _from_sequence(x: Sequence[Any], name: str) -> np.ndarray:
    if x and is_array(x[0]) and not isinstance(x[0], np.ndarray | np.generic):  # which NumPy may not know how to read
        x = [to_numpy(as_array(part, name)) for part in x]
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise InputError(f"{name} has rows of different lengths: give every row the same number of values") from error
    if array.dtype == object:
        raise InputError(f"{name} mixes types or has missing values: give numbers, or text labels, alone")
    return array


def _from_frame(x: object, name: str) -> Any:
    import narwhals as nw

    try:
        return nw.from_native(x, eager_only=True, allow_series=True)
    except nw.exceptions.DuplicateError:
        check_names_once([str(column) for column in x.columns], name)  # type: ignore[attr-defined]  # a frame has them
        raise
    except TypeError as error:
        raise InputError(
            f"{name} is a {type(x).__name__}: give an array, a list, a data-frame column or a calibrant distribution"
        ) from error


def check_not_empty(x: Array, name: str) -> None:
    """Refuse an array without rows or columns, and a single number."""
    if x.ndim == 0:
        raise InputError(f"{name} is a single value: give one value a row, as an array or a list")
    if x.shape[0] == 0:
        raise InputError(f"{name} is empty: at least one row is needed")
    if 0 in x.shape:
        raise InputError(f"{name} is empty: got shape {tuple(x.shape)}, and at least one column is needed")


def has_no_rows(x: ArrayLike) -> bool:
    """Whether something with rows has none; what has no rows at all is for others to refuse.

    >>> has_no_rows([]), has_no_rows(np.zeros((0, 3))), has_no_rows(np.float64(1)), has_no_rows(None)
    (True, True, False, False)
    """
    shape = getattr(x, "shape", None)
    if shape is None:
        return isinstance(x, Sized) and len(x) == 0
    return isinstance(shape, tuple) and len(shape) > 0 and shape[0] == 0


def check_finite(x: Array, name: str, *, most: float = math.inf) -> tuple[float, float]:
    """Refuse NaN and infinity, naming the first row that has them, and what is larger than ``most``; gives the least and the
    largest value.

    Values that cannot be looked at pass, with NaN for both.
    """
    if is_traced(x):
        return math.nan, math.nan
    xp = namespace(x)
    values = detached(x)
    low, high = float(xp.min(values)), float(xp.max(values))
    if -low <= most and high <= most and math.isfinite(low) and math.isfinite(high):  # NaN passes through min and max
        return low, high
    if math.isfinite(low) and math.isfinite(high):
        raise InputError(
            f"{name} must lie between {-most:g} and {most:g}, or squares are no numbers; found "
            f"{low if -low > most else high:g}: drop those rows, or give targets and forecasts in another unit"
        )
    host = to_numpy(x)
    bad = ~np.isfinite(host)
    row = int(np.argmax(bad.reshape(len(bad), -1).any(axis=1)))
    raise InputError(
        f"{name} has NaN or infinite values in {int(bad.sum()):,} places, first in row {row} ({host[row]}): "
        "drop or repair those rows"
    )


MIN_NUMBER, MAX_NUMBER = 1e-100, 1e100
"""The smallest scale, and the largest size of targets and forecasts: squares are numbers."""

MAX_SQUARED = 1e75
"""The largest size of what is squared twice, such as losses."""


def as_real(x: ArrayLike, name: str) -> Array:
    """Finite real numbers as a floating array of their own library."""
    values = as_array(x, name)
    check_not_empty(values, name)
    if isinstance(values, np.ndarray) and values.dtype.kind not in "fiub":
        raise InputError(f"{name} must hold real numbers; got values like {_first_oddity(values)!r}")
    xp = namespace(values)
    if is_integer(values):
        values = xp.astype(values, xp.float64)
    elif not is_floating(values):
        raise InputError(f"{name} must hold real numbers; got dtype {values.dtype}")
    check_finite(values, name)
    return values


def _first_oddity(values: np.ndarray) -> Any:
    """The first value that is not the text of a finite number; the first of all where every one is."""

    def is_number(x: Any) -> bool:
        try:
            return math.isfinite(float(x))
        except (TypeError, ValueError):
            return False

    flat = values.reshape(-1).tolist()
    return next((x for x in flat if not is_number(x)), flat[0])


def as_probabilities(x: ArrayLike, name: str) -> Array:
    """A floating array with all values in [0, 1]; rounding errors beyond the ends are clipped."""
    p = as_working_precision(as_real(x, name))
    xp = namespace(p)
    low, high = check_finite(p, name)
    if low < -RANGE_SLACK or high > 1 + RANGE_SLACK:
        raise InputError(_out_of_range(low, high, name))
    return xp.clip(p, 0.0, 1.0) if low < 0 or high > 1 else p


def as_working_precision(x: Array) -> Array:
    """Half precision lifted to float32, which can add up a row of probabilities; longer floats cut to float64."""
    xp = namespace(x)
    bits = xp.finfo(x.dtype).bits
    return x if bits in (32, 64) else xp.astype(x, xp.float32 if bits < 32 else xp.float64)


def _out_of_range(low: float, high: float, name: str) -> str:
    worst = low if low < -RANGE_SLACK else high
    if worst == high and high.is_integer():
        remedy = "these look like class labels or percentages: give probabilities, and the truth as first argument"
    elif worst == low:
        remedy = "these look like logits: apply a softmax or sigmoid first, or use Categorical.from_logits"
    else:
        remedy = "divide percentages by 100"
    return f"{name} must lie in [0, 1]; found {worst:g}: {remedy}"


def check_rows_sum_to_one(p: Array, name: str) -> None:
    """Refuse rows of class probabilities that are further than the slack from summing to one."""
    if is_traced(p):
        return
    xp, p = namespace(p), detached(p)
    error = xp.abs(xp.sum(p, axis=1) - 1)
    if float(xp.max(error)) <= SUM_SLACK:
        return
    row = int(xp.argmax(error))
    total = float(xp.sum(p[row, :]))
    raise InputError(
        f"{name} rows must sum to 1 (within {SUM_SLACK:g}); row {row} sums to {total:.6g}: "
        "normalise the rows, or use Bernoulli(y_pred) for independent labels"
    )


def check_same_length(a: int, b: int, name_a: str, name_b: str) -> None:
    """Refuse arrays with different numbers of rows."""
    if a != b:
        raise InputError(f"{name_a} has {how_many(a, 'row')} and {name_b} has {b:,}: they must be equal")


def as_weights(sample_weight: ArrayLike | None, n: int, *, in_parts: bool = False) -> np.ndarray | None:
    """Weights as NumPy float64, or ``None`` when there are none; one non-negative number a row, not all zero.

    Only ratios matter, so weights that are too large or too small to be squared are multiplied by a power of two, which rounds
    nothing. What is less than ``FAINT`` of the largest then is 0. Weights of a part stay as they are, as those of other parts
    are not known.
    """
    if sample_weight is None:
        return None
    w = to_numpy(as_array(sample_weight, "sample_weight"))
    if w.ndim != 1 or w.dtype.kind not in "fiub":
        raise InputError(
            f"sample_weight must be one number a row; got shape {w.shape} of {w.dtype}: give {how_many(n, 'number')}"
        )
    check_same_length(len(w), n, "sample_weight", "y_true")
    w = w.astype(np.float64)
    low, high = check_finite(w, "sample_weight")
    if low < 0:
        raise InputError(f"sample_weight must not be negative; found {low:g} in row {int(w.argmin())}")
    if high == 0:
        raise InputError("sample_weight is zero everywhere: at least one row must count")
    if not in_parts:
        return _in_range(w, high)
    least = low or float(w[w > 0].min())
    if least < 1 / MAX_WEIGHT_OF_PARTS or high > MAX_WEIGHT_OF_PARTS:
        raise InputError(
            f"sample_weight of a part must lie between {1 / MAX_WEIGHT_OF_PARTS:g} and {MAX_WEIGHT_OF_PARTS:g}, or be 0; found "
            f"{least if least < 1 / MAX_WEIGHT_OF_PARTS else high:g}: divide the weights of all parts by one number"
        )
    return w


def _in_range(w: np.ndarray, high: float) -> np.ndarray:
    """Weights with the largest ``high`` where their squares, and sums of them, are numbers."""
    if not 1 / MAX_WEIGHT <= high <= MAX_WEIGHT:
        shift = -int(np.frexp(high)[1])
        w, high = np.ldexp(w, shift), float(np.ldexp(high, shift))
    faint = high * FAINT
    return np.where(w < faint, 0.0, w) if w.min() < faint else w


def shown(value: object) -> str:
    """A setting as messages quote it: of a whole number that no double holds, how many digits it has.

    >>> shown("L1"), shown(-(10**6000))
    ("'L1'", 'one of 6001 digits')
    """
    if not isinstance(value, int) or abs(value) <= MAX_COUNT:
        return repr(value)
    digits = int(abs(value).bit_length() * math.log10(2))  # Python refuses to write more than 4,300
    return f"one of {digits + (abs(value) >= 10**digits)} digits"


def check_count(value: int, name: str, *, least: int = 1) -> None:
    """Refuse a setting that is not a whole number of at least ``least``; seeds, from 0 on, may have any number of digits."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}; got {shown(value)}")
    if least and value > MAX_COUNT:
        raise InputError(f"{name} must be a whole number from {least} to {MAX_COUNT}; got {shown(int(value))}")


def check_norm(value: float) -> None:
    """Refuse powers under which sums of powers are no norm, and those that no double holds."""
    if not isinstance(value, Real) or not value >= 1 or (value != math.inf and value > MAX_COUNT):
        raise InputError(f"norm must be a number of at least 1, or inf; got {shown(value)}")


def check_fraction(value: float, name: str) -> None:
    """Refuse a level that does not lie strictly between 0 and 1."""
    if not isinstance(value, Real) or not 0 < value < 1:
        raise InputError(f"{name} must lie strictly between 0 and 1; got {value!r}")


def of_what(x: object) -> str:
    """What stands where something else belongs, in a few words.

    >>> of_what("x"), of_what(np.zeros(3)), of_what(int)
    ("'x'", 'a ndarray', 'the class int: call it')
    """
    if isinstance(x, type):
        return f"the class {x.__name__}: call it"
    is_short = x is None or isinstance(x, bool | int | float | str)
    return repr(x)[:40] if is_short else f"a {type(x).__name__}"


def as_levels(values: Any, name: str) -> tuple[float, ...]:
    """One or several levels, each strictly between 0 and 1.

    >>> as_levels([0.1, 0.9], "levels")
    (0.1, 0.9)
    """
    levels = tuple(np.atleast_1d(np.asarray(values, dtype=object)).tolist())
    if not levels:
        raise InputError(f"{name} must hold at least one level between 0 and 1; got {values!r}")
    for level in levels:
        check_fraction(level, name)
    return tuple(map(float, levels))


def check_one_of(value: object, choices: Sequence[str], name: str) -> None:
    """Refuse a word that is none of the choices."""
    if value not in choices:
        *others, last = map(repr, choices)
        raise InputError(f"{name} must be {', '.join(others)} or {last}; got {value!r}")


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """`` (did you mean 'x'?)`` for a close match, else the list of what exists."""
    small = {str(candidate).lower(): candidate for candidate in reversed(known)}
    near = get_close_matches(name, known, n=1) or [small[x] for x in get_close_matches(name.lower(), small, n=1)]
    return f" (did you mean {near[0]!r}?)" if near else f"; known: {', '.join(map(str, known))}"


def check_names_once(names: Sequence[str], where: str) -> None:
    """Refuse columns of the same name, of which one would be taken in silence; those without a name nobody asks for.

    >>> check_names_once(["y", "p", "p"], "scores.csv")
    Traceback (most recent call last):
    ...
    calibrant._validate.InputError: scores.csv has 2 columns called 'p': give each column a name of its own
    """
    for name, count in Counter(names).items():
        if name and count > 1:
            raise InputError(f"{where} has {count} columns called {name!r}: give each column a name of its own")
