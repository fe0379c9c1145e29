"""Results as HTML for notebooks: small, escaped, without anything from elsewhere.

Colours are those of the notebook, dark or light: everything is drawn in the colour of its text, thinned where it matters less.
"""

from collections.abc import Mapping, Sequence
from html import escape

from calibrant.results.markdown import plain_text

MOST_ROWS = 40
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
    half = MOST_ROWS // 2
    shown = [*range(n)] if n <= MOST_ROWS else [*range(half), *range(n - half, n)]
    styles = [NUMBER if right else TEXT for right in is_number]
    names = zip(columns, styles, strict=True)
    head = "".join(f"<th style='{style};font-weight:normal;opacity:.7'>{_cell(name)}</th>" for name, style in names)
    rows = []
    for i in shown:
        if n > MOST_ROWS and i == n - half:
            rows.append(f"<tr><td style='{TEXT}' colspan='{len(columns)}'>… {n - MOST_ROWS:,} more rows …</td></tr>")
        cells = zip(columns.values(), styles, strict=True)
        rows.append(
            "<tr>" + "".join(f"<td style='{style}'>{_cell(column[i])}</td>" for column, style in cells) + "</tr>"
        )
    return f"<table style='{TABLE}'><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _cell(text: str) -> str:
    """Escaped, in a direction of its own, so that names of other scripts leave their neighbours where they are."""
    return f"<bdi>{escape(plain_text(text))}</bdi>"
