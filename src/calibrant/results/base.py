"""What all results share."""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant.results import markup

SCHEMA = "calibrant/1"
"""Written into every ``to_dict()``; the number grows when a reader of the JSON would have to change."""


def jsonable(x: object) -> Any:
    """``x`` in JSON's own types; numbers JSON lacks (NaN, infinity) become their names."""
    if isinstance(x, np.ndarray):
        return [jsonable(v) for v in x.tolist()]
    if isinstance(x, np.generic):
        return jsonable(x.item())
    if isinstance(x, float) and not math.isfinite(x):
        return str(x)
    if isinstance(x, Mapping):
        return {str(k): jsonable(v) for k, v in x.items()}
    if isinstance(x, list | tuple):
        return [jsonable(v) for v in x]
    if hasattr(x, "to_dict"):
        return jsonable(x.to_dict())
    return x if x is None or isinstance(x, str | int | float | bool) else repr(x)


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
        cells = [[markup.escaped(label), markup.escaped(text, longest=400)] for label, text in rest]
        head = f"**{markup.escaped(title)} = {markup.escaped(headline, longest=400)}**"
        return f"{head}\n\n{markup.table(['', ''], cells, [False, False])}" if cells else head

    def _repr_html_(self) -> str:
        (title, headline), *rest = self._lines()
        return markup.card(title, headline, rest)
