import numpy as np
import pytest

from calibrant import ECE, Bernoulli, Categorical, EqualMass
from calibrant.estimators import TailScan
from calibrant.inference import holm
from calibrant.reports.class_report.class_outline import by_class, events_of, label_evidence
from calibrant.reports.core.evidence import EACH, EACH_MEAN, EACH_TAIL, gather


def gathered(problem):
    measures = {"error": problem.error, "rate": ECE(EqualMass(1), lens=problem.lens), "tails": TailScan(problem.lens)}
    each = {"error": EACH, "rate": EACH_MEAN, "tails": EACH_TAIL}
    return label_evidence(problem, gather(problem, measures, (), each))


def test_labels_are_tested_one_by_one(rng, problem_of):
    p = rng.random((300, 3))
    q = p * [1, 1, 0.6]
    problem = problem_of((rng.random((300, 3)) < q) * 1, Bernoulli(p, labels=["a", "b", "c"]))
    evidence = gathered(problem)
    section = by_class(problem, evidence)
    assert section.noun == "label"
    assert section.table["group"][0] == "c"
    assert sorted(section.table["pvalue"]) == pytest.approx(sorted(holm(evidence.labels)))
    assert "3 labels, each by itself" in evidence.in_words(300)


def test_the_smallest_pvalue_is_resampled_more_often(rng, problem_of):
    p = rng.random((200, 8))
    y = (rng.random((200, 8)) < np.where(np.arange(8) == 5, p**4, p)) * 1
    evidence = gathered(problem_of(y, Bernoulli(p)))
    assert evidence.labels[5] == pytest.approx(1 / (160 * 8))
    assert evidence.pvalue == pytest.approx(2 * 8 / (160 * 8))


def test_events(rng, problem_of):
    assert len(events_of(problem_of([0, 1], Categorical(rng.dirichlet([1, 1, 1], 2))))) == 3
    assert len(events_of(problem_of([[0, 1]], Bernoulli([[0.5, 0.5]])))) == 2
