"""What a critical look at the pictures found: each test draws what was wrong."""

import numpy as np
import pytest
from scipy.special import expit, logit

from calibrant import ECE, EqualMass, Normal, TopLabel
from calibrant.estimators import by_spread
from calibrant.io import example, read
from calibrant.plots import (
    ClasswiseDisplay,
    ComparisonDisplay,
    CurvesDisplay,
    ReliabilityDisplay,
    SpreadDisplay,
    WitnessDisplay,
    reliability,
)
from calibrant.plots.classification.reliability import settings_of


@pytest.fixture(scope="module")
def digits():
    data = read(example("digits"), y_true="digit", y_pred="p_*")
    return data.y_true, data.y_pred


@pytest.fixture
def risks(rng):
    """Small risks, of which one row alone is large."""
    p = np.concatenate([expit(rng.normal(-2.5, 0.7, 1_999)), [0.97]])
    return (rng.random(2_000) < p) * 1, p


def places_of(curve, floor):
    """Where marks stand along an axis of log-odds, as shares of it."""
    x = logit(np.clip(curve["predicted"], floor, 1 - floor))
    return (x - x.min()) / np.ptp(x)


@pytest.mark.parametrize("bins", [None, EqualMass(15)])
@pytest.mark.parametrize("method", ["binned", "smooth", "isotonic"])
def test_no_two_marks_are_joined_at_one_place_of_log_odds(digits, method, bins):
    """They were, at the right end: half of the confidences are closer to 1 than the axis shows."""
    if bins is not None and method != "binned":
        pytest.skip("bins go with groups")
    tables = ReliabilityDisplay.from_predictions(
        *digits, method=method, axis="logit", bins=bins, n_resamples=19, rng=0
    ).tables
    places = places_of(tables["curve"], settings_of(tables)["floor"])
    assert len(places) > 2
    assert np.diff(places).min() > (0.004 if method == "binned" else 1e-9)


def test_nor_is_a_line_drawn_between_marks_at_one_place_of_probabilities(digits):
    """Groups of equally many rows, most of them within a hundredth of 1."""
    display = ReliabilityDisplay.from_predictions(*digits, bins=EqualMass(15), n_resamples=19, rng=0)
    line = max((line.get_xydata() for line in display.ax_.lines), key=lambda xy: np.isnan(xy[:, 1]).sum())
    assert np.isnan(line[:, 1]).any()
    steps = np.diff(line[:, 0])
    assert np.nanmin(steps) >= 0.008 * np.ptp(display.tables["curve"]["predicted"])


def test_nor_in_the_panels_of_classes(digits):
    tables = ClasswiseDisplay.from_predictions(*digits, axis="logit", n_resamples=19, rng=0).tables
    for name in tables["classes"]["name"]:
        rows = tables["curve"]["event"] == name
        curve = {column: tables["curve"][column][rows] for column in ("predicted",)}
        places = places_of(curve, settings_of(tables)["floor"])
        assert len(places) > 2, name
        assert np.diff(places).min() > 0.004, name


def test_axes_of_log_odds_say_so_and_have_0_and_1(digits):
    axes = reliability(*digits, axis="logit", n_resamples=19, rng=0).ax_
    below = next(other for other in axes.figure.axes if other is not axes)
    assert axes.get_ylabel() == "Observed frequency (log-odds scale)"
    assert below.get_xlabel() == "Predicted probability (log-odds scale)"
    axes.figure.canvas.draw()
    assert "1" in [label.get_text() for label in below.get_xticklabels()]
    plain = reliability(*digits, axis="probability", n_resamples=19, rng=0).ax_
    assert plain.get_ylabel() == "Observed frequency"


def test_smooth_curves_end_where_few_rows_are_left(risks):
    y, p = risks
    curve = ReliabilityDisplay.from_predictions(y, p, method="smooth", n_resamples=19, rng=0).tables["curve"]
    assert (p > curve["predicted"].max()).sum() == 10
    assert curve["observed"].max() < 0.6
    few = ReliabilityDisplay.from_predictions(y[-30:], p[-30:], method="smooth", n_resamples=19, rng=0).tables["curve"]
    assert (p[-30:] > few["predicted"].max()).sum() == 1  # a twentieth of the rows at most


@pytest.mark.parametrize("size", [(6.4, 4.8), (10, 5)])
def test_two_side_by_side_do_not_collide(risks, size):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure, pair = pyplot.subplots(1, 2, figsize=size)
    for axes, scale in zip(pair, ("logit", "probability"), strict=True):
        reliability(*risks, ax=axes, axis=scale, n_resamples=19, rng=0)
    figure.canvas.draw()
    left = pair[0]
    legends = [axes.get_legend().get_window_extent() for axes in pair]
    assert not legends[0].overlaps(legends[1])
    assert legends[1].y1 <= figure.bbox.y1 + 1
    words = [a.yaxis.label for a in figure.axes if a.get_position().x0 > 0.45 and a.get_ylabel()]
    assert all(word.get_window_extent().x0 >= left.get_window_extent().x1 for word in words)
    below = [axes.xaxis.label.get_window_extent() for axes in figure.axes if axes.get_xlabel()]
    assert not below[0].overlaps(below[1])
    pyplot.close(figure)


def test_a_map_of_two_classes_speaks_of_risk(risks):
    display = WitnessDisplay.from_predictions(*risks, n_resamples=19, rng=0)
    cells = display.tables["cells"]
    assert set(cells["outcome"].tolist()) == {"1"}
    assert (np.diff(cells["along"]) > 0).all()
    assert cells["along"][0] < 0.1  # a risk, not a confidence, which is a half at least
    assert display.ax_.get_xlabel() == "Predicted probability (log-odds scale)"
    assert "avoured" not in display.to_svg()


def test_its_gaps_are_predictions_less_outcomes(risks):
    y, p = risks
    cells = WitnessDisplay.from_predictions(y, np.clip(p + 0.1, 0, 1), n_resamples=19, rng=0).tables["cells"]
    assert np.nanmedian(cells["gap"]) == pytest.approx(0.1, abs=0.03)


def test_curves_of_several_models_lie_over_each_other(risks):
    y, p = risks
    models = {"logistic regression of 2019, all wards": p, "logistic regression of 2023, all wards": p**1.2}
    display = CurvesDisplay.from_predictions(y, models)
    first, second = (display.tables[f"curve_{i}"] for i in range(2))
    assert first.n_rows == second.n_rows == 10
    assert first["predicted"].mean() == pytest.approx(p.mean(), abs=1e-3)
    assert [text.get_text() for text in display.ax_.texts] == ["…2019, all wards", "…2023, all wards"]
    each = ReliabilityDisplay.from_predictions(y, p, bins=EqualMass(10), band=None).tables["curve"]
    np.testing.assert_allclose(first["observed"], each["observed"])


def test_curves_of_classes_are_of_the_confidence(digits):
    y, p = digits
    one = CurvesDisplay.from_predictions(y, {"a": p}).tables["curve_0"]
    other = CurvesDisplay.from_predictions(y, {"a": p}, lens=TopLabel()).tables["curve_0"]
    np.testing.assert_array_equal(one["observed"], other["observed"])


def test_names_that_differ_in_the_middle_are_told_apart(risks):
    y, p = risks
    models = {"risk model of the year 2019 on all wards": p, "risk model of the year 2023 on all wards": p}
    display = ComparisonDisplay.from_predictions(ECE(), y, models, n_resamples=19, rng=0)
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert len(set(names)) == 2
    assert all(len(name) <= 24 for name in names)


def test_a_constant_spread_is_one_group_whatever_its_last_digits(rng):
    n = 200
    std = 1.458 * (1 + 2.2e-16 * rng.integers(-4, 5, n))
    forecast = Normal(rng.normal(size=n), std)
    assert len(np.unique(std)) > 3
    assert SpreadDisplay.from_predictions(rng.normal(size=n), forecast, n_resamples=19).tables["spread"].n_rows == 1
    assert len(np.unique(by_spread(forecast))) == 1
    single = Normal(np.zeros(n), np.float32(1.458) * (1 + 1e-7 * rng.integers(-2, 3, n)))
    assert len(np.unique(by_spread(single))) == 1
