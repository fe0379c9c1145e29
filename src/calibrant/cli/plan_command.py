"""The command that says what work costs, and what fits into a budget."""

from typing import Literal

from calibrant.cli import console, display
from calibrant.cli.flags import Comment, print_json
from calibrant.planning.planner import as_bytes, as_count, as_seconds
from calibrant.planning.planner import plan as planned


def plan(
    *,
    n: str,
    k: str = "2",
    kind: Literal["classes", "binary", "numbers", "ensemble"] | None = None,
    members: str | None = None,
    budget: str = "10min",
    memory: str | None = None,
    format: Comment = "table",
) -> int:
    """Say what a report, tests and estimates cost, and which of them fit into a time and a memory, each by itself.

    No data are read. Costs are those of a machine with two cores, with as many threads as this one has; expect a factor of
    three. Leaves with code 1 where nothing fits, and says what would.

    Parameters
    ----------
    n
        rows, such as 20000 or 1e7
    k
        classes
    kind
        what a row predicts; without it classes, or an ensemble where there are members
    members
        members of an ensemble
    budget
        time for each job, such as 30s, 10min or 2h
    memory
        memory that may be used, such as 16GB; without it what is free now
    """
    result = planned(
        as_count(n, "--n"),
        as_count(k, "--k"),
        kind=kind,
        members=None if members is None else as_count(members, "--members"),
        budget=as_seconds(budget, "--budget"),
        memory=None if memory is None else as_bytes(memory, "--memory"),
    )
    if format == "json":
        print_json(result)
    elif format == "markdown":
        console.emit(result.to_markdown())
    else:
        display.say(repr(result))
    return 0 if result.fits else 1
