"""What tests by redraws and fits of recalibrators cost, by family."""

import math
from dataclasses import replace
from functools import partial

from calibrant.estimators.binned import ECE
from calibrant.estimators.binning import EqualMass
from calibrant.estimators.kernel_redraws import ROOM, STORED
from calibrant.estimators.pit_error import PITError
from calibrant.estimators.random_features import BATCH, RandomFeatureSKCE, work_of_waves
from calibrant.estimators.redraw_work import work_of_labels, work_of_numbers
from calibrant.estimators.skce import SKCE
from calibrant.inference.aggregated import SCALES, SCALES_OF_BOTH, AggregatedTest
from calibrant.inference.draws import CHUNK
from calibrant.inference.exact import BUDGET, ExactTest
from calibrant.lenses import ClassWise
from calibrant.planning.estimates import BINS, EVENTS, REALS, single
from calibrant.planning.family import Family
from calibrant.planning.load import Load
from calibrant.recalibration.base import Recalibrator
from calibrant.recalibration.default import MOST_CLASSES, Default
from calibrant.recalibration.dressing import Dressing
from calibrant.recalibration.temperature import Temperature
from calibrant.recalibration.variance import VarianceScaling


def kernel_work(load: Load) -> float:
    """Multiplications of one redraw of a kernel error, by waves where there are some: as tests and reports count them.

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
    """Numbers that redrawing all targets compares: bisection in the cumulative probabilities."""
    return float(load.redraws * load.n) * max(1.0, math.log2(load.k) if load.kind == "classes" else 1.0)


def _redrawn(load: Load) -> tuple[float, ...]:
    return (1.0, float(load.n * load.width), load.sorting, _drawn(load), float(load.redraws * load.n))


def _redrawn_kernel(load: Load) -> tuple[float, ...]:
    return (1.0, load.median_pairs, float(load.redraws * load.n), load.redraws * kernel_work(load))


def _several(load: Load) -> tuple[float, ...]:
    return tuple(scales(load) * term for term in _redrawn_kernel(load))


def _room_of_draws(load: Load) -> float:
    """Redraws that are made together, and cumulative probabilities."""
    chunk = float(max(load.n, min(CHUNK, load.redraws * load.n)))
    steps = load.n * 2.0 ** math.ceil(math.log2(load.k)) if load.kind == "classes" else 0.0
    return 4 * chunk + 2 * steps


def _room_of_kernel(load: Load) -> float:
    made = _room_of_draws(load) + 2.0 * load.n * max(load.width, load.features)
    if load.waves:
        return made + 2.0 * load.n * load.waves + min(2.0 * BATCH, load.redraws * load.n * load.features)
    if load.kind == "binary":
        return made
    kept = float(load.n) ** 2 if load.n <= STORED else 0.0
    return made + kept + 3.0 * min(ROOM, load.n * load.features * min(load.redraws, 64))


def _error_test(lens_of: str, load: Load) -> ExactTest:
    lens = ClassWise() if lens_of == "classes" else single(load)
    return ExactTest(ECE(EqualMass(BINS), lens=lens), load.redraws)


def _kernel_test(load: Load) -> ExactTest:
    if load.waves:
        return ExactTest(RandomFeatureSKCE(n_features=load.waves), load.redraws)
    return ExactTest(SKCE(), load.redraws, budget=_enough(load.redraws * kernel_work(load)))


def _aggregated(load: Load) -> AggregatedTest:
    """With the budget that makes it take the waves or pairs that are meant."""
    work = scales(load) * load.redraws * kernel_work(load)
    return AggregatedTest(n_resamples=load.redraws, budget=float(f"{work:.2g}") if load.waves else _enough(work))


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
    matrix = load.k if load.kind == "classes" and load.k <= MOST_CLASSES else 0
    return (1.0, float(load.n), float(load.n * load.width), float(load.n * load.width * matrix))


TESTS = (
    Family("test of the binned error", partial(_error_test, "one"), _redrawn, _room_of_draws, EVENTS),
    Family(
        "test of the class-wise error",
        partial(_error_test, "classes"),
        lambda load: (load.k * load.sorting, *_redrawn(load), float(load.redraws * load.n * load.k)),
        lambda load: _room_of_draws(load) + load.n * load.k,
        ("classes",),
    ),
    Family(
        "test of levels",
        lambda load: ExactTest(PITError("kuiper"), load.redraws),
        lambda load: (float(load.n * load.width), *_redrawn(load), load.redraws * load.sorting),
        lambda load: _room_of_draws(load) + 2.0 * load.n * load.width,
        REALS,
    ),
    Family("kernel test on a line", _kernel_test, _redrawn_kernel, _room_of_kernel, ("binary",)),
    Family(
        "kernel test of all pairs", _kernel_test, _redrawn_kernel, _room_of_kernel, ("classes", *REALS), is_shared=True
    ),
    Family("kernel test by waves", _kernel_test, _redrawn_kernel, _room_of_kernel, is_shared=True),
)
"""Tests of one statistic by redraws."""

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
