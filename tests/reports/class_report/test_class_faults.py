import numpy as np
import pytest
from scipy.special import expit, logit

from calibrant import Categorical
from calibrant.reports.class_report.class_faults import fault_of_classes


def found(problem_of, rng, truth, n=4000):
    p = rng.uniform(0.02, 0.98, n)
    return fault_of_classes(problem_of((rng.random(n) < truth(p)) * 1, Categorical(p)))


@pytest.mark.parametrize(
    ("truth", "finding", "words"),
    [
        (lambda p: expit(0.4 * logit(p)), "over-confident", "the model is over-confident"),
        (lambda p: expit(3 * logit(p)), "under-confident", "the model is under-confident"),
        (lambda p: expit(logit(p) + 0.8), "too low", "they are too low"),
        (lambda p: expit(0.4 * logit(p) + 0.5), "over-confident", "the model is over-confident, and they are too low"),
        (lambda p: np.where(p > 0.85, p - 0.25, p), "local", "they are too high where the claim lies between"),
        (lambda p: p + 0.8 * p * (1 - p) * np.sin(6 * np.pi * p), "mixed", "they are too high in places (about"),
    ],
)
def test_two_classes(truth, finding, words, rng, problem_of):
    fault = found(problem_of, rng, truth)
    assert fault.finding == finding
    assert fault.words.startswith(words)


def test_a_second_fault_is_shown_by_its_means(rng, problem_of):
    fault = found(problem_of, rng, lambda p: expit(0.4 * logit(p) + 0.5))
    assert fault.means.startswith("The model claims ")
    assert fault.where[0].startswith("They average ")
    assert fault.where[1].startswith("The gap is widest where the claim is about ")


def test_one_class(rng, problem_of):
    q = rng.dirichlet([2, 2, 2, 2], 2000)
    p = q * [1, 2, 1, 1] / (q * [1, 2, 1, 1]).sum(axis=1, keepdims=True)
    y = Categorical(q).sample(rng, 1)[0]
    fault = fault_of_classes(problem_of(y, Categorical(p, labels=list("abcd"))))
    assert fault.words.startswith("class b is claimed too often")
    assert fault.means.startswith("Class b is claimed ")


def test_classes_that_err_in_turn(rng, problem_of):
    """b takes from c where it is likely and gives where it is not: no mean is off, but its claims are."""
    p = rng.dirichlet([6, 2, 2], 6000)
    move = 0.8 * np.minimum(p[:, 1], p[:, 2]) * np.where(p[:, 1] > np.median(p[:, 1]), 1, -1)
    q = p + np.stack([0 * move, move, -move], axis=1)
    fault = fault_of_classes(problem_of(Categorical(q).sample(rng, 1)[0], Categorical(p, labels=list("abc"))))
    assert fault.finding == "class"
