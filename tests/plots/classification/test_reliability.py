import re

import numpy as np
import pytest

from calibrant import Bernoulli, ClassWise, EqualMass, EqualWidth, Normal, PositiveClass, TopLabel
from calibrant._validate import InputError
from calibrant.estimators import IsotonicCurve
from calibrant.lenses import Exceeds
from calibrant.plots import ReliabilityDisplay, reliability
from calibrant.plots.classification.reliability import histogram_of, is_crowded
from calibrant.reports.render.html import DRAWINGS


@pytest.fixture
def overconfident(rng):
    z = rng.normal(0, 4, 2000)
    return (rng.random(2000) < 1 / (1 + np.exp(-z / 2))).astype(int), 1 / (1 + np.exp(-z))


def test_frequencies_are_those_counted_in_the_bins(overconfident):
    y, p = overconfident
    curve = ReliabilityDisplay.from_predictions(y, p, bins=EqualWidth(10), n_resamples=99).tables["curve"]
    which = np.minimum((10 * p).astype(int), 9)
    np.testing.assert_allclose(curve["observed"], [y[which == b].mean() for b in range(10)])
    np.testing.assert_allclose(curve["predicted"], [p[which == b].mean() for b in range(10)])


def test_isotonic_curves_minimise_the_squared_error(overconfident):
    y, p = overconfident
    curve = ReliabilityDisplay.from_predictions(y, p, method="isotonic", n_resamples=99).tables["curve"]
    np.testing.assert_array_equal(curve["observed"], IsotonicCurve().fit(p, y)(curve["predicted"]))
    assert (np.diff(curve["observed"]) >= 0).all()


def test_weights_count_as_copies(overconfident):
    y, p = overconfident
    weights = np.arange(len(y)) % 3
    weighted, copied = (
        ReliabilityDisplay.from_predictions(*data, bins=EqualWidth(7), band=None, sample_weight=w).tables
        for data, w in (((y, p), weights), ((np.repeat(y, weights), np.repeat(p, weights)), None))
    )
    for name in ("curve", "histogram"):
        for column in weighted[name]:
            np.testing.assert_allclose(weighted[name][column], copied[name][column], rtol=1e-12)


@pytest.mark.parametrize("method", ["binned", "isotonic", "smooth"])
@pytest.mark.parametrize("band", ["consistency", "confidence", None])
def test_what_is_drawn_is_what_is_in_the_tables(method, band, overconfident):
    display = reliability(*overconfident, method=method, band=band, n_resamples=39, rng=1)
    curve, axes = display.tables["curve"], display.ax_
    lines = [line.get_xydata() for line in axes.lines]
    drawn = np.stack([curve["predicted"], curve["observed"]], axis=1)
    assert any(line.shape == drawn.shape and np.array_equal(line, drawn) for line in lines)
    assert ("low" in curve) == (band is not None)
    assert axes.get_ylabel() == "Observed frequency"
    below = next(other for other in display.figure_.axes if other is not axes)
    heights = [bar.get_height() for bar in below.patches]
    assert sum(heights) == pytest.approx(100)


def test_marks_beyond_chance_are_diamonds(overconfident):
    display = reliability(*overconfident, n_resamples=199)
    curve = display.tables["curve"]
    outside = (curve["observed"] < curve["low"]) | (curve["observed"] > curve["high"])
    within, beyond = display.ax_.collections[-2:]
    assert 0 < outside.sum() < len(outside)
    np.testing.assert_array_equal(beyond.get_offsets()[:, 0], curve["predicted"][outside])
    np.testing.assert_array_equal(within.get_offsets()[:, 0], curve["predicted"][~outside])


def test_a_confidence_band_marks_claims_that_it_leaves_out(overconfident):
    display = reliability(*overconfident, band="confidence")
    curve = display.tables["curve"]
    outside = (curve["predicted"] < curve["low"]) | (curve["predicted"] > curve["high"])
    np.testing.assert_array_equal(display.ax_.collections[-1].get_offsets()[:, 0], curve["predicted"][outside])
    words = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert words == ["within chance", "beyond chance", "95 % confidence band"]


def test_log_odds_keep_the_ends_apart(overconfident):
    y, p = overconfident
    display = reliability(y, np.where(p > 0.9, 1.0, p), axis="logit", n_resamples=39)
    assert display.ax_.get_xscale() == display.ax_.get_yscale() == "logit"
    floor = display.tables["settings"]["floor"][0]
    assert floor == 0.5 / len(y)
    for line in display.ax_.lines:
        assert line.get_xydata().min() >= floor
        assert line.get_xydata().max() <= 1 - floor
    assert display.tables["histogram"]["weight"].sum() == len(y)
    sure = p**3 / (p**3 + (1 - p) ** 3)
    assert reliability(y, sure, axis="auto", n_resamples=39).ax_.get_xscale() == "logit"
    assert reliability(y, 0.2 + 0.6 * p, axis="auto", n_resamples=39).ax_.get_xscale() == "linear"


def test_several_classes_show_the_confidence_and_labels_share_one_curve(rng):
    p = rng.dirichlet(np.ones(4), 300)
    y = rng.integers(0, 4, 300)
    one, other = (ReliabilityDisplay.from_predictions(y, p, lens=lens, n_resamples=39) for lens in (None, TopLabel()))
    np.testing.assert_array_equal(one.tables["curve"]["low"], other.tables["curve"]["low"])
    labels = Bernoulli(p)
    marks = (rng.random(p.shape) < p).astype(int)
    pooled = ReliabilityDisplay.from_predictions(marks, labels, n_resamples=39, bins=EqualMass(5))
    flat = ReliabilityDisplay.from_predictions(marks.ravel(), p.ravel(), n_resamples=39, bins=EqualMass(5))
    np.testing.assert_array_equal(pooled.tables["curve"]["observed"], flat.tables["curve"]["observed"])


def test_a_lens_picks_the_event(rng):
    forecast = Normal(rng.normal(size=400), 1.0)
    y = rng.normal(size=400)
    curve = ReliabilityDisplay.from_predictions(y, forecast, lens=Exceeds(0.5), band=None).tables["curve"]
    assert np.average(curve["observed"], weights=curve["weight"]) == pytest.approx((y > 0.5).mean())
    p = rng.dirichlet(np.ones(3), 200)
    third = ReliabilityDisplay.from_predictions(rng.integers(0, 3, 200), p, lens=PositiveClass(2), band=None)
    assert np.average(third.tables["curve"]["predicted"], weights=third.tables["curve"]["weight"]) == pytest.approx(
        p[:, 2].mean()
    )


@pytest.mark.parametrize(
    ("y", "p"),
    [([1], [0.3]), ([0, 1, 1], [0.5, 0.5, 0.5]), ([0, 1], [0.0, 1.0]), ([0, 0, 0], [0.0, 0.0, 0.0])],
    ids=["one row", "constant", "certain", "all zero"],
)
@pytest.mark.parametrize("method", ["binned", "isotonic", "smooth"])
@pytest.mark.parametrize("axis", ["probability", "logit"])
def test_little_data_is_drawn(y, p, method, axis):
    display = reliability(y, p, method=method, axis=axis, n_resamples=39)
    assert np.isfinite(display.tables["curve"]["observed"]).all()
    assert "nan" not in display.to_svg()


def test_axes_given_are_drawn_on_and_share_their_room(overconfident, pyplot):
    figure, (left, right) = pyplot.subplots(1, 2)
    before = right.get_position()
    display = reliability(*overconfident, ax=left, n_resamples=39, legend=False, theme="dark")
    assert display.ax_ is left
    assert display.figure_ is figure
    assert left.get_legend() is None
    assert right.get_position().bounds == before.bounds
    assert pyplot.get_fignums() == [figure.number]


def test_preparing_opens_no_figure(overconfident, pyplot):
    display = ReliabilityDisplay.from_predictions(*overconfident, n_resamples=39)
    assert display._repr_svg_().startswith("<svg")
    assert display.to_svg().startswith("<svg")
    assert pyplot.get_fignums() == []
    assert display.figure_ is display.ax_.figure
    assert len(pyplot.get_fignums()) == 1
    assert display._repr_svg_() is None


def test_close_predictions_are_drawn_close_up(rng):
    p = 0.01 + 0.02 * rng.random(3000)
    y = (rng.random(3000) < p).astype(int)
    tables = ReliabilityDisplay.from_predictions(y, p, n_resamples=99).tables
    assert tables["curve"].n_rows == 15
    labels = [float(t) for t in re.findall(r">(0\.\d+)</text>", DRAWINGS["reliability"].to_svg(tables))]
    assert max(labels) < 0.2
    assert np.isfinite(labels).all()


def test_axes_have_room_for_the_curve_beside(rng):
    p = 0.2 + 0.05 * rng.random(500)
    y = (rng.random(500) < p).astype(int)
    close = ReliabilityDisplay.from_predictions(y, p, n_resamples=99).tables
    wide = ReliabilityDisplay.from_predictions(y, rng.random(500), n_resamples=99).tables
    axes = ReliabilityDisplay({**close, "beside": wide["curve"]}).ax_
    assert axes.get_xlim() == (-0.02, 1.02)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "spline"}, "method must be 'binned', 'isotonic' or 'smooth'; got 'spline'"),
        ({"band": "bootstrap"}, "band must be 'consistency' or 'confidence'; got 'bootstrap'"),
        ({"axis": "log"}, "axis must be 'probability', 'logit' or 'auto'; got 'log'"),
        ({"method": "smooth", "bins": EqualMass(3)}, "bins go with method='binned'"),
        ({"lens": ClassWise()}, "shows one event, and .* has 2: see calibrant.plots.classwise"),
        ({"theme": "neon"}, "theme must be 'light' or 'dark'"),
        ({"level": 95}, "level must lie strictly between 0 and 1"),
    ],
)
def test_settings_that_are_none_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        reliability([0, 1, 1], [0.2, 0.3, 0.9], **options)


@pytest.mark.parametrize("floor", [None, 0.001])
@pytest.mark.parametrize(
    "scores", [np.array([0.4]), np.array([0.0, 1.0]), np.array([0.2, 0.21]), np.linspace(0, 1, 77), np.full(5, 0.3)]
)
def test_every_row_is_counted_once(scores, floor):
    table = histogram_of(scores, None, floor)
    assert table["weight"].sum() == len(scores)
    assert table.n_rows == 40
    assert (table["upper"] > table["lower"]).all()


def test_parts_are_equal_in_log_odds():
    table = histogram_of(np.array([0.0001, 0.5, 0.999]), None, 0.001)
    edges = np.append(table["lower"], table["upper"][-1])
    np.testing.assert_allclose(np.diff(np.log(edges / (1 - edges))), 2 * np.log(999) / 40)
    assert table["weight"][[0, -1]].tolist() == [1, 1]


def test_weights_count():
    assert histogram_of(np.array([0.1, 0.9]), np.array([2.0, 0.5]))["weight"].sum() == 2.5


def test_crowds_stand_at_the_ends():
    scores = np.array([0.01, 0.99, 0.5])
    assert is_crowded(scores)
    assert not is_crowded(scores, np.array([1.0, 1.0, 3.0]))
