import numpy as np

from calibrant import ECE, SKCE, state
from calibrant.engines.streaming import has_blocks, updated
from calibrant.io import Dataset
from calibrant.kernels import Exponential

BLOCKS = SKCE(Exponential(0.5), block=2)


def test_rows_are_numbered_where_that_matters():
    assert has_blocks(state(BLOCKS))
    assert has_blocks(state(ECE(), BLOCKS))
    assert not has_blocks(state(ECE()))


def test_parts_out_of_order_find_their_blocks(rng):
    y_pred = rng.random(6)
    y_true = (rng.random(6) < y_pred) * 1
    total = state(BLOCKS)
    for start in (3, 0):
        rows = slice(start, start + 3)
        total = updated(total, Dataset(y_true[rows], y_pred[rows], {}, None, ""), start)
    assert np.isclose(total.finalize().value, BLOCKS(y_true, y_pred).value, rtol=1e-12)
