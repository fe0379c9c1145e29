import numpy as np
import pytest

from calibrant import ECE, Brier, Categorical, ClassWise, EqualMass
from calibrant.inference.exact_tests.aggregated import Pool
from calibrant.reports.core.evidence import EACH, Evidence, LabelEvidence, gather
from calibrant.reports.core.problem import slicings_of


def test_errors_of_single_classes_come_with_their_mean(rng, problem_of):
    p = rng.dirichlet([1, 1, 1], 200)
    y = Categorical(p).sample(rng, 1)[0]
    each = ECE(EqualMass(15), lens=ClassWise())
    evidence = gather(problem_of(y, Categorical(p)), {"class-wise": each, "score": Brier()}, (), {"class-wise": EACH})
    pool = evidence.pool
    assert pool.values[EACH].mean(axis=1) == pytest.approx(pool.values["class-wise"][:, 0])
    assert pool.observed("class-wise") == pytest.approx(float(each(y, p)))
    assert evidence.classes == (EACH,)
    assert pool.two_sided == {"score"}
    assert evidence.n_statistics == len(evidence.single) + 1
    assert "aggregated exact test of" in evidence.in_words(200)


def test_slices_are_a_family(rng, problem_of):
    p = rng.random(200)
    problem = problem_of((rng.random(200) < p) * 1, Categorical(p))
    evidence = gather(problem, {"error": problem.error}, slicings_of(problem, {"half": ["a", "b"] * 100}))
    assert evidence.pool.values["slices 0"].shape == (100, 2)
    names = list(evidence.single)
    assert evidence.pvalue == evidence.pool.together(names, [["slices 0"]])
    assert evidence.pvalue_of_all_rows == evidence.pool.together(names)


def test_labels_are_put_together_whatever_their_dependence(rng):
    """Labels that are copies of one another, or independent: at most 5 % of p-values are at most 5 %."""
    pool = Pool({"x": np.zeros((100, 1))})

    def pvalue(labels):
        return LabelEvidence(pool, (), labels=tuple(labels)).pvalue

    assert pvalue([0.001, 0.5, 0.6, 0.9]) == pytest.approx(0.008)
    assert pvalue([0.01] * 4) == pytest.approx(0.04)
    copies = [pvalue([u] * 5) <= 0.05 for u in rng.random(2000)]
    single = [pvalue(rng.random(5)) <= 0.05 for _ in range(2000)]
    assert max(np.mean(copies), np.mean(single)) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)


def test_evidence_without_families():
    pool = Pool({"x": np.array([[0.0], [1.0], [2.0], [3.0]])})
    assert Evidence(pool, ("x",)).pvalue == 0.25
