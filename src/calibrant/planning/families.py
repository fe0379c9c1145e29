"""What estimates, tests and fits cost: families of work, and how their time and memory grow."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from calibrant.estimators.binned.binning import EqualMass, EqualWidth
from calibrant.estimators.binned.debiased import DebiasedECE
from calibrant.estimators.binned.ece import ECE
from calibrant.estimators.forecast_errors.pit_error import PITError
from calibrant.estimators.kernel_errors.kernel_resamples import ROOM, STORED, work_of_labels, work_of_numbers
from calibrant.estimators.kernel_errors.random_features import BATCH, RandomFeatureSKCE, work_of_waves
from calibrant.estimators.kernel_errors.skce import SKCE
from calibrant.estimators.kernel_errors.ucme import UCME
from calibrant.estimators.scoring_rules.forecast_scores import CRPS
from calibrant.estimators.scoring_rules.proper_scores import Brier, LogLoss
from calibrant.estimators.simplex.kde import KDE
from calibrant.estimators.smooth.smooth_ece import SmoothECE
from calibrant.inference.exact_tests.aggregated import SCALES, SCALES_OF_BOTH, AggregatedTest
from calibrant.inference.exact_tests.exact_test import BUDGET, ExactTest
from calibrant.inference.monte_carlo import CHUNK
from calibrant.kernels.metrics import MAX_ROWS
from calibrant.lenses.class_lenses import ClassWise, Lens, TopLabel
from calibrant.recalibration.base import Recalibrator
from calibrant.recalibration.predictive.dressing import Dressing
from calibrant.recalibration.predictive.variance import VarianceScaling
from calibrant.recalibration.scaling.temperature import Temperature
from calibrant.recalibration.stacking.default import MAX_CLASSES, Default

Kind: TypeAlias = Literal["classes", "binary", "numbers", "ensemble"]
KINDS: tuple[Kind, ...] = ("classes", "binary", "numbers", "ensemble")

NUMBER = 8
"""Bytes of a number."""

WAVES_OF_NUMBERS = 80
"""Features that a resampled number has in :class:`~calibrant.estimators.RandomFeatureSKCE`, roughly."""


@dataclass(frozen=True)
class Load:
    """Rows and what a row predicts, and how often, with how many waves or rows a block something is done.

    ``k`` counts classes (2 of binary predictions), or the members of an ensemble.

    >>> Load(10**7, 1000).data_bytes / 1e9
    80.08
    """

    n: int
    k: int
    kind: Kind = "classes"
    resamples: int = 0
    waves: int = 0
    block: int = 0

    @property
    def width(self) -> int:
        """Numbers a row of predictions has."""
        return {"binary": 1, "numbers": 2}.get(self.kind, self.k)

    @property
    def features(self) -> int:
        """Features of a residual."""
        return self.k if self.kind in ("classes", "binary") else WAVES_OF_NUMBERS

    @property
    def data_bytes(self) -> float:
        """Bytes of targets and predictions."""
        return NUMBER * float(self.n) * (self.width + 1)

    @property
    def sorting(self) -> float:
        """Comparisons that sorting takes."""
        return self.n * math.log2(max(self.n, 2))

    @property
    def median_pairs(self) -> float:
        """Pairs that the median distance looks at."""
        return float(min(self.n, MAX_ROWS)) ** 2


@dataclass(frozen=True)
class Family:
    """Estimators, tests or recalibrators of one cost.

    ``make`` gives the thing itself for a load; ``terms`` are monomials of the load, whose coefficients are measured;
    ``numbers`` counts what is held at once beside the data. ``is_shared`` is work that all threads share; ``has_state``
    work that can be done in batches.

    >>> doubling = Family("sorting", lambda load: sorted, lambda load: (load.sorting,), lambda load: load.n)
    >>> doubling.terms(Load(1024, 2, "binary")), doubling.bytes(Load(1024, 2, "binary"))
    ((10240.0,), 24576.0)
    """

    name: str
    make: Callable[[Load], Any]
    terms: Callable[[Load], tuple[float, ...]]
    numbers: Callable[[Load], float]
    kinds: tuple[Kind, ...] = KINDS
    is_shared: bool = False
    has_state: bool = False

    def bytes(self, load: Load) -> float:
        """Memory, with the data."""
        return load.data_bytes + NUMBER * self.numbers(load)


EVENTS: tuple[Kind, ...] = ("classes", "binary")
REALS: tuple[Kind, ...] = ("numbers", "ensemble")

BINS = 15


def single(load: Load) -> Lens | None:
    """The lens that shows one event of a row."""
    return TopLabel() if load.kind == "classes" else None


def _rows_and_order(load: Load) -> tuple[float, ...]:
    return (1.0, float(load.n * load.width), load.sorting)


def _numbers(load: Load) -> tuple[float, ...]:
    return (1.0, float(load.n), float(load.n * load.width))


def _pairs(load: Load) -> tuple[float, ...]:
    """Distances and products of residuals, after the median distance."""
    n = float(load.n)
    return (1.0, load.median_pairs, n * n, n * n * load.width)


def _blocks(load: Load) -> tuple[float, ...]:
    size = float(load.n * min(load.block, load.n))
    return (1.0, load.median_pairs, load.n / max(load.block, 1), size, size * load.width)


def _waves(load: Load) -> tuple[float, ...]:
    """A cosine and a sine a wave, and products with residuals."""
    size = float(load.n * load.waves)
    return (1.0, load.median_pairs, size, size * load.features)


def _few_numbers(load: Load) -> float:
    return 4.0 * load.n


def _two_copies(load: Load) -> float:
    return 4.0 * load.n + 2.0 * load.n * max(load.width, load.features)


ESTIMATES = (
    Family(
        "binned error",
        lambda load: ECE(EqualMass(BINS), lens=single(load)),
        _rows_and_order,
        _few_numbers,
        EVENTS,
    ),
    Family(
        "error in fixed bins",
        lambda load: ECE(EqualWidth(BINS), lens=single(load)),
        _numbers,
        _few_numbers,
        EVENTS,
        has_state=True,
    ),
    Family(
        "class-wise error",
        lambda _: ECE(EqualMass(BINS), lens=ClassWise()),
        lambda load: (1.0, float(load.k), load.k * load.sorting),
        lambda load: 4.0 * load.n + 2.0 * load.n * load.k,
        ("classes",),
    ),
    Family(
        "debiased error",
        lambda load: DebiasedECE(EqualMass(BINS), lens=single(load)),
        _rows_and_order,
        _few_numbers,
        EVENTS,
    ),
    Family("smooth error", lambda load: SmoothECE(lens=single(load)), _rows_and_order, _few_numbers, EVENTS),
    Family("Brier score", lambda _: Brier(), _numbers, _two_copies, EVENTS, has_state=True),
    Family("log loss", lambda _: LogLoss(), _numbers, _two_copies, (*EVENTS, "numbers"), has_state=True),
    Family("CRPS", lambda _: CRPS(), _numbers, _two_copies, REALS, has_state=True),
    Family("PIT error", lambda _: PITError("kuiper"), _rows_and_order, _two_copies, REALS),
    Family(
        "kernel error on a line",
        lambda _: SKCE(),
        lambda load: (1.0, load.median_pairs, load.sorting),
        lambda load: 12.0 * load.n,
        ("binary",),
    ),
    Family(
        "kernel error of all pairs",
        lambda _: SKCE(),
        _pairs,
        _two_copies,
        ("classes", *REALS),
        is_shared=True,
    ),
    Family("kernel error of blocks", lambda load: SKCE(block=load.block), _blocks, _two_copies, has_state=True),
    Family(
        "kernel error by waves",
        lambda load: RandomFeatureSKCE(n_features=load.waves),
        _waves,
        lambda load: _two_copies(load) + min(BATCH, 4.0 * load.n * load.waves),
        has_state=True,
    ),
    Family(
        "mean embedding",
        lambda _: UCME(),
        lambda load: (1.0, load.median_pairs, float(load.n), float(load.n * load.width)),
        _two_copies,
        has_state=True,
    ),
    Family(
        "kernel regression",
        lambda _: KDE(),
        lambda load: (1.0, float(load.n) ** 2, float(load.n) ** 2 * load.width),
        lambda load: 8.0 * load.n * load.k,
        EVENTS,
        is_shared=True,
    ),
)
"""Estimates of a single number."""


def kernel_work(load: Load) -> float:
    """Multiplications of one resample of a kernel error, by waves where there are some: as tests and reports count them.

    >>> kernel_work(Load(1000, 10)), kernel_work(Load(1000, 10, waves=64))
    (10000000.0, 1780000.0)
    """
    if load.waves:
        return work_of_waves(load.n, load.features, load.waves)
    if load.kind in REALS:
        return work_of_numbers(load.n)
    return work_of_labels(load.n, load.k, is_line=load.kind == "binary")


def scales(load: Load) -> int:
    """Statistics that the aggregated test looks at."""
    return len(SCALES if load.kind in EVENTS else SCALES_OF_BOTH)


def _drawn(load: Load) -> float:
    """Numbers that resampling all targets compares: bisection in the cumulative probabilities."""
    return float(load.resamples * load.n) * max(1.0, math.log2(load.k) if load.kind == "classes" else 1.0)


def _resampled(load: Load) -> tuple[float, ...]:
    return (1.0, float(load.n * load.width), load.sorting, _drawn(load), float(load.resamples * load.n))


def _resampled_kernel(load: Load) -> tuple[float, ...]:
    return (1.0, load.median_pairs, float(load.resamples * load.n), load.resamples * kernel_work(load))


def _several(load: Load) -> tuple[float, ...]:
    return tuple(scales(load) * term for term in _resampled_kernel(load))


def _room_of_draws(load: Load) -> float:
    """Resamples that are made together, and cumulative probabilities."""
    chunk = float(max(load.n, min(CHUNK, load.resamples * load.n)))
    steps = load.n * 2.0 ** math.ceil(math.log2(load.k)) if load.kind == "classes" else 0.0
    return 4 * chunk + 2 * steps


def _room_of_kernel(load: Load) -> float:
    made = _room_of_draws(load) + 2.0 * load.n * max(load.width, load.features)
    if load.waves:
        return made + 2.0 * load.n * load.waves + min(2.0 * BATCH, load.resamples * load.n * load.features)
    if load.kind == "binary":
        return made
    kept = float(load.n) ** 2 if load.n <= STORED else 0.0
    return made + kept + 3.0 * min(ROOM, load.n * load.features * min(load.resamples, 64))


def _error_test(lens_of: str, load: Load) -> ExactTest:
    lens = ClassWise() if lens_of == "classes" else single(load)
    return ExactTest(ECE(EqualMass(BINS), lens=lens), load.resamples)


def _kernel_test(load: Load) -> ExactTest:
    if load.waves:
        return ExactTest(RandomFeatureSKCE(n_features=load.waves), load.resamples)
    return ExactTest(SKCE(), load.resamples, budget=_enough(load.resamples * kernel_work(load)))


def _aggregated(load: Load) -> AggregatedTest:
    """With the budget that makes it take the waves or pairs that are meant."""
    work = scales(load) * load.resamples * kernel_work(load)
    return AggregatedTest(n_resamples=load.resamples, budget=float(f"{work:.2g}") if load.waves else _enough(work))


def _enough(work: float) -> float:
    """A budget of two digits that covers the work, the default where that does.

    >>> _enough(1e9), _enough(4.321e12)
    (200000000000.0, 4400000000000.0)
    """
    if work <= BUDGET:
        return BUDGET
    digit = 10.0 ** (math.floor(math.log10(work)) - 1)
    return float(f"{math.ceil(work / digit) * digit:.2g}")


def _recalibrator(load: Load) -> Recalibrator:
    if load.kind in EVENTS:
        return Default()
    return VarianceScaling(bias=True) if load.kind == "numbers" else Dressing()


def _fitted(load: Load) -> tuple[float, ...]:
    matrix = load.k if load.kind == "classes" and load.k <= MAX_CLASSES else 0
    return (1.0, float(load.n), float(load.n * load.width), float(load.n * load.width * matrix))


TESTS = (
    Family("test of the binned error", partial(_error_test, "one"), _resampled, _room_of_draws, EVENTS),
    Family(
        "test of the class-wise error",
        partial(_error_test, "classes"),
        lambda load: (load.k * load.sorting, *_resampled(load), float(load.resamples * load.n * load.k)),
        lambda load: _room_of_draws(load) + load.n * load.k,
        ("classes",),
    ),
    Family(
        "test of levels",
        lambda load: ExactTest(PITError("kuiper"), load.resamples),
        lambda load: (float(load.n * load.width), *_resampled(load), load.resamples * load.sorting),
        lambda load: _room_of_draws(load) + 2.0 * load.n * load.width,
        REALS,
    ),
    Family("kernel test on a line", _kernel_test, _resampled_kernel, _room_of_kernel, ("binary",)),
    Family(
        "kernel test of all pairs",
        _kernel_test,
        _resampled_kernel,
        _room_of_kernel,
        ("classes", *REALS),
        is_shared=True,
    ),
    Family("kernel test by waves", _kernel_test, _resampled_kernel, _room_of_kernel, is_shared=True),
)
"""Tests of one statistic by resamples."""

AGGREGATED = tuple(
    replace(test, name=f"aggregated {test.name}", make=_aggregated, terms=_several)
    for test in TESTS
    if test.make is _kernel_test
)
"""Tests of several statistics, each of which costs what it costs alone: their rates need no measurement."""

FITS = (
    Family(
        "temperature",
        lambda _: Temperature(),
        lambda load: (1.0, float(load.n), float(load.n * load.width)),
        lambda load: 6.0 * load.n * load.width,
        EVENTS,
    ),
    Family("recalibration", _recalibrator, _fitted, lambda load: load.n * (200.0 + 8.0 * load.width)),
)
"""Recalibrators with their held-out scores."""


MEASURED = (*ESTIMATES, *TESTS, *FITS)
"""Families whose rates ``calibrant doctor --bench`` measures."""

FAMILIES: Mapping[str, Family] = MappingProxyType({family.name: family for family in (*MEASURED, *AGGREGATED)})
