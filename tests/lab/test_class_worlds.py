import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import beta, binom, kstest

from calibrant._validate import InputError
from calibrant.lab import Localised, RareTop, Sharp, Sigmoid, Smooth, Tempered, TwiceTempered

TEN = np.linspace(0, 1, 11)


def in_bounds(observed, p, bins=TEN):
    """Whether the event happened as often as the mean of p in every bin, as far as chance goes in 99.9 % of all cases."""
    cell = np.digitize(p, bins[1:-1])
    for b in np.unique(cell):
        rows = cell == b
        low, high = binom.interval(1 - 0.001 / len(bins), rows.sum(), p[rows].mean())
        if not low <= observed[rows].sum() <= high:
            return False
    return True


CALIBRATED = [
    Tempered(2),
    TwiceTempered(4, second=1.0),
    Tempered(3),
    Tempered(7, concentration=0.3),
    Sigmoid(),
    Smooth(0),
    Sharp(0),
    Localised(0),
    RareTop(0),
]
WRONG = [
    Tempered(2, 1.5),
    TwiceTempered(3),
    Tempered(3, 0.6),
    Sigmoid(0.7),
    Sigmoid(1.0, 0.3),
    Smooth(0.3),
    Sharp(0.5),
    Localised(0.4),
]


@pytest.mark.parametrize("world", CALIBRATED, ids=lambda w: w.name)
def test_calibrated_worlds_do_what_they_say(world):
    y, predictions = world.draw(20_000, np.random.default_rng(1))
    assert world.is_calibrated
    for c in range(predictions.n_classes):
        assert in_bounds(y == c, predictions.probability(c))


@pytest.mark.parametrize("world", WRONG, ids=lambda w: w.name)
def test_the_others_do_not(world):
    y, predictions = world.draw(20_000, np.random.default_rng(1))
    assert not world.is_calibrated
    assert not in_bounds(y == 1, predictions.probability(1), np.linspace(0, 1, 41))


@pytest.mark.parametrize("world", WRONG, ids=lambda w: w.name)
def test_they_do_what_their_truth_says(world):
    """Frequencies agree with the true probabilities, in bins of those."""
    features, rng = np.random.default_rng(2).random((20_000, world.features)), np.random.default_rng(3)
    _, truth = world.given(features)
    assert in_bounds(truth.sample(rng, 1)[0] == 1, truth.probability(1))


@pytest.mark.parametrize(("k", "a"), [(2, 1.0), (3, 1.0), (5, 0.5), (4, 3.0)])
def test_broken_sticks_have_the_dirichlet_distribution(k, a):
    """Each class, and each sum of two, has its beta distribution."""
    p = Tempered(k, concentration=a).draw(5000, np.random.default_rng(4))[1].matrix
    parts = [(p[:, i], a) for i in range(k)] + [(p[:, 0] + p[:, -1], 2 * a)] * (k > 2)
    for values, shape in parts:
        assert kstest(values, beta(shape, k * a - shape).cdf).pvalue > 1e-4


def test_the_temperature_map_of_two_classes_is_a_sigmoid():
    u = np.random.default_rng(5).random((50, 1))
    predictions, truth = Tempered(2, 2.5).given(u)
    assert truth.probability(1) == pytest.approx(expit(logit(predictions.probability(1)) / 2.5), rel=1e-10)
    assert Smooth(0.6).given(u)[1].probs == pytest.approx(Sigmoid(0.4).given(u)[1].probs, rel=1e-12)


def test_alternatives_by_hand():
    p = np.array([0.025, 0.5, 0.925])
    assert Sharp(0.5, 10).observed(p) == pytest.approx(p + 0.5 * p * (1 - p) * [1, 0, 1], abs=1e-12)
    assert Localised(0.8).observed(p) == pytest.approx([0.025, 0.5, 0.925 - 0.8 / 4], abs=1e-12)


@pytest.mark.parametrize("world", [Smooth(1.0), Sharp(1.0), Localised(1.0), Sigmoid(0.0), Sigmoid(5.0, -3.0)])
def test_truth_stays_a_probability_up_to_certainty(world):
    q = world.observed(np.r_[0.0, np.linspace(0, 1, 1001), 1.0])
    assert np.all((q >= 0) & (q <= 1))


def test_predictions_near_the_faces_can_be_drawn():
    world = Sigmoid(0.0, concentration=0.01)
    y, predictions = world.draw(1000, np.random.default_rng(6))
    assert np.mean((predictions.probs < 1e-3) | (predictions.probs > 1 - 1e-3)) > 0.9
    assert 420 < y.sum() < 580


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Tempered(1), "n_classes must be a whole number of at least 2; got 1"),
        (lambda: Tempered(3, 0.0), "temperature must be a positive number; got 0.0"),
        (lambda: Tempered(3, concentration=-1), "concentration must be a positive number; got -1"),
        (lambda: Sigmoid(concentration=0), "concentration must be a positive number; got 0"),
        (lambda: Smooth(1.5), "strength must lie between 0 and 1; got 1.5"),
        (lambda: Sharp(0.5, 0), "frequency must be a positive number; got 0"),
        (lambda: Localised(0.5, 1), "corner must lie at 0 or above, and below 1; got 1"),
    ],
)
def test_settings_are_checked(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_twice_tempered_predictions_are_sharper_than_the_truth():
    """Each temperature divides the exponents of the even predictions it starts from."""
    predictions, truth = TwiceTempered(4, 0.5, 0.25).given(np.random.default_rng(0).random((5, 3)))
    even, _ = Tempered(4).given(np.random.default_rng(0).random((5, 3)))
    for found, power in ((truth, 2), (predictions, 8)):
        expected = even.matrix**power / (even.matrix**power).sum(axis=1, keepdims=True)
        assert found.matrix == pytest.approx(expected, rel=1e-10)


def test_the_highest_claims_of_a_rare_event_are_too_high():
    """Per 10,000 rows: events predicted and true above one half, and above 90 %; 2 % of all rows."""
    predictions, truth = RareTop(1.0).given((np.arange(1_000_000)[:, None] + 0.5) / 1_000_000)
    p, q = predictions.probability(1), truth.probability(1)
    sums = [(x[p > t].sum() / 100) for t in (0.5, 0.9) for x in (p, q)]
    assert sums == pytest.approx([39, 29, 13.2, 6], abs=0.2)
    assert p.mean() == pytest.approx(0.02, abs=5e-4)
    assert np.array_equal(p[p <= 0.5], q[p <= 0.5])
