from fractions import Fraction

import numpy as np
import pytest

from calibrant._numerics.sums import (
    BLOCK,
    UNIT,
    add_shares,
    cell_sums,
    dot,
    from_text,
    joined,
    sum_any,
    to_float,
    to_text,
    total,
    wholes,
)


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


@pytest.mark.parametrize("spread", [0, 3, 300])
def test_totals_are_exact(spread, rng):
    values = rng.normal(size=2 * BLOCK + 3) * 10.0 ** rng.uniform(-spread, spread, 2 * BLOCK + 3)
    assert Fraction(total(values), 1 << UNIT) == sum(map(Fraction, values.tolist()))
    assert total(np.zeros(0)) == 0
    assert Fraction(total(np.full(BLOCK, 1.7976931348623157e308)), 1 << UNIT) == BLOCK * Fraction(
        1.7976931348623157e308
    )
    assert total(np.full(3, 5e-324)) == 3


@pytest.mark.parametrize("spread", [0, 3, 100, 150])
def test_products_are_exact(spread, rng):
    a, b = rng.normal(size=(2, 1000)) * 10.0 ** rng.uniform(-spread, spread, (2, 1000))
    exact = sum(Fraction(x) * Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True))
    assert abs(Fraction(dot(a, b), 1 << UNIT) - exact) <= 3000 * Fraction(1, 2**1074)


def test_products_of_huge_numbers():
    a, b = np.array([1e300, -1e300, 1e-300]), np.array([1e300, 1e300, 1e300])
    assert Fraction(dot(a, b), 1 << UNIT) == pytest.approx(1.0, rel=1e-15)


def test_text_and_back(rng):
    sums = [0, 1, -5, total(rng.normal(size=9)), total(np.array([-1e300]))]
    assert from_text(to_text(sums)).tolist() == sums
    assert to_text([total(np.array([-0.75]))]) == ["-3p-2"]


@pytest.mark.parametrize("size", [0, 4, 9])
def test_sums_are_those_of_the_rows_of_each_cell(size, rng):
    cell, columns = rng.integers(0, 4, 50), rng.normal(size=(50, 3))
    cell[0] = 3
    found = cell_sums(cell, columns, size)
    assert found.shape == (max(size, 4), 3)
    for which, sums in enumerate(found):
        assert sums == pytest.approx(columns[cell == which].sum(axis=0))
