"""The commands ``estimate`` and ``test`` on files of predictions, and gates."""

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

from calibrant import io
from calibrant._validate import InputError, check_fraction, did_you_mean
from calibrant.cli import console, display
from calibrant.cli.console import complain
from calibrant.cli.flags import (
    Certify,
    Comment,
    Data,
    File,
    Gates,
    Place,
    Seed,
    Shards,
    Texts,
    opened,
    print_json,
)
from calibrant.cli.settings import ESTIMATORS, default_set, parse_estimator, parse_test
from calibrant.distributions.reading.conversion import as_problem
from calibrant.inference.certificate import Certifiable, Certificate, check_margin, of_estimate, points
from calibrant.inference.exact_tests.aggregated import AggregatedTest
from calibrant.inference.intervals import WithInterval
from calibrant.inference.suspicion import suspicions
from calibrant.lenses.class_lenses import groups
from calibrant.planning.affordable import affordable_resamples
from calibrant.results import Estimate, Table, TestResult, brief, number
from calibrant.results.text import escaped, table
from calibrant.typing import Engine

USUAL_RESAMPLES = 999
"""Resamples of a test, where nothing is said and rows are not too many."""

COMPARISONS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


MAX_OFFERED = 60
"""Letters of a name that is offered in place of one that is not there: settings in full are longer."""


@dataclass(frozen=True)
class Gate:
    """A condition on a named number under which a pipeline should stop; limits may be in percent.

    >>> Gate.parse("ECE > 0.05").fails({"ECE": 0.07}), Gate.parse("ECE > 5%").limit
    (True, 0.05)
    """

    name: str
    comparison: str
    limit: float
    in_percent: bool = False

    @classmethod
    def parse(cls, text: str) -> "Gate":
        """Read ``NAME > NUMBER``, with any of ``> >= < <=``; ``5%`` is 0.05."""
        found = re.fullmatch(r"\s*([^<>]+?)(?:\(\))?\s*(>=|<=|>|<)\s*([^<>=%]+?)\s*(%?)\s*", text)
        try:
            if found is None or math.isnan(limit := float(found[3])):
                raise ValueError
        except ValueError:
            raise InputError(f"--fail-if {text!r} cannot be read: write it as 'ECE > 0.05' or 'ECE > 5%'") from None
        gate = cls(found[1], found[2], float(Decimal(found[3]) / 100) if found[4] else limit, bool(found[4]))
        gate.check()
        return gate

    def check(self) -> None:
        """Refuse a limit that the number cannot reach, which would pass whatever happens."""
        # ECE, ECE(...), ECE of a model; not of b - a, as differences may have either sign
        known = re.fullmatch(r"(\w+)(?:\(.*\))?(?: of (?!.* - ).*)?", self.name)
        low, top = _range_of(known[1] if known else self.name)
        reaches = COMPARISONS[self.comparison]
        if not reaches(top if self.comparison in (">", ">=") else low, self.limit):
            remedy = f"{self.name} {self.comparison} {self.limit:g}%"
            hint = f"; of percent write {remedy!r}" if top == 1 <= self.limit <= 100 else ""
            raise InputError(f"--fail-if '{self}' never holds: {self.name} lies between {low:g} and {top:g}{hint}")

    def __str__(self) -> str:
        return f"{self.name} {self.comparison} {self.shown(self.limit)}"

    def shown(self, value: float) -> str:
        """A value as the limit was written."""
        return f"{100 * value:.6g}%" if self.in_percent else f"{value:.6g}"

    def fails(self, numbers: Mapping[str, float]) -> bool:
        """Whether the condition holds; a number that is missing or not a number is an error, never a pass."""
        if self.name not in numbers:
            short = [known for known in numbers if len(known) <= MAX_OFFERED]
            raise InputError(f"--fail-if: there is no {self.name!r}{did_you_mean(self.name, short)}")
        value = numbers[self.name]
        if math.isnan(value):
            raise InputError(f"--fail-if: {self.name} is not a number, so it cannot be compared with {self.limit:g}")
        return bool(COMPARISONS[self.comparison](value, self.limit))


def _range_of(name: str) -> tuple[float, float]:
    """The smallest and the largest value of an estimator, or of a p-value; all numbers where it is none that is known."""
    if name == "pvalue":
        return 0.0, 1.0
    found = ESTIMATORS.get(name)
    return getattr(found, "least", -math.inf), getattr(found, "most", math.inf)


def judge(gates: Sequence[Gate], numbers: Mapping[str, float]) -> int:
    """1 if any gate fails, saying which; else 0."""
    failed = [gate for gate in gates if gate.fails(numbers)]
    for gate in failed:
        value = gate.shown(numbers[gate.name])
        complain(f"gate failed: {gate.name} = {value} {gate.comparison} {gate.shown(gate.limit)}")
    return 1 if failed else 0


def look_dependent(data: io.Dataset) -> bool:
    """Whether errors of rows are alike, where nobody said that rows belong together; what looks like it is told."""
    if data.clusters is not None:
        return False
    targets, predictions = as_problem(data.y_true, data.y_pred)
    found = suspicions(targets, predictions, dict(data.columns), dict(data.by))
    for suspicion in found:
        complain(f"Note: {suspicion.in_words()}")
    return any(suspicion.misleads for suspicion in found)


def certificates_of(
    estimates: Sequence[Estimate], margin: float | None, weights: Any, look_dependent: bool
) -> list[Certificate]:
    """Of those that can be certified, by the intervals that are shown; refused where there is none."""
    if margin is None:
        return []
    check_margin(margin, "--certify")
    known = [e for e in estimates if isinstance(e.estimator, Certifiable) and e.limits is not None]
    if not known:
        raise InputError(
            f"--certify {margin:g}: {brief(estimates[0].estimator)} has no upper limit to certify; "
            "ECE(EqualMass(15)), DebiasedECE(), estimators.MonotoneECE() and, without weights, PITError() have one"
        )
    found = [of_estimate(e, margin, weights=None if weights is None else np.asarray(weights)) for e in known]
    return [replace(certificate, look_dependent=look_dependent) for certificate in found]


def judge_certificates(certificates: Sequence[Certificate]) -> int:
    """1 if any is missing, saying which; else 0."""
    failed = [c for c in certificates if not c.certified]
    for c in failed:
        complain(f"gate failed: {brief(c.estimate.estimator)} is not certified to within {points(c.margin)}")
    return 1 if failed else 0


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
    from calibrant.reports.render.markdown import MARKS

    rejected = result.pvalue <= alpha
    words = "Not calibrated" if rejected else "No evidence against calibration"
    head = f"### {MARKS['bad' if rejected else 'good']} {words} at the level {alpha:g}"
    parts = [f"**by {escaped(name)}**\n\n{found.to_markdown()}" for name, found in slices.items()]
    return "\n\n".join([head, result.to_markdown(), *parts])


def estimate(
    file: File,
    /,
    *others: Shards,
    data: Data = Data(),  # noqa: B008  # frozen
    estimator: Annotated[Texts, Parameter(negative="", show_default=False)] = (),
    interval: Annotated[bool, Parameter(negative="")] = False,
    seed: Seed = 0,
    engine: Place = None,
    fail_if: Gates = (),
    certify: Certify = None,
    format: Comment = "table",
) -> int:
    """Estimate calibration errors and scores.

    Parameters
    ----------
    estimator
        such as "ECE(bins=EqualMass(15), lens=TopLabel())"; may be repeated; without any, ECE, Brier and log loss
    interval
        add bootstrap intervals to estimators that have none of their own, where resampling suits them
    """
    gates = [Gate.parse(text) for text in fail_if]
    read = data.read(data.together(file, others))
    alike = look_dependent(read)
    chosen = [parse_estimator(text) for text in estimator] or default_set(read.y_pred)
    with opened(engine) as place:
        measures = [_Seeded(WithInterval(e), seed, place) if interval else partial(e, engine=place) for e in chosen]
        results, slices = _measured(measures, [brief(e) for e in chosen], read)
    certificates = certificates_of(results, certify, read.sample_weight, alike)
    said = [c.sentence(brief(c.estimate.estimator)) for c in certificates]
    if format == "json":
        rows = [{"estimator": text, "by": name, **table.to_dict()} for text, name, table in slices]
        print_json({"estimates": results, "slices": rows, "certificates": certificates})
    elif format == "markdown":
        console.emit("\n\n".join([comment_of_estimates(results, slices), *said]))
    else:
        display.show_estimates(results)
        display.show_sentences(said)
        for text, name, table in slices:
            display.show_table(table, f"{text} by {name}")
    exact_names = {repr(e): float(r) for e, r in zip(chosen, results, strict=True)}
    numbers = {**{r.name: float(r) for r in reversed(results)}, **exact_names}
    return max(judge(gates, numbers), judge_certificates(certificates))


def exact_test(
    file: File,
    /,
    *others: Shards,
    data: Data = Data(),  # noqa: B008  # frozen
    test: str | None = None,
    n_resamples: int | None = None,
    alpha: float = 0.05,
    gate: Annotated[bool, Parameter(negative="")] = False,
    seed: Seed = 0,
    engine: Place = None,
    fail_if: Gates = (),
    certify: Certify = None,
    format: Comment = "table",
) -> int:
    """Test whether the predictions are calibrated; exact at every sample size, with no bandwidth to choose.

    Gates may name pvalue and statistic: --fail-if 'pvalue < 0.01'. That a test finds nothing may be due to too few rows;
    --certify asks the opposite question, of the calibration error that estimate and report show.

    Parameters
    ----------
    test
        such as "ExactTest(ECE(lens=ClassWise()))"; without it, AggregatedTest()
    n_resamples
        resamples, where --test does not say: 999, and of more than 40,000 rows fewer, at least 199
    alpha
        the level of the test
    gate
        leave with code 1 where the test rejects at this level
    """
    gates = [Gate.parse(text) for text in fail_if]
    check_fraction(alpha, "--alpha")
    read = data.read(data.together(file, others))
    alike = look_dependent(read)
    draws = affordable_resamples(USUAL_RESAMPLES, len(read.y_true)) if n_resamples is None else n_resamples
    chosen = AggregatedTest(n_resamples=draws) if test is None else parse_test(test)
    with opened(engine) as place:
        measure = _Seeded(chosen, seed, place)
        result: TestResult = _measure(measure, read)
        if test is None and n_resamples is None and draws < USUAL_RESAMPLES:
            fewer = f"{draws} resamples, as rows are many: --n-resamples {USUAL_RESAMPLES} asks for more"
            result = replace(result, notes=(*result.notes, fewer))
        slices = {name: _sliced(measure, read, name) for name in read.by}
    errors = [] if certify is None else [_measure(default_set(read.y_pred)[0], read)]
    certificates = certificates_of(errors, certify, read.sample_weight, alike)
    said = [c.sentence(brief(c.estimate.estimator)) for c in certificates]
    if format == "json":
        tables = {name: table.to_dict() for name, table in slices.items()}
        print_json({**result.to_dict(), "slices": tables, "certificates": certificates})
    elif format == "markdown":
        console.emit("\n\n".join([comment_of_test(result, alpha, slices), *said]))
    else:
        display.show_test(result, alpha)
        display.show_sentences(said)
        for name, table in slices.items():
            display.show_table(table, f"by {name}")
    gates += [Gate("pvalue", "<=", alpha)] if gate else []
    failed = judge(gates, {"pvalue": result.pvalue, "statistic": result.statistic})
    return max(failed, judge_certificates(certificates))


def _measured(
    measures: Sequence[Callable[..., Any]], names: Sequence[str], data: io.Dataset
) -> tuple[list[Estimate], list[tuple[str, str, Table]]]:
    """What each measure says of all rows, and of the slices of each column; with progress, a step per measure."""
    results: list[Estimate] = []
    slices: list[tuple[str, str, Table]] = []
    has_own = any(isinstance(measure, _Seeded) for measure in measures)
    with nullcontext() if has_own else display.steps() as progress:
        for i, (measure, text) in enumerate(zip(measures, names, strict=True)):
            if progress is not None:
                progress(text, i, len(measures))
            results.append(_measure(measure, data))
            slices += [(text, name, _sliced(measure, data, name)) for name in data.by]
    return results, slices


@dataclass(frozen=True)
class _Seeded:
    """A test or interval with its seed, showing progress unless it is done elsewhere."""

    measure: Callable[..., Any]
    seed: int
    engine: Engine | None = None

    def __call__(self, y_true: Any, y_pred: Any, **options: Any) -> Any:
        name = type(getattr(self.measure, "estimator", self.measure)).__name__
        engine = display.ProgressEngine(name=name) if self.engine is None else self.engine
        return self.measure(y_true, y_pred, rng=self.seed, engine=engine, **options)


def _measure(measure: Callable[..., Any], data: io.Dataset) -> Any:
    more = {} if data.clusters is None else {"clusters": data.clusters}
    return measure(data.y_true, data.y_pred, sample_weight=data.sample_weight, **more)


def _sliced(measure: Callable[..., Any], data: io.Dataset, name: str) -> Table:
    from calibrant.reports.core.problem import slices

    labels, names = slices(data.by[name], name)
    weights, clusters = data.sample_weight, data.clusters
    table = groups(measure, data.y_true, data.y_pred, by=labels, sample_weight=weights, clusters=clusters)
    return Table({**table, "group": [names[i] for i in table["group"]]})
