"""Results as Markdown and as HTML for notebooks: escaped, whatever columns and classes are called."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from html import escape

LONGEST = 80
"""Letters of a name that a table shows."""

JOINER = "\u2060"
"""A word joiner, which is invisible: it keeps ``@name`` from calling somebody and ``#1`` from becoming a link."""


def plain_text(text: str, longest: int = LONGEST) -> str:
    """One line without control characters, shortened.

    >>> plain_text("two\\nlines"), plain_text("a" * 99, longest=5)
    ('two lines', 'aaaa…')
    """
    short = text if len(text) <= 2 * longest else text[: 2 * longest]  # what is left out need not be looked at
    line = "".join(letter if _is_visible(letter) else " " for letter in short)
    line = " ".join(line.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def escaped(text: str, longest: int = LONGEST) -> str:
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
