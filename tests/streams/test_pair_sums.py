from fractions import Fraction

import numpy as np
import pytest

from calibrant.streams.base import PairSums


def by_fractions(a, b):
    a, b = [Fraction(float(x)) for x in a], [Fraction(float(x)) for x in b]
    ratio = sum(a) / sum(b)
    return ratio, sum((x - ratio * y) ** 2 for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("scale", [1e-120, 1.0, 1e140])
@pytest.mark.parametrize("shift", [0.0, 1e9])
def test_ratio_and_squares_against_fractions(scale, shift, rng):
    a, b = (rng.normal(size=300) + shift) * scale, rng.lognormal(0, 4, 300)
    pairs = PairSums.of(a, b)
    ratio, squares = by_fractions(a, b)
    assert (pairs.ratio, pairs.squares) == (float(ratio), float(squares))


def test_squares_beyond_all_doubles(rng):
    a = rng.normal(size=300) * 1e160
    pairs, (ratio, squares) = PairSums.of(a), by_fractions(a, np.ones(300))
    assert (pairs.ratio, pairs.squares) == (float(ratio), np.inf)
    assert squares > Fraction(1e308)
    assert PairSums.of(np.full(3, -1.5e308)).first == -np.inf


def test_without_a_second_number_it_is_one(rng):
    a = rng.normal(size=100)
    alone, ones = PairSums.of(a), PairSums.of(a, np.ones(100))
    assert alone == ones
    assert alone.squares == pytest.approx(((a - a.mean()) ** 2).sum(), rel=1e-13)


def test_more_rows_than_a_block(rng):
    a = rng.random(200_000)
    parts = [PairSums.of(part) for part in np.array_split(a, 7)]
    total = parts[3]
    for i in (6, 0, 5, 1, 2, 4):
        total = total + parts[i]
    assert total == PairSums.of(a)
    assert total.first == pytest.approx(a.sum(), rel=1e-13)


@pytest.mark.parametrize(
    ("values", "mean"), [([np.inf, 1.0], np.inf), ([-np.inf, 1.0], -np.inf), ([np.inf, -np.inf], np.nan)]
)
def test_infinite_values(values, mean):
    pairs = PairSums.of(np.array(values)) + PairSums.of(np.array([2.0]))
    assert pairs.ratio == pytest.approx(mean, nan_ok=True)
    assert np.isnan(pairs.squares)
    other_way = PairSums.of(np.array([2.0])) + PairSums.of(np.array(values))
    assert other_way.ratio == pytest.approx(mean, nan_ok=True)
    assert PairSums.from_list(pairs.to_list()).ratio == pytest.approx(mean, nan_ok=True)


def test_text_loses_nothing(rng):
    pairs = PairSums.of(rng.normal(size=50) * 10.0 ** rng.uniform(-200, 200, 50), rng.random(50))
    assert PairSums.from_list(pairs.to_list()) == pairs
