from fractions import Fraction

import numpy as np
import pytest

from calibrant.estimators.exact_sums import BLOCK, UNIT, add_shares, joined, sum_any, to_float, wholes


def count_and_sum(shares, cell, size):
    totals = np.zeros((3, size), dtype=np.int64)
    add_shares(totals, shares, cell)
    return totals[0], joined(totals)


def fractions(values, cell, size):
    total = [Fraction(0)] * size
    for v, c in zip(values, cell, strict=True):
        total[c] += Fraction(float(v))
    return total


@pytest.mark.parametrize("shares", [np.ones(BLOCK), np.full(BLOCK, 1 - 2.0**-53), np.full(BLOCK, 0.1), np.zeros(BLOCK)])
def test_a_block_in_one_cell_is_exact(shares):
    counts, sums = count_and_sum(shares, np.zeros(BLOCK, dtype=int), 1)
    assert counts.tolist() == [BLOCK]
    kept = round(Fraction(float(shares[0])) * 2**56) * BLOCK
    assert sums[0] == kept << (UNIT - 56)


def test_shares_are_kept_to_56_bits(rng):
    shares, cell = rng.beta(0.1, 0.1, 5_000), rng.integers(0, 7, 5_000)
    counts, sums = count_and_sum(shares, cell, 7)
    assert counts.tolist() == np.bincount(cell).tolist()
    for found, exact, count in zip(sums, fractions(shares, cell, 7), counts, strict=True):
        assert abs(Fraction(found, 1 << UNIT) - exact) <= count * Fraction(1, 2**57)


@pytest.mark.parametrize("spread", [0, 3, 300])
def test_numbers_of_any_size_are_exact(spread, rng):
    values = rng.normal(size=400) * 10.0 ** rng.uniform(-spread, spread, 400)
    cell = rng.integers(0, 3, 400)
    assert [Fraction(x, 1 << UNIT) for x in sum_any(values, cell, 3)] == fractions(values, cell, 3)


def test_the_smallest_numbers_count(rng):
    values = np.full(10, 5e-324)
    assert to_float(sum_any(values, np.zeros(10, dtype=int), 2)).tolist() == [5e-323, 0.0]


def test_order_and_splits_change_nothing(rng):
    shares, cell = rng.random(3_000), rng.integers(0, 4, 3_000)
    order = rng.permutation(3_000)
    halves = [count_and_sum(shares[order][part], cell[order][part], 4) for part in np.array_split(np.arange(3_000), 7)]
    assert sum(sums for _, sums in halves).tolist() == count_and_sum(shares, cell, 4)[1].tolist()


def test_whole_numbers_are_sums():
    assert to_float(wholes(np.array([3, 0, 10**9]))).tolist() == [3.0, 0.0, 1e9]
