"""Text and tables in GitHub's Markdown, safe for comments on pull requests whatever columns and classes are called."""

import re
import unicodedata
from collections.abc import Sequence

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
