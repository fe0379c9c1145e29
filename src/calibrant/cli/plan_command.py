"""The command that says what can be done within a budget."""

from typing import Literal

from calibrant.cli import display
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
    engine: Literal["process", "batches", "gpu", "cluster"] | None = None,
    format: Comment = "table",
) -> int:
    """Say which estimators and tests fit into a time and a memory, with what engine, and what does not and why.

    No data are read. Costs are those that "calibrant doctor --bench" measured on this machine, or built-in ones.
    Leaves with code 1 where nothing fits, and says what would.

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
        time for everything, such as 30s, 10min or 2h
    memory
        memory that may be used, such as 16GB; without it what is free now
    engine
        where to work; without it this process, batches where the data do not fit, or the GPU
    """
    result = planned(
        as_count(n, "--n"),
        as_count(k, "--k"),
        kind=kind,
        members=None if members is None else as_count(members, "--members"),
        budget=as_seconds(budget, "--budget"),
        memory=None if memory is None else as_bytes(memory, "--memory"),
        engine=engine,
    )
    if format == "json":
        print_json(result)
    elif format == "markdown":
        print(result.to_markdown())
    else:
        display.say(repr(result))
    return 0 if result.fits else 1
