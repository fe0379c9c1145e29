import numpy as np

from calibrant import ECE, Categorical, ExactTest
from calibrant.reports.class_report.class_problem import ClassProblem


def test_every_number_repeats_by_a_plain_call(rng):
    p = rng.random(80)
    y = (rng.random(80) < p).astype(int)
    made = ClassProblem(y, Categorical(p), None, 99, np.random.SeedSequence(0), None)
    first, second = made.test(ECE()), made.test(ECE())
    assert np.array_equal(first.null_distribution, second.null_distribution)
    assert np.array_equal(first.null_distribution, ExactTest(ECE(), 99)(y, p, rng=0).null_distribution)


def test_rows_keep_their_weights():
    made = ClassProblem(
        np.array([0, 1, 1]), Categorical([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0]), 9, np.random.SeedSequence(0), None
    )
    part = made.rows(np.array([2, 0]))
    assert part.weights.tolist() == [3.0, 1.0]
    assert part.targets.tolist() == [1, 0]
