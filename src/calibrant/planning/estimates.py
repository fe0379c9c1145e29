"""What estimates cost, by family."""

from calibrant.estimators.binned import ECE
from calibrant.estimators.binning import EqualMass, EqualWidth
from calibrant.estimators.crps import CRPS
from calibrant.estimators.debiased import DebiasedECE
from calibrant.estimators.kde import KDE
from calibrant.estimators.pit_error import PITError
from calibrant.estimators.random_features import BATCH, RandomFeatureSKCE
from calibrant.estimators.scores import Brier, LogLoss
from calibrant.estimators.skce import SKCE
from calibrant.estimators.smooth import SmoothECE
from calibrant.estimators.ucme import UCME
from calibrant.lenses import ClassWise, Lens, TopLabel
from calibrant.planning.family import Family
from calibrant.planning.load import Kind, Load

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
    Family("error of levels", lambda _: PITError("kuiper"), _rows_and_order, _two_copies, REALS),
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
