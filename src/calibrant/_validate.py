"""Checks at the boundary: what the public calls refuse, and the words they refuse it with."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Sized
from decimal import Decimal
from difflib import get_close_matches
from numbers import Real
from typing import Any

import numpy as np

from calibrant._array import (
    common,
    is_array,
    is_floating,
    is_integer,
    is_traced,
    looked_at,
    namespace,
    row_sums,
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

OF_LOGS = "log-probabilities? Give numpy.exp of them"  # where no probability is positive


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
        plain = np.asarray(x)  # not a subclass, whose operators may mean something else
        return _of_objects(plain.tolist(), plain) if plain.dtype == object else common(plain)
    if is_array(x):
        if reason := unreadable(x):
            raise InputError(f"{name} is {reason}")
        return common(x)
    if isinstance(x, list | tuple | range):
        return _from_sequence(x, name)
    found = _from_frame(x, name)
    is_bare = not getattr(found, "columns", True)  # of which old releases of narwhals make no array
    return np.empty((len(found), 0)) if is_bare else as_array(np.asarray(x) if found is x else found.to_numpy(), name)


def as_column(x: ArrayLike, name: str) -> np.ndarray:
    """A column to slice by, ``(n,)`` on the host; mixed and missing values become text."""
    column = to_numpy(as_array(x, name))
    if column.ndim != 1:
        raise InputError(f"{name} must be one value per row; got shape {column.shape}")
    if column.dtype != object:
        return column
    try:
        return column.astype(str)
    except ValueError as error:
        row = next(i for i, x in enumerate(column) if isinstance(x, Sequence | np.ndarray) and not isinstance(x, str))
        raise InputError(
            f"{name} must be one value per row; got {column[row]!r} in row {row}: join its parts to one text"
        ) from error


def named_columns(x: ArrayLike | Mapping[str, ArrayLike] | None, n: int, name: str) -> dict[str, ArrayLike]:
    """Columns of n values by name: of a mapping, of a data frame, or a single one under its own name, ``group`` where it has none.

    >>> named_columns(["a", "b"], 2, "by"), named_columns({"site": [1, 2]}, 2, "by"), named_columns(None, 2, "by")
    ({'group': ['a', 'b']}, {'site': [1, 2]}, {})
    """
    if isinstance(x, str) or (isinstance(x, list | tuple) and x and len(x) != n and all(isinstance(v, str) for v in x)):
        raise InputError(
            f"{name}={x!r} names columns: give them, such as {name}=frame[[...]] or {name}={{'site': column}}"
        )
    if x is None or isinstance(x, Mapping):
        return {str(key): column for key, column in (x or {}).items()}
    if is_array(x) or isinstance(x, list | tuple | range):
        return {"group": x}
    found = _from_frame(x, name)
    if found is x:
        return {"group": x}
    if hasattr(found, "columns"):
        return {str(column): found[column].to_native() for column in found.columns}
    return {"group" if found.name in (None, "") else str(found.name): x}


def as_group(x: ArrayLike | Mapping[str, ArrayLike], n: int, name: str) -> np.ndarray:
    """The one column to slice n rows by, of what may have several.

    >>> as_group({"site": ["a", "b"]}, 2, "by").tolist()
    ['a', 'b']
    """
    columns = named_columns(x, n, name)
    if len(columns) != 1:
        raise InputError(f"{name} has the columns {list(columns)[:5]}: give one of them")
    (found,) = columns.values()
    column = as_column(found, name)
    check_same_length(len(column), n, name, "y_true")
    return column


PREFIXES = ("p_", "prob_", "proba_", "y_", "y_true_", "true_", "label_", "target_")
"""What names of columns may begin with, all of them alike; the class is the rest of the name."""


def frame_columns(x: ArrayLike, name: str = "y_pred") -> tuple[Any, ...] | None:
    """The classes that the columns of a pandas, polars or other data frame are called after, else ``None``.

    Names that a library gave, numbers or ``column_0`` and so on, are none.
    """
    if is_array(x) or isinstance(x, list | tuple | range) or not hasattr(x, "columns"):
        return None
    columns = tuple(_from_frame(x, name).columns)
    if columns in (tuple(range(len(columns))), tuple(f"column_{i}" for i in range(len(columns)))):
        return None
    texts = [str(column) for column in columns]
    common = [p for p in PREFIXES if all(t.startswith(p) and len(t) > len(p) for t in texts)]
    return tuple(t.removeprefix(max(common, key=len)) for t in texts) if common and len(columns) > 1 else columns


def _from_sequence(x: Sequence[Any], name: str) -> np.ndarray:
    if x and is_array(x[0]) and not isinstance(x[0], np.ndarray | np.generic):  # which NumPy may not know how to read
        x = [to_numpy(as_array(part, name)) for part in x]
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise InputError(f"{name} has rows of different lengths: give every row the same number of values") from error
    if array.dtype == object:
        array = _of_objects(list(x), array)
    if array.dtype == object:
        raise InputError(f"{name} {_oddity(x)}")
    return array


def _of_objects(values: list[Any], array: np.ndarray) -> np.ndarray:
    """Python objects that are all numbers, or all text, as such; others as they are."""
    if array.ndim == 1 and all(isinstance(v, Real | Decimal | np.bool_) for v in values):
        return np.array(values, dtype=None if all(isinstance(v, Real) for v in values) else np.float64)
    if array.ndim == 2 and array.size and all(isinstance(v, Real | Decimal) for row in array.tolist() for v in row):
        return array.astype(np.float64)
    return array.astype(str) if array.ndim == 1 and values and all(isinstance(v, str) for v in values) else array


MISSING = ("None", "nan", "NaN", "<NA>", "NaT")
"""How libraries write what is missing."""


def missing_rows(values: Sequence[Any]) -> list[int]:
    """The rows that hold a missing value of any library.

    >>> missing_rows(["a", None, float("nan")])
    [1, 2]
    """
    return [row for row, value in enumerate(values) if not isinstance(value, str) and str(value) in MISSING]


def _oddity(values: Sequence[Any]) -> str:
    """What is wrong with values that make no array."""
    if missing := missing_rows(values):
        places = how_many(len(missing), "place")
        return f"has missing values in {places}, first in row {missing[0]}: leave those rows out"
    kinds = sorted({type(value).__name__ for value in values})
    if kinds == ["int"]:
        return "holds integers beyond 64 bits: give fractions, or labels as text"
    if len(kinds) == 1:
        return f"holds rows of type {kinds[0]}: give numbers, or text labels, such as those of pandas.DataFrame(rows)"
    return f"mixes types ({', '.join(kinds[:4])}): give numbers, or text labels, alone"


def _from_frame(x: object, name: str) -> Any:
    """What narwhals reads; other objects, which can be made arrays of, as they are."""
    import narwhals as nw

    try:
        found = nw.from_native(x, eager_only=True, allow_series=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        check_names_once([str(column) for column in x.columns], name)  # type: ignore[attr-defined]  # a frame has them
        raise
    if found is x and not hasattr(x, "__array__"):
        remedy = "give an array, a list, a data-frame column or a calibrant distribution"
        if isinstance(x, Mapping):
            remedy += "; several models by name are for calibrant.compare and calibrant.plots.curves"
        if hasattr(x, "predict"):
            remedy = "give model.predict_proba(X), or use calibrant.sklearn.evaluate_model(model, X, y)"
        raise InputError(f"{name} is a {type(x).__name__}: {remedy}")
    return found


def check_not_empty(x: Array, name: str) -> None:
    """Refuse an array without rows or columns, and a single number."""
    if x.ndim == 0:
        raise InputError(f"{name} is a single value: give one value per row, as an array or a list")
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
    values = looked_at(x)
    xp = namespace(values)
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
    remedy = OF_LOGS if name == "y_pred" and (host <= 0).all() else "drop or repair those rows"
    where = f"{how_many(int(bad.sum()), 'place')}, first in row {row} ({host[row]})"
    raise InputError(f"{name} has NaN or infinite values in {where}: {remedy}")


MIN_NUMBER, MAX_NUMBER = 1e-100, 1e100
"""The smallest scale, and the largest size of targets and forecasts: squares are numbers."""

MAX_SQUARED = 1e75
"""The largest size of what is squared twice, such as losses."""


def as_real(x: ArrayLike, name: str, *, most: float = math.inf) -> Array:
    """Finite real numbers, none of them larger than ``most``, as a floating array of their own library."""
    return _in_range_of(x, name, most)[0]


def _in_range_of(x: ArrayLike, name: str, most: float = math.inf) -> tuple[Array, float, float]:
    """The same with the least and the largest of them, looked for once."""
    values = as_array(x, name)
    check_not_empty(values, name)
    if isinstance(values, np.ndarray) and values.dtype.kind not in "fiub":
        raise InputError(f"{name} must hold real numbers; got {_not_numbers(values, name)}")
    xp = namespace(values)
    if is_integer(values):
        values = xp.astype(values, xp.float64)
    elif not is_floating(values):
        raise InputError(f"{name} must hold real numbers; got dtype {values.dtype}")
    return values, *check_finite(values, name, most=most)


def _not_numbers(values: np.ndarray, name: str) -> str:
    """The first value that is not the text of a finite number, and what to do; the first of all where every one is."""

    def is_number(x: Any) -> bool:
        try:
            return not isinstance(x, np.ndarray) and math.isfinite(float(x))
        except (TypeError, ValueError):
            return False

    odd = next((x for x in values.reshape(-1).tolist() if not is_number(x)), None)
    if odd is None:
        return f"values like {values.reshape(-1).tolist()[0]!r}: give np.asarray({name}, dtype=float)"
    if isinstance(odd, str) and odd.strip().endswith("%"):
        return f"values like {odd!r}: give numbers, 85% as 0.85"
    said = (
        "labels? Give probabilities, such as predict_proba(X) of scikit-learn"
        if isinstance(odd, str)
        else "give numbers"
    )
    return f"values like {odd!r}: {said}"


def as_probabilities(x: ArrayLike, name: str) -> Array:
    """A floating array with all values in [0, 1]; rounding errors beyond the ends are clipped."""
    values, low, high = _in_range_of(x, name)
    p = as_working_precision(values)
    xp = namespace(p)
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
    if worst == high:
        labels = "; class labels are no probabilities, and the truth is the first argument"
        remedy = f"divide percentages by 100{labels if high.is_integer() else ''}"
    else:
        logits = "these look like logits: use Categorical.from_logits(y_pred), or apply a softmax or sigmoid first"
        remedy = OF_LOGS if high <= 0 else logits
    return f"{name} must lie in [0, 1]; found {worst:g}: {remedy}"


def check_rows_sum_to_one(p: Array, name: str) -> None:
    """Refuse rows of class probabilities that are further than the slack from summing to one."""
    if is_traced(p):
        return
    p = looked_at(p)
    xp = namespace(p)
    error = xp.abs(row_sums(p) - 1)
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
    """Weights as NumPy float64, or ``None`` when there are none; one non-negative number per row, not all zero.

    Only ratios matter, so weights that are too large or too small to be squared are multiplied by a power of two, which rounds
    nothing. What is less than ``FAINT`` of the largest then is 0. Weights of a part stay as they are, as those of other parts
    are not known.
    """
    if sample_weight is None:
        return None
    w = to_numpy(as_array(sample_weight, "sample_weight"))
    if w.ndim != 1 or w.dtype.kind not in "fiub":
        raise InputError(
            f"sample_weight must be one number per row; got shape {w.shape} of {w.dtype}: give {how_many(n, 'number')}"
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


def check_is(value: object, kind: type | tuple[type, ...], name: str, wish: str) -> None:
    """Refuse what is of another kind than a parameter's.

    >>> check_is(3, str, "name", "a text")
    Traceback (most recent call last):
    calibrant._validate.InputError: name must be a text; got 3
    """
    if not isinstance(value, kind):
        raise InputError(f"{name} must be {wish}; got {of_what(value)}")


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
    if not isinstance(value, str) or value not in choices:
        *others, last = map(repr, choices)
        raise InputError(f"{name} must be {', '.join(others)}{' or ' * bool(others)}{last}; got {of_what(value)}")


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
