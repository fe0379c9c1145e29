"""A report in a file, in the form that the name of the file asks for."""

from pathlib import Path
from typing import Protocol


class Savable(Protocol):
    """What has a page and its data."""

    def to_html(self) -> str:
        """One self-contained page."""

    def to_json(self) -> str:
        """The data."""


def save(result: Savable, path: str | Path) -> Path:
    """Write the page; the data if the name ends in ``.json``; the page on paper if it ends in ``.pdf``."""
    path = Path(path)
    form = path.suffix.lower()
    if form == ".pdf":
        from calibrant.reports.pdf import to_pdf

        path.write_bytes(to_pdf(result.to_html()))
    else:
        text = result.to_json() if form == ".json" else result.to_html()
        path.write_bytes(text.encode("utf-8", "backslashreplace"))  # a lone surrogate as JSON writes it
    return path
