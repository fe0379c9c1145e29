import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from calibrant import Categorical, Ensemble, Laplace, Normal
from calibrant._validate import InputError
from calibrant.recalibration.predictive.quantile import at_normal_scores, check_levels, mid_scores, normal_scores

LOC, SCALE = np.array([0.0, 5.0]), np.array([1.0, 3.0])


@pytest.mark.parametrize("z", [-30.0, -9.0, -1.0, 0.0, 0.5, 9.0, 30.0])
def test_scores_of_normal_predictions_are_standardised_residuals(z):
    predictions = Normal(LOC, SCALE)
    assert normal_scores(predictions, LOC + z * SCALE) == pytest.approx(z, rel=1e-9)
    assert at_normal_scores(predictions, np.array([z]))[:, 0] == pytest.approx(LOC + z * SCALE, rel=1e-9)


@pytest.mark.parametrize("y", [-300.0, -2.0, 1.0, 40.0, 300.0])
def test_both_tails_of_laplace_predictions_are_fine(y):
    predictions = Laplace([0.0], 1.0)
    z = normal_scores(predictions, np.array([y]))
    assert z == pytest.approx(np.sign(y) * -ndtri(np.exp(-abs(y)) / 2))
    assert at_normal_scores(predictions, z)[0] == pytest.approx([y])


def test_stacks_of_targets():
    assert normal_scores(Normal(LOC, SCALE), np.stack([LOC, LOC + SCALE])) == pytest.approx(np.array([[0, 0], [1, 1]]))


def test_certainty_is_infinite():
    members = Ensemble([[1.0, 2.0]])
    assert normal_scores(members, np.array([0.0])) == -np.inf
    assert normal_scores(members, np.array([3.0])) == np.inf
    assert at_normal_scores(members, np.array([-np.inf, 0.0, np.inf])).tolist() == [[1, 1, 2]]
    assert at_normal_scores(Normal([0.0], 1.0), np.array([-np.inf, np.inf])).tolist() == [[-np.inf, np.inf]]


@pytest.mark.parametrize("family", [Normal, Laplace])
def test_what_is_not_certain_is_finite(family):
    assert np.all(np.isfinite(at_normal_scores(family([0.0], 1.0), np.array([-50.0, 50.0]))))


def test_members_in_the_middle_of_their_rank():
    members = Ensemble([[1.0, 2.0, 3.0]] * 4)
    assert ndtr(mid_scores(members, np.array([0.0, 1.5, 2.5, 9.0]))) == pytest.approx(np.array([1, 3, 5, 7]) / 8)


def test_there_and_back_does_not_skip_a_member(rng):
    m = 37
    members = Ensemble(np.sort(rng.normal(size=(1, m)), axis=1))
    z = np.array([normal_scores(members, members.members[:, j])[0] for j in range(m)])
    np.testing.assert_array_equal(at_normal_scores(members, z), members.members)


def test_classes_have_no_levels():
    with pytest.raises(InputError, match="X takes predictions of numbers that have quantiles, .* got Categorical"):
        check_levels(Categorical([0.5]), "X")
