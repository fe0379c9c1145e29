"""Numbers as people write them: 85%, 0,85 and N/A."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from calibrant._validate import InputError
from calibrant._wording import said

if TYPE_CHECKING:
    import polars

NO_LABELS = ("", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "<NA>")
"""Words that stand for nothing, and are no names of classes."""

NO_NUMBERS = (*NO_LABELS, "NA", "na", "None", "none", "-", "--", "?", ".", "missing")
"""Words that stand for nothing in a column of numbers."""

Role: TypeAlias = Literal["number", "label", "group"]
"""What a column is for: numbers, the classes that are predicted, or groups of rows."""

NOTHING: Mapping[Role, Collection[str]] = {"number": NO_NUMBERS, "label": NO_LABELS, "group": ()}
"""Words that stand for nothing, by what a column is for."""

DECIMAL = r"^[+-]?\d*,\d+(?:[eE][+-]?\d+)?$"
"""A number with a decimal comma, or with one of thousands."""

THOUSANDS = r"^[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?$"
"""A number with commas of thousands, or with a decimal one."""


def tidied(column: "polars.Series", decimal: str | None, role: Role, notes: dict[str, None]) -> "polars.Series":
    """A column of text as numbers, where all of it is; nothing where it says so. What was read in another way is noted.

    Labels stay text unless nothing but these signs keeps them from being numbers.

    >>> import polars as pl
    >>> notes = {}
    >>> tidied(pl.Series("p", ["85%", "0,5", "N/A"]), None, "number", notes).to_list(), list(notes)
    ([0.85, 0.5, None], ["column 'p' has percent signs, and is divided by 100", "column 'p' has decimal commas"])
    """
    import polars as pl

    if column.dtype.is_float():
        return column.fill_nan(None)
    if column.dtype != pl.String:
        return column
    text = column.str.strip_chars()
    text = text.set(text.is_in(list(NOTHING[role])), None)
    bare = text.str.strip_chars_end("% ")
    is_percent = text.str.ends_with("%")
    said_here: list[str] = ["has percent signs, and is divided by 100"] if is_percent.any() else []
    has_comma = bare.str.contains(",", literal=True)
    if has_comma.any():
        bare, note = _points(bare, has_comma, decimal)
        said_here.append(note)
    shifted = pl.select(pl.when(is_percent).then(bare + "e-2").otherwise(bare).alias(column.name)).to_series()
    numbers = shifted.cast(pl.Float64, strict=False)
    is_as_it_was = not said_here and text.null_count() == column.null_count()
    if numbers.null_count() > text.null_count() or (is_as_it_was and role != "number"):
        return column.set(text.is_null(), None)
    notes.update(dict.fromkeys(f"column {column.name!r} {note}" for note in said_here))
    is_whole = role != "number" and bool((numbers.drop_nulls() == numbers.drop_nulls().round()).all())
    return numbers.cast(pl.Int64, strict=False) if is_whole else numbers


def inferred(column: "polars.Series") -> "polars.Series":
    """What text would have been read as without the rows that were left out: whole numbers, where it is nothing else."""
    import polars as pl

    if column.dtype != pl.String:
        return column
    numbers = column.cast(pl.Int64, strict=False)
    return column if numbers.null_count() > column.null_count() else numbers


def number_of(value: object, decimal: str | None) -> float:
    """A single number as it is written, where commas are decimal only if that is said; ``ValueError`` where it is none.

    >>> number_of("85%", None), number_of("0,5", ","), number_of(0.25, None)
    (0.85, 0.5, 0.25)
    """
    if not isinstance(value, str):
        return float(value)  # type: ignore[arg-type]
    text = value.strip().replace(",", {",": ".", ".": ""}.get(decimal or "", ","))
    return float(f"{text[:-1].strip()}e-2" if text.endswith("%") else text)


def _points(bare: "polars.Series", has_comma: "polars.Series", decimal: str | None) -> tuple["polars.Series", str]:
    """With points for decimal commas, and without commas of thousands; as it is where it may be either."""
    with_commas = bare.filter(has_comma)
    if decimal == ".":
        return bare.str.replace_all(",", "", literal=True), "has commas between thousands"
    are_decimal = bool(with_commas.str.contains(DECIMAL).all())
    may_be_thousands = bool(with_commas.str.contains(THOUSANDS).all())
    if are_decimal and (decimal == "," or not may_be_thousands):
        return bare.str.replace(",", ".", literal=True), "has decimal commas"
    return bare, "has commas"


def refuse_text(column: "polars.Series", source: str) -> InputError:
    """What is wrong with a column of text that should hold numbers, and what to do."""
    import polars as pl

    text = column.drop_nulls().str.strip_chars()
    odd = text.filter(text.cast(pl.Float64, strict=False).is_null())
    first = str(odd[0]) if len(odd) else ""
    what = f"{source}: column {column.name!r} holds {first!r}"
    if odd.str.contains(THOUSANDS).any():
        either = f"{said('decimal', ',')} if the comma is a decimal one, {said('decimal', '.')} if it parts thousands"
        return InputError(f"{what}, which may mean two numbers: say {either}")
    words = odd.unique(maintain_order=True).to_list()
    if len(odd) == len(text) and len(words) <= 20 and not any(sign.isdigit() for word in words for sign in word):
        meaning = ",".join(f"{word}=?" for word in words)
        return InputError(f"{what}, no number: say which probability each word means, {said('scale', meaning)}")
    row = int((column.str.strip_chars() == first).fill_null(False).arg_max() or 0) + 1
    if first == column.name:
        return InputError(
            f"{source}: row {row} is the heading again: leave it out, or give the parts as files of their own"
        )
    return InputError(f"{what}, no number, in row {row}: repair it, or name columns of numbers alone")
