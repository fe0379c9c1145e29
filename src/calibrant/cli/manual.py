"""What ``--help`` says beyond the list of options; a test runs each of its worked examples."""

import re
from collections.abc import Iterable
from typing import NamedTuple


class Example(NamedTuple):
    """What one wants, and the command that does it."""

    wish: str
    command: str


DIGITS = "digits.csv --y-true digit --y-pred 'p_*'"
DIABETES = 'diabetes.csv --y-true progression --predict "Normal(mu, sigma)"'
TOP_LABEL = "'ECE(EqualMass(10), lens=TopLabel())'"

REPORT = (
    Example("Class probabilities, a column per class, looked at by slices:", f"calibrant report {DIGITS} --by ink"),
    Example("Forecasts of numbers:", f"calibrant report {DIABETES} --by sex --out diabetes.html"),
    Example("In a pipeline that should stop:", f"calibrant report {DIGITS} --fail-if 'ECE > 0.2'"),
    Example("As a comment on a pull request:", f"calibrant report {DIGITS} --format markdown > comment.md"),
    Example(
        "Two models of the same rows, compared:",
        "calibrant report digits.csv better.csv --y-true digit --y-pred 'p_*' --out comparison.html",
    ),
    Example("From a pipe:", "cat digits.csv | calibrant report - --y-true digit --y-pred 'p_*'"),
)

ESTIMATE = (
    Example("The usual errors and scores:", f"calibrant estimate {DIGITS}"),
    Example(
        "One of your choice, with an interval, by slices:",
        f"calibrant estimate {DIGITS} --estimator {TOP_LABEL} --interval --by ink",
    ),
    Example(
        "The score of a forecast, for programs:", f"calibrant estimate {DIABETES} --estimator 'CRPS()' --format json"
    ),
    Example("A limit:", f"calibrant estimate {DIGITS} --fail-if 'Brier > 0.5'"),
)

TEST = (
    Example("Are these probabilities calibrated?", f"calibrant test {DIGITS}"),
    Example("By slices:", f"calibrant test {DIGITS} --by ink"),
    Example(
        "Another test, which stops a pipeline where it rejects:",
        f"calibrant test {DIABETES} --test 'ExactTest(PITError())' --gate",
    ),
)

RECALIBRATE = (
    Example(
        "Learn a map, see what it does to held-out rows, and keep it:",
        f"calibrant recalibrate {DIGITS} --save map.json",
    ),
    Example(
        "Put new predictions right:",
        "calibrant recalibrate digits.csv --y-pred 'p_*' --apply map.json --out better.csv",
    ),
    Example(
        "The same in a pipe:",
        "cat digits.csv | calibrant recalibrate - --y-pred 'p_*' --apply map.json --out - > better.csv",
    ),
    Example(
        "The best of two, with a page:",
        f"calibrant recalibrate {DIGITS} --method 'Temperature()' --method 'VectorScaling()' --report change.html",
    ),
)

MONITOR = (
    Example("Is there a row from which on forecasts went wrong?", f"calibrant monitor {DIABETES} --window 100"),
    Example(
        "As rows come, with a state to go on from tomorrow:",
        f"cat {DIABETES.replace(' ', ' | calibrant monitor - ', 1)} --alpha 0.01 --state state.json --save-every 10000",
    ),
    Example(
        "A page with the evidence row by row, and with windows:",
        f"calibrant monitor {DIABETES} --window 50 --report stream.html",
    ),
    Example("For programs, one JSON object per line:", f"calibrant monitor {DIABETES} --window 100 --format json"),
)

SIMULATE = (
    Example("How biased are binned errors on data like mine?", f"calibrant simulate {DIGITS} --data-sets 20"),
    Example(
        "With more rows, and estimators of your choice:",
        f"calibrant simulate {DIGITS} --data-sets 20 --size 500 --size 2000 --estimator 'ECE(EqualMass(15))' "
        "--estimator 'SmoothECE()'",
    ),
)

PLAN = (
    Example(
        "What would ten million rows of a thousand classes cost?", "calibrant plan --n 1e7 --k 1000 --budget 10min"
    ),
    Example(
        "Forecasts of numbers, on a machine with little memory:",
        "calibrant plan --n 20000 --kind numbers --budget 30s --memory 2GB",
    ),
    Example("Ensembles, for programs:", "calibrant plan --n 5000 --members 20 --budget 2h --format json"),
)

EXAMPLES: dict[str, tuple[Example, ...]] = {
    "demo": (
        Example("A page to look at, and the file it is made from:", "calibrant demo --data digits.csv"),
        Example("The same for a regression:", "calibrant demo diabetes --data diabetes.csv"),
    ),
    "report": REPORT,
    "test": TEST,
    "estimate": ESTIMATE,
    "recalibrate": RECALIBRATE,
    "monitor": MONITOR,
    "simulate": SIMULATE,
    "plan": PLAN,
    "doctor": (
        Example("Is everything in order?", "calibrant doctor"),
        Example("For a bug report:", "calibrant doctor --format json"),
    ),
    "completion": (
        Example("For this session:", "source <(calibrant completion bash)"),
        Example("For good, whatever the shell:", "calibrant --install-completion"),
    ),
}
"""By command, in the order in which they are met."""


WIDTH = 76
"""Columns of an example, so that it can be copied from a terminal of 80."""

QUESTION = """Can I believe these probabilities?

A model that says 80 % should be right 8 times out of 10. calibrant reads predictions and what happened from a file (CSV, \
Parquet, JSONL, NPZ, or - for a pipe), tests whether claims come true as often as stated, and says by how much they do not, \
where, and what to do about it. Classes, several labels per row, numbers, counts, ensembles and quantiles alike."""

FIRST_STEPS = (
    Example("1. See a report on example predictions, and keep their file:", "calibrant demo --data digits.csv"),
    Example("2. Make one from a file:", f"calibrant report {DIGITS} --by ink"),
    Example("3. Learn to put such predictions right:", f"calibrant recalibrate {DIGITS} --save map.json"),
)

EXIT_CODES = {
    0: "all is well",
    1: "gate failed: --fail-if, --certify, --gate, worse map, alarm, plan, doctor",
    2: "the input or an option cannot be used; one line says why",
    70: "a mistake of calibrant, with a traceback: please report it",
    129: "the terminal was closed (SIGHUP); monitor keeps its state",
    130: "interrupted (Ctrl-C); monitor keeps its state",
    141: "who read the output left before its end, as head does",
    143: "told to end (SIGTERM); monitor keeps its state",
}
"""What the program leaves with."""

FAILURES = {
    "report": "a condition of --fail-if holds, or the error is not certified",
    "test": "--gate is given and the test rejects, a condition of --fail-if holds, or the error is not certified",
    "estimate": "a condition of --fail-if holds, or an error is not certified",
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
