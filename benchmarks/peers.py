"""calibrant beside other libraries: the same numbers from the same data, and the time both take in one process.

``OMP_NUM_THREADS=1 python benchmarks/peers.py`` compares with whatever of these is installed:
netcal, torchmetrics, relplot, uncertainty-calibration, probmetrics, probcal, scikit-learn, scoringrules, properscoring,
uncertainty-toolbox. Times are processor seconds, the least of several runs that take turns.
"""

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from time import process_time
from typing import Any

import numpy as np
from harness import in_turns

from calibrant import (
    CRPS,
    ECE,
    SKCE,
    Brier,
    DebiasedECE,
    Ensemble,
    EqualMass,
    EqualWidth,
    ExactTest,
    LogLoss,
    Normal,
    SmoothECE,
    Sweep,
    TopLabel,
)
from calibrant.estimators import MMCE, KolmogorovSmirnov, Kuiper, QuantileError
from calibrant.kernels import Exponential

SIZES = 10_000, 1_000_000


@dataclass(frozen=True)
class Comparison:
    """One quantity of n rows, by calibrant and by a library of others."""

    what: str
    library: str
    n: int
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    repeats: int = 5

    def measured(self) -> "Measured":
        """Both values, and the processor seconds of both."""
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            (our_time, ours), (their_time, theirs) = in_turns((self.ours, self.theirs), self.repeats, process_time)
        return Measured(self, float(ours), float(np.asarray(theirs).ravel()[0]), our_time, their_time)


@dataclass(frozen=True)
class Measured:
    """What a comparison found."""

    job: Comparison
    ours: float
    theirs: float
    our_time: float
    their_time: float

    @property
    def ratio(self) -> float:
        """How many times as long the other takes."""
        return self.their_time / self.our_time

    def row(self) -> str:
        """A row of the table."""
        job, difference = self.job, abs(self.ours - self.theirs)
        return (
            f"| {job.what} | {job.n:,} | {job.library} {version(job.library)} | {self.ours:.8f} | {self.theirs:.8f} "
            f"| {difference:.0e} | {1e3 * self.our_time:.2f} ms | {self.ratio:.2g} |"
        )


def binary(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Over-confident scores of two classes, none of them on an edge."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.7, 0.7, n)
    return (rng.random(n) < 0.1 + 0.8 * p).astype(np.int64), p


def on_edges(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores of whole tenths, so that all of them are edges of ten bins; every twentieth is exactly 1."""
    rng = np.random.default_rng(0)
    p = np.round(rng.integers(0, 11, n) / 10, 1)
    return (rng.random(n) < 0.1 + 0.8 * p).astype(np.int64), p


def classes(n: int, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Over-confident predictions of k classes in single precision."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(n, k))
    y = (logits + rng.gumbel(size=(n, k))).argmax(axis=1)
    sharp = np.exp(2 * logits)
    return y, (sharp / sharp.sum(axis=1, keepdims=True)).astype(np.float32)


def forecasts(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Targets, means, spreads that are too small, and fifty members."""
    rng = np.random.default_rng(0)
    mean, spread = rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    y = rng.normal(mean, 1.5 * spread)
    return y, mean, spread, rng.normal(mean[:, None], spread[:, None], (n, 50))


def of_netcal(n: int) -> Iterator[Comparison]:
    """Binned errors and the MMCE of the confidence."""
    from netcal.metrics import ECE as NetcalECE
    from netcal.metrics import MMCE as NetcalMMCE

    y, p = classes(n)
    y2, p2 = on_edges(n)
    yield Comparison(
        "ECE of the confidence, 15 bins, 10 classes",
        "netcal",
        n,
        lambda: ECE(EqualWidth(15), lens=TopLabel())(y, p).value,
        lambda: NetcalECE(15).measure(p, y),
    )
    yield Comparison(
        "ECE, 10 bins, scores on edges",
        "netcal",
        n,
        lambda: ECE(EqualWidth(10))(y2, p2).value,
        lambda: NetcalECE(10).measure(p2, y2),
    )
    if n > SIZES[0]:
        return
    few = slice(0, 4_000)
    yield Comparison(
        "MMCE",
        "netcal",
        4_000,
        lambda: MMCE()(y[few], p[few]).value,
        lambda: NetcalMMCE().measure(p[few].astype(float), y[few]),
        3,
    )


def of_torchmetrics(n: int) -> Iterator[Comparison]:
    """Binned errors."""
    import torch
    from torchmetrics.functional.classification import binary_calibration_error, multiclass_calibration_error

    y, p = classes(n)
    y2, p2 = on_edges(n)
    labels, probabilities = torch.from_numpy(y), torch.from_numpy(p)
    labels2, probabilities2 = torch.from_numpy(y2), torch.from_numpy(p2)
    yield Comparison(
        "ECE of the confidence, 15 bins, 10 classes",
        "torchmetrics",
        n,
        lambda: ECE(EqualWidth(15), lens=TopLabel())(y, p).value,
        lambda: multiclass_calibration_error(probabilities, labels, 10, n_bins=15),
    )
    yield Comparison(
        "ECE, 10 bins, scores on edges",
        "torchmetrics",
        n,
        lambda: ECE(EqualWidth(10))(y2, p2).value,
        lambda: binary_calibration_error(probabilities2, labels2, n_bins=10),
    )
    y3, p3 = binary(n)
    labels3, probabilities3 = torch.from_numpy(y3), torch.from_numpy(p3)
    yield Comparison(
        "ECE, 15 bins",
        "torchmetrics",
        n,
        lambda: ECE(EqualWidth(15))(y3, p3).value,
        lambda: binary_calibration_error(probabilities3, labels3, n_bins=15),
        3,
    )


def of_relplot(n: int) -> Iterator[Comparison]:
    """The smooth error, and bins."""
    import relplot

    y, p = binary(n)
    y2, p2 = on_edges(n)
    yield Comparison("smooth ECE", "relplot", n, lambda: SmoothECE()(y, p).value, lambda: relplot.smECE(p, y), 3)
    yield Comparison(
        "ECE, 10 bins, scores on edges",
        "relplot",
        n,
        lambda: ECE(EqualWidth(10))(y2, p2).value,
        lambda: relplot.metrics.binnedECE(p2, y2, 10),
    )


def of_verified_calibration(n: int) -> Iterator[Comparison]:
    """Plain and debiased errors over bins of equal width and mass."""
    import calibration

    n = n // 15 * 15  # who gets the rows that are left over is everybody's own choice
    (y, p), (y2, p2) = binary(n), on_edges(n)
    name = "uncertainty-calibration"
    yield Comparison(
        "ECE, 15 bins",
        name,
        n,
        lambda: ECE(EqualWidth(15))(y, p).value,
        lambda: calibration.utils.get_ece(p, y, num_bins=15, mode="marginal"),
        2,
    )
    yield Comparison(
        "ECE, 10 bins, scores on edges",
        name,
        n,
        lambda: ECE(EqualWidth(10))(y2, p2).value,
        lambda: calibration.utils.get_ece(p2, y2, num_bins=10, mode="marginal"),
        2,
    )
    yield Comparison(
        "debiased L2 error, 15 bins of equal mass",
        name,
        n,
        lambda: DebiasedECE(EqualMass(15), method="variance")(y, p).value,
        lambda: calibration.utils.lower_bound_scaling_ce(p, y, num_bins=15),
        2,
    )


def of_probmetrics(n: int) -> Iterator[Comparison]:
    """Cumulative errors."""
    import torch
    from probmetrics.distributions import CategoricalProbs
    from probmetrics.metrics import KolmogorovSmirnovCalibrationMetric, KuiperCalibrationMetric

    y, p = binary(n)
    truth = CategoricalProbs(torch.from_numpy(np.eye(2)[y]))
    said = CategoricalProbs(torch.from_numpy(np.column_stack([1 - p, p])))
    yield Comparison(
        "Kuiper's error",
        "probmetrics",
        n,
        lambda: Kuiper()(y, p).value,
        lambda: KuiperCalibrationMetric().compute(y_true=truth, y_pred=said),
    )
    yield Comparison(
        "Kolmogorov and Smirnov's error",
        "probmetrics",
        n,
        lambda: KolmogorovSmirnov()(y, p).value,
        lambda: KolmogorovSmirnovCalibrationMetric().compute(y_true=truth, y_pred=said),
    )


def of_probcal(n: int) -> Iterator[Comparison]:
    """Binned, swept and kernel errors, with a test."""
    from probcal import metrics

    y, p = binary(n)
    y2, p2 = on_edges(n)
    few = slice(0, 1_000)
    unit = SKCE(Exponential(0.3 * 2**0.5))  # distances of (1 - p, p) are those of p times the root of 2
    yield Comparison(
        "ECE, 15 bins",
        "probcal",
        n,
        lambda: ECE(EqualWidth(15))(y, p).value,
        lambda: metrics.ece(y, p, strategy="width"),
    )
    yield Comparison(
        "ECE, 10 bins, scores on edges",
        "probcal",
        n,
        lambda: ECE(EqualWidth(10))(y2, p2).value,
        lambda: metrics.ece(y2, p2, n_bins=10, strategy="width"),
    )
    if n > SIZES[0]:  # theirs takes minutes
        return
    yield Comparison(
        "ECE of the sweep", "probcal", n, lambda: ECE(Sweep())(y, p).value, lambda: metrics.ece_sweep(y, p), 3
    )
    yield Comparison(
        "squared kernel error",
        "probcal",
        4_000,
        lambda: unit(y[:4_000], p[:4_000]).value,
        lambda: metrics.skce(y[:4_000], p[:4_000], bandwidth=0.3),
        3,
    )
    yield Comparison(
        "its test: p-value",
        "probcal",
        1_000,
        lambda: ExactTest(unit)(y[few], p[few]).pvalue,
        lambda: metrics.skce_test(y[few], p[few], bandwidth=0.3).p_value,
        2,
    )


def of_sklearn(n: int) -> Iterator[Comparison]:
    """Scores, and the error from the points of its calibration curve."""
    from sklearn.metrics import brier_score_loss, log_loss

    y, p = binary(n)
    name = "scikit-learn"
    yield Comparison("Brier score", name, n, lambda: Brier()(y, p).value, lambda: brier_score_loss(y, p))
    yield Comparison("log loss", name, n, lambda: LogLoss()(y, p).value, lambda: log_loss(y, p))


def of_scoringrules(n: int) -> Iterator[Comparison]:
    """The CRPS of normal predictions and of members."""
    import scoringrules

    y, mean, spread, members = forecasts(n)
    name = "scoringrules"
    yield Comparison(
        "CRPS, normal",
        name,
        n,
        lambda: CRPS()(y, Normal(mean, spread)).value,
        lambda: scoringrules.crps_normal(y, mean, spread).mean(),
    )
    for estimator, fair in (("qd", False), ("pwm", True)):  # the fastest of theirs that give these numbers
        yield Comparison(
            f"CRPS, 50 members{', fair' if fair else ''}",
            name,
            n,
            lambda fair=fair: CRPS(fair=fair)(y, Ensemble(members)).value,
            lambda estimator=estimator: scoringrules.crps_ensemble(
                y, members, estimator=estimator, backend="numba"
            ).mean(),
        )


def of_properscoring(n: int) -> Iterator[Comparison]:
    """The CRPS of members."""
    import properscoring

    y, _, _, members = forecasts(n)
    yield Comparison(
        "CRPS, 50 members",
        "properscoring",
        n,
        lambda: CRPS()(y, Ensemble(members)).value,
        lambda: properscoring.crps_ensemble(y, members).mean(),
    )


def of_uncertainty_toolbox(n: int) -> Iterator[Comparison]:
    """The CRPS of normal predictions, and how far quantiles are off."""
    import uncertainty_toolbox

    y, mean, spread, _ = forecasts(n)
    levels = np.linspace(0, 1, 100)
    name = "uncertainty-toolbox"
    yield Comparison(
        "CRPS, normal",
        name,
        n,
        lambda: CRPS()(y, Normal(mean, spread)).value,
        lambda: uncertainty_toolbox.crps_gaussian(mean, spread, y),
    )
    if n > SIZES[0]:
        return
    yield Comparison(
        "mean error of 98 quantiles",
        name,
        n,
        lambda: QuantileError(levels[1:-1])(y, Normal(mean, spread)).value * 98 / 100,  # theirs has 0 and 1, too
        lambda: uncertainty_toolbox.mean_absolute_calibration_error(
            mean, spread, y, num_bins=100, vectorized=True, prop_type="quantile"
        ),
        3,
    )


PEERS = {
    "netcal": of_netcal,
    "torchmetrics": of_torchmetrics,
    "relplot": of_relplot,
    "uncertainty-calibration": of_verified_calibration,
    "probmetrics": of_probmetrics,
    "probcal": of_probcal,
    "scikit-learn": of_sklearn,
    "scoringrules": of_scoringrules,
    "properscoring": of_properscoring,
    "uncertainty-toolbox": of_uncertainty_toolbox,
}


def swapped(first: float, second: float) -> tuple[np.ndarray, np.ndarray]:
    """A thousand rows of each score, which happen as often as the other score says: in one bin, errors cancel."""
    observed = [np.arange(1_000) < round(1_000 * share) for share in (second, first)]
    return np.concatenate(observed).astype(np.int64), np.repeat([first, second], 1_000)


CASES = {
    "0.95 and 1, in the last bin: 0": swapped(0.95, 1.0),
    "0.5 and 0.6, in two bins: 0.1": swapped(0.5, 0.6),
    "one score is NaN": (np.array([0, 1, 1]), np.array([0.2, np.nan, 0.7])),
    "percentages": (np.array([0, 1, 1]), np.array([20.0, 50.0, 70.0])),
    "a negative score": (np.array([0, 1, 1]), np.array([-0.2, 0.5, 0.7])),
}
"""Scores on edges, with what ten bins give by hand, and scores that are none."""


def binned_errors() -> dict[str, Callable[[np.ndarray, np.ndarray], Any]]:
    """The ECE in ten bins of equal width, by each library that has it."""
    import calibration
    import netcal.metrics
    import probcal
    import relplot
    import torch
    from torchmetrics.functional.classification import binary_calibration_error

    return {
        "calibrant": lambda y, p: ECE(EqualWidth(10))(y, p).value,
        "netcal": lambda y, p: netcal.metrics.ECE(10).measure(p, y),
        "torchmetrics": lambda y, p: binary_calibration_error(torch.from_numpy(p), torch.from_numpy(y), n_bins=10),
        "relplot": lambda y, p: relplot.metrics.binnedECE(p, y, 10),
        "uncertainty-calibration": lambda y, p: calibration.utils.get_ece(p, y, num_bins=10, mode="marginal"),
        "probcal": lambda y, p: probcal.metrics.ece(y, p, n_bins=10, strategy="width"),
    }


def print_cases() -> None:
    """What each library says to scores on edges and to scores that are none."""
    libraries = binned_errors()
    print(f"\n| case | {' | '.join(libraries)} |\n|{'---|' * (len(libraries) + 1)}")
    for case, (y, p) in CASES.items():
        answers = []
        for error in libraries.values():
            try:
                answers.append(f"{float(error(y, p)):.3f}")
            except (ValueError, IndexError) as refusal:
                answers.append(type(refusal).__name__)
        print(f"| {case} | {' | '.join(answers)} |")


def print_rejections(n_sets: int = 500) -> None:
    """How often calibrated and over-confident predictions are rejected at 5 %, by the same kernel error."""
    from probcal import metrics

    print("\n| n | scores | exact test | bootstrap of probcal | asymptotic test of probcal |\n|---|---|---|---|---|")
    for n in (20, 50, 200):
        for name, slope in (("calibrated", 1.0), ("over-confident", 0.5)):
            rejected = np.zeros(3)
            for seed in range(n_sets):
                rng = np.random.default_rng(seed)
                p = rng.random(n)
                y = (rng.random(n) < 0.5 + slope * (p - 0.5)).astype(np.int64)
                rejected += [
                    ExactTest(SKCE(Exponential(0.3 * 2**0.5)), 199)(y, p, rng=seed).pvalue <= 0.05,
                    metrics.skce_test(y, p, n_boot=199, bandwidth=0.3, random_state=seed).p_value <= 0.05,
                    metrics.skce_test(y, p, method="asymptotic", bandwidth=0.3, random_state=seed).p_value <= 0.05,
                ]
            print(f"| {n} | {name} | {' | '.join(f'{100 * share:.1f} %' for share in rejected / n_sets)} |")


def comparisons() -> Iterator[Comparison]:
    """Every job of the libraries that are installed, at every size."""
    for library, jobs in PEERS.items():
        try:
            version(library)
        except PackageNotFoundError:
            print(f"{library}: not installed", file=sys.stderr)
            continue
        for n in SIZES:
            yield from jobs(n)


LOOKS = "it does not look at what it is given: NaN, scores out of range and unknown labels pass (see the hard cases)"
EXACT = "ours adds without rounding, so that no order of rows changes a digit, and comes with its table and interval"

REASONS = {
    ("ECE, 10 bins, scores on edges", "relplot"): f"{LOOKS}; {EXACT}",
    ("ECE, 10 bins, scores on edges", "probcal"): EXACT,
    ("ECE, 10 bins, scores on edges", "torchmetrics"): f"{LOOKS}; {EXACT}",
    ("ECE, 15 bins", "probcal"): EXACT,
    ("ECE, 15 bins", "torchmetrics"): f"{LOOKS}; {EXACT}",
    (
        "ECE of the confidence, 15 bins, 10 classes",
        "torchmetrics",
    ): f"torch finds the favoured class faster than NumPy, whose argmax takes a third of our time; {EXACT}",
    ("CRPS, normal", "scoringrules"): "a formula without checks; ours comes with its standard error and interval",
    (
        "CRPS, normal",
        "uncertainty-toolbox",
    ): "a formula without checks; ours comes with its standard error and interval",
    ("CRPS, 50 members", "properscoring"): "a compiled loop against NumPy's; on a million rows both take as long",
    (
        "mean error of 98 quantiles",
        "uncertainty-toolbox",
    ): "ours is the error of any family by its distribution function",
}
"""Why a peer is faster, where it is."""

HEADER = """| quantity | rows | library | calibrant | theirs | difference | calibrant takes | times as long |
|---|---|---|---|---|---|---|---|"""


def main() -> None:
    """Print the tables."""
    print(HEADER)
    for comparison in comparisons():
        print(comparison.measured().row(), flush=True)
    for table in (print_cases, print_rejections):
        try:
            table()
        except ModuleNotFoundError as missing:
            print(f"{table.__name__} needs {missing.name}", file=sys.stderr)


if __name__ == "__main__":
    main()
