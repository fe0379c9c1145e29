import numpy as np
import pytest

from calibrant import CRPS, Categorical, Ensemble, ExactTest, MultivariateNormal, Normal, Poisson
from calibrant._validate import InputError
from calibrant.estimators import EnergyScore

MEMBERS = np.array([[[0.0, 1.0], [0.5, -1.0], [1.0, 0.0]], [[1.0, 1.0], [2.0, 2.0], [0.0, 3.0]]])
Y = np.array([[0.2, 0.3], [1.5, 0.5]])


def test_members_of_scoringrules():
    """Values of es_ensemble, estimators "nrg" and "fair", scoringrules 0.10.0."""
    plain, fair = EnergyScore(), EnergyScore(fair=True)
    assert plain.losses(Y, Ensemble(MEMBERS)) == pytest.approx([0.461770327298388, 1.080535017634165], rel=1e-13)
    assert fair.losses(Y, Ensemble(MEMBERS)) == pytest.approx([0.206559195968843, 0.75351560000235], rel=1e-13)


def test_numbers_have_their_ranked_score(rng):
    y, members = rng.normal(size=30), rng.normal(size=(30, 7))
    for fair in (False, True):
        wanted = CRPS(fair=fair)(y, Ensemble(members)).value
        assert EnergyScore(fair)(y, Ensemble(members)).value == pytest.approx(wanted, rel=1e-12)
        assert EnergyScore(fair)(y[:, None], Ensemble(members[:, :, None])).value == pytest.approx(wanted, rel=1e-12)


def test_draws_are_without_bias(rng):
    """Of an isotropic normal in three dimensions, E||Y - mean|| = scale sqrt(8/pi) and E||Y - Y'|| = sqrt2 times that."""
    forecast = MultivariateNormal(np.zeros((50, 3)), 2.0)
    exact = 2 * np.sqrt(8 / np.pi) * (1 - np.sqrt(2) / 2)
    values = np.array([EnergyScore(n_draws=4, seed=seed)(np.zeros((50, 3)), forecast).value for seed in range(300)])
    assert abs(values.mean() - exact) < 5 * values.std() / np.sqrt(300)


def test_the_right_forecast_scores_best(rng):
    y = rng.normal(size=(1500, 2))
    scores = {s: EnergyScore()(y, MultivariateNormal(np.zeros((1500, 2)), s)).value for s in (0.7, 1.0, 1.4)}
    assert min(scores, key=scores.get) == 1.0


def test_resamples_share_the_distances_of_members(rng):
    """The statistic in bulk, and a test that finds an ensemble too wide."""
    members = Ensemble(rng.normal(size=(60, 20, 2)))
    result = ExactTest(EnergyScore(), n_resamples=99, alternative="less")(0.2 * rng.normal(size=(60, 2)), members)
    assert result.pvalue == 0.01


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: EnergyScore()([0], Categorical([0.2])), r"got Categorical predictions: use Brier\(\)"),
        (
            lambda: EnergyScore()([1], Poisson([0.2])),
            r"real numbers and vectors; got Poisson predictions: use CRPS\(\)",
        ),
        (lambda: EnergyScore(fair=True)([0.0], Normal([0.0], 1.0)), "got Normal predictions"),
        (lambda: EnergyScore(fair=True)([0.0], Ensemble([[0.0]])), "needs at least 2 members"),
        (lambda: EnergyScore(n_draws=1), "n_draws must be a whole number of at least 2"),
        (lambda: EnergyScore()(np.zeros((2, 3)), Ensemble(MEMBERS)), r"y_true must be \(n, 2\)"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
