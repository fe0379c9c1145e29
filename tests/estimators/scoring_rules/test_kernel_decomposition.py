from itertools import permutations

import numpy as np
import pytest

from calibrant import Brier, ClassWise, TopLabel
from calibrant._validate import InputError
from calibrant.estimators import TangentKDE, decompose_by_kernel
from calibrant.lab import Sigmoid, Tempered


@pytest.mark.parametrize("lens", [None, TopLabel()], ids=repr)
def test_the_parts_are_those_of_the_estimators(lens, rng):
    y, p = Tempered(3, 2.0).draw(150, rng)
    w = rng.random(150)
    found = decompose_by_kernel(y, p, bandwidth=0.1, lens=lens, sample_weight=w)
    error = TangentKDE(2, 0.1, lens=lens, root=False)(y, p, sample_weight=w).value
    assert found.miscalibration == pytest.approx(error, rel=1e-12)
    seen, predicted = (y, p) if lens is None else lens(y, p)
    observed = np.eye(3)[seen] if lens is None else seen[:, None] * 1.0
    rates = np.average(observed, weights=w, axis=0)
    assert found.uncertainty == pytest.approx((rates * (1 - rates)).sum(), rel=1e-12)
    assert found.score == pytest.approx(Brier()(seen, predicted, sample_weight=w).value, rel=1e-12)


def test_they_add_up_to_the_score_up_to_noise(rng):
    y, p = Sigmoid(0.4).draw(1500, rng)
    found = decompose_by_kernel(y, p)
    together = found.miscalibration - found.discrimination + found.uncertainty
    assert together == pytest.approx(found.score, abs=0.01)


def test_the_truth(rng):
    """Means of 60 data sets of 400 rows: ``E (q - p)^2`` and ``var q`` where q is true and p is predicted."""
    world = Sigmoid(0.4)
    found = [decompose_by_kernel(*world.draw(400, rng), bandwidth=0.05) for _ in range(60)]
    u = (np.arange(100_000) + 0.5) / 100_000
    q = world.observed(u)
    for name, truth in (("miscalibration", np.mean((q - u) ** 2)), ("discrimination", q.var())):
        values = np.array([getattr(part, name) for part in found])
        assert values.mean() == pytest.approx(truth, abs=3.5 * values.std() / np.sqrt(60)), name


def test_useless_predictions_discriminate_nothing(rng):
    """Over all orders of the labels the mean is zero; without care, or with too little of it, it is not."""
    p = rng.dirichlet(np.ones(3), 7)
    orders = sorted(set(permutations([0, 0, 1, 1, 1, 2, 2])))
    found = [decompose_by_kernel(y, p, bandwidth=0.3).discrimination for y in orders]
    assert np.mean(found) == pytest.approx(0, abs=1e-13)
    assert min(found) < 0


def test_several_events_are_averaged(rng):
    y, p = Tempered(3).draw(100, rng)
    found = decompose_by_kernel(y, p, bandwidth=0.1, lens=ClassWise())
    each = [decompose_by_kernel((y == c) * 1, p.matrix[:, c], bandwidth=0.1) for c in range(3)]
    for name in ("score", "miscalibration", "discrimination", "uncertainty"):
        assert getattr(found, name) == pytest.approx(np.mean([getattr(e, name) for e in each]), rel=1e-11)
        assert found.table[name] == pytest.approx([getattr(e, name) for e in each], rel=1e-11)
    assert found.lens == "class-wise"


def test_bad_settings():
    with pytest.raises(InputError, match="bandwidth must be a positive number, or 'cv'"):
        decompose_by_kernel([0, 1], [0.2, 0.7], bandwidth=0)
