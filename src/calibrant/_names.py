"""Every public name, written once.

The doors of the packages, what ``dir`` and the tab key show, the words of commands, the names in stored states and the stubs for
type checkers are made from this table. A new estimator is one file and one line here; ``python -m calibrant._names`` then writes
the stubs anew.
"""

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

PUBLIC: Mapping[str, Mapping[str, str]] = {
    "": {"_validate": "InputError*"},
    "results": {
        "results.result": "Estimate Finding Interval Result SCHEMA TestResult jsonable",
        "results.table": "Table",
        "results.text": "brief how_many number percent",
    },
    "kernels": {
        "distributions.wasserstein": "BuresWasserstein MixtureWasserstein",
        "kernels.base": "Kernel Product Radial Scaled Sum closed_form expectation",
        "kernels.distance_kernels": "Energy Exponential Gaussian Matern",
        "kernels.label_kernels": "Identity LabelMatrix",
        "kernels.metrics": "Cityblock Euclidean Metric PerCoordinate",
    },
    "distributions": {
        "_array": "matched",
        "distributions.base": "Distribution",
        "distributions.composite.mixture": "Mixture*",
        "distributions.composite.truncated": "Censored Truncated",
        "distributions.continuous.finite_interval": "Beta Uniform",
        "distributions.continuous.location_scale": "Laplace* LocationScale Logistic Normal*",
        "distributions.continuous.power_exponential": "PowerExponential",
        "distributions.continuous.positive": "Gamma* LogNormal* as_positive_targets",
        "distributions.continuous.student_t": "StudentT*",
        "distributions.dirichlet_family": "Dirichlet",
        "distributions.discrete.bernoulli": "Bernoulli*",
        "distributions.discrete.categorical": "Categorical*",
        "distributions.discrete.count_families": "Counts NegativeBinomial* Poisson*",
        "distributions.empirical.ensemble": "Ensemble*",
        "distributions.empirical.piecewise": "Histogram",
        "distributions.empirical.quantiles": "JoinedQuantiles Quantiles*",
        "distributions.multivariate": "MultivariateNormal* coordinate dimensions",
        "distributions.parametric": "Parametric check_positive",
        "distributions.reading.conversion": "as_distribution as_problem",
        "distributions.reading.foreign": "Foreign",
        "distributions.wasserstein": "check_positive_definite",
    },
    "residuals": {
        "residuals.embedding": "Residuals Route residuals",
    },
    "lenses": {
        "lenses.class_lenses": "ClassWise* Event Lens MultiLabel* PositiveClass* TopLabel* default_lens groups*",
        "lenses.countwise": "CountWise",
        "lenses.thresholds": "Exceeds Within exceeds within",
    },
    "estimators": {
        "estimators.base": "BaseEstimator EachDraw EventEstimator LensedEstimator MeanOverEvents OfEvent Statistic",
        "estimators.binned.binned_state": "BinnedState",
        "estimators.binned.binning": "Binning Edges EqualMass* EqualWidth*",
        "estimators.binned.canonical": "CanonicalECE Grid KMeans MedianVariance Partition",
        "estimators.binned.debiased": "DebiasedECE*",
        "estimators.binned.ece": "ECE*",
        "estimators.binned.monotone": "MonotoneECE",
        "estimators.binned.sweep": "Sweep*",
        "estimators.binned.tail_scan": "TailScan",
        "estimators.distances": "ConvexDistance Lp",
        "estimators.forecast_errors.marginal": "MarginalError ThresholdError",
        "estimators.forecast_errors.pit": "PIT",
        "estimators.forecast_errors.pit_error": "CentralCoverage PITError* QuantileError",
        "estimators.forecast_errors.quantile_cells": "ShareBetween",
        "estimators.forecast_errors.spread": "ENCE MeanStd MeanWidth ZMean ZVariance by_spread",
        "estimators.kernel_errors.pair_kernels": "PairSKCE SumSKCE",
        "estimators.kernel_errors.random_features": "RandomFeatureSKCE",
        "estimators.kernel_errors.skce": "KCE* MMCE SKCE*",
        "estimators.kernel_errors.ucme": "GivenLocations Locations OptimisedLocations SampledLocations UCME",
        "estimators.ranking": "AURC SelectiveAccuracy risk_coverage",
        "estimators.scoring_rules.auc": "AUC",
        "estimators.scoring_rules.decomposition": "Decomposition decompose decompose_by_kernel",
        "estimators.scoring_rules.forecast_scores": "CRPS* EnergyScore IntervalScore Pinball*",
        "estimators.scoring_rules.proper_scores": "Brier* LogLoss* Score",
        "estimators.simplex.kde": "KDE* Sharpness TangentKDE",
        "estimators.smooth.cumulative": "KolmogorovSmirnov Kuiper",
        "estimators.smooth.fitted_curves": "Curve FittedCurve ICI IsotonicCurve KernelSmooth",
        "estimators.smooth.smooth_ece": "DensityECE SmoothECE*",
        "estimators.smooth.weak_calibration": "CalibrationIntercept CalibrationRatio CalibrationSlope",
        "estimators.variational": "Variational*",
    },
    "inference": {
        "inference.certificate": "Certificate certify*",
        "inference.classical": "ConsistencyTest HosmerLemeshow Spiegelhalter",
        "inference.dependence": "Memory time_blocks",
        "inference.exact_tests.aggregated": "AggregatedTest*",
        "inference.exact_tests.exact_test": "ExactTest* ShuffleTest",
        "inference.exact_tests.rank_test": "RankTest",
        "inference.intervals": "Bootstrap* Jackknife WithInterval",
        "inference.kernel_tests.asymptotic": "BlockTest GammaTest SpectralTest",
        "inference.kernel_tests.bound_test": "BoundTest",
        "inference.kernel_tests.bootstrap_test": "BootstrapTest WildBootstrapTest",
        "inference.kernel_tests.kernel_matrix": "MatrixTest Outcome",
        "inference.kernel_tests.mean_embedding": "CMETest",
        "inference.multiplicity": "benjamini_hochberg holm westfall_young",
        "inference.paired_difference": "Difference PairedDifference* differences",
        "inference.pit_bands": "PITCurve PITHistogram",
        "inference.proportions": "coverage* interval_of_share",
        "inference.reliability_curve": "ReliabilityCurve*",
        "inference.witness": "LocalErrors Witness",
    },
    "recalibration": {
        "recalibration.base": "Found Recalibration Recalibrator load_map",
        "recalibration.maps": "ClassMap Map check_classes two_classes",
        "recalibration.nonparametric.histogram_binning": "HistogramBinning ScalingBinning",
        "recalibration.nonparametric.isotonic": "Isotonic VennAbers",
        "recalibration.nonparametric.nadaraya_watson": "NadarayaWatson",
        "recalibration.nonparametric.partition_wise": "PartitionWise",
        "recalibration.nonparametric.shared_spline": "SharedSpline",
        "recalibration.nonparametric.simplex_ridge": "SimplexRidge",
        "recalibration.nonparametric.spline": "SplineScaling",
        "recalibration.predictive.dressing": "Dressing",
        "recalibration.predictive.quantile": "QuantileRecalibration Recalibrated",
        "recalibration.predictive.variance": "VarianceScaling",
        "recalibration.scaling.log_odds": "BetaScaling Intercept Platt Quadratic",
        "recalibration.scaling.matrix": "DirichletScaling MatrixScaling StructuredMatrix VectorScaling",
        "recalibration.scaling.temperature": "Temperature",
        "recalibration.scaling.temperature_by": "TemperatureBy",
        "recalibration.stacking.boosted": "Boosted",
        "recalibration.stacking.default": "Default",
        "recalibration.stacking.learned": "Learned",
        "recalibration.stacking.stack": "Best OneVsRest Stack",
    },
    "losses": {
        "losses.baselines": "FL53 FocalLoss LabelSmoothing Stepwise",
        "losses.calibration_loss": "CalibrationLoss SharpnessRegularised squared_error",
        "losses.heads": "Batch class_head mixture_head normal_head",
        "losses.soft_binned": "SoftBinnedECE",
    },
    "streams": {
        "streams.base": "State",
        "streams.frames": "bin_query frame_states from_bins merged",
        "streams.metric": "StreamMetric",
        "streams.states": "from_dict state*",
    },
    "monitoring": {
        "monitoring.bets": "Bet Bets Defect",
        "monitoring.control": "Window Windows",
        "monitoring.monitor": "Alarm Monitor*",
    },
    "planning": {
        "planning.planner": "Plan plan",
    },
    "plots": {
        "plots.classification.classwise": "ClasswiseDisplay classwise",
        "plots.classification.confusion": "ConfusionDisplay confusion",
        "plots.classification.reliability": "ReliabilityDisplay reliability",
        "plots.classification.risk_coverage_plot": "RiskCoverageDisplay risk_coverage",
        "plots.classification.simplex_plot": "SimplexDisplay simplex",
        "plots.comparisons.before_after_plot": "BeforeAfterDisplay before_after",
        "plots.comparisons.bias": "BiasDisplay bias",
        "plots.comparisons.comparison": "ComparisonDisplay CurvesDisplay comparison curves",
        "plots.comparisons.null": "NullDisplay null",
        "plots.comparisons.witness_plot": "WitnessDisplay witness",
        "plots.forecasting.coverage": "CoverageDisplay coverage",
        "plots.forecasting.fan": "FanDisplay fan",
        "plots.forecasting.pit_histogram": "PITCurveDisplay PITHistogramDisplay pit_curve pit_histogram",
        "plots.forecasting.sharpness": "SharpnessDisplay sharpness",
        "plots.forecasting.spread_plot": "SpreadDisplay spread",
        "plots.sequential.drift": "DriftDisplay drift",
        "plots.sequential.evidence_plot": "EvidenceDisplay evidence",
        "plots.sequential.windows": "WindowsDisplay windows",
    },
    "reports": {
        "reports.before_after": "BeforeAfter before_and_after",
        "reports.core.model": "Advice KeyNumber Picture Reason Section Verdict",
        "reports.evaluation": "Report evaluate* judge report*",
        "reports.model_comparison": "Comparison compare*",
        "reports.stream_report": "MonitorReport monitor_report*",
    },
    "io": {
        "io.batches": "Batches",
        "io.dataset": "Dataset Predictions example read read_predictions",
    },
    "engines": {
        "_compiled.choice": "precision",
        "engines.cluster": "DaskEngine connect",
        "engines.devices": "DevicePool",
        "engines.streaming": "stream",
    },
    "checks": {
        "checks.distribution": "check_distribution",
        "checks.engine": "check_engine",
        "checks.estimator": "check_estimator",
        "checks.kernel_laws": "check_expectation check_kernel",
        "checks.recalibrator": "check_recalibrator",
    },
    "sklearn": {
        "sklearn.calibration_errors": (
            "calibration_error neg_l1_calibration_error neg_l2_calibration_error neg_l2_squared_calibration_error "
            "neg_max_calibration_error"
        ),
        "sklearn.classifier": "RecalibratedClassifier",
        "sklearn.held_out": "RecalibrationWarning",
        "sklearn.regressor": "RecalibratedRegressor",
        "sklearn.model_report": "evaluate_model",
        "sklearn.scoring": "scorer",
    },
    "integrations": {
        "integrations.arviz": "from_arviz",
        "integrations.huggingface": "as_metric",
        "integrations.mlflow": "log_report",
    },
    "lab": {
        "lab.class_worlds": "Localised RareTop Sharp Sigmoid Smooth Tempered TwiceTempered TwoClasses",
        "lab.fits": "fit_curves fit_scores fit_world",
        "lab.regression_worlds": "LeastSquares SyntheticNormal WrongScale",
        "lab.score_worlds": (
            "BetaScores Diagonal EmpiricalScores GLM LogisticCurve Power ScoreWorld Scores Shifted TrueCurve tce"
        ),
        "lab.study": "Study bias_study power_study",
        "lab.world": "World",
    },
}
"""By package and the module where they live; ``*`` marks the everyday ones, which ``calibrant`` itself has, too."""

PACKAGES = tuple(package for package in PUBLIC if package)

DEPRECATED: Mapping[str, Mapping[str, tuple[str, str]]] = {}
"""Names that go, by package: the new name, and the version that no longer has the old one."""


def homes(package: str) -> dict[str, str]:
    """The module of each public name of a package; the everyday names for ``""``.

    >>> homes("monitoring")["Monitor"]
    'calibrant.monitoring.monitor'
    >>> "Monitor" in homes("")
    True
    """
    tables = PUBLIC.values() if package == "" else [PUBLIC[package]]
    return {
        name.rstrip("*"): f"calibrant.{home}"
        for table in tables
        for home, names in table.items()
        for name in names.split()
        if package or name.endswith("*")
    }


def door(module: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package: each name is imported when it is first used.

    >>> get, listed, names = door("calibrant.monitoring")
    >>> get("Monitor").__name__, names == listed()
    ('Monitor', True)
    """
    package = module.removeprefix("calibrant").lstrip(".")
    known = homes(package)
    names = sorted(known)

    def get(name: str) -> Any:
        if name in known:
            value = getattr(import_module(known[name]), name)
        elif not package and name in PACKAGES:
            value = import_module(f"calibrant.{name}")
        elif name in DEPRECATED.get(package, {}):
            new, until = DEPRECATED[package][name]
            message = f"{module}.{name} goes in calibrant {until}; use {module}.{new}"
            warnings.warn(message, FutureWarning, stacklevel=2)
            return get(new)
        else:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        setattr(sys.modules[module], name, value)
        return value

    return get, lambda: list(names), names


class Words(Mapping[str, Callable[..., Any]]):
    """The public classes of some packages by name, each imported when it is asked for: what a text may name.

    >>> words = Words("kernels")
    >>> words["Gaussian"].__name__, "expectation" in words
    ('Gaussian', False)
    """

    def __init__(self, *packages: str) -> None:
        self.homes = {name: home for p in packages for name, home in homes(p).items() if name[0].isupper()}

    def __getitem__(self, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(import_module(self.homes[name]), name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.homes))

    def __len__(self) -> int:
        return len(self.homes)


def stub(package: str) -> str:
    """What type checkers read in place of a package's ``__init__``.

    >>> "import Monitor as Monitor" in stub("monitoring")
    True
    """
    lines = [f"from {home} import {name} as {name}" for name, home in homes(package).items()]
    if package == "":
        lines += ["", "__version__: str"]
    return "# Written by `python -m calibrant._names`.\n\n" + "\n".join(lines) + "\n"


def write_stubs() -> None:
    """Those of all packages, beside their ``__init__``."""
    for package in PUBLIC:
        (Path(__file__).parent / package / "__init__.pyi").write_text(stub(package), "utf-8")


if __name__ == "__main__":
    write_stubs()
