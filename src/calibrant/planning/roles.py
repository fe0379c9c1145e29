"""What one wants to know of predictions, and the ways to it in order of preference."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from calibrant.estimators.random_features import LEAST_WAVES, MOST_WAVES, ROOM
from calibrant.planning.families import FAMILIES
from calibrant.planning.family import Family
from calibrant.planning.load import Load
from calibrant.planning.procedures import kernel_work
from calibrant.planning.work import PAIRS, affordable_kernel
from calibrant.results import brief

REDRAWS = (999, 199, 99)
WAVES = (MOST_WAVES, 256, 64, LEAST_WAVES)
SMALL_BLOCK = 100


@dataclass(frozen=True)
class Option:
    """A family with the load it would have."""

    family: Family
    load: Load

    @property
    def text(self) -> str:
        """What commands and Python take."""
        return brief(self.family.make(self.load))


@dataclass(frozen=True)
class Role:
    """A question, and what answers it, best first."""

    name: str
    options: tuple[Option, ...]


def roles(load: Load) -> tuple[Role, ...]:
    """Questions by importance.

    >>> [role.name for role in roles(Load(1000, 2, "binary"))]
    ['calibration error', 'score', 'test', 'kernel error', 'recalibration', 'error without bins', 'whole predictions']
    """
    error = ("binned error", "error in fixed bins", "error of levels")
    asked = {
        "calibration error": _plain(load, *error),
        "score": _plain(load, "log loss", "CRPS"),
        "test": _tests(load),
        "kernel error": _kernel_errors(load),
        "class-wise error": _plain(load, "class-wise error"),
        "recalibration": _plain(load, "recalibration", "temperature"),
        "error without bins": _plain(load, "smooth error", "debiased error"),
        "whole predictions": _plain(load, "kernel regression", "mean embedding"),
    }
    made = (Role(name, tuple(o for o in options if load.kind in o.family.kinds)) for name, options in asked.items())
    return tuple(role for role in made if role.options)


def _plain(load: Load, *names: str) -> list[Option]:
    return [Option(FAMILIES[name], load) for name in names]


def _kernel_errors(load: Load) -> Iterator[Option]:
    """As reports choose, then by waves."""
    is_line = load.kind == "binary"
    yield Option(FAMILIES["kernel error on a line" if is_line else "kernel error of all pairs"], load)
    usual = affordable_kernel(load.n, PAIRS, is_line=is_line)
    for block in dict.fromkeys((usual.block if usual and usual.block else SMALL_BLOCK, SMALL_BLOCK)):
        if block < load.n:
            yield Option(FAMILIES["kernel error of blocks"], replace(load, block=block))
    for waves in WAVES[1:]:
        yield Option(FAMILIES["kernel error by waves"], replace(load, waves=waves))


def _tests(load: Load) -> Iterator[Option]:
    """Several scales before one set of bins; exact statistics before waves; many redraws before few."""
    exact = "kernel test on a line" if load.kind == "binary" else "kernel test of all pairs"
    for redraws in REDRAWS[:2]:
        drawn = replace(load, redraws=redraws)
        yield Option(FAMILIES[f"aggregated {exact}"], drawn)
        for waves in _waves(drawn):
            yield Option(FAMILIES["aggregated kernel test by waves"], replace(drawn, waves=waves))
    for redraws in REDRAWS:
        for name in ("test of the binned error", "test of levels"):
            yield Option(FAMILIES[name], replace(load, redraws=redraws))


def _waves(load: Load) -> list[int]:
    """Numbers of waves that leave room, and cost less than what they stand for."""
    most = max(LEAST_WAVES, ROOM // (2 * load.n))
    cheaper = [w for w in WAVES if w <= most and kernel_work(replace(load, waves=w)) < kernel_work(load)]
    return cheaper if load.kind != "binary" else []
