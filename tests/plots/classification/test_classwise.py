import numpy as np
import pytest

from calibrant import Bernoulli, Normal, PositiveClass, ReliabilityCurve
from calibrant._validate import InputError
from calibrant.plots import ClasswiseDisplay, classwise
from calibrant.plots.classification.classwise import evidence_of
from calibrant.plots.classification.reliability import bins_of


@pytest.fixture
def five(rng):
    p = rng.dirichlet(np.full(5, 0.5), 400)
    return (p.cumsum(axis=1) < rng.random((400, 1))).sum(axis=1), p


def test_curves_are_those_of_each_class(five):
    y, p = five
    tables = ClasswiseDisplay.from_predictions(y, p, n_resamples=39).tables
    assert tables["classes"]["name"].tolist() == list("01234")
    for j in range(5):
        direct = ReliabilityCurve(bins_of(p[:, j], None), PositiveClass(j), n_resamples=39)(y, p)
        rows = tables["curve"]["event"] == str(j)
        np.testing.assert_allclose(tables["curve"]["observed"][rows], direct["observed"])
        np.testing.assert_allclose(tables["curve"]["predicted"][rows], direct["predicted"])


def test_the_worst_come_first_and_it_says_so(five):
    y, p = five
    wrong = p.copy()
    wrong[:, 3] = (p[:, 3] + 1) / 2
    wrong /= wrong.sum(axis=1, keepdims=True)
    display = classwise(y, wrong, max_classes=2, n_resamples=39)
    classes = display.tables["classes"]
    assert classes["name"][0] == "3"
    assert (np.diff(classes["evidence"]) <= 0).all()
    titles = [panel.get_title() for panel in display.ax_.child_axes]
    assert titles == classes["name"].tolist()
    assert any(", 2 of 5 classes" in text.get_text() for text in display.ax_.texts)


def test_evidence_is_one_a_group_for_calibrated_classes(rng):
    """Ten groups, each about a squared normal number of variance n/(n + 1/v)."""
    p = rng.random((300, 2000))
    y = (rng.random((300, 2000)) < p).astype(int)
    events = [evidence_of(ReliabilityEvent(row), observed, None) for row, observed in zip(p, y, strict=True)]
    assert np.mean(events) == pytest.approx(10, abs=4 * np.sqrt(20 / 300) + 0.6)


class ReliabilityEvent:
    def __init__(self, probability):
        self.probability = probability

    def observed(self, targets):
        return targets == 1


def test_labels_are_shown_too(rng):
    p = rng.random((200, 4))
    y = (rng.random((200, 4)) < p).astype(int)
    display = classwise(y, Bernoulli(p, labels=["a", "b", "c", "x" * 99]), method="smooth", n_resamples=39)
    assert [panel.get_title() for panel in display.ax_.child_axes] == ["a", "b", "c", "x" * 14 + "…" + "x" * 7]
    assert "nan" not in display.to_svg()


@pytest.mark.parametrize("shown", [1, 2, 3, 4, 6])
def test_panels_do_not_overlap(shown, rng):
    p = rng.dirichlet(np.ones(7), 50)
    display = classwise(p.argmax(axis=1), p, max_classes=shown, n_resamples=39, axis="logit")
    display.figure_.canvas.draw()
    boxes = [panel.get_tightbbox() for panel in display.ax_.child_axes]
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            assert not (a.x0 < b.x1 - 1 and b.x0 < a.x1 - 1 and a.y0 < b.y1 - 1 and b.y0 < a.y1 - 1)


def test_forecasts_have_no_classes():
    with pytest.raises(InputError, match="classes are shown one by one, and these are Normal predictions"):
        classwise([0.1], Normal([0.0], 1.0))


def test_an_axis_of_log_odds_has_labels_between_its_ends():
    """Four panels are wide: 0, 0.01 and 0.5 alone would say little of what lies between."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), 600)
    y = (p.cumsum(axis=1) < rng.random((600, 1))).sum(axis=1)
    panels = classwise(y, p, axis="logit", n_resamples=19).ax_.child_axes
    for panel in panels:
        low, high = panel.get_xlim()
        shown = [x for x in panel.xaxis.get_majorticklocs() if low <= x <= high]
        assert panel.get_xscale() == "logit"
        assert len(shown) >= 4


@pytest.mark.parametrize("order", [[0, 1], [0, 1, 1], [[0, 1, 2]]])
def test_orders_that_leave_out_a_class_are_refused(order, rng):
    p = rng.dirichlet(np.ones(3), 60)
    with pytest.raises(InputError, match="order must have each number from 0 to 2 once"):
        ClasswiseDisplay.from_predictions(rng.integers(0, 3, 60), p, order=order)
