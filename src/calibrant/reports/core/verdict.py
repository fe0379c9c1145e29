"""The verdict in words: whether to believe the predictions, which way they err, by how much, and where.

What is wrong was decided before: of classes in ``class_faults.fault_of_classes``, of forecasts in
``forecast_verdict.fault_of_forecasts``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from calibrant.reports.core.model import KeyNumber, Verdict
from calibrant.reports.core.problem import FoundSlice
from calibrant.results import Finding, how_many, number, percent

DOUBT, CERTAINTY = 0.05, 0.02
"""P-values below which miscalibration is likely, and below which it is taken as shown."""

MIN_ROWS = 50
"""Fewer rows than this do not show that a model is calibrated, only that they cannot tell."""


@dataclass(frozen=True)
class Fault:
    """What is wrong, in one word and in words; the two means that show it; and where it is."""

    finding: Finding
    words: str
    means: str
    where: tuple[str, ...] = ()


def alarmed(
    fault: Fault,
    pvalue: float,
    tests: str,
    numbers: Sequence[KeyNumber],
    clearest: FoundSlice | None,
    noun: str,
    is_small: bool,
) -> Verdict:
    """The verdict on predictions that are wrong beyond chance: the sentence, then the evidence in order of weight."""
    is_shown = pvalue <= CERTAINTY
    main = numbers[0]
    words = f"Do not take these {noun} at face value" if is_shown else f"Treat these {noun} with care"
    headline = f"{words}: {fault.words}."
    tone: Literal["good", "unsure", "bad"] = "bad" if is_shown else "unsure"
    if is_small:
        headline = f"These {noun} are nearly right: {fault.words}, but by little ({main.text(main.value)} on average)."
        tone = "good"
    evidence = [
        f"All tests together: p = {number(pvalue)} ({tests}).",
        f"{magnitude(main)}; {would_show(main)}.",
        *_clearest(numbers),
        f"{fault.means}.",
        *fault.where,
        *in_slices(clearest),
    ]
    return Verdict(tone, headline, tuple(evidence), pvalue, fault.finding)


def consistent(pvalue: float, tests: str, main: KeyNumber, n: int, noun: str) -> Verdict:
    """That nothing speaks against the predictions, what is ruled out, or that there are too few rows to tell."""
    evidence = [
        f"All tests together: p = {number(pvalue)} ({tests}).",
        f"{main.label}: {main.text(main.value)}, as chance alone would show; {would_show(main)}.",
    ]
    limit = largest_left(main)
    if n < MIN_ROWS:
        evidence.append(f"An error of up to {main.text(limit)} would go unnoticed.")
        return Verdict(
            "unsure",
            f"{how_many(n, 'row is', 'rows are')} too few to tell.",
            tuple(evidence),
            pvalue,
            Finding.TOO_FEW_ROWS,
        )
    evidence.append(f"An error above {main.text(limit)} is ruled out (95 %); a smaller one is not.")
    return Verdict("good", f"These {noun} agree with what happened.", tuple(evidence), pvalue, Finding.NONE)


def largest_left(main: KeyNumber) -> float:
    """The largest error that 95 % of data sets like this one leave possible.

    That is the upper end of the interval, so that a page states one limit. Without an interval the distances add up: the true
    error is at most the one seen and what chance makes of none.
    """
    band = 0.0 if main.null_band is None else main.null_band.high
    return main.value + band if main.interval is None else main.interval.high


def magnitude(main: KeyNumber) -> str:
    """A number with its interval."""
    if main.interval is None:
        return f"{main.label}: {main.text(main.value)}"
    low, high = main.text(main.interval.low), main.text(main.interval.high)
    return f"{main.label}: {main.text(main.value)} (95 % interval {low} to {high})"


def would_show(main: KeyNumber) -> str:
    """What a calibrated model would show."""
    if main.pvalue is None:
        return "what a calibrated model would show was not computed"
    return f"a calibrated model with these very predictions would show {main.band()} (p = {number(main.pvalue)})"


def _clearest(numbers: Sequence[KeyNumber]) -> tuple[str, ...]:
    """The number that speaks clearest, where it is not the first."""
    tested = [x for x in numbers if x.pvalue is not None]
    if not tested or (numbers[0].pvalue or 0.0) <= DOUBT:
        return ()
    clearest = min(tested, key=lambda x: x.pvalue or 0.0)
    if clearest is numbers[0] or (clearest.pvalue or 0.0) > DOUBT:
        return ()
    return (f"{clearest.label}: {clearest.text(clearest.value)}; {would_show(clearest)}.",)


def in_slices(found: FoundSlice | None) -> tuple[str, ...]:
    """The slice where the evidence is clearest, where it is beyond chance."""
    if found is None:
        return ()
    predicted, observed = percent(found.predicted), percent(found.observed)
    return (
        f"Clearest where {found.name}: claimed {predicted}, happened {observed}, error "
        f"{percent(found.error)} (p = {number(found.pvalue)} among all slices).",
    )


def slice_fault(found: FoundSlice | None, too_much: Finding, too_little: Finding) -> Fault | None:
    """That all rows together are right, and one slice is not; words for claims above what happened, and below."""
    if found is None:
        return None
    gap = found.predicted - found.observed
    # a mean that is off by less than half the error does not explain it
    lean: str = "wrong" if abs(gap) < found.error / 2 else too_much if gap > 0 else too_little
    words = f"they agree with what happened on average, but are {lean} where {found.name}"
    means = f"There {percent(found.predicted)} was claimed, and {percent(found.observed)} happened"
    return Fault(Finding.SLICE, words, means)
