"""The report: its data, and the forms in which it is shown."""

from dataclasses import dataclass

from calibrant.reports.core.model import ReportData


@dataclass(frozen=True, eq=False, repr=False)
class Report(ReportData):
    """Everything the page shows, as data; :func:`calibrant.evaluate` makes it.

    ``pictures`` hold what is drawn, such as the reliability curve with its consistency band; ``sections`` one table of classes
    and one per column of slices. ``settings`` repeat the run.
    """

    def to_html(self) -> str:
        """One self-contained page."""
        from calibrant.reports.render.html import to_html

        return to_html(self)

    def to_markdown(self) -> str:
        """A summary in GitHub's Markdown, for a comment on a pull request."""
        from calibrant.reports.render.markdown import to_markdown

        return to_markdown(self)

    def _repr_html_(self) -> str:
        from calibrant.reports.render.notebook import to_notebook

        return to_notebook(self)
