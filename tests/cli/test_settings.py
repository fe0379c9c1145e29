import pytest

from calibrant import (
    ECE,
    SKCE,
    AggregatedTest,
    Bernoulli,
    Brier,
    Categorical,
    ExactTest,
    LogLoss,
    Normal,
    PositiveClass,
    TopLabel,
)
from calibrant._validate import InputError
from calibrant.cli.settings import SETTINGS, TESTS, default_set, parse_estimator, parse_test
from calibrant.inference.spectral_test import SpectralTest
from calibrant.kernels import Exponential, Gaussian


@pytest.mark.parametrize(
    ("predictions", "kinds", "lens"),
    [
        (Categorical([0.2, 0.7]), [ECE, SKCE, Brier, LogLoss], PositiveClass()),
        (Categorical([[0.2, 0.3, 0.5]]), [ECE, SKCE, Brier, LogLoss], TopLabel()),
        (Bernoulli([[0.2, 0.9]]), [ECE, Brier, LogLoss], None),
        (Normal([0.0], 1.0), [SKCE, LogLoss], None),
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
    assert all(SETTINGS[kind.__name__] is kind for kind in TESTS)


def test_what_cannot_be_read():
    with pytest.raises(InputError, match=r"--estimator 'TopLabel\(\)' is not an estimator"):
        parse_estimator("TopLabel()")
    with pytest.raises(InputError, match=r"--test 'ECE\(\)' is not a test: write 'ExactTest\(ECE\(\)\)'"):
        parse_test("ECE()")
    with pytest.raises(InputError, match="is not an estimator"):
        parse_test("ExactTest(TopLabel())")
