"""What commands can be told in words: estimators, tests and their parts, and what is taken when nothing is said."""

from collections.abc import Callable
from typing import Any

from calibrant import kernels
from calibrant._validate import InputError
from calibrant.countwise import CountWise
from calibrant.distributions.base import Distribution
from calibrant.distributions.bernoulli import Bernoulli
from calibrant.distributions.categorical import Categorical
from calibrant.distributions.wasserstein import BuresWasserstein, MixtureWasserstein
from calibrant.estimators.base import BaseEstimator
from calibrant.estimators.binned import ECE
from calibrant.estimators.binning import Edges, EqualMass, EqualWidth
from calibrant.estimators.canonical import CanonicalECE
from calibrant.estimators.cumulative import KolmogorovSmirnov, Kuiper
from calibrant.estimators.curves import Isotonic, KernelSmooth
from calibrant.estimators.debiased import DebiasedECE
from calibrant.estimators.density import DensityECE
from calibrant.estimators.integrated import ICI
from calibrant.estimators.kce import KCE, MMCE
from calibrant.estimators.kde import KDE
from calibrant.estimators.logistic import CalibrationIntercept, CalibrationSlope
from calibrant.estimators.partition import Grid, KMeans, MedianVariance
from calibrant.estimators.random_features import RandomFeatureSKCE
from calibrant.estimators.ratio import CalibrationRatio
from calibrant.estimators.scores import Brier, LogLoss
from calibrant.estimators.sharpness import Sharpness
from calibrant.estimators.skce import SKCE
from calibrant.estimators.smooth import SmoothECE
from calibrant.estimators.sweep import Sweep
from calibrant.estimators.tangent import TangentKDE
from calibrant.estimators.ucme import UCME, OptimisedLocations, SampledLocations
from calibrant.estimators.variational import Lp, Variational
from calibrant.inference.aggregated import AggregatedTest
from calibrant.inference.block import BlockTest
from calibrant.inference.bootstrap_test import BootstrapTest
from calibrant.inference.bounds import BoundTest
from calibrant.inference.consistency import ConsistencyTest
from calibrant.inference.exact import ExactTest
from calibrant.inference.gamma_test import GammaTest
from calibrant.inference.hosmer_lemeshow import HosmerLemeshow
from calibrant.inference.intervals import Bootstrap
from calibrant.inference.mean_embedding import CMETest
from calibrant.inference.spectral_test import SpectralTest
from calibrant.inference.spiegelhalter import Spiegelhalter
from calibrant.inference.wild import WildBootstrapTest
from calibrant.lenses import ClassWise, Lens, MultiLabel, PositiveClass, TopLabel, default_lens
from calibrant.recalibration.default import Default
from calibrant.recalibration.matrix import StructuredMatrix, VectorScaling
from calibrant.recalibration.scaling import Beta, Platt
from calibrant.recalibration.spline import SplineScaling
from calibrant.recalibration.temperature import Temperature
from calibrant.residuals import Route
from calibrant.spec import parse

TESTS: tuple[type, ...] = (
    *(ExactTest, AggregatedTest, BlockTest, BootstrapTest, WildBootstrapTest, SpectralTest, GammaTest),
    *(CMETest, BoundTest, ConsistencyTest, HosmerLemeshow, Spiegelhalter),
)

SETTINGS: dict[str, Callable[..., Any]] = {
    kind.__name__: kind
    for kind in (
        *(ECE, DebiasedECE, SmoothECE, DensityECE, CanonicalECE, KolmogorovSmirnov, Kuiper, ICI),
        *(KDE, TangentKDE, Sharpness),
        *(Variational, Lp, Default, SplineScaling, Temperature, Platt, Beta, VectorScaling, StructuredMatrix),
        *(CalibrationSlope, CalibrationIntercept, CalibrationRatio, Brier, LogLoss),
        *(SKCE, KCE, MMCE, UCME, RandomFeatureSKCE, Bootstrap, *TESTS),
        *(EqualWidth, EqualMass, Edges, Sweep, KMeans, MedianVariance, Grid, Isotonic, KernelSmooth),
        *(PositiveClass, TopLabel, ClassWise, MultiLabel, CountWise),
        *(kernels.Gaussian, kernels.Exponential, kernels.Matern, kernels.Energy, kernels.Identity, kernels.LabelMatrix),
        *(kernels.Sum, kernels.Product, kernels.Scaled, kernels.Euclidean, kernels.Cityblock),
        *(BuresWasserstein, MixtureWasserstein, SampledLocations, OptimisedLocations, Route),
    )
}
"""What ``--estimator`` and ``--test`` may name."""


def single_event(predictions: Distribution) -> Lens:
    """The lens that shows one event: of several classes, whether the favoured one is right."""
    if isinstance(predictions, Categorical) and predictions.n_classes > 2:
        return TopLabel()
    return default_lens(predictions)


def default_set(predictions: Distribution) -> list[BaseEstimator]:
    """What `estimate` shows when nothing is asked for."""
    if isinstance(predictions, Categorical):
        return [_default_error(predictions), SKCE(), Brier(), LogLoss()]
    if isinstance(predictions, Bernoulli):
        return [_default_error(predictions), Brier(), LogLoss()]
    return [SKCE(), LogLoss()]


def _default_error(predictions: Distribution) -> BaseEstimator:
    """The error that needs no choice: of the confidence where classes are many, of the kernel where there are none."""
    if not isinstance(predictions, Categorical | Bernoulli):
        return SKCE()
    return ECE(EqualMass(15), lens=single_event(predictions))


def _parse(text: str, option: str, kinds: tuple[type, ...], noun: str) -> Any:
    try:
        value = parse(text, SETTINGS)
    except InputError as error:
        raise InputError(f"{option} {error}") from error
    if isinstance(value, kinds):
        return value
    raise InputError(f"{option} {text!r} is not {noun}")


def parse_estimator(text: str) -> BaseEstimator:
    """An estimator from its text."""
    chosen: BaseEstimator = _parse(text, "--estimator", (BaseEstimator,), "an estimator")
    return chosen


def parse_test(text: str) -> Any:
    """A test from its text."""
    chosen = _parse(text, "--test", TESTS, f"a test: write 'ExactTest({text})'")
    inside = getattr(chosen, "estimator", None)
    if inside is not None and not isinstance(inside, BaseEstimator):
        raise InputError(f"--test {text!r}: {inside!r} is not an estimator")
    return chosen
