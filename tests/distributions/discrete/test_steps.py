"""How many steps of a row lie below a number."""

import numpy as np
import pytest

from calibrant.distributions.discrete.categorical import CACHED, MAX_STEPS, bisected, steps_below


@pytest.mark.parametrize("count", [1, 2, 9, MAX_STEPS, MAX_STEPS + 1, 300])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (7, 40), (3, CACHED // 3 + 2), (CACHED + 1, 2)])
def test_every_number_finds_as_many_steps_as_by_looking_at_all(count, m, n):
    rng = np.random.default_rng(0)
    m = m if count < 100 else min(m, 500)
    steps = np.full((n, 1 << count.bit_length()), np.inf)
    steps[:, :count] = np.sort(rng.integers(0, 50, (n, count)), axis=1)  # with ties
    u = rng.integers(-1, 52, (m, n)).astype(float)
    found, rows = steps_below(steps, u, count), slice(max(0, n - 50), None)
    assert found.dtype == np.min_scalar_type(count)
    np.testing.assert_array_equal(found[:50, rows], (steps[rows] <= u[:50, rows, None]).sum(axis=2))
    np.testing.assert_array_equal(found, bisected(steps, u))
