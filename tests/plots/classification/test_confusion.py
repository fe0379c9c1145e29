import numpy as np
import pytest

from calibrant import Bernoulli, Categorical
from calibrant._validate import InputError
from calibrant.plots import ConfusionDisplay, confusion


@pytest.fixture
def sure(rng):
    p = rng.dirichlet(np.full(4, 0.3), 600)
    q = 0.6 * p + 0.1
    return (q.cumsum(axis=1) < rng.random((600, 1))).sum(axis=1), p


def test_gaps_are_mean_claims_less_shares(sure):
    y, p = sure
    cells = ConfusionDisplay.from_predictions(y, p, n_resamples=39).tables["cells"]
    for row in cells.rows():
        i, j = int(row["favoured"]), int(row["class"])
        rows = p.argmax(axis=1) == i
        assert row["claimed"] == pytest.approx(p[rows, j].mean())
        assert row["happened"] == pytest.approx((y[rows] == j).mean())
        assert row["gap"] == pytest.approx(row["claimed"] - row["happened"])
        assert row["weight"] == rows.sum()
    np.testing.assert_allclose(cells["gap"].reshape(4, 4).sum(axis=1), 0, atol=1e-12)


def test_whole_weights_count_as_copies(sure):
    y, p = sure
    times = np.arange(len(y)) % 3
    one = ConfusionDisplay.from_predictions(y, p, sample_weight=times, n_resamples=39).tables["cells"]
    other = ConfusionDisplay.from_predictions(np.repeat(y, times), np.repeat(p, times, axis=0), n_resamples=39)
    for name in ("weight", "claimed", "happened"):
        np.testing.assert_allclose(one[name], other.tables["cells"][name])


def test_cells_beyond_chance_are_framed(sure):
    display = confusion(*sure, n_resamples=199)
    cells = display.tables["cells"]
    frames = [patch for patch in display.ax_.patches if not patch.get_fill()]
    assert 0 < len(frames) == (cells["adjusted"] <= 0.05).sum()
    shown = {text.get_text() for text in display.ax_.texts}
    assert f"{100 * cells['gap'][0]:+.0f}" in shown


def test_many_classes_show_those_that_stand_out(rng):
    p = rng.dirichlet(np.full(30, 0.1), 800)
    y = (p.cumsum(axis=1) < rng.random((800, 1))).sum(axis=1)
    wrong = p.argmax(axis=1) == 7
    y[wrong] = 12
    display = confusion(np.minimum(y, 29), p, max_classes=5, n_resamples=99)
    cells = display.tables["cells"]
    assert {"7", "12"} <= set(cells["class"].tolist())
    assert len(set(cells["class"].tolist())) <= 5
    assert "of 30" in display.ax_.get_xlabel()


@pytest.mark.parametrize(("y", "p"), [([0], [0.3]), ([1, 1, 0], [[0.2, 0.8]] * 3), ([0, 1], [[1.0, 0.0], [0.0, 1.0]])])
def test_little_data_is_drawn(y, p):
    display = confusion(y, p, n_resamples=39)
    assert np.isfinite(display.tables["cells"]["gap"]).all()
    assert "nan" not in display.to_svg()


def test_hostile_names_are_text(sure):
    y, p = sure
    names = ["<script>", "$\\frac{", "x" * 300, "‮rtl 🙂"]
    svg = ConfusionDisplay.from_predictions(np.array(names)[y], Categorical(p, names), n_resamples=39).to_svg()
    assert "<script>" not in svg
    assert "x" * 17 not in svg


def test_other_predictions_are_refused():
    with pytest.raises(InputError, match="classes are confused, and these are Bernoulli predictions"):
        confusion([[0, 1]], Bernoulli([[0.2, 0.4]]))
    with pytest.raises(InputError, match="max_classes must be a whole number of at least 2"):
        confusion([0, 1], [0.2, 0.4], max_classes=1)
