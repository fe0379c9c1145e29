"""A report in a file, in the form that the name of the file asks for."""

from pathlib import Path

from calibrant.results import Result


class Page(Result):
    """A result that has a page: what reports of every kind share."""

    def to_html(self) -> str:
        """One self-contained page."""
        raise NotImplementedError

    def save(self, path: str | Path) -> Path:
        """Write the page to a file; by the ending of its name the data (.json), a comment (.md) or a print of it (.pdf)."""
        path = Path(path)
        form = path.suffix.lower()
        if form == ".pdf":
            from calibrant.reports.pdf import to_pdf

            path.write_bytes(to_pdf(self.to_html()))
        else:
            text = {".json": self.to_json, ".md": self.to_markdown}.get(form, self.to_html)()
            path.write_bytes(text.encode("utf-8", "backslashreplace"))  # a lone surrogate as JSON writes it
        return path
