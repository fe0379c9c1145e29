import pytest

from calibrant._numerics.cell_sums import cell_sums


@pytest.mark.parametrize("size", [0, 4, 9])
def test_sums_are_those_of_the_rows_of_each_cell(size, rng):
    cell, columns = rng.integers(0, 4, 50), rng.normal(size=(50, 3))
    cell[0] = 3
    found = cell_sums(cell, columns, size)
    assert found.shape == (max(size, 4), 3)
    for which, sums in enumerate(found):
        assert sums == pytest.approx(columns[cell == which].sum(axis=0))
