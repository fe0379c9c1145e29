"""The verdict on forecasts in words: whether to believe them, and which way they err."""

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from calibrant.inference.multiplicity import holm
from calibrant.reports.forecast_problem import ForecastProblem
from calibrant.reports.model import KeyNumber, Picture, Verdict
from calibrant.reports.verdict import CERTAINTY, DOUBT, consistent
from calibrant.results import number, percent

FURTHEST = 1e-9
"""Levels nearer to 0 or 1 count as this far out: six standard deviations."""


def judge_forecasts(problem: ForecastProblem, numbers: Sequence[KeyNumber], pictures: Sequence[Picture]) -> Verdict:
    """The verdict from all numbers that were tested together (Holm), and the mean and spread of levels."""
    tested = [x for x in numbers if x.pvalue is not None]
    adjusted = holm([x.pvalue for x in tested if x.pvalue is not None])
    n = len(problem)
    if adjusted.min() > DOUBT:
        return consistent(tested[0], n, "forecasts")
    strongest = tested[0] if adjusted[0] <= DOUBT else tested[int(np.argmin(adjusted))]
    is_shown = adjusted.min() <= CERTAINTY
    words = "Do not take these forecasts at face value" if is_shown else "Treat these forecasts with care"
    claimed, seen = problem.means()
    evidence = [
        f"Central {100 * claimed:g} % intervals held {percent(seen)} of outcomes (n = {n:,}).",
        f"{strongest.label}: {strongest.text(strongest.value)}; a calibrated forecast would show {strongest.band()} "
        f"(p = {number(strongest.pvalue or 0.0)}).",
        *_where(pictures),
    ]
    return Verdict("bad" if is_shown else "unsure", f"{words}: {leaning(problem.levels.targets)}.", tuple(evidence))


def leaning(levels: np.ndarray) -> str:
    """Which way forecasts err, from mean and variance of the normal scores of levels, in standard errors of independent ones.

    A forecast that is too low has a mean above 0 and the variance of one that is not; levels themselves crowd at their ends.

    >>> from scipy.special import ndtr
    >>> z = ndtri((np.arange(400) + 0.5) / 400)
    >>> leaning(ndtr(z - 1)), leaning(ndtr(1.5 * z))
    ('they are too high', 'they are too narrow')
    """
    n, z = len(levels), ndtri(np.clip(levels, FURTHEST, 1 - FURTHEST))
    height = float(z.mean()) * np.sqrt(n)
    width = (float(z.var()) - 1) * np.sqrt(n / 2)
    words = {
        abs(height): "too low" if height > 0 else "too high",
        abs(width): "too narrow" if width > 0 else "too wide",
    }
    found = [word for size, word in sorted(words.items(), reverse=True) if size > 2]
    if not found:
        return "they are wrong in places, and right on average"
    return f"they are {' and '.join(found)}"


def _where(pictures: Sequence[Picture]) -> tuple[str, ...]:
    """The group by predicted spread whose errors are furthest from it."""
    tables = [picture.tables["spread"] for picture in pictures if picture.kind == "spread"]
    if not tables:
        return ()
    ratio = tables[0]["observed"] / tables[0]["predicted"]
    worst = int(np.argmax(np.abs(np.log(np.maximum(ratio, 1e-9)))))
    predicted, observed = (number(float(tables[0][name][worst])) for name in ("predicted", "observed"))
    return (f"The gap is widest where the predicted spread is about {predicted}: errors were {observed}.",)
