"""Can I believe these probabilities? Calibration of any predictive model.

>>> from calibrant import ECE, ExactTest
>>> y_true, y_pred = [1, 0, 1, 1, 0, 1], [0.9, 0.2, 0.7, 0.6, 0.4, 0.8]
>>> round(ECE()(y_true, y_pred).value, 4)
0.2667
>>> ExactTest(ECE())(y_true, y_pred).pvalue > 0.05
True
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calibrant.countwise import CountWise
    from calibrant.distributions.bernoulli import Bernoulli
    from calibrant.distributions.beta import Beta
    from calibrant.distributions.categorical import Categorical
    from calibrant.distributions.censored import Censored
    from calibrant.distributions.ensemble import Ensemble
    from calibrant.distributions.gamma import Gamma
    from calibrant.distributions.histogram import Histogram
    from calibrant.distributions.laplace import Laplace
    from calibrant.distributions.log_normal import LogNormal
    from calibrant.distributions.logistic import Logistic
    from calibrant.distributions.mixture import Mixture
    from calibrant.distributions.mvnormal import MultivariateNormal
    from calibrant.distributions.negative_binomial import NegativeBinomial
    from calibrant.distributions.normal import Normal
    from calibrant.distributions.poisson import Poisson
    from calibrant.distributions.quantiles import Quantiles
    from calibrant.distributions.student_t import StudentT
    from calibrant.distributions.truncated import Truncated
    from calibrant.distributions.uniform import Uniform
    from calibrant.estimators.binned import ECE
    from calibrant.estimators.binning import Edges, EqualMass, EqualWidth
    from calibrant.estimators.crps import CRPS
    from calibrant.estimators.cumulative import KolmogorovSmirnov, Kuiper
    from calibrant.estimators.debiased import DebiasedECE
    from calibrant.estimators.distances import Lp
    from calibrant.estimators.energy_score import EnergyScore
    from calibrant.estimators.interval_score import IntervalScore
    from calibrant.estimators.kce import KCE, MMCE
    from calibrant.estimators.kde import KDE
    from calibrant.estimators.pinball import Pinball
    from calibrant.estimators.pit import PIT
    from calibrant.estimators.pit_error import PITError
    from calibrant.estimators.scores import Brier, LogLoss
    from calibrant.estimators.skce import SKCE
    from calibrant.estimators.smooth import SmoothECE
    from calibrant.estimators.state import BinnedState
    from calibrant.estimators.sweep import Sweep
    from calibrant.estimators.tail_scan import TailScan
    from calibrant.estimators.tangent import TangentKDE
    from calibrant.estimators.ucme import UCME
    from calibrant.estimators.variational import Variational
    from calibrant.inference.aggregated import AggregatedTest
    from calibrant.inference.coverage import coverage
    from calibrant.inference.exact import ExactTest
    from calibrant.inference.intervals import Bootstrap
    from calibrant.inference.pit_curve import PITCurve
    from calibrant.inference.pit_histogram import PITHistogram
    from calibrant.inference.rank_test import RankTest
    from calibrant.inference.reliability import ReliabilityCurve
    from calibrant.lenses import ClassWise, MultiLabel, PositiveClass, TopLabel, groups
    from calibrant.monitoring.monitor import Monitor
    from calibrant.reports.build import evaluate, report
    from calibrant.reports.comparison import compare
    from calibrant.reports.monitored import monitor_report
    from calibrant.streams.choose import state
    from calibrant.thresholds import Exceeds, Within

__version__ = "0.1.0"

# Where each public name lives. Importing calibrant imports none of these: a name is fetched at its first use.
_HOME = {
    "AggregatedTest": "inference.aggregated",
    "Bernoulli": "distributions.bernoulli",
    "Beta": "distributions.beta",
    "BinnedState": "estimators.state",
    "Bootstrap": "inference.intervals",
    "Brier": "estimators.scores",
    "Categorical": "distributions.categorical",
    "Censored": "distributions.censored",
    "ClassWise": "lenses",
    "CountWise": "countwise",
    "compare": "reports.comparison",
    "coverage": "inference.coverage",
    "CRPS": "estimators.crps",
    "DebiasedECE": "estimators.debiased",
    "ECE": "estimators.binned",
    "Edges": "estimators.binning",
    "EnergyScore": "estimators.energy_score",
    "Ensemble": "distributions.ensemble",
    "EqualMass": "estimators.binning",
    "EqualWidth": "estimators.binning",
    "evaluate": "reports.build",
    "ExactTest": "inference.exact",
    "Exceeds": "thresholds",
    "Gamma": "distributions.gamma",
    "groups": "lenses",
    "Histogram": "distributions.histogram",
    "IntervalScore": "estimators.interval_score",
    "KCE": "estimators.kce",
    "KDE": "estimators.kde",
    "KolmogorovSmirnov": "estimators.cumulative",
    "Kuiper": "estimators.cumulative",
    "Laplace": "distributions.laplace",
    "Logistic": "distributions.logistic",
    "LogLoss": "estimators.scores",
    "LogNormal": "distributions.log_normal",
    "Lp": "estimators.distances",
    "Mixture": "distributions.mixture",
    "MMCE": "estimators.kce",
    "Monitor": "monitoring.monitor",
    "monitor_report": "reports.monitored",
    "MultiLabel": "lenses",
    "MultivariateNormal": "distributions.mvnormal",
    "NegativeBinomial": "distributions.negative_binomial",
    "Normal": "distributions.normal",
    "Pinball": "estimators.pinball",
    "PIT": "estimators.pit",
    "PITCurve": "inference.pit_curve",
    "PITError": "estimators.pit_error",
    "PITHistogram": "inference.pit_histogram",
    "Poisson": "distributions.poisson",
    "PositiveClass": "lenses",
    "Quantiles": "distributions.quantiles",
    "RankTest": "inference.rank_test",
    "ReliabilityCurve": "inference.reliability",
    "report": "reports.build",
    "SKCE": "estimators.skce",
    "SmoothECE": "estimators.smooth",
    "state": "streams.choose",
    "StudentT": "distributions.student_t",
    "Sweep": "estimators.sweep",
    "TailScan": "estimators.tail_scan",
    "TangentKDE": "estimators.tangent",
    "TopLabel": "lenses",
    "Truncated": "distributions.truncated",
    "UCME": "estimators.ucme",
    "Uniform": "distributions.uniform",
    "Variational": "estimators.variational",
    "Within": "thresholds",
}

__all__ = [
    "CRPS",
    "ECE",
    "KCE",
    "KDE",
    "MMCE",
    "PIT",
    "SKCE",
    "UCME",
    "AggregatedTest",
    "Bernoulli",
    "Beta",
    "BinnedState",
    "Bootstrap",
    "Brier",
    "Categorical",
    "Censored",
    "ClassWise",
    "CountWise",
    "DebiasedECE",
    "Edges",
    "EnergyScore",
    "Ensemble",
    "EqualMass",
    "EqualWidth",
    "ExactTest",
    "Exceeds",
    "Gamma",
    "Histogram",
    "IntervalScore",
    "KolmogorovSmirnov",
    "Kuiper",
    "Laplace",
    "LogLoss",
    "LogNormal",
    "Logistic",
    "Lp",
    "Mixture",
    "Monitor",
    "MultiLabel",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "PITCurve",
    "PITError",
    "PITHistogram",
    "Pinball",
    "Poisson",
    "PositiveClass",
    "Quantiles",
    "RankTest",
    "ReliabilityCurve",
    "SmoothECE",
    "StudentT",
    "Sweep",
    "TailScan",
    "TangentKDE",
    "TopLabel",
    "Truncated",
    "Uniform",
    "Variational",
    "Within",
    "compare",
    "coverage",
    "evaluate",
    "groups",
    "monitor_report",
    "report",
    "state",
]


def __getattr__(name: str) -> object:
    if name in ("engines", "plots"):  # packages of their own, with names of their own
        return import_module(f"calibrant.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'calibrant' has no attribute {name!r}")
    value: object = getattr(import_module(f"calibrant.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
