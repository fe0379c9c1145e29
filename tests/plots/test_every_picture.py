"""Every kind of picture, with names and numbers that ask for room: nothing overlaps, nothing is cut, nothing is too large."""

import re
from dataclasses import asdict

import numpy as np
import pytest

from calibrant import ECE, Categorical, ExactTest, Monitor, Normal
from calibrant.plots import (
    BeforeAfterDisplay,
    BiasDisplay,
    ClasswiseDisplay,
    ComparisonDisplay,
    ConfusionDisplay,
    CoverageDisplay,
    CurvesDisplay,
    DriftDisplay,
    EvidenceDisplay,
    FanDisplay,
    NullDisplay,
    PITCurveDisplay,
    PITHistogramDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    SharpnessDisplay,
    SimplexDisplay,
    SpreadDisplay,
    WindowsDisplay,
    WitnessDisplay,
)
from calibrant.plots.style import DARK
from calibrant.reports.render.html import DRAWINGS
from calibrant.results import Table

to_hex = pytest.importorskip("matplotlib.colors").to_hex

NAMES = ["airplane, of any kind", "automobile", "b", "a name that is far too long for any picture, whatever its size"]


def classes(k, n=300):
    rng = np.random.default_rng(k)
    p = rng.dirichlet(np.full(k, 0.5), n)
    names = [f"{NAMES[i % 4]} {i}" for i in range(k)]
    return np.array(names)[rng.integers(0, k, n)], Categorical(p, names)


def numbers(scale, n=300):
    rng = np.random.default_rng(1)
    loc, std = scale * rng.normal(size=n), scale * rng.uniform(0.5, 2, n)
    return loc + 1.5 * std * rng.normal(size=n), Normal(loc, std)


def events(n=300):
    rng = np.random.default_rng(2)
    p = 1 / (1 + np.exp(-rng.normal(0, 4, n)))
    return (rng.random(n) < p).astype(int), p


def study(k):
    sizes = [100, 1_000, 10_000]
    names = np.repeat([f"{NAMES[i % 4]} {i}" for i in range(k)], 3)
    return Table(n=sizes * k, estimator=names, bias=0.1 / np.sqrt(sizes * k), bias_error=np.full(3 * k, 1e-4))


def models(k):
    y, p = events()
    return y, {f"{NAMES[i % 4]} {i}": p ** (1 + i / 4) for i in range(k)}


def watched(predictions, window=10):
    return Monitor(window=window).update(*predictions)


def changing(change, n=300):
    """Events whose claims go wrong at a row, so that words stand at either end."""
    p = np.random.default_rng(3).random(n)
    y = (np.random.default_rng(4).random(n) < np.where(np.arange(n) < change, p, p**8)) * 1
    return Monitor(window=10).update(y, p)


few = {"n_resamples": 99}
MAKERS = {
    "reliability": lambda: ReliabilityDisplay.from_predictions(*events(), **few),
    "reliability in log-odds": lambda: ReliabilityDisplay.from_predictions(*events(), axis="logit", **few),
    "reliability, smooth": lambda: ReliabilityDisplay.from_predictions(*events(), method="smooth", **few),
    "classwise": lambda: ClasswiseDisplay.from_predictions(*classes(9), **few),
    "classwise of three": lambda: ClasswiseDisplay.from_predictions(*classes(3), axis="logit", **few),
    "confusion": lambda: ConfusionDisplay.from_predictions(*classes(12), **few),
    "confusion of three": lambda: ConfusionDisplay.from_predictions(*classes(3), **few),
    "risk_coverage": lambda: RiskCoverageDisplay.from_predictions(*classes(9)),
    "simplex": lambda: SimplexDisplay.from_predictions(*classes(3), **few),
    "witness": lambda: WitnessDisplay.from_predictions(*classes(12), **few),
    "witness of numbers": lambda: WitnessDisplay.from_predictions(*numbers(1.0), **few),
    "witness of large numbers": lambda: WitnessDisplay.from_predictions(*numbers(12_345.0), **few),
    "pit_histogram": lambda: PITHistogramDisplay.from_predictions(*numbers(1.0)),
    "pit_curve": lambda: PITCurveDisplay.from_predictions(*numbers(1.0)),
    "coverage": lambda: CoverageDisplay.from_predictions(*numbers(1.0)),
    "fan": lambda: FanDisplay.from_predictions(*numbers(1.0)),
    "fan of large numbers": lambda: FanDisplay.from_predictions(*numbers(1e5), at=np.arange(300)),
    "spread": lambda: SpreadDisplay.from_predictions(*numbers(1.0), **few),
    "spread of small numbers": lambda: SpreadDisplay.from_predictions(*numbers(1e-4), **few),
    "spread of large numbers": lambda: SpreadDisplay.from_predictions(*numbers(1e5), **few),
    "sharpness": lambda: SharpnessDisplay.from_predictions(*numbers(1.0)),
    "sharpness of large numbers": lambda: SharpnessDisplay.from_predictions(*numbers(1e5)),
    "null": lambda: NullDisplay.from_result(ExactTest(ECE(), 99)(*events())),
    "before_after": lambda: BeforeAfterDisplay.from_predictions(*events(), events()[1], **few),
    "before_after of numbers": lambda: BeforeAfterDisplay.from_predictions(*numbers(1.0), numbers(1.0)[1]),
    "bias": lambda: BiasDisplay.from_study(study(4)),
    "bias of many": lambda: BiasDisplay.from_study(study(12)),
    "evidence": lambda: EvidenceDisplay.from_monitor(watched(events())),
    "evidence at the end": lambda: EvidenceDisplay.from_monitor(changing(250)),
    "evidence at the start": lambda: EvidenceDisplay.from_monitor(changing(0)),
    "windows": lambda: WindowsDisplay.from_monitor(watched(events()), **few),
    "windows at the end": lambda: WindowsDisplay.from_monitor(changing(250), **few),
    "windows at the start": lambda: WindowsDisplay.from_monitor(changing(0), **few),
    "windows of numbers": lambda: WindowsDisplay.from_monitor(watched(numbers(1e5), 7), **few),
    "windows of one row": lambda: WindowsDisplay.from_monitor(watched(events(1)), **few),
    "drift": lambda: DriftDisplay.from_monitor(watched(events()), **few),
    "drift at the end": lambda: DriftDisplay.from_monitor(changing(250), **few),
    "drift of classes": lambda: DriftDisplay.from_monitor(watched(classes(12)), **few),
    "drift of numbers": lambda: DriftDisplay.from_monitor(watched(numbers(1.0)), **few),
    "comparison": lambda: ComparisonDisplay.from_predictions(ECE(), *models(3), **few),
    "curves": lambda: CurvesDisplay.from_predictions(*models(3)),
    "comparison of many": lambda: ComparisonDisplay.from_predictions(ECE(), *models(9), **few),
}


@pytest.fixture(scope="module")
def made():
    return {name: make() for name, make in MAKERS.items()}


def kind(name):
    return re.split(r"[ ,]", name)[0]


@pytest.fixture
def drawn_words(monkeypatch):
    """Draws a figure; all that was written, as Text objects."""
    from matplotlib.text import Text

    written = []
    plain = Text.draw

    def draw(self, renderer):
        if self.get_visible() and self.get_text().strip():
            written.append(self)
        plain(self, renderer)

    def words(figure):
        monkeypatch.setattr(Text, "draw", draw)
        written.clear()
        figure.canvas.draw()
        return list(written)

    return words


@pytest.mark.parametrize("legend", [True, False])
@pytest.mark.parametrize("name", MAKERS)
def test_no_words_overlap_or_are_cut(name, legend, made, drawn_words):
    figure = made[name].plot(legend=legend).figure_
    found = [(word.get_text(), word.get_window_extent(), word.get_rotation()) for word in drawn_words(figure)]
    assert found
    width, height = figure.bbox.width, figure.bbox.height
    for text, box, _ in found:
        assert box.x0 >= -1, text
        assert box.y0 >= -1, text
        assert box.x1 <= width + 1, text
        assert box.y1 <= height + 1, text
    for i, (a, one, turned) in enumerate(found):
        for b, other, also in found[:i]:
            if turned == also == 40:  # boxes of slanted words overlap, the words do not
                continue
            apart = one.x0 >= other.x1 or other.x0 >= one.x1 or one.y0 >= other.y1 or other.y0 >= one.y1
            assert apart, (a, b)


@pytest.mark.parametrize("name", MAKERS)
def test_pages_get_a_small_svg_in_their_own_colours(name, made):
    svg = DRAWINGS[kind(name)].to_svg(made[name].tables)
    assert len(svg.encode()) < 150_000
    assert "nan" not in svg
    assert not re.findall(r"#[0-9a-f]{6}\b", re.sub(r"(href=\"|url\()#[^\")]*", "", svg))
    assert DRAWINGS[kind(name)].to_svg(made[name].tables) == svg


@pytest.mark.parametrize("name", MAKERS)
def test_dark_pictures_have_light_ink(name, made, drawn_words):
    figure = made[name].plot(theme="dark").figure_
    assert to_hex(figure.get_facecolor()) == DARK.paper
    assert {to_hex(word.get_color()) for word in drawn_words(figure)} <= set(asdict(DARK).values())


def test_every_kind_is_looked_at():
    of_comparisons = {"curves"}  # which have no display; tests of model_curves look at them
    assert {kind(name) for name in MAKERS} | of_comparisons == set(DRAWINGS)
