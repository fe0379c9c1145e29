from dataclasses import replace

import numpy as np
import pytest

from calibrant import (
    ECE,
    KCE,
    SKCE,
    Brier,
    Categorical,
    ClassWise,
    Ensemble,
    EqualMass,
    Laplace,
    LogLoss,
    Mixture,
    MultivariateNormal,
    Normal,
    TopLabel,
)
from calibrant._validate import InputError
from calibrant.checks import check_estimator
from calibrant.estimators import MMCE, UCME, GivenLocations
from calibrant.kernels import Exponential, Gaussian


def broken(kind, **methods):
    """The same with other methods."""
    return type(f"Broken{kind.__name__}", (kind,), methods)


@pytest.fixture
def classes(rng):
    predictions = Categorical.example(rng, 40)
    return predictions.sample(rng, 1)[0].astype(np.int64), predictions


@pytest.mark.parametrize(
    "estimator",
    [
        ECE(lens=TopLabel()),
        ECE(EqualMass(5), norm=2, lens=ClassWise()),
        Brier(),
        LogLoss(),
        SKCE(),
        SKCE(unbiased=False),
        KCE(),
        MMCE(),
        UCME(locations=GivenLocations([0, 2], [[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])),
    ],
    ids=repr,
)
def test_our_estimators_pass(estimator, classes):
    check_estimator(estimator, *classes)


@pytest.mark.parametrize("family", [Normal, Laplace, Mixture, Ensemble, MultivariateNormal])
def test_the_kernel_error_passes_on_every_family(family, rng):
    predictions = family.example(rng, 8)
    if family is MultivariateNormal:
        predictions = MultivariateNormal(rng.normal(size=(8, 3)), rng.uniform(0.5, 2, (8, 3)))
    check_estimator(SKCE(Exponential(1.0), Gaussian(1.0)), predictions.sample(rng, 1)[0], predictions)


def first_half(self, targets, predictions, weights):
    found = Brier.estimate(self, targets[:20], predictions[:20], None if weights is None else weights[:20])
    return replace(found, n=len(predictions))


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (broken(Brier, estimate=lambda self, y, p, w: Brier.estimate(self, y[:1], p[:1], None)), "n is 1, not the"),
        (broken(Brier, estimate=first_half), "the order of rows matters"),
        (lambda: SKCE(block=7), "the order of rows matters"),
        (
            broken(Brier, given=lambda self, p, w: lambda y: 1.01 * Brier.given(self, p, w)(y)),
            "resamples in bulk differ",
        ),
        (broken(Brier, given=lambda self, p, w: Brier.given(self, p, None)), "resamples in bulk differ"),
        (broken(Brier, reduce=lambda self, y, p: (self, y[1:], p[1:])), "the reduced problem has another value"),
        (broken(Brier, least=5.0), "lies outside of what the estimator says it can be"),
        (broken(Brier, __eq__=object.__eq__, __hash__=object.__hash__), "settings that are equal make different"),
        (broken(Brier, __hash__=object.__hash__), "equal estimators have different hashes"),
    ],
)
def test_wrong_estimators_fail(estimator, message, classes):
    with pytest.raises(AssertionError, match=message):
        check_estimator(estimator(), *classes)


def test_weights_may_be_refused_but_resamples_may_not(classes):
    def refuse(self, targets, predictions, weights):
        if weights is not None or targets.dtype in self.refused:
            raise InputError("no")
        return Brier.estimate(self, targets, predictions, weights)

    check_estimator(broken(Brier, estimate=refuse, refused=())(), *classes)
    with pytest.raises(AssertionError, match="a resample is refused"):
        check_estimator(broken(Brier, estimate=refuse, refused=(np.uint8,))(), *classes)
