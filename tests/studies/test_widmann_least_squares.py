import numpy as np
import pytest
from scipy.stats import kstest, norm

from studies.widmann.data import Sample, least_squares
from studies.widmann.least_squares import Line, band, largest_gap, quantile_curve, rows, truth


def test_the_line_is_the_published_one():
    case = least_squares()
    line = Line.fit(case["train"])
    published = [case["published"][name] for name in ("intercept", "slope", "standard deviation")]
    assert [line.intercept, line.slope, line.sd] == pytest.approx(published, rel=1e-12)


def test_the_curve_of_quantiles_is_a_distribution_function(rng):
    sample, line = Sample(rng.random(40), rng.normal(size=40)), Line(0.2, -0.5, 0.8)
    curve = quantile_curve(sample, line)
    levels = norm.cdf(sample.y, 0.2 - 0.5 * sample.x, 0.8)
    for level in (0.1, 0.5, 0.9):
        assert np.mean(curve <= level) == np.mean(levels <= level)
    assert largest_gap(curve) == pytest.approx(kstest(levels, "uniform").statistic, rel=1e-12)


def test_the_band_holds_most_calibrated_curves(rng):
    gaps = [largest_gap(np.sort(u)) for u in rng.random((2000, 30))]
    assert abs(np.mean(np.array(gaps) <= band(30)) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 2000)


def test_what_is_true_is_what_targets_were_drawn_from():
    mean, sd = truth(np.array([-1.0, 0.5]))
    assert mean == pytest.approx([0.0, 1.0])
    assert sd == pytest.approx([0.0, 0.225])


def test_all_numbers_come_out():
    found = {row["quantity"]: row for row in rows(seed=0)}
    parts = {name: row["part"] for name, row in found.items() if np.isfinite(row["part"])}
    assert len(parts) == 7
    assert max(parts.values()) < 1
    assert found["p-value"]["value"] < 0.05  # the published test rejects
    assert found["p-value of the exact test"]["value"] < 0.03  # and the exact one is surer
    assert found["p-value of the gap"]["value"] > 0.5  # while the quantiles look right
    independent = least_squares()["independent"]["p-value"]  # of 600,000 draws
    assert abs(found["p-value"]["value"] - independent) < 4 * np.sqrt(0.045 * 0.955 * (1 / 1e5 + 1 / 6e5))
