import json

import numpy as np
import pytest

from calibrant import SKCE, Normal, state
from calibrant._validate import InputError
from calibrant.distributions import Distribution
from calibrant.estimators import RandomFeatureSKCE
from calibrant.kernels import Exponential, LabelMatrix
from calibrant.streams.block_state import RandomFeatureState, concatenated, families, from_plain, to_plain

FAMILIES = {
    name: kind
    for name, kind in families().items()
    if not getattr(kind, "__abstractmethods__", None) and kind.example.__qualname__ != Distribution.example.__qualname__
}


def batch(kind, rng, n):
    try:
        return kind.example(rng, n)
    except (NotImplementedError, TypeError):
        pytest.skip(f"{kind.__name__} has no example")


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_parts_put_together_are_the_whole(name, n, rng):
    whole = batch(FAMILIES[name], rng, n + 3)
    together = concatenated([whole[:n], whole[n:]])
    assert type(together) is type(whole)
    for one, other in zip(together.parameters, whole.parameters, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("name", sorted({*FAMILIES} - {"Foreign"}))
def test_plain_data_and_back(name, rng):
    whole = batch(FAMILIES[name], rng, 4)
    there = from_plain(json.loads(json.dumps(to_plain(whole))))
    assert type(there) is type(whole)
    for one, other in zip(there.parameters, whole.parameters, strict=True):
        assert np.array_equal(one, other)
        assert one.dtype == other.dtype


def test_rows_of_different_shapes():
    with pytest.raises(InputError, match="rows of different shapes cannot be put together"):
        concatenated([np.zeros((2, 3)), np.zeros((2, 4))])


def test_families_of_others_have_no_plain_form(rng):
    class Own(FAMILIES["Normal"]):
        pass

    with pytest.raises(InputError, match="Own predictions cannot be written as JSON"):
        to_plain(Own(np.zeros(2), np.ones(2)))
    with pytest.raises(InputError, match="cannot be written as JSON: give predictions of a family of calibrant's own"):
        to_plain(FAMILIES["Foreign"].example(rng, 2))


def test_many_features_approach_the_error_of_all_pairs(rng):
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


def test_what_has_no_features():
    with pytest.raises(InputError, match=r"takes class probabilities; got Normal predictions: use SKCE\(block=100\)"):
        RandomFeatureState(RandomFeatureSKCE(Exponential(0.5))).update([0.0], Normal([0.0], [1.0]))
    with pytest.raises(InputError, match=r"estimator must be a RandomFeatureSKCE; got SKCE"):
        RandomFeatureState(SKCE())
    with pytest.raises(InputError, match=r"takes its length scale from the data"):
        RandomFeatureState(RandomFeatureSKCE())
