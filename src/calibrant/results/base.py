"""What all results share."""

import json
from typing import Any

from calibrant.results import markdown, notebook
from calibrant.results.plain import jsonable


class Result:
    """What all results share: JSON, and displays in notebooks and comments made of their readable lines."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        raise NotImplementedError

    def to_json(self, *, indent: int | None = 2) -> str:
        """The dictionary as JSON text."""
        return json.dumps(jsonable(self.to_dict()), indent=indent, ensure_ascii=False, allow_nan=False)

    def _lines(self) -> list[tuple[str, str]]:
        raise NotImplementedError

    def __repr__(self) -> str:
        (title, headline), *rest = self._lines()
        width = max((len(label) for label, _ in rest), default=0)
        return "\n".join([f"{title} = {headline}", *(f"  {label:<{width}}  {text}" for label, text in rest)])

    def to_markdown(self) -> str:
        """The lines in GitHub's Markdown, for a comment on a pull request."""
        (title, headline), *rest = self._lines()
        cells = [[markdown.escaped(label), markdown.escaped(text, longest=400)] for label, text in rest]
        head = f"**{markdown.escaped(title)} = {markdown.escaped(headline, longest=400)}**"
        return f"{head}\n\n{markdown.table(['', ''], cells, [False, False])}" if cells else head

    def _repr_html_(self) -> str:
        (title, headline), *rest = self._lines()
        return notebook.card(title, headline, rest)
