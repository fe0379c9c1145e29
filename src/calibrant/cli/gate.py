"""Gates for pipelines: ``--fail-if "ECE > 0.05"``."""

import math
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calibrant._validate import InputError, did_you_mean
from calibrant.cli.console import complain
from calibrant.reports.report import Report

COMPARISONS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


@dataclass(frozen=True)
class Gate:
    """A condition on a named number under which a pipeline should stop.

    >>> Gate.parse("ECE > 0.05").fails({"ECE": 0.07})
    True
    """

    name: str
    comparison: str
    limit: float

    @classmethod
    def parse(cls, text: str) -> "Gate":
        """Read ``NAME > NUMBER``, with any of ``> >= < <=``."""
        found = re.fullmatch(r"\s*([^<>]+?)\s*(>=|<=|>|<)\s*([^<>=]+?)\s*", text)
        try:
            if found is None or math.isnan(float(found[3])):
                raise ValueError
            return cls(found[1], found[2], float(found[3]))
        except ValueError:
            raise InputError(f"--fail-if {text!r} cannot be read: write it as 'ECE > 0.05'") from None

    def fails(self, numbers: Mapping[str, float]) -> bool:
        """Whether the condition holds; a number that is missing or not a number is an error, never a pass."""
        if self.name not in numbers:
            raise InputError(f"--fail-if: there is no {self.name!r}{did_you_mean(self.name, list(numbers))}")
        value = numbers[self.name]
        if math.isnan(value):
            raise InputError(f"--fail-if: {self.name} is not a number, so it cannot be compared with {self.limit:g}")
        return bool(COMPARISONS[self.comparison](value, self.limit))


def numbers_of(report: Report) -> dict[str, float]:
    """What gates on a report may name: its numbers by their estimator and by their label, and the p-value of its verdict.

    Of several numbers of one estimator, its name means the first, which the verdict rests on.
    """
    named: dict[str, float] = {}
    for x in reversed(report.numbers):
        named |= {x.label: x.value, x.estimator.partition("(")[0]: x.value}
    pvalue = report.verdict.pvalue
    return named if pvalue is None else {**named, "pvalue": pvalue}


def judge(gates: Sequence[Gate], numbers: Mapping[str, float]) -> int:
    """1 if any gate fails, saying which; else 0."""
    failed = [gate for gate in gates if gate.fails(numbers)]
    for gate in failed:
        complain(f"gate failed: {gate.name} = {numbers[gate.name]:.6g} {gate.comparison} {gate.limit:g}")
    return 1 if failed else 0
