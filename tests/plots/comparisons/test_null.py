import numpy as np
import pytest

from calibrant import ECE, ExactTest
from calibrant._validate import InputError
from calibrant.inference import Spiegelhalter
from calibrant.plots import NullDisplay, null
from calibrant.results import Estimate, TestResult


@pytest.fixture
def result(rng):
    p = rng.random(300)
    return ExactTest(ECE(), n_resamples=199)((rng.random(300) < p**2).astype(int), p)


def test_bars_count_the_resamples(result):
    display = null(result)
    table = display.tables["resamples"]
    counts = [
        ((result.null_distribution >= low) & (result.null_distribution < high)).sum()
        for low, high in zip(table["lower"], table["upper"], strict=True)
    ]
    counts[-1] += (result.null_distribution == table["upper"][-1]).sum()
    np.testing.assert_array_equal(table["count"], counts)
    assert sum(bar.get_height() for bar in display.ax_.patches) == pytest.approx(100)


def test_the_line_stands_at_the_statistic(result):
    axes = null(result).ax_
    assert axes.lines[-1].get_xdata().tolist() == [result.statistic] * 2
    assert any(f"p = {result.pvalue:.2g}" in text.get_text() for text in axes.texts)
    low, high = axes.get_xlim()
    assert low < min(result.null_distribution.min(), result.statistic)
    assert high > max(result.null_distribution.max(), result.statistic)


def test_a_statistic_within_chance_is_a_dot(rng):
    p = rng.random(300)
    calibrated = ExactTest(ECE(), n_resamples=99)((rng.random(300) < p).astype(int), p)
    assert calibrated.pvalue > 0.05
    assert NullDisplay.from_result(calibrated).drawing.marks(NullDisplay.from_result(calibrated).tables)[0][0] == "dot"


def test_constant_resamples_are_drawn():
    estimate = Estimate("E", 0.0, 3, None)
    display = null(TestResult(0.0, 1.0, 3, None, estimate, np.zeros(99)))
    assert "nan" not in display.to_svg()


def test_tests_without_resamples_are_refused(rng):
    p = rng.random(50)
    with pytest.raises(InputError, match="has no resamples of one statistic"):
        null(Spiegelhalter()((rng.random(50) < p).astype(int), p))
    with pytest.raises(InputError, match="result must be that of a test"):
        null(0.3)


def test_statistics_that_are_not_finite_are_refused():
    estimate = Estimate("E", np.inf, 3, None)
    with pytest.raises(InputError, match=r"the statistic is not finite \(inf\): take another estimator"):
        NullDisplay.from_result(TestResult(np.inf, 1.0, 3, None, estimate, np.zeros(99)))
