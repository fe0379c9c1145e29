import numpy as np
import pytest

from calibrant.distributions.empirical.piecewise import Pieces, crps, density, inverse, level, parts_of

NODES = np.array([[0.0, 1.0, 1.0, 3.0], [-1.0, 0.0, 2.0, 2.5]])
LEVELS = np.array([[0.1, 0.3, 0.6, 0.9], [0.0, 0.25, 0.25, 0.4]])
SCALES = np.array([[0.5, 2.0], [0.0, 3.0]])
PIECES = Pieces(NODES, LEVELS, SCALES)
"""A value with a probability of its own in the first row; in the second an empty piece and most of all above."""


def by_hand(row, y):
    """``P(Y <= y)``, one piece after the other."""
    nodes, levels, scales = NODES[row], LEVELS[row], SCALES[row]
    if y < nodes[0]:
        return levels[0] * np.exp((y - nodes[0]) / scales[0]) if scales[0] > 0 else 0.0
    for j in range(3):
        if nodes[j] <= y < nodes[j + 1]:
            return levels[j] + (y - nodes[j]) / (nodes[j + 1] - nodes[j]) * (levels[j + 1] - levels[j])
    return 1 - (1 - levels[-1]) * np.exp(-(y - nodes[-1]) / scales[1])


@pytest.mark.parametrize("y", [-3.0, -0.2, 0.0, 0.5, 1.0, 1.7, 2.2, 2.5, 3.0, 4.0, 30.0])
def test_levels_by_hand(y):
    exact = [by_hand(row, y) for row in range(2)]
    assert level(PIECES, np.full(2, y), np.less_equal) == pytest.approx(exact, rel=1e-14)
    limits = [by_hand(row, y - 1e-9) for row in range(2)]
    assert level(PIECES, np.full(2, y), np.less) == pytest.approx(limits, abs=1e-8)
    if y not in NODES:
        slopes = [(by_hand(row, y + 1e-6) - by_hand(row, y - 1e-6)) / 2e-6 for row in range(2)]
        assert density(PIECES, np.full(2, y)) == pytest.approx(slopes, abs=1e-9)


def test_nothing_is_made_by_rounding():
    """At a node that is no repeated value, both limits are its level, also where most is above."""
    for low in np.linspace(0.01, 0.95, 300):
        pieces = Pieces(np.array([[0.0, 1.0]]), np.array([[low / 3, low]]), np.ones((1, 2)))
        for y in (0.0, 1.0):
            at, below = (level(pieces, np.array([y]), compare) for compare in (np.less_equal, np.less))
            assert at == below == pieces.levels[0, int(y)]


@pytest.mark.parametrize("u", [1e-12, 0.05, 0.1, 0.2, 0.25, 0.3, 0.45, 0.6, 0.7, 0.9, 0.99])
def test_values_are_the_least_that_reach_the_level(u):
    found = inverse(PIECES, np.full(2, u), LEVELS)
    assert np.all(level(PIECES, found, np.less_equal) >= u - 1e-15)
    assert np.all(level(PIECES, found - 1e-9 * (1 + np.abs(found)), np.less_equal) < u)


def test_parts_make_up_the_whole():
    mass, middle, spread = parts_of(*PIECES)
    assert mass == pytest.approx(np.array([[0.1, 0.2, 0.3, 0.3, 0.1], [0.0, 0.25, 0.0, 0.15, 0.6]]))
    assert middle[0] == pytest.approx([-0.5, 0.5, 1.0, 2.0, 5.0])
    assert spread[0] == pytest.approx([0.5, 1 / 12**0.5, 0.0, 2 / 12**0.5, 2.0])


def test_scores_are_integrals():
    grid = np.linspace(-30, 130, 3_200_001)
    for row in range(2):
        fine = level(Pieces(*(part[row : row + 1] for part in PIECES)), grid[:, None], np.less_equal)[:, 0]
        for y in (-2.0, 0.5, 1.0, 2.1, 6.0):
            exact = np.trapezoid((fine - (grid >= y)) ** 2, grid)
            assert crps(PIECES, np.full(2, y))[row] == pytest.approx(exact, abs=2e-4)
