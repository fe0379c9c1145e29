"""What commands can be told in words: estimators, tests, recalibrators, and what is taken when nothing is said."""

from collections.abc import Callable
from typing import Any

import numpy as np

from calibrant import kernels
from calibrant._validate import InputError
from calibrant.countwise import CountWise
from calibrant.distributions.base import Distribution
from calibrant.distributions.bernoulli import Bernoulli
from calibrant.distributions.categorical import Categorical
from calibrant.distributions.coordinates import dimensions
from calibrant.distributions.ensemble import Ensemble
from calibrant.distributions.quantiles import fan_of
from calibrant.distributions.wasserstein import BuresWasserstein, MixtureWasserstein
from calibrant.estimators.base import BaseEstimator
from calibrant.estimators.binned import ECE
from calibrant.estimators.binning import Edges, EqualMass, EqualWidth
from calibrant.estimators.canonical import CanonicalECE
from calibrant.estimators.crps import CRPS
from calibrant.estimators.cumulative import KolmogorovSmirnov, Kuiper
from calibrant.estimators.curves import Isotonic, KernelSmooth
from calibrant.estimators.debiased import DebiasedECE
from calibrant.estimators.density import DensityECE
from calibrant.estimators.distances import Lp
from calibrant.estimators.ence import ENCE
from calibrant.estimators.energy_score import EnergyScore
from calibrant.estimators.integrated import ICI
from calibrant.estimators.interval_score import IntervalScore
from calibrant.estimators.kce import KCE, MMCE
from calibrant.estimators.kde import KDE
from calibrant.estimators.logistic import CalibrationIntercept, CalibrationSlope
from calibrant.estimators.marginal import MarginalError
from calibrant.estimators.partition import Grid, KMeans, MedianVariance
from calibrant.estimators.pinball import Pinball
from calibrant.estimators.pit import usual_prerank
from calibrant.estimators.pit_error import PITError
from calibrant.estimators.quantile_error import QuantileError
from calibrant.estimators.random_features import RandomFeatureSKCE
from calibrant.estimators.ratio import CalibrationRatio
from calibrant.estimators.scores import Brier, LogLoss
from calibrant.estimators.sharpness import Sharpness
from calibrant.estimators.skce import SKCE
from calibrant.estimators.smooth import SmoothECE
from calibrant.estimators.spread import MeanStd, MeanWidth
from calibrant.estimators.sweep import Sweep
from calibrant.estimators.tail_scan import TailScan
from calibrant.estimators.tangent import TangentKDE
from calibrant.estimators.threshold_error import ThresholdError
from calibrant.estimators.ucme import UCME, OptimisedLocations, SampledLocations
from calibrant.estimators.variational import Variational
from calibrant.estimators.z_scores import ZMean, ZVariance
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
from calibrant.inference.rank_test import RankTest
from calibrant.inference.shuffle_test import ShuffleTest
from calibrant.inference.spectral_test import SpectralTest
from calibrant.inference.spiegelhalter import Spiegelhalter
from calibrant.inference.wild import WildBootstrapTest
from calibrant.lenses import ClassWise, Lens, MultiLabel, PositiveClass, TopLabel, default_lens
from calibrant.recalibration.base import Recalibrator
from calibrant.recalibration.boosted import Boosted
from calibrant.recalibration.default import Default
from calibrant.recalibration.dressing import Dressing
from calibrant.recalibration.histogram import HistogramBinning
from calibrant.recalibration.isotonic import Isotonic as IsotonicRecalibrator
from calibrant.recalibration.matrix import Dirichlet, MatrixScaling, StructuredMatrix, VectorScaling
from calibrant.recalibration.nadaraya_watson import NadarayaWatson
from calibrant.recalibration.one_vs_rest import OneVsRest
from calibrant.recalibration.quantile import QuantileRecalibration
from calibrant.recalibration.scaling import Beta, Intercept, Platt, Quadratic
from calibrant.recalibration.scaling_binning import ScalingBinning
from calibrant.recalibration.shared_spline import SharedSpline
from calibrant.recalibration.simplex_ridge import SimplexRidge
from calibrant.recalibration.spline import SplineScaling
from calibrant.recalibration.stack import Best, Stack
from calibrant.recalibration.temperature import Temperature
from calibrant.recalibration.variance import FAMILIES as SCALED_FAMILIES
from calibrant.recalibration.variance import VarianceScaling
from calibrant.recalibration.venn_abers import VennAbers
from calibrant.residuals import Route
from calibrant.spec import Names, parse
from calibrant.thresholds import Exceeds, Within

TESTS: tuple[type, ...] = (
    *(ExactTest, AggregatedTest, BlockTest, BootstrapTest, WildBootstrapTest, SpectralTest, GammaTest),
    *(CMETest, BoundTest, ConsistencyTest, HosmerLemeshow, Spiegelhalter, RankTest, ShuffleTest),
)

SETTINGS: dict[str, Callable[..., Any]] = {
    kind.__name__: kind
    for kind in (
        *(ECE, DebiasedECE, SmoothECE, DensityECE, CanonicalECE, KolmogorovSmirnov, Kuiper, TailScan, ICI),
        *(KDE, TangentKDE, Sharpness),
        *(Variational, Lp),
        *(CalibrationSlope, CalibrationIntercept, CalibrationRatio, Brier, LogLoss),
        *(CRPS, Pinball, IntervalScore, EnergyScore, PITError, QuantileError, MarginalError, ThresholdError),
        *(ENCE, ZMean, ZVariance, MeanStd, MeanWidth, Exceeds, Within),
        *(SKCE, KCE, MMCE, UCME, RandomFeatureSKCE, Bootstrap, *TESTS),
        *(EqualWidth, EqualMass, Edges, Sweep, KMeans, MedianVariance, Grid, Isotonic, KernelSmooth),
        *(PositiveClass, TopLabel, ClassWise, MultiLabel, CountWise),
        *(kernels.Gaussian, kernels.Exponential, kernels.Matern, kernels.Energy, kernels.Identity, kernels.LabelMatrix),
        *(kernels.Sum, kernels.Product, kernels.Scaled, kernels.Euclidean, kernels.Cityblock),
        *(BuresWasserstein, MixtureWasserstein, SampledLocations, OptimisedLocations, Route),
    )
}
"""What ``--estimator`` and ``--test`` may name."""

RECALIBRATORS: dict[str, Callable[..., Any]] = {
    kind.__name__: kind
    for kind in (
        *(Default, Stack, Best, OneVsRest, Temperature, VectorScaling, MatrixScaling, StructuredMatrix, Dirichlet),
        *(SharedSpline, SimplexRidge, NadarayaWatson, Intercept, Platt, Quadratic, Beta, SplineScaling),
        *(
            IsotonicRecalibrator,
            HistogramBinning,
            ScalingBinning,
            VennAbers,
            VarianceScaling,
            QuantileRecalibration,
            Dressing,
            Boosted,
        ),
    )
}
"""What ``--method`` may name, and the arguments of ``Variational``; names of their own, as a curve is called Isotonic too."""


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
    if fan_of(predictions) is not None:
        return [PITError("kuiper"), QuantileError(), Pinball()]
    score = EnergyScore() if dimensions(predictions) else CRPS()
    density = [LogLoss()] if type(predictions).log_prob is not Distribution.log_prob else []
    return [PITError("kuiper", prerank=usual_prerank(predictions)), SKCE(), score, *density]


def _default_error(predictions: Distribution) -> BaseEstimator:
    """The error that needs no choice: of the confidence where classes are many, of the kernel where there are none."""
    if not isinstance(predictions, Categorical | Bernoulli):
        return SKCE()
    return ECE(EqualMass(15), lens=single_event(predictions))


def default_recalibrator(predictions: Distribution) -> Recalibrator:
    """What `recalibrate` fits when nothing is asked for."""
    if isinstance(predictions, Categorical):
        return Default()
    if isinstance(predictions, Bernoulli):
        raise InputError("several labels a row have no recalibrator: take them one by one, --y-true y_a --y-pred p_a")
    if type(predictions).__name__ in SCALED_FAMILIES:
        return VarianceScaling(bias=True)
    if isinstance(predictions, Ensemble) and predictions.members.ndim == 2:
        return Dressing()
    has_levels = predictions[:1].quantile(np.array([0.5])) is not NotImplemented
    return QuantileRecalibration() if has_levels else Temperature()


def _parse(text: str, option: str, kinds: tuple[type, ...], noun: str, names: Names = SETTINGS) -> Any:
    try:
        value = parse(text, names, inside={"Variational": RECALIBRATORS})
    except InputError as error:
        raise InputError(f"{option} {error}") from error
    if isinstance(value, kinds):
        return value
    raise InputError(f"{option} {text!r} is not {noun}")


def parse_estimator(text: str) -> BaseEstimator:
    """An estimator from its text."""
    chosen: BaseEstimator = _parse(text, "--estimator", (BaseEstimator,), "an estimator")
    return chosen


def parse_recalibrator(text: str) -> Recalibrator:
    """A recalibrator from its text."""
    chosen: Recalibrator = _parse(text, "--method", (Recalibrator,), "a recalibrator", RECALIBRATORS)
    return chosen


def parse_test(text: str) -> Any:
    """A test from its text."""
    chosen = _parse(text, "--test", TESTS, f"a test: write 'ExactTest({text})'")
    inside = getattr(chosen, "estimator", None)
    if inside is not None and not isinstance(inside, BaseEstimator):
        raise InputError(f"--test {text!r}: {inside!r} is not an estimator")
    return chosen
