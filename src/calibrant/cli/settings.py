"""What commands can be told in words: estimators, tests, recalibrators, and what is taken when nothing is said."""

from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._names import Words
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.empirical.ensemble import Ensemble
from calibrant.distributions.empirical.quantiles import fan_of
from calibrant.distributions.multivariate import dimensions
from calibrant.estimators.base import BaseEstimator
from calibrant.estimators.binned.binning import EqualMass
from calibrant.estimators.binned.ece import ECE
from calibrant.estimators.forecast_errors.pit import usual_prerank
from calibrant.estimators.forecast_errors.pit_error import PITError, QuantileError
from calibrant.estimators.kernel_errors.skce import SKCE
from calibrant.estimators.scoring_rules.forecast_scores import CRPS, EnergyScore, Pinball
from calibrant.estimators.scoring_rules.proper_scores import Brier, LogLoss
from calibrant.lenses.class_lenses import default_lens
from calibrant.results import TestResult
from calibrant.spec import Names, parse

if TYPE_CHECKING:
    from calibrant.recalibration.base import Recalibrator

ESTIMATORS = Words("estimators", "inference", "kernels", "lenses", "residuals", "recalibration")
"""What ``--estimator`` and ``--test`` may name: whatever is public there."""

RECALIBRATORS = Words("recalibration")
"""What ``--method`` may name."""


def default_set(predictions: Distribution) -> list[BaseEstimator]:
    """What `estimate` shows when nothing is asked for."""
    if isinstance(predictions, Categorical):
        return [_default_error(predictions), SKCE(), Brier(), LogLoss()]
    if isinstance(predictions, Bernoulli):
        return [_default_error(predictions), Brier(), LogLoss()]
    if fan_of(predictions) is not None:
        return [PITError("kuiper"), QuantileError(), Pinball()]
    score = EnergyScore() if dimensions(predictions) else CRPS()
    density = [LogLoss()] if type(predictions).log_prob is not Distribution.log_prob else []
    return [PITError("kuiper", prerank=usual_prerank(predictions)), SKCE(), score, *density]


def _default_error(predictions: Distribution) -> BaseEstimator:
    """The error that needs no choice: of the confidence where classes are many, of the kernel where there are none."""
    if not isinstance(predictions, Categorical | Bernoulli):
        return SKCE()
    return ECE(EqualMass(15), lens=default_lens(predictions))


def default_recalibrator(predictions: Distribution) -> "Recalibrator":
    """What `recalibrate` fits when nothing is asked for; other commands need not load it."""
    from calibrant.recalibration import Default, Dressing, QuantileRecalibration, Temperature, VarianceScaling
    from calibrant.recalibration.predictive.variance import FAMILIES as SCALED_FAMILIES

    if isinstance(predictions, Categorical):
        return Default()
    if isinstance(predictions, Bernoulli):
        raise InputError("several labels per row have no recalibrator: take them one by one, --y-true y_a --y-pred p_a")
    if type(predictions).__name__ in SCALED_FAMILIES:
        return VarianceScaling(bias=True)
    if isinstance(predictions, Ensemble) and predictions.members.ndim == 2:
        return Dressing()
    has_levels = predictions[:1].quantile(np.array([0.5])) is not NotImplemented
    return QuantileRecalibration() if has_levels else Temperature()


def _parse(text: str, option: str, kinds: tuple[type, ...], noun: str, names: Names = ESTIMATORS) -> Any:
    try:
        value = parse(text, names)
    except InputError as error:
        raise InputError(f"{option} {error}") from error
    if isinstance(value, kinds):
        return value
    raise InputError(f"{option} {text!r} is not {noun}")


def parse_estimator(text: str) -> BaseEstimator:
    """An estimator from its text."""
    chosen: BaseEstimator = _parse(text, "--estimator", (BaseEstimator,), "an estimator")
    return chosen


def parse_recalibrator(text: str) -> "Recalibrator":
    """A recalibrator from its text."""
    from calibrant.recalibration.base import Recalibrator

    chosen: Recalibrator = _parse(text, "--method", (Recalibrator,), "a recalibrator", RECALIBRATORS)
    return chosen


def parse_test(text: str) -> Any:
    """A test from its text."""
    chosen = _parse(text, "--test", (object,), "a test")
    if signature(type(chosen).__call__).return_annotation is not TestResult:
        raise InputError(f"--test {text!r} is not a test: write 'ExactTest({text})'")
    inside = getattr(chosen, "estimator", None)
    if inside is not None and not isinstance(inside, BaseEstimator):
        raise InputError(f"--test {text!r}: {inside!r} is not an estimator")
    return chosen
