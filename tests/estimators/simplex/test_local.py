"""What all means over neighbourhoods share; the estimators themselves have their own files."""

import numpy as np
import pytest

from calibrant import KDE, Categorical, ClassWise, TopLabel
from calibrant._validate import InputError
from calibrant.estimators import Sharpness, TangentKDE
from calibrant.estimators.simplex.local import shares_of_rows, signed_root, slope_of_root
from calibrant.lab import Tempered


@pytest.mark.parametrize("p", [2, 3])
def test_roots_keep_their_sign_and_their_slope(p):
    x = np.array([-0.3, 0.0, 0.2])
    assert signed_root(x, p).tolist() == pytest.approx([-(0.3 ** (1 / p)), 0, 0.2 ** (1 / p)])
    step = 1e-6
    slope = (signed_root(x + step, p) - signed_root(x - step, p)) / (2 * step)
    assert [slope_of_root(v, p, 0.05) for v in (-0.3, 0.2)] == pytest.approx(slope[[0, 2]], rel=1e-6)
    assert slope_of_root(0.2, p, 0.1) is None  # two standard errors from zero
    assert slope_of_root(0.2, 1, 0.1) == 1


def test_shares_of_rows_leave_out_the_lonely():
    alone = np.array([False, True, False])
    assert shares_of_rows(alone, None, np.zeros(3)).tolist() == [0.5, 0, 0.5]
    assert shares_of_rows(alone, np.array([1.0, 5.0, 3.0]), np.zeros(3)).tolist() == [0.25, 0, 0.75]
    with pytest.raises(InputError, match="no row has a neighbour"):
        shares_of_rows(np.array([True, True]), None, np.zeros(2))


@pytest.mark.parametrize("estimator", [KDE(2, 0.1, root=False), KDE(1, 0.1), Sharpness(0.1)], ids=repr)
def test_influences_of_several_questions_are_averaged(estimator, rng):
    """The standard error of a mean of dependent values, against the spread over data sets."""
    world, several = Tempered(3, 3.0), type(estimator)(**{**vars(estimator), "lens": ClassWise()})
    found = [several(*world.draw(250, rng)) for _ in range(80)]
    spread = np.std([e.value for e in found], ddof=1)
    assert np.mean([e.standard_error for e in found]) == pytest.approx(spread, rel=0.3)


def test_notes_are_told_once(rng):
    p = rng.dirichlet([8, 5, 5], 60)
    p[:30] = p[0]
    found = KDE(lens=ClassWise())(rng.integers(0, 3, 60), p)
    assert len(set(found.notes)) == len(found.notes)
    assert all("30 rows have copies and do not choose the bandwidth" in note for note in found.notes)


def test_resamples_in_small_parts_are_the_same(rng, monkeypatch):
    predictions = Categorical(rng.dirichlet(np.ones(3), 40))
    drawn = predictions.sample(rng, 7)
    whole = [e.given(predictions, None)(drawn) for e in (KDE(1, 0.1), TangentKDE())]
    monkeypatch.setattr("calibrant.estimators.simplex.local.INDICATORS", 1)
    parts = [e.given(predictions, None)(drawn) for e in (KDE(1, 0.1), TangentKDE())]
    assert np.array(parts) == pytest.approx(np.array(whole), rel=1e-12)


@pytest.mark.parametrize(
    ("estimator", "maps"),
    [(KDE(), 1), (KDE(2, 0.1, lens=TopLabel()), 2), (Sharpness(0.1), 2), (TangentKDE(), 7), (TangentKDE(2, 0.1), 1)],
)
def test_engines_change_no_digit(estimator, maps, rng, travelling, monkeypatch):
    """Frequencies and influences, or residuals at every bandwidth."""
    monkeypatch.setattr("calibrant._compiled.choice.MAX_PLAIN_ROWS", 100)
    p = rng.dirichlet(np.ones(3), 300)
    y = rng.integers(0, 3, 300)
    there, alone = estimator(y, p, engine=travelling), estimator(y, p)
    assert (there.value, there.standard_error) == (alone.value, alone.standard_error)
    assert travelling.maps == maps
