import numpy as np
import pytest

from calibrant.inference.multiplicity import holm


def test_holm_by_hand():
    assert holm([0.01, 0.02, 0.03, 0.5]) == pytest.approx([0.04, 0.06, 0.06, 0.5])
    assert holm([0.6, 0.7]).tolist() == [1.0, 1.0]


def test_untested_hypotheses_count():
    assert holm([0.001, 0.002], hypotheses=10) == pytest.approx([0.01, 0.018])


def test_family_wise_error(rng):
    """At most 5 % of families of 20 true hypotheses see any rejection."""
    any_rejected = [holm(rng.random(20)).min() <= 0.05 for _ in range(2000)]
    assert np.mean(any_rejected) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 2000)
