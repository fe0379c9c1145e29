"""Each class or label by itself: where the error sits, with the p-values that many looks call for."""

from dataclasses import fields, replace

import numpy as np

from calibrant.distributions.bernoulli import Bernoulli
from calibrant.distributions.categorical import Categorical
from calibrant.estimators.binned import ECE
from calibrant.estimators.binning import EqualMass
from calibrant.estimators.tail_scan import TailScan
from calibrant.inference.aggregated import AggregatedTest
from calibrant.inference.multiplicity import holm
from calibrant.inference.pool import Pool
from calibrant.lenses import ClassWise, Event, Lens, MultiLabel
from calibrant.planning.work import TEST_WORK, affordable
from calibrant.reports.class_problem import ClassProblem, means_of
from calibrant.reports.evidence import EACH, EACH_MEAN, EACH_TAIL, Evidence, LabelEvidence
from calibrant.reports.model import Section
from calibrant.reports.slices import MOST_ROWS, ranked
from calibrant.results import Table

ENOUGH = 160
"""Redraws a label that let the smallest p-value of all labels together reach 0.0125."""


def by_class(problem: ClassProblem, evidence: Evidence) -> Section:
    """Each class, or each label, against the rest; the clearest evidence first, and only that where there are many."""
    events = events_of(problem)
    noun = "label" if isinstance(evidence, LabelEvidence) else "class"
    if isinstance(evidence, LabelEvidence):
        pvalues, how = holm(evidence.labels), "Holm"
    else:
        pvalues, how = evidence.pool.adjusted([EACH]), "Westfall and Young"
    happened = [event.happened(problem.targets) for event in events]
    means = [means_of(e.probability, h, problem.weights) for e, h in zip(events, happened, strict=True)]
    table = ranked(evidence.pool, EACH, [e.name for e in events], [int(h.sum()) for h in happened], means, pvalues)
    more = f" The {MOST_ROWS} with the clearest evidence, of {len(events)}." if len(events) > MOST_ROWS else ""
    remark = f"Every {noun} against the rest; p-values allow for their number ({how}).{more}"
    return Section(f"Each {noun}", noun, remark, Table({name: column[:MOST_ROWS] for name, column in table.items()}))


def label_evidence(problem: ClassProblem, evidence: Evidence) -> LabelEvidence:
    """The exact p-value of every label by itself, redrawn more often where it is the smallest that there can be.

    A p-value may be replaced by that of a second test whenever it is as small as it can be: below that least value the
    second test alone decides, and above it nothing is gained. So the level holds.
    """
    pool, events = evidence.pool, events_of(problem)
    pvalues = [_together(pool, i) for i in range(len(events))]
    least = 1 / (pool.n_resamples + 1)
    draws = affordable(ENOUGH * len(events) - 1, len(problem), TEST_WORK // 4, least=1)
    if draws > pool.n_resamples:
        again = [i for i, p in enumerate(pvalues) if p <= least * 1.5][:MOST_ROWS]
        for i in again:
            pvalues[i] = _alone(problem, events[i], draws)
    values = {field.name: getattr(evidence, field.name) for field in fields(evidence)}
    return LabelEvidence(**values, labels=tuple(pvalues))


def _alone(problem: ClassProblem, event: Event, draws: int) -> float:
    targets, predictions = event.happened(problem.targets).view(np.uint8), Categorical(event.probability)
    single = replace(problem, targets=targets, predictions=predictions)
    return single.run(AggregatedTest((ECE(EqualMass(15)), ECE(EqualMass(1)), TailScan()), draws)).pvalue


def _together(pool: Pool, i: int) -> float:
    """One label: its error in groups, its mean and its tails, aggregated."""
    columns = {name: pool.values[name][:, i : i + 1] for name in (EACH, EACH_MEAN, EACH_TAIL)}
    return Pool(columns).together(list(columns))


def events_of(problem: ClassProblem) -> tuple[Event, ...]:
    """Each class or label in turn."""
    lens: Lens = MultiLabel() if isinstance(problem.predictions, Bernoulli) else ClassWise()
    return lens.events(problem.predictions)
