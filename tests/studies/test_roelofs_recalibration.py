import numpy as np
import pytest

from calibrant import Normal
from studies.roelofs.recalibration import ESTIMATORS, preferred_recalibration


def votes(table, estimator):
    return {r["recalibration"]: r["preferred"] for r in table.rows() if r["estimator"] == estimator}


def test_temperature_wins_where_it_is_the_truth(rng):
    p = rng.dirichlet(np.full(4, 0.5), 4_000)
    truth = p**0.4 / (p**0.4).sum(axis=1, keepdims=True)
    y = (rng.random((4_000, 1)) > np.cumsum(truth, axis=1)).sum(axis=1).clip(0, 3)
    table = preferred_recalibration(y, p, n_splits=8)
    errors = {(r["estimator"], r["recalibration"]): r["error"] for r in table.rows()}
    for name in ESTIMATORS:
        assert sum(votes(table, name).values()) == 8
        assert votes(table, name)["none"] == 0
        assert errors[name, "none"] > 0.15
        assert errors[name, "temperature"] < 0.04


def test_the_same_seed_gives_the_same_table(rng):
    p = rng.dirichlet(np.ones(3), 200)
    y = rng.integers(0, 3, 200)
    first, second = (preferred_recalibration(y, p, n_splits=2, seed=1) for _ in range(2))
    assert first["error"].tolist() == second["error"].tolist()


def test_on_real_networks_every_estimator_prefers_some_recalibration(network):
    _, y, p = network
    table = preferred_recalibration(y, p.astype(np.float64), n_splits=4)
    for name in ESTIMATORS:
        assert votes(table, name)["none"] == 0


def test_other_predictions_are_refused():
    with pytest.raises(TypeError, match="y_pred must hold class probabilities; got Normal"):
        preferred_recalibration([0.1], Normal([0.0], [1.0]))
