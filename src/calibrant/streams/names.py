"""Settings that states can be told in words: the ``repr`` of an estimator in JSON."""

from collections.abc import Callable, Mapping
from typing import Any

from calibrant import kernels
from calibrant.countwise import CountWise
from calibrant.distributions.wasserstein import BuresWasserstein, MixtureWasserstein
from calibrant.estimators.binned import ECE
from calibrant.estimators.binning import Edges, EqualWidth
from calibrant.estimators.crps import CRPS
from calibrant.estimators.debiased import DebiasedECE
from calibrant.estimators.energy_score import EnergyScore
from calibrant.estimators.interval_score import IntervalScore
from calibrant.estimators.levels_within import LevelsWithin
from calibrant.estimators.pinball import Pinball
from calibrant.estimators.random_features import RandomFeatureSKCE
from calibrant.estimators.ratio import CalibrationRatio
from calibrant.estimators.scores import Brier, LogLoss
from calibrant.estimators.skce import SKCE
from calibrant.estimators.spread import MeanStd, MeanWidth
from calibrant.estimators.ucme import UCME, OptimisedLocations, SampledLocations
from calibrant.estimators.z_scores import ZMean
from calibrant.lenses import ClassWise, MultiLabel, PositiveClass, TopLabel
from calibrant.residuals import Route
from calibrant.thresholds import Exceeds, Within

NAMES: Mapping[str, Callable[..., Any]] = {
    kind.__name__: kind
    for kind in (
        *(
            ECE,
            DebiasedECE,
            EqualWidth,
            Edges,
            CalibrationRatio,
            SKCE,
            UCME,
            RandomFeatureSKCE,
            SampledLocations,
            OptimisedLocations,
        ),
        *(Brier, LogLoss, CRPS, EnergyScore, IntervalScore, LevelsWithin, Pinball, MeanStd, MeanWidth, ZMean),
        *(PositiveClass, TopLabel, ClassWise, MultiLabel, CountWise, Exceeds, Within, Route),
        *(kernels.Gaussian, kernels.Exponential, kernels.Matern, kernels.Energy, kernels.Identity, kernels.LabelMatrix),
        *(kernels.Sum, kernels.Product, kernels.Scaled, kernels.Euclidean, kernels.Cityblock),
        *(BuresWasserstein, MixtureWasserstein),
    )
}
