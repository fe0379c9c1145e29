"""The report as one self-contained page."""

import base64
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from calibrant._validate import InputError
from calibrant.plots.drawing import to_svg
from calibrant.reports.build import Progress, evaluate
from calibrant.reports.model import KeyNumber, Picture, Report
from calibrant.results import Result, Table, percent
from calibrant.typing import ArrayLike, Engine, Seed


def report(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    path: str | Path = "calibrant-report.html",
    *,
    by: Mapping[str, ArrayLike] | None = None,
    sample_weight: ArrayLike | None = None,
    title: str = "Calibration report",
    n_resamples: int = 999,
    rng: Seed = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Report:
    """Evaluate, and write the page (or, for a path that ends in ``.json``, the data).

    >>> import numpy as np, tempfile
    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.random(100)
    >>> target = Path(tempfile.mkdtemp()) / "report.json"
    >>> result = report((rng.random(100) < y_pred) * 1, y_pred, target, n_resamples=99)
    >>> target.exists()
    True
    """
    result = evaluate(
        y_true,
        y_pred,
        by=by,
        sample_weight=sample_weight,
        title=title,
        n_resamples=n_resamples,
        rng=rng,
        engine=engine,
        progress=progress,
    )
    result.save(path)
    return result


def to_html(report: Report) -> str:
    """The page, with its style, pictures and data inside; it asks the network for nothing."""
    return rendered(
        "page.html.jinja",
        report=report,
        charts=[drawn(picture) for picture in report.pictures],
        data=encoded(report),
        scales=[_scale(x) for x in report.numbers],
    )


def rendered(template: str, **values: Any) -> str:
    """A template of this folder, filled in."""
    try:
        import jinja2
    except ModuleNotFoundError as error:
        raise InputError(f"the page needs {error.name}: pip install 'calibrant[cli]'") from error
    here = files("calibrant.reports")
    loader = jinja2.FunctionLoader(lambda name: here.joinpath(name).read_text(encoding="utf-8"))
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined, loader=loader)
    environment.filters.update(percent=percent, pvalue=_pvalue)
    return environment.get_template(template).render(**values)


def drawn(picture: Picture, beside: Table | None = None) -> str:
    """A picture as SVG; axes of a reliability diagram have room for the curve ``beside`` it."""
    return to_svg(picture.kind, picture.tables if beside is None else {**picture.tables, "beside": beside})


def encoded(result: Result) -> str:
    """All data of a page, for its link."""
    return base64.b64encode(result.to_json(indent=None).encode()).decode()


def _pvalue(p: float) -> str:
    return f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def _scale(x: KeyNumber) -> dict[str, Any]:
    """Where the value, its interval and the null band lie on a line from 0 to 100."""
    ends = [x.value, *(x.null_band or ()), *(x.interval or ())]
    finite = [e for e in ends if abs(e) < float("inf")]
    low, high = min([0.0, *finite]), max(finite)
    span = 1.05 * (high - low) or 1.0

    def place(v: float) -> float:
        return round(min(max(100 * (v - low) / span, 0), 100), 2)

    return {
        "value": place(x.value),
        "band": [place(v) for v in x.null_band or ()],
        "interval": [place(v) for v in x.interval or ()],
    }
