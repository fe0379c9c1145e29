import numpy as np
import pytest

from calibrant import ECE, KCE, KDE, SKCE, Brier, ClassWise, LogLoss, PositiveClass, SmoothECE, TopLabel, Variational
from calibrant._validate import InputError
from calibrant.estimators import (
    UCME,
    CanonicalECE,
    DensityECE,
    GivenLocations,
    KolmogorovSmirnov,
    Kuiper,
    Lp,
    TangentKDE,
)
from calibrant.kernels import Energy, Exponential, Gaussian, Matern
from calibrant.lab import (
    BetaScores,
    LeastSquares,
    Localised,
    LogisticCurve,
    ScoreWorld,
    Sharp,
    Sigmoid,
    Smooth,
    SyntheticNormal,
    Tempered,
    TwiceTempered,
    World,
    WrongScale,
)
from calibrant.lab.world import check_positive

NORMAL = SKCE(Exponential(1.0), Gaussian(1.0))
CLASSES = SKCE(Exponential(0.5))

TRUTHS = [
    (SyntheticNormal(False), NORMAL),
    (SyntheticNormal(False, 10), NORMAL),
    (SyntheticNormal(False, 2), SKCE(Exponential(0.3), Gaussian(0.2))),
    (LeastSquares(), NORMAL),
    (LeastSquares(30, training_seed=1), SKCE(Gaussian(0.5), Energy())),
    (WrongScale(0.5), NORMAL),
    (WrongScale(2.0), SKCE(Exponential(2.0), Exponential(1.0))),
    (Tempered(2, 2.0), CLASSES),
    (Tempered(3, 3.0), CLASSES),
    (Tempered(3, 0.4, 0.5), SKCE(Matern(1.5, 1.0))),
    (Sigmoid(0.4, 0.3, concentration=0.5), CLASSES),
    (Smooth(0.5), CLASSES),
    (Sharp(1.0, concentration=2.0), SKCE(Exponential(0.01))),
    (Localised(0.9), SKCE(Exponential(0.05))),
]


@pytest.mark.parametrize(("world", "estimator"), TRUTHS, ids=lambda x: getattr(x, "name", ""))
def test_the_population_error_by_simulation(world, estimator):
    """Quadrature lies within four standard errors of an unbiased estimate; and those are small."""
    y, predictions = world.draw(100_000 if estimator.on_targets is None else 20_000, np.random.default_rng(1))
    found = SKCE(estimator.on_predictions, estimator.on_targets, block=200)(y, predictions)
    truth = world.truth(estimator)
    assert abs(found.value - truth) < 4 * found.standard_error
    assert found.standard_error < 0.05 * truth


@pytest.mark.parametrize("world", [Tempered(2, 2.0), Tempered(3, 0.5), Sigmoid(0.4, 0.3), Sharp(), Localised(1.0)])
@pytest.mark.parametrize("score", [Brier(), LogLoss()])
def test_the_expected_score_by_simulation(world, score):
    found = score(*world.draw(100_000, np.random.default_rng(2)))
    assert abs(found.value - world.truth(score)) < 4 * found.standard_error


def test_the_binned_error_stands_for_a_mean_gap():
    """By hand: the truth is 1/2 where claims are uniform; or a ramp above 0.9 that ends at 0.4."""
    assert Smooth(1.0).truth(ECE()) == pytest.approx(0.25, rel=1e-5)
    assert Smooth(1.0).truth(ECE(norm=2, lens=PositiveClass())) == pytest.approx(12**-0.5, rel=1e-9)
    assert Smooth(1.0).truth(ECE(norm=np.inf)) == pytest.approx(0.5, abs=1e-5)
    assert Localised(0.4).truth(ECE()) == pytest.approx(0.02, rel=1e-4)


def test_the_binned_error_of_many_rows_is_near_its_truth():
    world = Sigmoid(0.4, 0.3)
    assert ECE()(*world.draw(200_000, np.random.default_rng(3))).value == pytest.approx(world.truth(ECE()), abs=0.004)


@pytest.mark.parametrize(
    "estimator",
    [NORMAL, SKCE(), KCE(), UCME(), ECE(lens=ClassWise()), Variational(), SmoothECE(), DensityECE(), Kuiper()],
    ids=lambda e: type(e).__name__,
)
def test_calibrated_worlds_have_no_error(estimator):
    assert SyntheticNormal().truth(estimator) == 0
    assert Tempered(10).truth(estimator) == 0


def test_calibrated_worlds_have_a_score():
    assert Sigmoid().truth(Brier()) == pytest.approx(1 / 6, rel=1e-10)  # E p (1 - p)


@pytest.mark.parametrize(
    ("world", "estimator"),
    [
        (Smooth(), SKCE()),  # length scales depend on the data
        (WrongScale(2.0), SKCE(Exponential(1.0))),
        (WrongScale(2.0), SKCE(Exponential(1.0), Gaussian())),
        (WrongScale(2.0), SKCE(Exponential(1.0), Matern(1.5, 1.0))),  # no closed form
        (WrongScale(2.0), LogLoss()),
        (Tempered(4, 2.0), CLASSES),  # more than two features
        (Tempered(3, 2.0), ECE(lens=ClassWise())),
        (Tempered(3, 2.0), KDE(lens=TopLabel())),
        (Tempered(3, 2.0), SmoothECE()),
        (Tempered(4, 2.0), Variational(lens=TopLabel())),
        (Smooth(), DensityECE(lens=ClassWise())),
        (Smooth(), UCME(locations=GivenLocations([0], [0.5]))),
        (Smooth(), lambda y, p: 0.0),
    ],
)
def test_what_is_not_known_is_none(world, estimator):
    assert world.truth(estimator) is None


def test_a_world_is_one_method_and_one_fact():
    class Coin(World):
        is_calibrated = False

        def given(self, u):
            from calibrant import Categorical

            return Categorical(u[:, 0] * 0 + 0.9), Categorical(u[:, 0] * 0 + 0.5)

    y, predictions = Coin().draw(1000, np.random.default_rng(0))
    assert 420 < y.sum() < 580
    assert Coin().truth(ECE()) == pytest.approx(0.4)
    assert Coin().truth(CLASSES) == pytest.approx(2 * 0.4**2)
    assert len(predictions) == 1000


def test_same_seed_same_rows():
    first, second = (Tempered(4).draw(20, np.random.default_rng(5)) for _ in range(2))
    assert np.array_equal(first[0], second[0])
    assert np.array_equal(first[1].probs, second[1].probs)


def test_names_tell_worlds_apart():
    assert Sharp(0.3).name == "Sharp(concentration=1.0, strength=0.3, frequency=10.0)"


@pytest.mark.parametrize("value", [0, -1.0, np.inf, np.nan])
def test_positive_settings(value):
    with pytest.raises(InputError, match="factor must be a positive number; got"):
        check_positive(value, "factor")


@pytest.mark.parametrize(
    ("world", "estimator"),
    [
        (TwiceTempered(4), KDE(1)),
        (TwiceTempered(4), TangentKDE(2)),
        (TwiceTempered(4), CanonicalECE(norm=2)),
        (TwiceTempered(4), KDE(2, root=False)),
        (Tempered(3, 2.0), KDE(3)),
        (Sigmoid(0.4), KDE(1)),
    ],
    ids=repr,
)
def test_errors_of_whole_vectors_by_simulation(world, estimator):
    p, q = world.given(np.random.default_rng(0).random((100_000, world.features)))
    gap = np.abs(q.matrix - p.matrix)
    gap = gap[:, 1:] if p.n_classes == 2 else gap
    power = estimator.norm if isinstance(estimator, CanonicalECE) else estimator.p
    values = (gap**power).sum(axis=1)
    truth = world.truth(estimator) ** (power if getattr(estimator, "root", True) else 1)
    assert truth == pytest.approx(values.mean(), abs=4 * values.std() / np.sqrt(100_000))


def test_the_largest_gap_of_vectors():
    p, q = Tempered(3, 2.0).given(np.random.default_rng(0).random((100_000, 2)))
    largest = Tempered(3, 2.0).truth(CanonicalECE(norm=np.inf))
    assert largest == pytest.approx(np.abs(p.matrix - q.matrix).max(), rel=0.02)


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (Variational(), 1 / 4),
        (Variational(Lp(2)), 1 / 4),
        (Variational(Lp(1), lens=PositiveClass()), 1 / 4),
        (Variational(Brier()), 1 / 12),
        (Variational(LogLoss()), 1 - np.log(2)),
        (DensityECE(), 1 / 4),
        (DensityECE(norm=2), 12**-0.5),
        (KolmogorovSmirnov(), 1 / 8),
        (Kuiper(), 1 / 8),
        (SmoothECE(bandwidth=10), 0.0),
    ],
    ids=repr,
)
def test_one_half_is_true_where_claims_are_even_by_hand(estimator, expected):
    """The walk of residuals is ``(t^2 - t) / 2``; smoothed over everything they cancel."""
    assert Smooth(1.0).truth(estimator) == pytest.approx(expected, abs=2e-6)
    assert ScoreWorld(BetaScores(), LogisticCurve(0.0, 0.0)).truth(estimator) == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize(
    "estimator", [SmoothECE(), SmoothECE(0.05), KolmogorovSmirnov(), Kuiper(), DensityECE()], ids=repr
)
@pytest.mark.parametrize("world", [Sigmoid(0.4, 0.3, concentration=0.5), Smooth(0.5)], ids=repr)
def test_what_endless_data_show_by_many_rows(world, estimator):
    found = float(estimator(*world.draw(200_000, np.random.default_rng(4))))
    assert found == pytest.approx(world.truth(estimator), abs=0.005)


@pytest.mark.parametrize("loss", [Lp(1), Lp(2), Lp(np.inf), Brier(), LogLoss()], ids=repr)
def test_what_recalibration_can_remove_by_simulation(loss):
    """The mean distance, and the loss of what was predicted less the loss of what is true."""
    world = TwiceTempered(4)
    p, q = (found.matrix for found in world.given(np.random.default_rng(0).random((100_000, 3))))
    removed = {
        Brier(): lambda: ((p - q) ** 2).sum(axis=1),
        LogLoss(): lambda: (q * np.log(q / p)).sum(axis=1),
    }.get(loss, lambda: np.linalg.norm(q - p, loss.p, axis=1))()
    truth = world.truth(Variational(loss))
    assert truth == pytest.approx(removed.mean(), abs=4 * removed.std() / np.sqrt(100_000))
