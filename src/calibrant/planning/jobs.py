"""The table of what work costs: for each job what makes it, its operations by kind, and the numbers that it holds in memory."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from calibrant.estimators.binned.binning import EqualMass, EqualWidth
from calibrant.estimators.binned.ece import ECE
from calibrant.estimators.forecast_errors.pit_error import PITError
from calibrant.estimators.kernel_errors.kernel_resamples import work_of_labels, work_of_numbers
from calibrant.estimators.kernel_errors.random_features import MIN_FEATURES, RandomFeatureSKCE, work_of_features
from calibrant.estimators.kernel_errors.skce import SKCE
from calibrant.estimators.scoring_rules.forecast_scores import CRPS
from calibrant.estimators.scoring_rules.proper_scores import LogLoss
from calibrant.estimators.simplex.kde import KDE
from calibrant.estimators.smooth.smooth_ece import SmoothECE
from calibrant.inference.exact_tests.aggregated import SCALES, SCALES_OF_BOTH, AggregatedTest
from calibrant.inference.exact_tests.exact_test import BUDGET, ExactTest
from calibrant.inference.monte_carlo import CHUNK
from calibrant.kernels.metrics import MAX_ROWS
from calibrant.lenses.class_lenses import ClassWise, Lens, TopLabel
from calibrant.planning.affordable import KERNEL_WORK, PAIRS, TEST_WORK, affordable
from calibrant.recalibration.base import Recalibrator
from calibrant.recalibration.predictive.dressing import Dressing
from calibrant.recalibration.predictive.variance import VarianceScaling
from calibrant.recalibration.scaling.temperature import Temperature
from calibrant.recalibration.stacking.default import MAX_CLASSES, Default

Kind: TypeAlias = Literal["classes", "binary", "numbers", "ensemble"]
KINDS: tuple[Kind, ...] = ("classes", "binary", "numbers", "ensemble")
EVENTS: tuple[Kind, ...] = ("classes", "binary")
REALS: tuple[Kind, ...] = ("numbers", "ensemble")

Operation: TypeAlias = Literal["compare", "pass", "pair", "draw", "multiply", "fit", "picture"]
Cost: TypeAlias = dict[Operation, float]

SECONDS: Mapping[Operation, float] = MappingProxyType(
    {
        "compare": 5e-9,  # of two rows that are sorted
        "pass": 2.5e-9,  # over one number
        "pair": 3.5e-9,  # of rows, their kernels and residuals
        "draw": 5e-9,  # of a target, with its part of a binned statistic
        "multiply": 8e-11,  # as matrix products do
        "fit": 1e-6,  # over one number, all iterations of six fits: of all rows, and without each of five folds
        "picture": 0.1,  # of a report, with what it needs
    }
)
"""Processor seconds of one operation of each kind, on a virtual machine with two cores."""

SHARED: tuple[Operation, ...] = ("pair", "multiply")
"""Kinds that all threads share."""

NUMBER_BYTES = 8
RESAMPLES = 999
BLOCK = 100
FEATURES = RandomFeatureSKCE().n_features


@dataclass(frozen=True)
class Load:
    """Rows, and what a row predicts; ``k`` counts classes (2 of binary predictions), or the members of an ensemble.

    >>> Load(10**7, 1000).data_bytes / 1e9
    80.08
    """

    n: int
    k: int
    kind: Kind = "classes"

    @property
    def numbers(self) -> float:
        """Predicted numbers of all rows."""
        return float(self.n) * {"binary": 1, "numbers": 2}.get(self.kind, self.k)

    @property
    def target_features(self) -> int:
        """Numbers per residual; of a target that is a number, roughly."""
        return self.k if self.kind in EVENTS else 80

    @property
    def data_bytes(self) -> float:
        """Bytes of targets and predictions."""
        return NUMBER_BYTES * (self.numbers + self.n)

    @property
    def comparisons(self) -> float:
        """Comparisons that sorting takes."""
        return self.n * math.log2(max(self.n, 2))

    @property
    def pairs(self) -> float:
        """Pairs of rows."""
        return float(self.n) ** 2


@dataclass(frozen=True)
class Job:
    """Estimates, tests, fits or a report of one cost.

    ``make`` gives the thing itself for a load, ``operations`` its operations by kind, ``numbers`` what it holds beside the data.
    What ``has_state`` can be done in batches.

    >>> JOBS["log loss"].operations(Load(1000, 10)), JOBS["log loss"].bytes(Load(1000, 10))
    ({'pass': 24000.0}, 280000.0)
    """

    make: Callable[[Load], Any]
    operations: Callable[[Load], Cost]
    numbers: Callable[[Load], float]
    kinds: tuple[Kind, ...] = KINDS
    has_state: bool = False

    def bytes(self, load: Load) -> float:
        """Memory, with the data."""
        return load.data_bytes + NUMBER_BYTES * self.numbers(load)

    def seconds(self, load: Load, threads: int = 1) -> float:
        """Seconds with so many threads, which share what they can."""
        counts = self.operations(load).items()
        return sum(SECONDS[kind] * count / (threads if kind in SHARED else 1) for kind, count in counts)


def kernel_work(load: Load) -> float:
    """Multiplications of one resample of a kernel error, as tests and reports count them.

    >>> kernel_work(Load(1000, 10)), kernel_work(Load(1000, 2, "binary"))
    (10000000.0, 20000.0)
    """
    if load.kind in REALS:
        return work_of_numbers(load.n)
    return work_of_labels(load.n, load.k, is_line=load.kind == "binary")


def _sorted(load: Load, times: float = 1.0) -> Cost:
    return {"compare": times * load.comparisons, "pass": load.numbers}


def _pit(load: Load) -> Cost:
    return _sorted(load, 30.0 if load.kind == "ensemble" else 1.0)


def _median(load: Load, times: float = 4.0) -> float:
    """Passes that the median distance takes, which kernels need."""
    return times * min(load.n, MAX_ROWS) ** 2


def _kernel_error(load: Load) -> Cost:
    if load.kind == "binary":
        return {"pass": _median(load), "compare": 5 * load.comparisons}
    per_pair = 0.25 if load.kind == "classes" else 1.0
    return {"pass": _median(load), "pair": per_pair * load.pairs + load.n * load.numbers / 30}


def _blocks(load: Load) -> Cost:
    per_pair = 5.0 if load.kind in EVENTS else 15.0
    return {"pass": _median(load) + BLOCK * (per_pair * load.n + load.numbers / 8) + 60_000 * load.n / BLOCK}


def _by_features(load: Load) -> Cost:
    per_feature = 8.0 + (0.6 * load.k if load.kind in EVENTS else 6.0)
    return {"pass": _median(load) + FEATURES * load.n * per_feature}


def _binned_test(load: Load) -> Cost:
    return {**_sorted(load, 3.0), "draw": RESAMPLES * load.n * (0.75 + math.log2(load.k) / 10)}


def _pit_test(load: Load) -> Cost:
    return {**_pit(load), "draw": RESAMPLES * load.comparisons * (2.0 if load.kind == "ensemble" else 1.0)}


def _aggregated_test(load: Load) -> Cost:
    """Each statistic of all pairs, or where that is beyond its part of the budget, of as many random features as are not."""
    statistics = len(SCALES if load.kind in EVENTS else SCALES_OF_BOTH)
    draws = statistics * RESAMPLES * float(load.n)
    if load.kind == "binary":
        return {"pass": _median(load), "draw": 1.3 * draws}
    work, share = RESAMPLES * kernel_work(load), BUDGET / statistics
    if work > share:  # products of large matrices take a quarter of the time
        work = max(share, RESAMPLES * work_of_features(load.n, load.target_features, MIN_FEATURES)) / 4
    made = 20_000.0 * draws if load.kind in REALS else 0.0  # features of targets, or closed forms
    return {"pass": _median(load, 20.0 * statistics), "draw": 4 * draws, "multiply": statistics * work + made}


def _recalibration(load: Load) -> Cost:
    matrix = 0.4 * load.k**2 if load.k <= MAX_CLASSES else 5.0 * load.k
    per_row = {"classes": 140 + matrix, "binary": 1.2, "numbers": 0.4, "ensemble": 30.0 + 13 * load.k}
    return {"fit": load.n * per_row[load.kind]}


def _report(load: Load) -> Cost:
    """Resamples behind every test and picture, kernel errors, and rows of which pictures and recalibrators are made."""
    resamples = affordable(RESAMPLES, load.n, TEST_WORK, least=199)
    draws = (32.0 if load.kind in REALS else 16.0) * resamples * load.n
    work = min(KERNEL_WORK, 4 * resamples * kernel_work(load)) / (1 if load.kind == "numbers" else 3)
    pairs = 0.0 if load.kind == "binary" else min(load.pairs, PAIRS)
    return {"picture": 10.0, "draw": draws, "multiply": work, "pair": pairs, "fit": 3 * load.numbers}


def _few(load: Load) -> float:
    return 4.0 * load.n


def _copies(load: Load) -> float:
    return 4.0 * load.n + 2.0 * max(load.numbers, load.n * load.target_features)


def _resampled(load: Load) -> float:
    """Resamples that are made together, cumulative probabilities, and two copies of the data."""
    steps = 2.0 ** math.ceil(math.log2(load.k)) if load.kind == "classes" else 0.0
    return 4.0 * max(load.n, min(CHUNK, RESAMPLES * load.n)) + 2.0 * load.n * steps + 2 * load.numbers


def _resampled_kernel(load: Load) -> float:
    """With the kernel's matrix where it is kept, or random features, and the residuals of a batch."""
    held = 0.0 if load.kind == "binary" else min(load.pairs, 2e7) + min(6e7, 64.0 * load.n * load.target_features)
    return _resampled(load) + _copies(load) + held


def _lens(load: Load) -> Lens | None:
    """What shows one event of a row."""
    return TopLabel() if load.kind == "classes" else None


def _recalibrator(load: Load) -> Recalibrator:
    return {"numbers": VarianceScaling(bias=True), "ensemble": Dressing()}.get(load.kind) or Default()


def _held_by_report(load: Load) -> float:
    return 2e7 + 12.0 * load.n + (40 if load.kind == "ensemble" else 6) * load.numbers


JOBS: Mapping[str, Job] = MappingProxyType(
    {
        "report": Job(lambda _: "calibrant report", _report, _held_by_report),
        "binned error": Job(lambda load: ECE(EqualMass(15), lens=_lens(load)), _sorted, _few, EVENTS),
        "error in fixed bins": Job(
            lambda load: ECE(EqualWidth(15), lens=_lens(load)),
            lambda load: {"pass": load.numbers + 10.0 * load.n},
            _few,
            EVENTS,
            has_state=True,
        ),
        "class-wise error": Job(
            lambda _: ECE(EqualMass(15), lens=ClassWise()),
            lambda load: {"compare": load.k * load.comparisons},
            lambda load: 4.0 * load.n + 2.0 * load.numbers,
            ("classes",),
        ),
        "smooth error": Job(lambda load: SmoothECE(lens=_lens(load)), lambda load: _sorted(load, 2.0), _few, EVENTS),
        "log loss": Job(
            lambda _: LogLoss(),
            lambda load: {"pass": 2 * load.numbers + 4.0 * load.n},
            _copies,
            (*EVENTS, "numbers"),
            has_state=True,
        ),
        "CRPS": Job(
            lambda _: CRPS(),
            lambda load: {"pass": 2.0 * load.numbers + 5.0 * load.n},
            lambda load: 8.0 * load.n + 5e5,
            REALS,
            has_state=True,
        ),
        "PIT error": Job(lambda _: PITError("kuiper"), _pit, _copies, REALS),
        "kernel error": Job(lambda _: SKCE(), _kernel_error, lambda load: 12.0 * load.n + _copies(load)),
        "kernel error of blocks": Job(
            lambda load: SKCE(block=max(2, min(BLOCK, load.n))), _blocks, _copies, has_state=True
        ),
        "kernel error by random features": Job(
            lambda _: RandomFeatureSKCE(),
            _by_features,
            lambda load: _copies(load) + min(8e6, 4.0 * load.n * FEATURES),
            has_state=True,
        ),
        "kernel regression": Job(
            lambda _: KDE(),
            lambda load: {"pass": _median(load, 24.0), "pair": 4 * load.pairs + load.n * load.numbers / 10},
            lambda load: 8.0 * load.n * load.k,
            EVENTS,
        ),
        "test of the binned error": Job(
            lambda load: ExactTest(ECE(EqualMass(15), lens=_lens(load))), _binned_test, _resampled, EVENTS
        ),
        "test of PIT values": Job(lambda _: ExactTest(PITError("kuiper")), _pit_test, _resampled, REALS),
        "aggregated kernel test": Job(lambda _: AggregatedTest(), _aggregated_test, _resampled_kernel),
        "temperature": Job(
            lambda _: Temperature(),
            lambda load: {"fit": 10.0 * load.n + 2 * load.numbers},
            lambda load: 6 * load.numbers,
            EVENTS,
        ),
        "recalibration": Job(_recalibrator, _recalibration, lambda load: 200.0 * load.n + 8 * load.numbers),
    }
)
"""Every job by name, in the order in which plans list them."""
