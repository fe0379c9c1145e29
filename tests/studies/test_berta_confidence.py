import numpy as np
import pytest

from studies.berta.confidence import KINDS, OVER, PUBLISHED, TRUTHS, UNDER, WORLDS, compared, confidences


@pytest.mark.parametrize("world", WORLDS)
def test_table_2_within_its_standard_errors(world):
    values = np.array([confidences(world, seed) for seed in range(10)])
    rows = compared(world, values)
    assert [row["method"] for row in rows] == list(KINDS)
    assert max(row["z"] for row in rows) < 3
    assert values[:, 0] == pytest.approx(values[:, 1] + values[:, 2])
    assert abs(values[:, 0].mean() - TRUTHS[world]) < 4 * rows[0]["error"]


@pytest.mark.parametrize("world", WORLDS)
def test_the_published_truths(world, rng):
    """Theirs come from draws as well."""
    p = WORLDS[world].predictions(1_000_000, rng)
    assert WORLDS[world].error(p) == pytest.approx(TRUTHS[world], abs=5e-4)


def test_both_is_over_confident_below_and_under_confident_above():
    p = np.array([0.1, 0.5, 0.7])
    assert WORLDS["both"].true(p) == pytest.approx([OVER(p)[0], 0.5, UNDER(p)[2]])


def test_differences_by_hand():
    values = np.array([[0.1, 0.0, 0.1], [0.2, 0.1, 0.1]])
    total, over, _ = compared("over-confident", values)
    published, error = PUBLISHED["over-confident"][0]
    assert total["error"] == pytest.approx(0.05)
    assert total["z"] == pytest.approx((0.15 - published) / np.hypot(0.05, error))
    assert over["mean"] == pytest.approx(0.05)
