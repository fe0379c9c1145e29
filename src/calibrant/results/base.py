"""What all results share."""

import json
from html import escape
from typing import Any

from calibrant.results.plain import jsonable


class Result:
    """What all results share: JSON, and a display in notebooks made of their readable lines."""

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

    def _repr_html_(self) -> str:
        (title, headline), *rest = self._lines()
        rows = "".join(f"<tr><th style='text-align:left'>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in rest)
        return f"<table><caption><b>{escape(title)} = {escape(headline)}</b></caption>{rows}</table>"
