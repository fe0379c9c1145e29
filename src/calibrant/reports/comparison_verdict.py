"""The verdict on several models in words: which is better, by score and by calibration, and which cannot be told apart."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from calibrant.reports.model import Verdict
from calibrant.reports.report import Report
from calibrant.results import Table, number, percent

SHOWN = 0.05
"""P-values, adjusted for all comparisons, up to which a difference is taken as shown."""


class Standing(NamedTuple):
    """By one measure: the model with the smallest value, those it is shown to be better than, and all others."""

    measure: str
    best: str
    beaten: tuple[str, ...]
    tied: tuple[str, ...]

    @classmethod
    def of(cls, differences: Table, measure: str) -> "Standing":
        """From the rows of the table that are of this measure."""
        rows = [row for row in differences.rows() if row["measure"] == measure]
        values = {row[side]: row[f"value_{side}"] for row in rows for side in ("a", "b")}
        best = min(values, key=values.__getitem__)
        own = {row["b"] if row["a"] == best else row["a"]: row for row in rows if best in (row["a"], row["b"])}
        beaten = tuple(name for name, row in own.items() if row["pvalue"] <= SHOWN)
        return cls(measure, best, beaten, tuple(name for name in own if name not in beaten))


def judge_models(differences: Table, reports: Mapping[str, Report], score: str | None, error: str) -> Verdict:
    """The verdict from paired differences of the first score and of the calibration error."""
    by_error = Standing.of(differences, error)
    standings = [by_error] if score is None else [by_error, Standing.of(differences, score)]
    headline = _headline(standings, list(reports))
    evidence = [_evidence(differences, standing) for standing in standings]
    evidence += [f"{name}: {report.verdict.headline}" for name, report in reports.items()]
    is_shown = any(standing.beaten for standing in standings)
    return Verdict("good" if is_shown else "unsure", headline, tuple(evidence))


def _headline(standings: Sequence[Standing], names: Sequence[str]) -> str:
    shown = [standing for standing in standings if standing.beaten]
    if not shown:
        return f"{_listed(names)} cannot be told apart on these rows."
    words = [_claim(standing, len(names)) for standing in shown]
    if len(shown) == 2:
        same = shown[0].best == shown[1].best
        first, second = words
        between = ", and" if same else ", but"
        return f"{first}{between} {second.removeprefix(shown[1].best + ' ') if same else second}."
    if len(standings) == 1:
        return f"{words[0]}."
    missing = standings[0] if shown[0] is standings[1] else standings[1]
    by = "in calibration" if missing is standings[0] else f"by {_short(missing.measure)}"
    return f"{words[0]}; {by} the models cannot be told apart."


def _claim(standing: Standing, models: int) -> str:
    """That one is better than others, and than which."""
    is_error = _is_error(standing.measure)
    than = f" than {_listed(standing.beaten)}" if models > 2 or is_error else ""
    if is_error:
        return f"{standing.best} is better calibrated{than}"
    degree = "lower" if models == 2 or standing.tied else "lowest"
    return f"{standing.best} has the {degree} {_short(standing.measure)}{than if standing.tied else ''}"


def _evidence(differences: Table, standing: Standing) -> str:
    """The values of the best and of the nearest one that it beats, or of the nearest of all, with their difference."""
    rows = [r for r in differences.rows() if r["measure"] == standing.measure and standing.best in (r["a"], r["b"])]
    rows = [row for row in rows if row["pvalue"] <= SHOWN] or rows
    row = min(rows, key=lambda r: abs(r["difference"]))
    is_first = row["a"] == standing.best
    own, theirs, other = (
        row[name] for name in (("value_a", "value_b", "b") if is_first else ("value_b", "value_a", "a"))
    )
    low, high = (-row["high"], -row["low"]) if is_first else (row["low"], row["high"])
    write = percent if "(PIT)" in standing.measure else number
    return (
        f"{standing.measure}: {write(own)} of {standing.best}, {write(theirs)} of {other}; {write(theirs - own)} apart, 95 % "
        f"interval {write(low)} to {write(high)}, p = {number(row['pvalue'])}, allowing for all comparisons."
    )


def _is_error(measure: str) -> bool:
    return "rror" in measure


def _short(measure: str) -> str:
    """A score within a sentence."""
    return measure if measure in ("CRPS", "Brier score") else measure[0].lower() + measure[1:]


def _listed(names: Sequence[str]) -> str:
    """Names as a sentence has them.

    >>> _listed(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
