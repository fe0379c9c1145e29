"""The verdict in words: whether to believe the probabilities, which way they err, and where."""

from dataclasses import dataclass

import numpy as np

from calibrant.reports.model import KeyNumber, Verdict
from calibrant.results import Table, number

DOUBT, CERTAINTY = 0.05, 0.01
"""P-values below which miscalibration is likely, and below which it is taken as shown."""


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


def judge(headline: KeyNumber, confidence: Leaning, rate: Leaning | None, curve: Table, n: int) -> Verdict:
    """The verdict from the main error and its exact test, the mean confidence, the mean rate, and the curve."""
    if headline.pvalue > DOUBT:
        return _consistent(headline, n)
    direction, claim = _direction(confidence, rate)
    shown = headline.pvalue <= CERTAINTY
    words = "Do not take these probabilities at face value" if shown else "Treat these probabilities with care"
    low, high = map(headline.text, headline.null_band)
    evidence = (
        f"{claim} (n = {n:,}).",
        f"The calibration error is {headline.text(headline.value)}; a calibrated model with these very predictions "
        f"would show {low} to {high} (p = {number(headline.pvalue)}).",
        *_where(curve),
    )
    return Verdict("bad" if shown else "unsure", f"{words}: {direction}.", evidence)


def _consistent(headline: KeyNumber, n: int) -> Verdict:
    low, high = map(headline.text, headline.null_band)
    evidence = [
        f"The calibration error of {headline.text(headline.value)} is what chance alone would show: a calibrated model "
        f"with these very predictions gives {low} to {high} (p = {number(headline.pvalue)}, n = {n:,})."
    ]
    if headline.interval is not None:
        evidence.append(
            f"With this many rows, an error of up to {headline.text(headline.interval.high)} is not ruled out."
        )
    return Verdict("good", "These probabilities agree with what happened.", tuple(evidence))


def _direction(confidence: Leaning, rate: Leaning | None) -> tuple[str, str]:
    """Which way the model errs, and the two means that show it."""
    if rate is not None and abs(rate.z) >= abs(confidence.z) and abs(rate.z) > 2:
        direction = "they are too high" if rate.z > 0 else "they are too low"
        return (
            direction,
            f"They average {_percent(rate.claimed)}, and the event happened {_percent(rate.happened)} of the time",
        )
    claimed, right = _percent(confidence.claimed), _percent(confidence.happened)
    claim = f"The model claims {claimed} on average and is right {right} of the time"
    if abs(confidence.z) <= 2:
        return "they are too high in places and too low in others", claim
    return f"the model is {'over' if confidence.z > 0 else 'under'}-confident", claim


def _where(curve: Table) -> tuple[str, ...]:
    """The widest gap beyond chance, in words."""
    outside = (curve["observed"] < curve["low"]) | (curve["observed"] > curve["high"])
    if not outside.any():
        return ()
    worst = int(np.argmax(np.where(outside, np.abs(curve["gap"]), -1)))
    claimed, seen = curve["predicted"][worst], curve["observed"][worst]
    return (f"The gap is widest where the claim is about {_percent(claimed)}: {_percent(seen)} came true.",)


def _percent(x: float) -> str:
    return f"{100 * x:.1f} %"
