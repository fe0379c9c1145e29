"""What ``--help`` says beyond the list of options: the question, the first steps, examples, exit codes."""

import re
from collections.abc import Iterable

from calibrant.cli.examples import DIGITS, EXAMPLES, Example

WIDTH = 76
"""Columns of an example, so that it can be copied from a terminal of 80."""

QUESTION = """Can I believe these probabilities?

A model that says 80 % should be right 8 times out of 10. calibrant reads predictions and what happened from a file (CSV, \
Parquet, JSONL, NPZ, or - for a pipe), tests whether claims come true as often as stated, and says by how much they do not, \
where, and what to do about it. Classes, several labels a row, numbers, counts, ensembles and quantiles alike."""

FIRST_STEPS = (
    Example("1. See a report on example predictions, and keep their file:", "calibrant demo --data digits.csv"),
    Example("2. Make one from a file:", f"calibrant report {DIGITS} --by ink"),
    Example("3. Learn to put such predictions right:", f"calibrant recalibrate {DIGITS} --save map.json"),
)

EXIT_CODES = {
    0: "all is well",
    1: "a gate failed: --fail-if, --gate, worse map, alarm, budget, self-test",
    2: "the input or an option cannot be used; one line says why",
    70: "a mistake of calibrant, with a traceback: please report it",
    130: "interrupted (Ctrl-C)",
    141: "who read the output left before its end, as head does",
}
"""What the program leaves with."""

FAILURES = {
    "report": "a condition of --fail-if holds",
    "test": "--gate is given and the test rejects, or a condition of --fail-if holds",
    "estimate": "a condition of --fail-if holds",
    "recalibrate": "--save is given and held-out rows got worse, so that nothing is saved",
    "monitor": "there was an alarm",
    "plan": "nothing fits",
    "doctor": "the self-test fails",
}
"""What code 1 means, by command."""


def front_page() -> str:
    """What follows the list of commands."""
    codes = [f"  {code:<3}  {meaning}" for code, meaning in EXIT_CODES.items()]
    further = [
        "  calibrant COMMAND --help        its options, with examples that run",
        "  calibrant doctor                what is installed, and whether it works",
        "  calibrant --install-completion  commands and options by the tab key",
    ]
    return "\n".join(["First steps:", *_lines(FIRST_STEPS), "", "Then:", *further, "", "Exit codes:", *codes])


def place(command: str) -> int:
    """Where a command stands in the list of all."""
    return list(EXAMPLES).index(command)


def last_page(command: str) -> str:
    """What follows the options of a command."""
    said = f", 1 if {FAILURES[command]}" if command in FAILURES else ""
    codes = f"Exit codes: 0 if all is well{said}, 2 if the input cannot be used."
    return "\n".join(["Examples:", *_lines(EXAMPLES[command]), "", codes])


def description(docstring: str) -> str:
    """What a docstring says before its parameters, a line a paragraph: terminals break lines themselves."""
    paragraphs = docstring.partition("\n    Parameters\n")[0].strip().split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def wrapped(command: str, width: int = WIDTH) -> str:
    r"""A command on several lines that a shell reads as one, broken before options.

    >>> print(wrapped("calibrant report x.csv --y-true y", width=30))
    calibrant report x.csv \
        --y-true y
    """
    line, *rest = re.split(r" (?=--|\||> )", command)
    lines = []
    for part in rest:
        if len(line) + 1 + len(part) > width - 2:
            lines.append(f"{line} \\")
            line = f"    {part}"
        else:
            line = f"{line} {part}"
    return "\n".join([*lines, line])


def _lines(examples: Iterable[Example]) -> Iterable[str]:
    for example in examples:
        yield f"  {example.wish}"
        yield from (f"    {line}" for line in wrapped(example.command, WIDTH - 4).splitlines())
