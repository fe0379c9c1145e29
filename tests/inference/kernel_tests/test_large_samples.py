import numpy as np
import pytest

from calibrant import SKCE, Categorical, ExactTest, Normal
from calibrant._validate import InputError
from calibrant.inference import BlockTest, BootstrapTest, GammaTest, SpectralTest, WildBootstrapTest
from calibrant.inference.kernel_tests.kernel_matrix import chance_of_nothing, check_large, effective_surprises

TESTS = [SpectralTest(), GammaTest(), WildBootstrapTest(n_resamples=39), BootstrapTest(n_resamples=39), BlockTest()]


def test_the_chance_is_that_of_draws(rng):
    predictions = Categorical(rng.dirichlet([9.0, 1, 1], 6))
    favoured = np.asarray(predictions.matrix).argmax(axis=1)
    share = (predictions.sample(rng, 20_000) == favoured).all(axis=1).mean()
    chance = chance_of_nothing(predictions)
    assert abs(share - chance) < 3.3 * np.sqrt(chance * (1 - chance) / 20_000)


def test_rows_without_weight_do_not_count():
    assert chance_of_nothing(Categorical([0.5, 0.1]), np.array([1.0, 0.0])) == 0.5


@pytest.mark.filterwarnings("ignore:class 1 never occurs")
@pytest.mark.parametrize("test", TESTS, ids=lambda test: type(test).__name__)
def test_rare_events_are_refused_where_the_law_would_reject_calibrated_rows(test):
    """Forty rows of 1 %, and nothing happened: p was below 1e-9, and a calibrated model shows this in 67 % of cases."""
    y, p = np.zeros(40, int), np.full(40, 0.01)
    with pytest.raises(
        InputError, match=r"has no level here.*chance of 0.67.*use ExactTest\(SKCE\(\)\), which is exact"
    ):
        test(y, p)
    assert ExactTest(SKCE(), 39)(y, p).pvalue > 0.5


@pytest.mark.parametrize("test", TESTS, ids=lambda test: type(test).__name__)
def test_the_result_says_where_the_law_is_doubtful(test, rng):
    p = np.full(300, 0.01)
    with pytest.raises(
        InputError, match=r"y_pred expects 3.1 events of a rare kind, and at least [25]0 are needed: use ExactTest"
    ):
        test((rng.random(300) < p) * 1, p)
    p = np.full(700, 0.1)
    result = test((rng.random(700) < p) * 1, p)
    assert any("two or three times as often as it says" in note for note in result.notes)
    p = rng.random(100)
    assert not any("as often" in note for note in test((rng.random(100) < p) * 1, p).notes)


def test_surprises_of_one_kind_are_counted():
    assert effective_surprises(Categorical(np.full(1_000, 0.002))) == pytest.approx(2, rel=0.01)
    assert effective_surprises(Categorical(np.tile([0.1, 0.9], 10))) > 1e12
    many = Categorical(np.tile([[0.96, 0.02, 0.02]], (100, 1)))
    assert effective_surprises(many) == pytest.approx(100 * 0.04, rel=0.2)
    assert effective_surprises(many, np.repeat([1.0, 0.0], 50)) == pytest.approx(50 * 0.04, rel=0.2)


def test_other_predictions_are_judged_by_their_number():
    assert "15 rows are few" in check_large(SpectralTest(), Normal(np.zeros(15), 1.0))[0]
    assert check_large(SpectralTest(), Normal(np.zeros(16), 1.0)) == ()


def test_certain_predictions_leave_nothing_to_chance():
    assert check_large(SpectralTest(), Categorical([0.0, 1.0])) == ()


@pytest.mark.parametrize("test", [GammaTest, BlockTest])
def test_approximate_expectations_are_named(test, rng):
    """Logistic forecasts have no closed form with this kernel: 128 quantiles stand for each."""
    from calibrant.distributions import Logistic
    from calibrant.kernels import Exponential

    predictions = Logistic(rng.normal(size=20), 1.0)
    result = test(SKCE(Exponential(1.0), Exponential(0.3)))(predictions.sample(rng, 1)[0], predictions)
    assert result.estimate.route == "quantile"
    assert any("expectations by quantiles are approximate" in note for note in result.notes)
