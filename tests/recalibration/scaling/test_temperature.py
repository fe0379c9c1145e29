import json

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from calibrant import (
    Bernoulli,
    Categorical,
    Gamma,
    Laplace,
    LogLoss,
    LogNormal,
    MultivariateNormal,
    Normal,
    Poisson,
    StudentT,
)
from calibrant._validate import InputError
from calibrant.distributions import Beta, Uniform
from calibrant.lab import Tempered
from calibrant.recalibration import Temperature, VectorScaling
from calibrant.recalibration.maps import Map
from calibrant.recalibration.scaling.temperature import Here, PowerLoss, likeliest_power


@pytest.mark.parametrize("k", [2, 3, 50])
def test_the_temperature_that_made_the_labels(k, rng):
    """True probabilities are those predicted, at temperature 2; the likelihood finds it within four standard errors."""
    y, p = Tempered(k, 2.0).draw(4000, rng)
    fitted = Temperature().fit(y, p)
    again = [Temperature().find(y[i::8], p[np.arange(i, 4000, 8)], None).map.temperature for i in range(8)]
    assert fitted.map.temperature == pytest.approx(2.0, abs=4 * np.std(again) / np.sqrt(8))
    assert fitted.scores["change"][0] < -3 * fitted.scores["error"][0]
    assert fitted.is_converged


def test_it_minimises_the_log_loss(rng):
    """A second route: the logits divided by T."""
    y, p = Tempered(4, 1.7).draw(500, rng)
    logits = np.log(p.matrix)
    w = rng.random(500)

    def loss(t):
        z = logits / t
        return np.average(np.log(np.exp(z).sum(axis=1)) - z[np.arange(500), y], weights=w)

    expected = minimize_scalar(loss, bounds=(0.1, 10), method="bounded", options={"xatol": 1e-10}).x
    assert Temperature().fit(y, p, sample_weight=w, folds=0).map.temperature == pytest.approx(expected, rel=1e-6)


def losses_of_powers(y, p, b):
    """The log losses of ``p^b``, straight from the definition."""
    powers = p ** np.asarray(b)[..., None, None]
    return -np.log(powers[..., np.arange(len(y)), y] / powers.sum(axis=-1)).mean(axis=-1)


def test_the_slope_is_0_there(rng):
    """More exact than a search by values can be: its last digits are rounding, those of slopes are not."""
    y, p = Tempered(4, 1.7).draw(500, rng)
    b = 1 / Temperature().fit(y, p, folds=0).map.temperature
    d = np.log(p.matrix)
    share = np.exp(b * d)
    share /= share.sum(axis=1, keepdims=True)
    assert abs(((share * d).sum(axis=1) - d[np.arange(500), y]).mean()) < 1e-14


def test_derivatives_are_those_of_the_loss(rng):
    y, p = Tempered(5, 1.7).draw(60, rng)
    logs = np.log(p.matrix)
    logs -= logs.max(axis=1, keepdims=True)
    at = PowerLoss(logs, logs[np.arange(60), y], np.full(60, 1 / 60)).at
    h = 1e-4
    losses = losses_of_powers(y, p.matrix, [0.8 - h, 0.8, 0.8 + h])
    assert at(0.8).loss == pytest.approx(losses[1], rel=1e-12)
    assert at(0.8).slope == pytest.approx((losses[2] - losses[0]) / (2 * h), rel=1e-6)
    assert at(0.8).curvature == pytest.approx((losses[2] - 2 * losses[1] + losses[0]) / h**2, rel=1e-6)


class Counting:
    """A function of a power that counts how often it was asked."""

    def __init__(self, slope, curvature):
        self.slope, self.curvature, self.asked = slope, curvature, 0

    def __call__(self, b):
        self.asked += 1
        return Here(0.0, float(self.slope(b)), float(self.curvature(b)))


@pytest.mark.parametrize("best", [1e-2, 0.3, 1.0, 5.0, 900.0])
def test_newton_inside_a_bracket(best):
    for slope, curvature in (
        (lambda b: b - best, lambda _: 1.0),
        (lambda b: np.arctan(50 * (b - best)), lambda b: 50 / (1 + 2500 * (b - best) ** 2)),  # plain steps leave it
        (lambda b: np.log(b / best), lambda b: 1 / b),
        (lambda b: np.sign(b - best) * 1e-3 + (b - best) * 1e-9, lambda _: 1e-9),  # a kink
    ):
        at = Counting(slope, curvature)
        found = likeliest_power(at, 1.0)
        assert found.is_converged
        assert not found.is_end
        assert found.power == pytest.approx(best, rel=1e-6)
        assert at.asked < 60


def test_an_optimum_at_the_end_is_found_at_once():
    falling = Counting(lambda b: -np.exp(-2 * b), lambda b: 2 * np.exp(-2 * b))
    assert likeliest_power(falling, 1.0).power == pytest.approx(np.exp(7))
    assert falling.asked <= 5
    rising = Counting(lambda b: 1 + b, lambda _: 1.0)
    assert likeliest_power(rising, 1.0).power == pytest.approx(np.exp(-7))


def test_few_passes_over_the_rows(rng, monkeypatch):
    """Newton's method: five or so from the predictions, three from a temperature that is near."""
    y, p = Tempered(10, 1.7).draw(5_000, rng)
    asked, at = [], PowerLoss.at
    monkeypatch.setattr(PowerLoss, "at", lambda self, b: asked.append(b) or at(self, b))
    fitted = Temperature().fit(y, p, folds=0)
    assert len(asked) <= 6
    asked.clear()
    Temperature().find_near(fitted.map, y[:4_000], p[:4_000], None)
    assert len(asked) <= 3


@pytest.mark.parametrize(
    ("family", "power"),
    [(lambda s: Normal(np.zeros(3000), np.full(3000, s)), 2), (lambda s: Laplace(np.zeros(3000), np.full(3000, s)), 1)],
    ids=["normal", "laplace"],
)
def test_families_of_real_targets(family, power, rng):
    """Predictions half as wide as the truth: variances times 4, or scales times 2."""
    y = family(1.0).sample(rng, 1)[0]
    fitted = Temperature().fit(y, family(0.5))
    assert fitted.map.temperature == pytest.approx(2**power, rel=0.1)
    assert fitted(family(0.5)).scale == pytest.approx(np.full(3000, 0.5 * fitted.map.temperature ** (1 / power)))


def test_several_dimensions(rng):
    p = MultivariateNormal(np.zeros((2000, 2)), scale=np.ones(2000))
    y = 3 * p.sample(rng, 1)[0]
    assert Temperature().fit(y, p).map.temperature == pytest.approx(9, rel=0.1)


@pytest.mark.parametrize("family", [LogNormal, Gamma, Beta])
@pytest.mark.parametrize("temperature", [0.25, 4.0])
def test_positive_targets_keep_their_centre(family, temperature, rng):
    """Targets drawn at a temperature have it; what tempering leaves as it is stays right."""
    predictions = family.example(rng, 3000)
    fitted = Temperature().fit(predictions.temper(temperature).sample(rng, 1)[0], predictions, folds=0)
    assert fitted.map.temperature == pytest.approx(temperature, rel=0.1)
    tempered = fitted(predictions)
    same = (lambda p: p.quantile(np.array([0.5]))) if family is LogNormal else (lambda p: p.mean)
    assert same(tempered) == pytest.approx(same(predictions), rel=1e-9)


def test_tails_can_be_too_heavy_for_a_temperature(rng):
    """Student t predictions with 3 degrees of freedom have temperatures up to 4."""
    predictions = StudentT(np.full(2000, 3.0), 0.0, 1.0)
    fitted = Temperature().fit(predictions.temper(2.0).sample(rng, 1)[0], predictions, folds=0)
    assert fitted.map.temperature == pytest.approx(2.0, rel=0.1)
    hot = Temperature().fit(1e6 * predictions.sample(rng, 1)[0], predictions, folds=0)
    assert 3.5 < hot.map.temperature < 4
    with pytest.raises(InputError, match="some of these StudentT predictions have no temperature of"):
        fitted(StudentT([0.5], 0.0, 1.0))


def test_the_order_of_classes_stays(rng):
    y, p = Tempered(5, 2.0).draw(200, rng)
    found = Temperature().fit(y, p)(p)
    assert np.array_equal(found.matrix.argsort(axis=1), p.matrix.argsort(axis=1))


def test_relabelling_changes_nothing(rng):
    y, p = Tempered(4, 2.0).draw(200, rng)
    order = np.array([2, 0, 3, 1])
    found = Temperature().fit(y, p, folds=0).map.temperature
    again = Temperature().fit(np.argsort(order)[y], p.matrix[:, order], folds=0).map.temperature
    assert again == pytest.approx(found, rel=1e-7)


def test_weights_equal_repetition(rng):
    y, p = Tempered(3, 2.0).draw(100, rng)
    times = rng.integers(0, 4, 100)
    rows = np.repeat(np.arange(100), times)
    found = Temperature().fit(y, p, sample_weight=times, folds=0).map.temperature
    assert found == pytest.approx(Temperature().fit(y[rows], p[rows], folds=0).map.temperature, rel=1e-7)


@pytest.mark.parametrize("k", [2, 3])
def test_0_and_1_are_put_right(k, rng):
    """Ten votes of a forest; the truth is softer: no loss is infinite after the map."""
    truth = rng.dirichlet(np.ones(k), 1_500)
    votes = np.stack([rng.multinomial(10, row) for row in truth]) / 10
    y = np.array([rng.choice(k, p=row) for row in truth])
    fitted = Temperature().fit(y, votes)
    assert fitted.map.temperature > 1
    assert fitted.map.least == pytest.approx(0.05)
    assert "rows had probability 0 for what happened, none after the map" in fitted.notes[0]
    assert np.isfinite(fitted.scores["after"]).all()
    assert fitted.scores["change"][0] < -2 * fitted.scores["error"][0]
    assert not fitted.is_worse


def test_zeros_that_were_right_change_nothing_else(rng):
    """0 counts as the smallest other probability, so that no class overtakes another."""
    y, p = Tempered(3, 2.0).draw(300, rng)
    with_zeros = np.vstack([p.matrix, [[0.0, 0.4, 0.6]]])
    fitted = Temperature().fit(np.append(y, 2), with_zeros, folds=0)
    assert fitted.map.least <= p.matrix.min()
    assert fitted.notes == ()
    assert np.array_equal(fitted(with_zeros).argsort(axis=1), with_zeros.argsort(axis=1))


def test_separated_classes_reach_the_end():
    """Always right: the colder the better; the map is finite all the same."""
    p = np.array([[0.6, 0.4], [0.3, 0.7]] * 10)
    fitted = Temperature().fit([0, 1] * 10, p)
    assert fitted.notes == ("the likelihood grows up to the end of the temperatures considered",)
    assert np.all(np.isfinite(fitted(p)))


@pytest.mark.parametrize("p", [np.full((12, 3), 1 / 3), np.full(12, 0.5)], ids=str)
def test_predictions_that_no_temperature_changes(p):
    y = [0, 1, 2] * 4 if p.ndim == 2 else [1] * 12
    assert Temperature().fit(y, p)(p) == pytest.approx(p)


@pytest.mark.parametrize("p", [np.eye(3)[[0, 1, 2] * 4], np.full(12, 1.0), np.full(12, 0.9)], ids=str)
def test_what_was_always_right_is_left_half_a_nat_short_of_certain(p):
    y = np.array([0, 1, 2] * 4 if p.ndim == 2 else [1] * 12)
    fitted = Temperature().fit(y, p, folds=0)
    found = fitted(p)
    right = found[np.arange(12), y] if p.ndim == 2 else found
    assert -np.log(right).sum() == pytest.approx(0.5, rel=0.02)
    assert np.isfinite(Temperature().fit(y, p).scores["after"]).all()


def test_json(rng):
    fitted = Temperature().fit(*Tempered(3, 2.0).draw(100, rng))
    again = Map.from_dict(json.loads(json.dumps(fitted.map.to_dict())))
    assert again == fitted.map


def test_float32(rng):
    y, p = Tempered(3, 2.0).draw(300, rng)
    single = p.matrix.astype(np.float32)
    found = Temperature().fit(y, single, folds=0).map.temperature
    assert found == pytest.approx(Temperature().fit(y, single.astype(float), folds=0).map.temperature, rel=1e-4)


def test_other_numbers_of_classes_are_refused(rng):
    fitted = Temperature().fit([0, 1, 2, 1], rng.dirichlet(np.ones(3), 4), folds=0)
    with pytest.raises(
        InputError, match="fitted on 3 classes and y_pred has 2: fit it on predictions of the same model"
    ):
        fitted([0.2, 0.8])


def test_bad_input():
    with pytest.raises(InputError, match="Bernoulli predictions have no temperature"):
        Temperature().fit([[0, 1]] * 6, Bernoulli([[0.2, 0.7]] * 6))
    with pytest.raises(InputError, match="Poisson predictions have no temperature"):
        Temperature().fit([1, 2, 3, 4, 5], Poisson([1.0, 2.0, 3.0, 4.0, 5.0]))
    fitted = Temperature().fit([0, 1, 1, 0, 1], [0.2, 0.7, 0.6, 0.4, 0.3])
    with pytest.raises(InputError, match="fitted on Categorical predictions; got Normal"):
        fitted(Normal([0.0], [1.0]))
    assert LogLoss()([0, 1], fitted(Categorical([0.2, 0.9]))).value > 0


@pytest.mark.parametrize("recalibrator", [Temperature(), VectorScaling()])
def test_no_gradient_passes_through_a_fit(recalibrator, rng):
    """A tensor that records what is done with it is a table of numbers like any other, and nothing warns."""
    torch = pytest.importorskip("torch")
    p, y = rng.dirichlet(np.ones(3), 60), rng.integers(0, 3, 60)
    found = recalibrator.fit(torch.tensor(y), torch.tensor(p, requires_grad=True)).map
    assert found.to_dict() == recalibrator.fit(torch.tensor(y), torch.tensor(p)).map.to_dict()


def test_rows_that_were_called_impossible_are_told():
    y, flat = np.linspace(0.05, 0.95, 40), Uniform(np.zeros(40), 1.0)
    found = Temperature().fit(np.append(y[:39], 5.0), flat, folds=0)
    assert "1 row had probability 0 for what happened, at any temperature" in found.notes
    with pytest.raises(InputError, match="every row had probability 0 for what happened: no temperature changes that"):
        Temperature().fit(y + 7, flat, folds=0)


def test_a_search_that_does_not_end_says_so():
    slopes = iter([-1.0, 1.0] * 1000)
    found = likeliest_power(lambda b: Here(0.0, next(slopes), 0.0), 1.0)
    assert not found.is_converged
