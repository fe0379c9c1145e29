import json
from dataclasses import replace

import pytest

from calibrant import ECE, KCE, Bootstrap, Brier
from calibrant.results import SCHEMA, Estimate, Interval


@pytest.fixture
def estimate():
    return Estimate("ECE", 0.25, 40, ECE(), lens="top-label", standard_error=0.01)


def test_an_estimate_is_a_number(estimate):
    assert float(estimate) == 0.25


def test_results_are_frozen(estimate):
    with pytest.raises(AttributeError):
        estimate.value = 1


def test_normal_interval_from_the_standard_error(estimate):
    low, high = estimate.confidence_interval(0.95)
    assert (low, high) == pytest.approx((0.25 - 1.959963984540054 * 0.01, 0.25 + 1.959963984540054 * 0.01), rel=1e-12)


def test_an_interval_that_cannot_be_had_says_how_to_get_it():
    with pytest.raises(ValueError, match=r"Bootstrap\(Brier.*confidence_level=0.9"):
        Estimate("Brier", 0.25, 40, Brier()).confidence_interval(0.9)
    with pytest.raises(
        ValueError,
        match="this KCE has no interval: none is known, and the bootstrap does not suit it: resampled rows repeat",
    ):
        Estimate("KCE", 0.25, 40, KCE()).confidence_interval()


def test_limits_give_the_interval_at_every_level(estimate):
    found = replace(estimate, limits=lambda level: Interval(0.25 - level / 10, 0.25 + level / 5, level, "by hand"))
    assert tuple(found.confidence_interval(0.5)) == pytest.approx((0.2, 0.35))
    assert found.to_dict()["interval"]["high"] == pytest.approx(0.44)
    assert found == estimate
    assert found.has_interval
    assert not replace(found, withheld="no").has_interval


def test_the_stored_interval_is_used_at_its_level():
    stored = Interval(0.1, 0.4, 0.9, "bootstrap")
    assert Estimate("ECE", 0.25, 40, ECE(), interval=stored).confidence_interval(0.9) is stored


def test_json_carries_the_schema_and_the_settings(estimate):
    data = json.loads(estimate.to_json())
    assert data["schema"] == SCHEMA
    assert data["value"] == 0.25
    assert data["estimator"] == repr(ECE())


def test_repr_shows_value_interval_and_settings(estimate):
    text = repr(Bootstrap(Brier(), n_resamples=20)([0, 1, 1, 0], [0.1, 0.8, 0.6, 0.3]))
    assert text.startswith("Brier = 0.075\n  0.95 interval")
    assert "n              4" in text
    assert "standard error  0.01" in repr(estimate)


def test_an_interval_that_is_withheld_says_why_everywhere():
    estimate = Estimate("KDE", 0.1, 40, ECE(), standard_error=0.01, withheld="the error is biased upwards")
    with pytest.raises(ValueError, match="this KDE has no interval: the error is biased upwards"):
        estimate.confidence_interval()
    assert "interval        none: the error is biased upwards" in repr(estimate)
    assert estimate.to_dict()["withheld"] == "the error is biased upwards"
