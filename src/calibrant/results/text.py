"""Texts for people: numbers and settings, Markdown and HTML that show names as they are, and lines for terminals."""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape


def number(x: float) -> str:
    """A number as people read it: four significant digits, thousands grouped.

    >>> number(12345.678), number(0.00012345)
    ('12,345.7', '0.0001234')
    """
    x = float(x)
    if not math.isfinite(x):
        return {math.inf: "∞", -math.inf: "-∞"}.get(x, "NaN")
    if x.is_integer() and abs(x) < 1e15:
        return f"{int(x):,}"
    return f"{x:,.1f}" if abs(x) >= 1000 else f"{x:.4g}"


ROUNDING = 1e-14
"""Shares that differ by less are equal: means of numbers up to one are not known better."""


def how_many(n: int, one: str, many: str | None = None) -> str:
    """So many of something, in the singular where it is one; the plural is the singular with an s unless it is given.

    >>> how_many(1, "row"), how_many(1_200, "row"), how_many(1, "row is", "rows are")
    ('1 row', '1,200 rows', '1 row is')
    """
    return f"{n:,} {one if n == 1 else many or f'{one}s'}"


def enumeration(names: Sequence[str]) -> str:
    """Names as a sentence has them.

    >>> enumeration(["a", "b", "c"]), enumeration(["a"])
    ('a, b and c', 'a')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def percent(x: float) -> str:
    """A share in percent, with three significant digits where it is small; what rounding left of nothing is nothing.

    >>> percent(0.4567), percent(0.0414), percent(0.000523), percent(-2e-16)
    ('45.7 %', '4.14 %', '0.0523 %', '0.0 %')
    """
    return f"{100 * x:z.1f} %" if not ROUNDING < abs(x) < 0.0995 else f"{100 * x:.3g} %"


def brief(x: object) -> str:
    """Settings as people read them: what differs from the defaults, and a leading number; six digits of it.

    >>> from calibrant import ECE, EqualMass
    >>> brief(ECE(EqualMass(10)))
    'ECE(bins=EqualMass(n_bins=10))'
    """
    if is_dataclass(x) and not isinstance(x, type):
        values = [(f, getattr(x, f.name)) for f in fields(x)]
        said = [
            f"{f.name}={brief(value)}"
            for i, (f, value) in enumerate(values)
            if not _is_default(value, f.default)
            or (i == 0 and isinstance(value, int | float) and not isinstance(value, bool))
        ]
        return f"{type(x).__name__}({', '.join(said)})"
    if isinstance(x, tuple):
        return f"({', '.join(map(brief, x))}{',' if len(x) == 1 else ''})"
    return f"{x:.6g}" if isinstance(x, float) else repr(x)


def _is_default(value: object, default: object) -> bool:
    return type(value) is type(default) and bool(value == default)


MAX_LETTERS = 80
"""Letters of a name that a table shows."""

JOINER = "\u2060"
"""A word joiner, which is invisible: it keeps ``@name`` from calling somebody and ``#1`` from becoming a link."""


def plain_text(text: str, longest: int = MAX_LETTERS) -> str:
    """One line without control characters, shortened.

    >>> plain_text("two\\nlines"), plain_text("a" * 99, longest=5)
    ('two lines', 'aaaa…')
    """
    short = text if len(text) <= 2 * longest else text[: 2 * longest]  # what is left out need not be looked at
    line = "".join(letter if _is_visible(letter) else " " for letter in short)
    line = " ".join(line.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def escaped(text: str, longest: int = MAX_LETTERS) -> str:
    """A name as Markdown that shows it as it is: no markup, no HTML, no new cell, nobody called, no link.

    >>> print(escaped("a|b *c* <script> d_e"))
    a\\|b \\*c\\* &lt;script&gt; d_e
    """
    line = re.sub(r"([\\`*|~])", r"\\\1", plain_text(text, longest))
    line = re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", line)
    line = re.sub(r"\](?=[(\[:])", r"\\]", line)
    line = re.sub(r"&(?=#?\w+;)", "&amp;", line).replace("<", "&lt;").replace(">", "&gt;")
    line = re.sub(r"(@|#)(?=\w)", rf"\1{JOINER}", line)
    return re.sub(r"(?i)(?<=\w)(:)(?=//)|(?<=\bwww)(\.)", rf"{JOINER}\1\2", line)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], is_number: Sequence[bool]) -> str:
    """Cells as they are, in a table; columns of numbers are set to the right.

    >>> print(table(["slice", "rows"], [["north", "12"]], [False, True]))
    | slice | rows |
    |---|---:|
    | north | 12 |
    """
    lines = ["|" + "|".join(f" {cell} " if cell else " " for cell in row) + "|" for row in (header, *rows)]
    marks = "|" + "|".join("---:" if right else "---" for right in is_number) + "|"
    return "\n".join([lines[0], marks, *lines[1:]])


LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "∞": r"$\infty$",
        "±": r"$\pm$",
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    }
)


def latex(text: str) -> str:
    r"""A name or a number as LaTeX that shows it as it is.

    >>> print(latex("p_a & 5 %"), latex("-0.5"))
    p\_a \& 5 \% $-$0.5
    """
    line = plain_text(text).translate(LATEX)
    return re.sub(r"^-(?=\d|\$)", "$-$", line)


def details(summary: str, body: str) -> str:
    """Something to unfold."""
    return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>"


def _is_visible(letter: str) -> bool:
    """Joiners stay, as emoji are made of them; marks that turn the direction of what follows do not."""
    return unicodedata.category(letter) not in ("Cc", "Cf", "Zl", "Zp", "Cs") or letter in "\u200d\u200c"


MAX_ROWS = 40
"""Rows of a table that a notebook shows, half of them from its end."""

FRAME = "font-size:13px;line-height:1.5;margin:4px 0"
LABEL = "text-align:left;font-weight:normal;opacity:.7;padding:1px 18px 1px 0;vertical-align:top;white-space:nowrap"
TEXT = "text-align:left;padding:1px 18px 1px 0;vertical-align:top"
NUMBER = (
    "text-align:right;padding:1px 18px 1px 0;vertical-align:top;white-space:nowrap;font-variant-numeric:tabular-nums"
)
TABLE = "border-collapse:collapse;margin:4px 0 0;border:none;font-size:inherit"
TONES = {"good": "#2e9e6b", "unsure": "#c98a00", "bad": "#d9502e"}
"""Readable on white and on black."""


def card(title: str, headline: str, lines: Sequence[tuple[str, str]]) -> str:
    """A headline over lines of a label and a text."""
    rows = "".join(
        f"<tr><th style='{LABEL}'>{escape(label)}</th><td style='{TEXT}'>{escape(text)}</td></tr>"
        for label, text in lines
    )
    head = f"<div>{escape(title)} = <b>{escape(headline)}</b></div>"
    return frame(head + (f"<table style='{TABLE}'>{rows}</table>" if rows else ""))


def frame(body: str) -> str:
    """What every display lies in."""
    return f"<div style='{FRAME}'>{body}</div>"


def grid(columns: Mapping[str, Sequence[str]], is_number: Sequence[bool]) -> str:
    """A table of cells that are text; of many rows the first and the last."""
    n = max((len(column) for column in columns.values()), default=0)
    half = MAX_ROWS // 2
    shown = [*range(n)] if n <= MAX_ROWS else [*range(half), *range(n - half, n)]
    styles = [NUMBER if right else TEXT for right in is_number]
    names = zip(columns, styles, strict=True)
    head = "".join(f"<th style='{style};font-weight:normal;opacity:.7'>{_cell(name)}</th>" for name, style in names)
    rows = []
    for i in shown:
        if n > MAX_ROWS and i == n - half:
            rows.append(f"<tr><td style='{TEXT}' colspan='{len(columns)}'>… {n - MAX_ROWS:,} more rows …</td></tr>")
        cells = zip(columns.values(), styles, strict=True)
        rows.append(
            "<tr>" + "".join(f"<td style='{style}'>{_cell(column[i])}</td>" for column, style in cells) + "</tr>"
        )
    return f"<table style='{TABLE}'><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _cell(text: str) -> str:
    """Escaped, in a direction of its own, so that names of other scripts leave their neighbours where they are."""
    return f"<bdi>{escape(plain_text(text))}</bdi>"


def visible(text: str) -> str:
    r"""A text that can be shown as it is: no character in it commands the terminal, or turns the direction of others.

    >>> visible("red\x1b[31m, one\nline")
    'red\\u001b[31m, one\nline'
    """
    return re.sub(r"[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", _spelt, text)


def _spelt(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
