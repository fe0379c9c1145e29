import numpy as np
import pytest

from calibrant import ECE, Bernoulli, Brier, LogLoss
from calibrant._validate import InputError


def test_scores_are_those_of_the_single_labels(rng):
    p, y = rng.random((40, 3)), rng.integers(0, 2, (40, 3))
    singles = [Brier()(y[:, c], p[:, c]).value for c in range(3)]
    assert Brier()(y, Bernoulli(p)).value == pytest.approx(np.mean(singles), rel=1e-13)
    singles = [LogLoss()(y[:, c], p[:, c]).value for c in range(3)]
    assert LogLoss()(y, Bernoulli(p)).value == pytest.approx(np.sum(singles), rel=1e-13)


def test_one_column_is_the_binary_problem(rng):
    p, y = rng.random(40), rng.integers(0, 2, 40)
    assert ECE()(y, Bernoulli(p)).value == pytest.approx(ECE()(y, p).value, rel=1e-13)


def test_every_library(convert, rng):
    p, y = rng.random((40, 3)), rng.integers(0, 2, (40, 3))
    assert Brier()(convert(y), Bernoulli(convert(p))).value == pytest.approx(Brier()(y, Bernoulli(p)).value, rel=1e-6)


def test_booleans_are_labels():
    assert Bernoulli([[0.5, 0.5]]).as_targets(np.array([[True, False]])).tolist() == [[1, 0]]


def test_shapes_and_names_are_checked():
    with pytest.raises(InputError, match=r"y_pred must be \(n, k\); got shape \(1, 1, 1\)"):
        Bernoulli([[[0.5]]])
    with pytest.raises(InputError, match="labels must be 2 different names"):
        Bernoulli([[0.5, 0.5]], labels=["a"])


def test_moments_are_those_of_zeros_and_ones(rng):
    batch = Bernoulli(rng.random((5, 3)))
    assert batch.mean is batch.probs
    assert batch.std**2 == pytest.approx(batch.probs * (1 - batch.probs))
