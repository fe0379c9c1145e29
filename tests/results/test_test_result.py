import json

import numpy as np
import pytest

from calibrant import ECE, ExactTest
from calibrant.results import Estimate, TestResult
from calibrant.results.test_result import central_band


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
