"""Worked examples of every command; a test runs each of them on the files that ``calibrant demo --data`` writes."""

from typing import NamedTuple


class Example(NamedTuple):
    """What one wants, and the command that does it."""

    wish: str
    command: str


DIGITS = "digits.csv --y-true digit --y-pred 'p_*'"
DIABETES = 'diabetes.csv --y-true progression --predict "Normal(mu, sigma)"'
TOP_LABEL = "'ECE(EqualMass(10), lens=TopLabel())'"

REPORT = (
    Example("Class probabilities, a column a class, looked at by slices:", f"calibrant report {DIGITS} --by ink"),
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
        f"cat {DIABETES.replace(' ', ' | calibrant monitor - ', 1)} --alpha 0.01 --state state.json",
    ),
    Example(
        "A page with the evidence row by row, and with windows:",
        f"calibrant monitor {DIABETES} --window 50 --report stream.html",
    ),
    Example("For programs, one JSON object a line:", f"calibrant monitor {DIABETES} --window 100 --format json"),
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
    Example("What can ten million rows of a thousand classes have?", "calibrant plan --n 1e7 --k 1000 --budget 10min"),
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
        Example("Measure what work costs here, for plans (about 20 s):", "calibrant doctor --bench"),
    ),
    "completion": (
        Example("For this session:", "source <(calibrant completion bash)"),
        Example("For good, whatever the shell:", "calibrant --install-completion"),
    ),
}
"""By command, in the order in which they are met."""
