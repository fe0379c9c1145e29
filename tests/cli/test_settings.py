import pytest

from calibrant import (
    CRPS,
    ECE,
    SKCE,
    AggregatedTest,
    Bernoulli,
    Brier,
    Categorical,
    Ensemble,
    ExactTest,
    Gamma,
    Laplace,
    LogLoss,
    MultivariateNormal,
    Normal,
    PITError,
    PositiveClass,
    TopLabel,
    Variational,
)
from calibrant._validate import InputError
from calibrant.cli.settings import (
    RECALIBRATORS,
    default_recalibrator,
    default_set,
    parse_estimator,
    parse_recalibrator,
    parse_test,
)
from calibrant.estimators import EnergyScore, IsotonicCurve
from calibrant.inference import SpectralTest
from calibrant.kernels import Exponential, Gaussian
from calibrant.recalibration import (
    Best,
    BetaScaling,
    Boosted,
    Default,
    Dressing,
    Isotonic,
    OneVsRest,
    QuantileRecalibration,
    Stack,
    Temperature,
    VarianceScaling,
    base,
    maps,
)


@pytest.mark.parametrize(
    ("predictions", "kinds", "lens"),
    [
        (Categorical([0.2, 0.7]), [ECE, SKCE, Brier, LogLoss], PositiveClass()),
        (Categorical([[0.2, 0.3, 0.5]]), [ECE, SKCE, Brier, LogLoss], TopLabel()),
        (Bernoulli([[0.2, 0.9]]), [ECE, Brier, LogLoss], None),
        (Normal([0.0], 1.0), [PITError, SKCE, CRPS, LogLoss], None),
        (Ensemble([[0.0, 1.0]]), [PITError, SKCE, CRPS], None),
        (MultivariateNormal([[0.0, 1.0]], 1.0), [PITError, SKCE, EnergyScore, LogLoss], None),
    ],
)
def test_what_is_shown_when_nothing_is_asked_for(predictions, kinds, lens):
    chosen = default_set(predictions)
    assert [type(e) for e in chosen] == kinds
    if lens is not None:
        assert chosen[0].lens == lens


def test_estimators_and_tests_are_their_texts():
    estimator = SKCE(Exponential(0.5) + 2.0 * Gaussian(1.0), block=5)
    assert parse_estimator(repr(estimator)) == estimator
    for test in (ExactTest(estimator, 99), AggregatedTest(), SpectralTest()):
        assert parse_test(repr(test)) == test


def test_what_cannot_be_read():
    with pytest.raises(InputError, match=r"--estimator 'TopLabel\(\)' is not an estimator"):
        parse_estimator("TopLabel()")
    with pytest.raises(InputError, match=r"--test 'ECE\(\)' is not a test: write 'ExactTest\(ECE\(\)\)'"):
        parse_test("ECE()")
    with pytest.raises(InputError, match="is not an estimator"):
        parse_test("ExactTest(TopLabel())")


def test_every_recalibrator_can_be_named():
    maps._import_all()
    derived = {*base.Recalibrator.__subclasses__(), *base.Searching.__subclasses__()} - {base.Searching}
    ours = {kind for kind in derived if kind.__module__.startswith("calibrant.")}
    assert ours <= set(RECALIBRATORS.values())


@pytest.mark.parametrize(
    "recalibrator",
    [
        Default(),
        Boosted("sklearn", last=Temperature()),
        Stack((Temperature(), OneVsRest(Isotonic(smoothed=True)))),
        Best([BetaScaling()], tries=1),
    ],
    ids=repr,
)
def test_recalibrators_are_their_texts(recalibrator):
    assert parse_recalibrator(repr(recalibrator)) == recalibrator
    estimator = Variational(Brier(), recalibrator=recalibrator)
    assert parse_estimator(repr(estimator)) == estimator


def test_a_name_means_what_its_place_says():
    assert parse_recalibrator("Isotonic()") == Isotonic()
    assert parse_estimator("Variational(Brier(), recalibrator=Isotonic())").recalibrator == Isotonic()
    assert isinstance(parse_estimator("ICI(IsotonicCurve())").curve, IsotonicCurve)


def test_recalibrators_that_cannot_be_read():
    with pytest.raises(InputError, match=r"--method .*there is no 'Temprature' \(did you mean 'Temperature'\?\)"):
        parse_recalibrator("Temprature()")
    with pytest.raises(InputError, match=r"--method .*there is no 'ECE'"):
        parse_recalibrator("ECE()")
    with pytest.raises(InputError, match=r"--method '3' is not a recalibrator"):
        parse_recalibrator("3")
    with pytest.raises(InputError, match=r"--method 'platt': there is no 'platt' \(did you mean 'Platt'\?\)"):
        parse_recalibrator("platt")
    assert parse_recalibrator("Temperature") == Temperature()


@pytest.mark.parametrize(
    ("predictions", "expected"),
    [
        (Categorical([0.5]), Default()),
        (Normal([0.0], 1.0), VarianceScaling(bias=True)),
        (Laplace([0.0], 1.0), VarianceScaling(bias=True)),
        (MultivariateNormal([[0.0, 1.0]], 1.0), VarianceScaling(bias=True)),
        (Ensemble([[0.0, 1.0]]), Dressing()),
        (Gamma([1.0], 1.0), QuantileRecalibration()),
        (Ensemble([[[0.0, 1.0]]]), Temperature()),
    ],
)
def test_the_usual_recalibrator_of_a_family(predictions, expected):
    assert default_recalibrator(predictions) == expected


def test_several_labels_have_no_recalibrator():
    with pytest.raises(InputError, match="several labels per row have no recalibrator: take them one by one"):
        default_recalibrator(Bernoulli([[0.2, 0.9]]))
