"""The verdict in words: whether to believe the probabilities, which way they err, and where."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.inference.multiplicity import holm
from calibrant.inference.reliability import beyond_chance
from calibrant.reports.model import KeyNumber, Verdict
from calibrant.results import Table, number, percent

DOUBT, CERTAINTY = 0.05, 0.02
"""P-values below which miscalibration is likely, and below which it is taken as shown."""

FEW = 50
"""Fewer rows than this do not show that a model is calibrated, only that they cannot tell."""


@dataclass(frozen=True)
class Leaning:
    """How far a mean claim lies from what happened, in the standard errors of a calibrated model."""

    claimed: float
    happened: float
    z: float

    @classmethod
    def of(cls, probability: np.ndarray, happened: np.ndarray, weights: np.ndarray | None) -> "Leaning":
        """From claims and outcomes of the same shape."""
        p = probability.astype(np.float64)
        w = np.ones(len(p)) if weights is None else weights
        w = np.broadcast_to(w.reshape(-1, *[1] * (p.ndim - 1)), p.shape) / (w.sum() * p[0].size)
        spread = float(np.sqrt((w**2 * p * (1 - p)).sum()))
        claimed, seen = float((w * p).sum()), float((w * happened).sum())
        gap = claimed - seen
        return cls(claimed, seen, gap / spread if spread > 0 else float(np.sign(gap) * (np.inf if gap else 0.0)))


def judge(numbers: Sequence[KeyNumber], confidence: Leaning, rate: Leaning | None, curve: Table, n: int) -> Verdict:
    """The verdict from all numbers and their exact tests together, the mean confidence, the mean rate, and the curve.

    The p-values are adjusted for their number (Holm), so that calibrated models raise an alarm in at most 5 % of cases.
    """
    numbers = [x for x in numbers if x.pvalue is not None]
    adjusted = holm([x.pvalue for x in numbers if x.pvalue is not None])
    if adjusted.min() > DOUBT:
        return consistent(numbers[0], n, "probabilities")
    strongest = numbers[int(np.argmin(adjusted))]
    shown = adjusted.min() <= CERTAINTY
    words = "Do not take these probabilities at face value" if shown else "Treat these probabilities with care"
    if adjusted[0] <= DOUBT:
        strongest = numbers[0]
    if strongest is numbers[0] or (rate is not None and strongest.estimator.startswith("SKCE")):
        direction, claim = _direction(confidence, rate)
    else:
        direction, claim = _elsewhere(rate), _mean_confidence(confidence)
    evidence = (
        f"{claim} (n = {n:,}).",
        f"{strongest.label}: {strongest.text(strongest.value)}; a calibrated model with these very predictions would "
        f"show {strongest.band()} (p = {number(strongest.pvalue or 0.0)}).",
        *_where(curve),
    )
    return Verdict("bad" if shown else "unsure", f"{words}: {direction}.", evidence)


def consistent(headline: KeyNumber, n: int, noun: str) -> Verdict:
    """That nothing speaks against the predictions, or that there are too few to tell."""
    evidence = [
        f"{headline.label}: {headline.text(headline.value)}, as chance alone would show: a calibrated model with these "
        f"very predictions gives {headline.band()} (p = {number(headline.pvalue or 0.0)}, n = {n:,})."
    ]
    if n < FEW:
        return Verdict("unsure", f"{n:,} rows are too few to tell.", tuple(evidence))
    # Where nothing varies the bootstrap cannot see an error; chance alone leaves room up to the end of its band.
    limit = max(part.high for part in (headline.null_band, headline.interval) if part is not None)
    evidence.append(f"With this many rows, an error of up to {headline.text(limit)} is not ruled out.")
    return Verdict("good", f"These {noun} agree with what happened.", tuple(evidence))


def _elsewhere(rate: Leaning | None) -> str:
    if rate is None:
        return "the favoured class is right as often as claimed, but single classes are not"
    return "their errors cancel on average, but what happened was too often unlikely, or too often likely"


def _mean_confidence(confidence: Leaning) -> str:
    claimed, right = percent(confidence.claimed), percent(confidence.happened)
    return f"The model claims {claimed} on average and is right {right} of the time"


def _direction(confidence: Leaning, rate: Leaning | None) -> tuple[str, str]:
    """Which way the model errs, and the two means that show it."""
    # Where all predictions lie on one side of 1/2 the two differ by rounding only: then it is the rate.
    if rate is not None and abs(rate.z) >= 0.999 * abs(confidence.z) and abs(rate.z) > 2:
        direction = "they are too high" if rate.z > 0 else "they are too low"
        means = f"They average {percent(rate.claimed)}, and the event happened {percent(rate.happened)} of the time"
        return direction, means
    if abs(confidence.z) <= 2:
        return "they are too high in places and too low in others", _mean_confidence(confidence)
    direction = f"the model is {'over' if confidence.z > 0 else 'under'}-confident"
    return direction, _mean_confidence(confidence)


def _where(curve: Table) -> tuple[str, ...]:
    """The widest gap beyond chance, in words."""
    outside = beyond_chance(curve)
    if not outside.any():
        return ()
    worst = int(np.argmax(np.where(outside, np.abs(curve["gap"]), -1)))
    claimed, seen = percent(curve["predicted"][worst]), percent(curve["observed"][worst])
    return (f"The gap is widest where the claim is about {claimed}: {seen} came true.",)
