import numpy as np
import pytest

from calibrant import SKCE, Normal, state
from calibrant._validate import InputError
from calibrant.estimators import RandomFeatureSKCE
from calibrant.kernels import Exponential, LabelMatrix
from calibrant.streams.feature_states import RandomFeatureState


def test_many_waves_approach_the_error_of_all_pairs(rng):
    p = rng.dirichlet(np.ones(3), 150)
    y = rng.integers(0, 3, 150)
    total = state(RandomFeatureSKCE(Exponential(0.5), n_features=20_000))
    for rows in np.array_split(np.arange(150), 4):
        total = total.update(y[rows], p[rows])
    exact = SKCE(Exponential(0.5))(y, p)
    assert total.finalize().value == pytest.approx(exact.value, abs=0.2 * exact.standard_error)


def test_label_matrices(rng):
    estimator = RandomFeatureSKCE(Exponential(0.5), LabelMatrix(((2, 1, 0), (1, 2, 1), (0, 1, 2))), n_features=30)
    p, y = rng.dirichlet(np.ones(3), 60), rng.integers(0, 3, 60)
    parts = (
        RandomFeatureState(estimator).update(y[:25], p[:25]).merge(RandomFeatureState(estimator).update(y[25:], p[25:]))
    )
    assert parts.finalize().value == pytest.approx(estimator(y, p).value, rel=1e-12)


def test_what_has_no_waves():
    with pytest.raises(InputError, match=r"takes class probabilities; got Normal predictions: use SKCE\(block=100\)"):
        RandomFeatureState(RandomFeatureSKCE(Exponential(0.5))).update([0.0], Normal([0.0], [1.0]))
    with pytest.raises(InputError, match=r"estimator must be a RandomFeatureSKCE; got SKCE"):
        RandomFeatureState(SKCE())
    with pytest.raises(InputError, match=r"takes its length scale from the data"):
        RandomFeatureState(RandomFeatureSKCE())
