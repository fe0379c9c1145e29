import json
from dataclasses import replace

import numpy as np
import pytest

from calibrant import ECE, KCE, Bootstrap, Brier, ExactTest
from calibrant.results import SCHEMA, Estimate, Finding, Interval, TestResult
from calibrant.results.result import central_band


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


def test_notebook_display_escapes():
    hostile = Estimate("<script>", 0.5, 1, "<b>")
    assert "<script>" not in hostile._repr_html_()
    assert "&lt;script&gt; = <b>0.5" in hostile._repr_html_()


def test_results_behave_as_their_number(estimate):
    assert f"{estimate:.3f} {estimate:8.1%}|{estimate:>6.2f}" == "0.250    25.0%|  0.25"
    assert f"{estimate}" == str(estimate) == repr(estimate)
    assert (round(estimate, 1), round(replace(estimate, value=0.7))) == (0.2, 1)
    assert 0.2 < estimate <= 0.25 <= estimate < 1
    assert np.float64(0.2) < estimate
    assert estimate > np.float32(0.2)
    assert [estimate == 0.25, 0.25 == estimate, estimate == 0.3] == [True, True, False]  # noqa: SIM300
    assert max(estimate, replace(estimate, value=0.3)).value == 0.3
    assert np.array([estimate, 1]).tolist() == [0.25, 1.0]
    assert (np.array([0.1, 0.9]) > estimate).tolist() == [False, True]
    assert {estimate, 0.25} == {0.25}  # equal values have equal hashes


def test_results_are_no_numbers_to_each_other(estimate):
    other = replace(estimate, n=41)
    assert [estimate == replace(estimate), estimate == other, estimate <= other] == [True, False, True]
    test = TestResult(0.3, 0.04, 40, ExactTest(ECE()), estimate)
    assert test < 0.05
    assert f"{test:.2f}" == "0.04"
    assert test == replace(test, null_distribution=np.ones(3))
    with pytest.raises(TypeError, match="not supported between instances of 'Estimate' and 'TestResult'"):
        estimate < test  # noqa: B015
    with pytest.raises(TypeError, match="not supported between instances of 'Estimate' and 'str'"):
        estimate < "0.3"  # noqa: B015
    assert estimate != "0.25"


def test_json_of_everything_a_test_returns():
    result = ExactTest(ECE(), n_resamples=19)([0, 1, 1, 0], [0.1, 0.8, 0.6, 0.3])
    data = json.loads(result.to_json())
    assert data["pvalue"] == result.pvalue
    assert data["null_band"]["low"] <= data["null_band"]["high"]
    assert data["estimate"]["table"]["observed"] == result.estimate.table["observed"].tolist()


def test_null_band_is_the_central_range_of_the_draws():
    result = TestResult(0.5, 0.01, 10, None, None, np.arange(1, 101) / 100)
    assert tuple(result.null_band(0.9)) == (0.05, 0.96)


def test_a_test_without_resamples_has_no_band():
    result = TestResult(0.1, 0.2, 5, "SomeTest()", Estimate("ECE", 0.1, 5, "ECE()"), notes=("few rows",))
    with pytest.raises(ValueError, match=r"'SomeTest\(\)' has no band of one statistic"):
        result.null_band()
    assert result.to_dict()["null_band"] is None
    assert np.isnan(result.to_row()["null_low"])
    assert "note" in repr(result)
    assert "if calibrated" not in repr(result)


@pytest.mark.parametrize("n_resamples", [19, 39, 99, 150, 199, 999])
def test_one_more_draw_lies_within_the_band_as_often_as_it_says(n_resamples):
    """Of 99 resamples the band of their quantiles held 94 % instead of 95."""
    low, high = central_band(np.arange(1.0, n_resamples + 1), 0.95)
    held = (high - low) / (n_resamples + 1)  # gaps between the ends, of all there are
    assert held >= 0.95 or low == 1
    wider = (high - low + 2) / (n_resamples + 1)
    assert wider > 0.95


def test_findings_are_plain_texts_to_programs():
    assert Finding.TOO_HIGH == "too high"
    assert {"slice": 2.0}[Finding.SLICE] == 2.0
    assert json.dumps(list(Finding)[:3]) == '["none", "too few rows", "over-confident"]'
    assert repr(Finding.CLASS) == "'class'"
    with pytest.raises(ValueError, match="too much"):
        Finding("too much")


def test_what_kind_of_finding_it_is():
    assert [finding for finding in Finding if not finding.is_alarm] == ["none", "too few rows"]
    assert [finding for finding in Finding if finding.is_of_confidence] == ["over-confident", "under-confident"]
    assert [finding for finding in Finding if finding.is_of_height] == ["too high", "too low"]


def test_a_statistic_that_is_not_its_estimate_is_told_beside_it():
    shown = repr(TestResult(2.5, 0.1, 3, None, Estimate("E", 0.25, 3, None), np.zeros(99)))
    assert "statistic" in shown
    assert "2.5" in shown
    assert "E = 0.25" in shown
