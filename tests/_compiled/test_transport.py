import numpy as np
import pytest

from calibrant._compiled.transport import transports


def test_plans_are_optimal_by_their_prices(rng):
    """No reduced cost is negative, and what the prices add up to is the cost: to rounding, which linear programming is not."""
    cost, supply, demand = rng.random((3, 4, 7, 5)), rng.dirichlet(np.ones(7) / 3, 3), rng.dirichlet(np.ones(5) / 3, 4)
    cost[0] = cost[0].round(1)
    plan, of_rows, of_columns = transports(cost, supply, demand)
    assert plan.min() >= 0
    assert plan.sum(axis=3) == pytest.approx(np.repeat(supply[:, None], 4, axis=1), abs=1e-13)
    assert plan.sum(axis=2) == pytest.approx(np.repeat(demand[None], 3, axis=0), abs=1e-13)
    assert (cost - of_rows[..., None] - of_columns[:, :, None, :]).min() > -1e-13
    dual = (of_rows * supply[:, None]).sum(axis=2) + (of_columns * demand[None]).sum(axis=2)
    assert (plan * cost).sum(axis=(2, 3)) == pytest.approx(dual, abs=1e-14)


def test_what_is_wanted_by_nobody_stays():
    """As where weights sum to one but for rounding, or where a cost is beyond all numbers."""
    cost, one = np.array([[[[1.0, 2.0]]]]), np.ones((1, 1))
    plan, _, _ = transports(cost, one, np.array([[0.5, 0.5 - 1e-12]]))
    assert plan.ravel().tolist() == [0.5, 0.5 - 1e-12]
    plan, _, _ = transports(np.full((1, 1, 1, 1), np.inf), one, one)
    assert plan.ravel().tolist() == [0.0]
