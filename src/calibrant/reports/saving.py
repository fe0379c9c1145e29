"""A report in a file, in the form that the name of the file asks for."""

from pathlib import Path
from typing import Protocol


class Savable(Protocol):
    """What has a page and its data."""

    def to_html(self) -> str:
        """One self-contained page."""

    def to_json(self) -> str:
        """The data."""

    def to_markdown(self) -> str:
        """A summary for a comment."""


def save(result: Savable, path: str | Path) -> Path:
    """Write the page; by the ending of the name the data (.json), a comment (.md), or the page on paper (.pdf)."""
    path = Path(path)
    form = path.suffix.lower()
    if form == ".pdf":
        from calibrant.reports.pdf import to_pdf

        path.write_bytes(to_pdf(result.to_html()))
    else:
        text = {".json": result.to_json, ".md": result.to_markdown}.get(form, result.to_html)()
        path.write_bytes(text.encode("utf-8", "backslashreplace"))  # a lone surrogate as JSON writes it
    return path
