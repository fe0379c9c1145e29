"""Single values that something chokes on: texts of cells and names, and values in JSON."""

import math
import random

LONG = "x" * 140_000
"""More letters than a reader of CSV takes in a value."""

DEEP = "[" * 200_000 + "]" * 200_000
"""JSON that no recursive reader gets through."""

NUMBERS = [
    *("", " ", "nan", "NaN", "inf", "-inf", "1e400", "1e-400", "-0", "0x10", "1_000", "٠.٥", "½", "1,5", "0.1.2", "+1"),
    *(
        str(2**63),
        str(-(2**63) - 1),
        str(2**64),
        "9" * 5000,
        "1" + "0" * 400,
        "0." + "3" * 400,
        "-1",
        "1.5",
        "7",
        "2.5",
    ),
    *("true", "null", "None", "NA", "#N/A", "\\N", "1e-320", "0.30000000000000004", "1.0000001", " 0.5", "0.5 ", "\t1"),
]
"""What stands where a number is expected."""

TEXTS = [
    *(
        '"',
        '""',
        "'",
        '"a\nb"',
        "\n",
        "\r",
        "\r\n",
        "\t",
        ",",
        ";",
        "\\",
        "|",
        "`",
        "%s",
        "{0}",
        "%(x)s",
        "[bold]",
        "[/]",
    ),
    *(
        "<script>",
        "&amp;",
        "=1+1",
        "$x$",
        "\x00",
        "\x07",
        "\x1b[31m",
        "\x1b]0;x\x07",
        "\x7f",
        "\x85",
        "\u202e",
        "\u2028",
    ),
    *(
        "\ufeff",
        "\u200b",
        "é",
        "e\u0301",
        "κ",
        "🎲",
        "𝔸",
        "\udc80",
        "\ud800",
        "x" * 300,
        LONG,
        "[0.5]",
        "{}",
        "2020-01-01",
    ),
    *("y", "p", "p_*", "*", "?", "[a-z]", "..", "/", "file", "__class__", "columns", "0", "-", "--help", "inf"),
]
"""What stands where a text is expected."""

VALUES = [
    *(None, True, False, 0, -1, 1, 2, 7, 2**31, 2**53 + 1, 2**63, 10**400, -(10**400), 0.5, -0.5, 1e-320, 1e60, -0.0),
    *(math.inf, -math.inf, math.nan, "inf", "-inf", "nan", "", "0", "1e999", "x", "\x1b[31m", "\ud800", "x" * 300),
    *([], [[]], [1], [0.5, "a"], [None], [[1, 2], [3]], ["nan"], {}, {"n": 1}, {"map": 1}, [{}], [[[[1]]]]),
]
"""What stands in JSON where something else is expected."""


def cell(chance: random.Random) -> str:
    """A text of a cell, mostly one that is taken for a number."""
    return chance.choice(NUMBERS if chance.random() < 0.6 else TEXTS)


def paths(data: object, before: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The places of all values of a tree of JSON."""
    found = [before] if before else []
    parts = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in parts:
        found += paths(value, (*before, key))
    return found


def tampered(data: object, chance: random.Random) -> object:
    """A tree of JSON that differs in one place: another value, none, one more, or that of another place."""
    places = paths(data)
    if not places:
        return chance.choice(VALUES)
    way = chance.random()
    place = chance.choice(places)
    if way < 0.6:
        return put(data, place, chance.choice(VALUES))
    if way < 0.75:
        return without(data, place)
    if way < 0.9:
        return put(data, place, at(data, chance.choice(places)))
    return put(data, (*place[:-1], "more"), 1) if isinstance(place[-1], str) else put(data, place, [at(data, place)])


def at(data: object, place: tuple[str | int, ...]) -> object:
    """The value at a place."""
    for key in place:
        data = data[key]  # type: ignore[index]
    return data


def put(data: object, place: tuple[str | int, ...], value: object) -> object:
    """The tree with another value at a place."""
    if not place:
        return value
    first, *rest = place
    if isinstance(data, dict):
        return {**data, first: put(data.get(first), tuple(rest), value)}
    assert isinstance(data, list)
    assert isinstance(first, int)
    return [put(part, tuple(rest), value) if i == first else part for i, part in enumerate(data)]


def without(data: object, place: tuple[str | int, ...]) -> object:
    """The tree without a place."""
    first, *rest = place
    if isinstance(data, dict):
        return {k: without(v, tuple(rest)) if k == first else v for k, v in data.items() if rest or k != first}
    assert isinstance(data, list)
    return [without(v, tuple(rest)) if i == first else v for i, v in enumerate(data) if rest or i != first]
