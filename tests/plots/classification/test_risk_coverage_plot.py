import numpy as np
import pytest

from calibrant.estimators import AURC, risk_coverage
from calibrant.plots import RiskCoverageDisplay


def test_numbers_are_those_of_the_curve(rng):
    p, w = rng.random(80).round(1), rng.integers(0, 4, 80).astype(float)
    y = (rng.random(80) < p) * 1
    tables = RiskCoverageDisplay.from_predictions(y, p, sample_weight=w).tables
    expected = risk_coverage(y, p, sample_weight=w)
    assert tables["curve"].to_dict() == expected.to_dict()
    assert next(tables["areas"].rows()) == {"area": "AURC", "value": AURC()(y, p, sample_weight=w).value}


def test_long_curves_are_thinned(rng):
    p = rng.random(5000)
    display = RiskCoverageDisplay.from_predictions((rng.random(5000) < p) * 1, p)
    assert display.tables["curve"].n_rows == 400
    assert display.tables["curve"]["coverage"][[0, -1]] == pytest.approx([1 / 5000, 1])


def test_the_curve_is_drawn(rng):
    p = rng.random(50)
    display = RiskCoverageDisplay.from_predictions((rng.random(50) < p) * 1, p)
    claimed, risk = (line.get_ydata() for line in display.ax_.lines)
    assert np.array_equal(risk, 100 * display.tables["curve"]["risk"])
    assert np.array_equal(claimed, 100 * display.tables["curve"]["claimed"])
