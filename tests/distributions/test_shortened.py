import numpy as np
import pytest

from calibrant.distributions.characteristic_functions import ShortenedLine


@pytest.mark.parametrize("reach", [0.5, 3.0, np.inf])
def test_near_points_keep_their_distance_and_far_ones_stay_far(reach, rng):
    points = np.concatenate([rng.normal(size=50), 1e3 * rng.standard_cauchy(200), [7e5, 7e5 + 0.25, -3e9]])
    line = ShortenedLine.of(-2.0, 2.0, points, reach)
    moved = line(points)
    before, after = (np.abs(x[:, None] - x) for x in (points, moved))
    near = before <= reach
    assert after[near] == pytest.approx(before[near], abs=1e-6)  # 3e9 has no more digits
    assert np.all(after[~near] >= reach - 1e-6)
    assert np.all(np.diff(moved[np.argsort(points)]) >= 0)
    inside = np.abs(points) <= 2
    assert np.array_equal(moved[inside], points[inside])


def test_the_span_is_that_of_what_is_left(rng):
    points = np.array([-1e9, 0.5, 4.0, 1e6])
    assert ShortenedLine.of(0.0, 1.0, points, 2.0).span == 2 + 1 + 2 + 2
    assert ShortenedLine.of(0.0, 1.0, points[1:3], 9.0).span == 4.0
    assert ShortenedLine.of(0.0, 1.0, np.empty(0), 9.0).span == 1.0


def test_nothing_outside_leaves_all_as_it_is(xp):
    y = xp.asarray([0.1, 0.9])
    assert ShortenedLine.of(0.0, 1.0, np.array([0.1, 0.9]), 5.0)(y) is y
    far = xp.asarray([0.1, 100.0])
    moved = ShortenedLine.of(0.0, 1.0, np.array([0.1, 100.0]), 5.0)(far)
    assert isinstance(moved, type(far))
    assert np.asarray(moved) == pytest.approx([0.1, 6.0])
