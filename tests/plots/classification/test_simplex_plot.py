import numpy as np
import pytest

from calibrant._validate import InputError
from calibrant.plots import SimplexDisplay, simplex
from calibrant.plots.classification.simplex_plot import CORNERS


@pytest.fixture
def sure(rng):
    p = rng.dirichlet(np.full(3, 0.5), 900)
    q = 0.6 * p + 0.4 / 3
    return (q.cumsum(axis=1) < rng.random((900, 1))).sum(axis=1), p


def test_cells_hold_means_and_frequencies(sure):
    y, p = sure
    cells = SimplexDisplay.from_predictions(y, p, n_cells=4, n_resamples=39).tables["cells"]
    key = np.minimum((4 * p).astype(int), 3)
    rows = (key == key[0]).all(axis=1)
    assert rows.sum() >= 10
    found = [r for r in cells.rows() if r["claimed_0"] == pytest.approx(p[rows, 0].mean())]
    (cell,) = found
    for j in range(3):
        assert cell[f"claimed_{j}"] == pytest.approx(p[rows, j].mean())
        assert cell[f"happened_{j}"] == pytest.approx((y[rows] == j).mean())
    assert cell["rows"] == rows.sum()


def test_arrows_run_from_claims_to_outcomes(sure):
    display = simplex(*sure, n_resamples=99)
    cells = display.tables["cells"]
    arrows = [note for note in display.ax_.texts if hasattr(note, "arrow_patch") and note.arrow_patch is not None]
    assert len(arrows) == cells.n_rows
    ends = sorted(tuple(np.round(arrow.xy, 9)) for arrow in arrows)
    observed = np.stack([cells[f"happened_{j}"] for j in range(3)], axis=1) @ CORNERS
    np.testing.assert_allclose(ends, sorted(map(tuple, np.round(observed, 9))), atol=1e-8)
    assert display.tables["cells"]["adjusted"].min() == 0.01


def test_small_cells_are_left_out_but_never_all():
    p = np.array([[0.9, 0.05, 0.05]] * 4 + [[0.1, 0.8, 0.1]])
    assert SimplexDisplay.from_predictions([0, 0, 1, 0, 1], p, n_resamples=39).tables["cells"].n_rows == 1
    assert SimplexDisplay.from_predictions([0, 1], p[[0, -1]], n_resamples=39).tables["cells"].n_rows == 2


def test_three_classes_are_needed():
    with pytest.raises(InputError, match="probabilities of three classes; got .* 2 classes"):
        simplex([0, 1], [0.2, 0.4])
