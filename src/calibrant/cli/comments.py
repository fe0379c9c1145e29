"""Results of commands in GitHub's Markdown."""

from collections.abc import Mapping, Sequence

from calibrant.reports.markdown import MARKS
from calibrant.results import Estimate, Table, TestResult, brief, number
from calibrant.results.markdown import escaped, table


def comment_of_estimates(estimates: Sequence[Estimate], slices: Sequence[tuple[str, str, Table]]) -> str:
    """A row an estimate, then a table for each that is sliced."""
    rows = []
    for estimate in estimates:
        interval = str(estimate.confidence_interval()) if estimate.has_interval else ""
        rows.append(
            [escaped(brief(estimate.estimator), 200), f"**{number(float(estimate))}**", interval, f"{estimate.n:,}"]
        )
    first = table(["estimator", "value", "95 % interval", "n"], rows, [False, True, True, True])
    reasons = [
        f"{escaped(brief(e.estimator), 200)}: no interval: {e.withheld}" for e in estimates if e.withheld is not None
    ]
    parts = [f"**{escaped(text, 200)} by {escaped(name)}**\n\n{found.to_markdown()}" for text, name, found in slices]
    return "\n\n".join([first, *reasons, *parts])


def comment_of_test(result: TestResult, alpha: float, slices: Mapping[str, Table]) -> str:
    """The decision with its mark, the result, then a table a column to slice by."""
    rejected = result.pvalue <= alpha
    words = "Not calibrated" if rejected else "No evidence against calibration"
    head = f"### {MARKS['bad' if rejected else 'good']} {words} at the level {alpha:g}"
    parts = [f"**by {escaped(name)}**\n\n{found.to_markdown()}" for name, found in slices.items()]
    return "\n\n".join([head, result.to_markdown(), *parts])
