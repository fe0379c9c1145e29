import numpy as np
import pytest
from scipy.stats import binom

from studies.widmann.rejection_rates import (
    BOUND,
    LEVEL_BOUNDS,
    PUBLISHED,
    SIZES,
    deviation,
    figure,
    level_bounds,
    study,
    summary,
)


def rows_of(table, **wanted):
    return [row for row in table.rows() if all(row[key] == value for key, value in wanted.items())]


def check(table):
    """Published cells agree; tests that resample hold their level in every cell, and see what small data show."""
    published = [row for row in table.rows() if np.isfinite(row["published"])]
    assert max(row["z"] for row in published) < BOUND
    for test in ("exact", "aggregated"):
        for row in rows_of(table, model="calibrated", test=test):
            low, high = level_bounds(row["data_sets"])
            assert low <= row["rejected"] <= high, row
    assert rows_of(table, model="uncalibrated", test="exact", d=1, n=4)[0]["rejected"] >= 0.85
    assert rows_of(table, model="uncalibrated", test="exact", d=10, n=4)[0]["rejected"] >= 0.80


@pytest.mark.parametrize("n_sets", [25, pytest.param(100, marks=pytest.mark.study)])
def test_the_smallest_size(n_sets):
    table = study(n_sets, sizes=[4], seed=3)
    assert table.n_rows == 28
    check(table)


def test_a_wrong_level_would_be_noticed():
    assert deviation(0.05, 500, 0.142) > BOUND
    assert deviation(0.0, 500, 0.05) > BOUND
    assert deviation(0.05, 500, 0.054) < 1


def test_the_published_table_is_complete():
    assert len(PUBLISHED) == 12
    assert all(len(rates) == len(SIZES) for rates in PUBLISHED.values())


def test_the_summary_has_a_column_a_size_and_published_rates_in_parentheses():
    table = study(2, sizes=[4, 16])
    wide = summary(table)
    assert wide.n_rows == 28
    row = next(row for row in wide.rows() if (row["model"], row["d"], row["test"]) == ("calibrated", 1, "B=2"))
    assert row["n = 4"].endswith(" (0.128)")
    assert row["n = 16"].endswith(" (0.050)")
    assert len(figure(table).axes) == 4


def test_the_bounds_of_the_picture_are_binomial():
    low, high = binom.ppf([0.0005, 0.9995], 500, 0.05) / 500
    assert (low, 0.05, high) == LEVEL_BOUNDS


def test_the_bounds_of_levels_allow_for_the_number_of_cells():
    """The rejections of seed 0 that were once taken for a fault, and those of a test that is twice as eager."""
    low, high = level_bounds(500)
    assert low <= 10 / 500 < LEVEL_BOUNDS[0]
    assert binom.sf(500 * high, 500, 0.1) > 0.5
    inside = 1 - binom.cdf(500 * low - 1, 500, 0.05) - binom.sf(500 * high, 500, 0.05)
    assert inside**20 >= 0.999


@pytest.mark.study
@pytest.mark.parametrize("seed", [0, 1])
def test_levels_of_both_seeds_of_the_page(seed):
    for row in study(500, sizes=[4], seed=seed).rows():
        if row["test"] in ("exact", "aggregated") and row["model"] == "calibrated":
            low, high = level_bounds(row["data_sets"])
            assert low <= row["rejected"] <= high


@pytest.mark.study
def test_all_sizes():
    check(study())
