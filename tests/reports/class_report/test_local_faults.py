import numpy as np

from calibrant import Bernoulli, Categorical
from calibrant.lab import RareTop
from calibrant.reports.class_report.class_faults import ClaimGroups, local_faults


def found(problem, part=None):
    return local_faults(problem, ClaimGroups.of(problem), part)


def test_some_claims(rng, problem_of):
    p = rng.random(3000)
    (fault,) = found(problem_of((rng.random(3000) < np.where(p > 0.8, 0.6, p)) * 1, Categorical(p)))
    assert fault.words.startswith("they are too high where the claim lies between 8")
    assert fault.words.endswith("and right elsewhere")
    assert found(problem_of((rng.random(3000) < p) * 1, Categorical(p))) == []


def test_one_tail(problem_of):
    """The highest claims of a rare event, fewer than make a group."""
    problem = problem_of(*RareTop(1.0).draw(10_000, np.random.default_rng(0)))
    (fault,) = found(problem)
    assert fault.words.startswith("they are too high where the claim is at least ")
    assert fault.words.endswith("and right elsewhere")
    assert fault.finding == "local"
    low, y = 1 - problem.predictions.probability(1), 1 - problem.targets
    (fault,) = found(problem_of(y, Categorical(low)))
    assert fault.words.startswith("they are too low where the claim is at most ")
    assert found(problem_of(*RareTop(0.0).draw(10_000, np.random.default_rng(0)))) == []


def test_one_label(rng, problem_of):
    p = rng.random((1500, 5))
    q = p.copy()
    q[:, 2] *= 0.6
    y = (rng.random((1500, 5)) < q) * 1
    words = [fault.words for fault in found(problem_of(y, Bernoulli(p, labels=list("abcde"))))]
    assert "label c is too high" in words


def test_one_favourite(rng, problem_of):
    p = rng.dirichlet([0.7, 0.7, 0.7], 2000)
    soft = p**0.35 / (p**0.35).sum(axis=1, keepdims=True)
    q = np.where(p.argmax(axis=1)[:, None] == 1, soft, p)
    words = [fault.words for fault in found(problem_of(Categorical(q).sample(rng, 1)[0], Categorical(p)))]
    assert "the model is over-confident where it favours class 1" in words


def test_one_slice(rng, problem_of):
    p = rng.uniform(0.2, 0.8, 2000)
    rows = np.arange(200)
    y = (rng.random(2000) < np.where(np.arange(2000) < 200, p - 0.2, p)) * 1
    words = [fault.words for fault in found(problem_of(y, Categorical(p)), ("site = west", rows))]
    assert "they are too high where site = west, and right elsewhere" in words
    assert found(problem_of((rng.random(2000) < p) * 1, Categorical(p)), ("site = west", rows)) == []
