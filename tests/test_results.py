import json

import numpy as np
import pytest

from calibrant import ECE, Bootstrap, ExactTest
from calibrant.results import SCHEMA, Estimate, Interval, Table, TestResult, brief, jsonable, number


@pytest.fixture
def estimate():
    return Estimate("ECE", 0.25, 40, ECE(), reduction="top-label", standard_error=0.01)


def test_an_estimate_is_a_number(estimate):
    assert float(estimate) == 0.25


def test_results_are_frozen(estimate):
    with pytest.raises(AttributeError):
        estimate.value = 1


def test_normal_interval_from_the_standard_error(estimate):
    low, high = estimate.confidence_interval(0.95)
    assert (low, high) == pytest.approx((0.25 - 1.959963984540054 * 0.01, 0.25 + 1.959963984540054 * 0.01), rel=1e-12)


def test_an_interval_that_cannot_be_had_says_how_to_get_it():
    with pytest.raises(ValueError, match=r"Bootstrap\(ECE.*confidence_level=0.9"):
        Estimate("ECE", 0.25, 40, ECE()).confidence_interval(0.9)


def test_the_stored_interval_is_used_at_its_level():
    stored = Interval(0.1, 0.4, 0.9, "bootstrap")
    assert Estimate("ECE", 0.25, 40, ECE(), interval=stored).confidence_interval(0.9) is stored


def test_json_carries_the_schema_and_the_settings(estimate):
    data = json.loads(estimate.to_json())
    assert data["schema"] == SCHEMA
    assert data["value"] == 0.25
    assert data["estimator"] == repr(ECE())


def test_json_of_everything_a_test_returns():
    result = ExactTest(ECE(), n_resamples=19)([0, 1, 1, 0], [0.1, 0.8, 0.6, 0.3])
    data = json.loads(result.to_json())
    assert data["pvalue"] == result.pvalue
    assert data["null_band"]["low"] <= data["null_band"]["high"]
    assert data["estimate"]["table"]["observed"] == result.estimate.table["observed"].tolist()


def test_json_has_no_nan_or_infinity():
    assert json.loads(json.dumps(jsonable({"a": np.inf, "b": np.array([np.nan, 1.0])}), allow_nan=False)) == {
        "a": "inf",
        "b": ["nan", 1.0],
    }


def test_repr_shows_value_interval_and_settings(estimate):
    text = repr(Bootstrap(ECE(), n_resamples=20)([0, 1, 1, 0], [0.1, 0.8, 0.6, 0.3]))
    assert text.startswith("ECE = 0.25\n  0.95 interval")
    assert "n              4" in text
    assert "standard error  0.01" in repr(estimate)


def test_notebook_display_escapes(estimate):
    hostile = Estimate("<script>", 0.5, 1, "<b>")
    assert "<script>" not in hostile._repr_html_()
    assert "&lt;script&gt; = 0.5" in hostile._repr_html_()


def test_null_band_is_the_central_range_of_the_draws():
    result = TestResult(0.5, 0.01, 10, None, None, np.arange(1, 101) / 100)
    assert tuple(result.null_band(0.9)) == (0.05, 0.95)


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0.123456, "0.1235"),
        (12345678, "12,345,678"),
        (1234.56, "1,234.6"),
        (np.inf, "∞"),
        (-np.inf, "-∞"),
        (np.nan, "NaN"),
    ],
)
def test_numbers_as_people_read_them(x, text):
    assert number(x) == text


def test_table_columns_must_agree():
    with pytest.raises(ValueError, match=r"different lengths: \[1, 2\]"):
        Table(a=[1], b=[1, 2])


def test_table_gives_rows_and_columns():
    table = Table(group=["a", "b"], value=[0.5, 0.25])
    assert list(table.rows())[1] == {"group": "b", "value": 0.25}
    assert table.n_rows == 2
    assert dict(table)["value"].tolist() == [0.5, 0.25]


def test_a_test_without_redraws_has_no_band():
    result = TestResult(0.1, 0.2, 5, "SomeTest()", Estimate("ECE", 0.1, 5, "ECE()"), notes=("few rows",))
    with pytest.raises(ValueError, match=r"'SomeTest\(\)' redraws no targets"):
        result.null_band()
    assert result.to_dict()["null_band"] is None
    assert np.isnan(result.to_row()["null_low"])
    assert "note" in repr(result)
    assert "if calibrated" not in repr(result)


def test_settings_are_brief_for_people():
    from calibrant import SKCE, EqualMass
    from calibrant.kernels import Exponential

    assert brief(ECE()) == "ECE()"
    assert brief(ECE(EqualMass())) == "ECE(bins=EqualMass(n_bins=15))"
    assert brief(SKCE(Exponential(1 / 3), block=5)) == "SKCE(on_predictions=Exponential(lengthscale=0.333333), block=5)"
    assert brief(((1.0,), "x")) == "((1,), 'x')"
    estimate = Estimate("ECE", 0.25, 40, ECE(EqualMass()))
    assert "ECE(bins=EqualMass(n_bins=15))" in repr(estimate)
    assert estimate.to_dict()["estimator"] == repr(ECE(EqualMass()))  # all digits, for programs
