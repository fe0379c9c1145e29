"""Whether calibrant computes what it should on this machine: values known by hand, and how long typical work takes."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

TOLERANCE = 1e-12

TRUTH = (1, 0, 1, 1, 0, 1)
CLAIMS = (0.9, 0.2, 0.7, 0.6, 0.4, 0.8)


@dataclass(frozen=True)
class Check:
    """A value that was computed here, what it should be, and what went wrong, if it could not be computed at all."""

    name: str
    value: float
    expected: float
    problem: str | None = None

    @property
    def is_right(self) -> bool:
        """Whether the two agree to twelve digits."""
        return self.problem is None and abs(self.value - self.expected) <= TOLERANCE * max(1.0, abs(self.expected))

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        about = {"name": self.name, "value": self.value, "expected": self.expected}
        return {**about, "is_right": self.is_right, "problem": self.problem}


def _binned() -> float:
    from calibrant.estimators.binned import ECE

    return float(ECE()(TRUTH, CLAIMS))


def _brier() -> float:
    from calibrant.estimators.scores import Brier

    return float(Brier()(TRUTH, CLAIMS))


def _log_loss() -> float:
    from calibrant.estimators.scores import LogLoss

    return float(LogLoss()(TRUTH, CLAIMS))


def _crps() -> float:
    from calibrant.distributions.normal import Normal
    from calibrant.estimators.crps import CRPS

    return float(CRPS()([0.0], Normal([0.0], [1.0])))


def _kernel() -> float:
    from calibrant.distributions.normal import Normal
    from calibrant.estimators.skce import SKCE
    from calibrant.kernels import Gaussian

    return float(SKCE(Gaussian(1.0), Gaussian(1.0))([0.0, 0.0], Normal([0.0, 0.0], [1.0, 1.0])))


def _compiled() -> float:
    from calibrant._fused.cpu import feature_moments

    return feature_moments(np.zeros((3, 1)), np.ones((3, 2)), 1.0, True)[1]


KNOWN: dict[str, tuple[Callable[[], float], float]] = {
    "binned error": (_binned, 4 / 15),  # gaps .1 .2 .3 .4 .4 .2, each in a bin of its own
    "Brier score": (_brier, 1 / 12),
    "log loss": (_log_loss, -math.log(0.9 * 0.8 * 0.7 * 0.6 * 0.6 * 0.8) / 6),
    "CRPS of a normal": (_crps, (math.sqrt(2) - 1) / math.sqrt(math.pi)),
    "kernel error of normals": (_kernel, 1 - math.sqrt(2) + 1 / math.sqrt(3)),
    "compiled sums": (_compiled, 24.0),  # six pairs of <(1, 1), (1, 1)>, squared
}
"""What is computed, and its value."""


def known_values() -> list[Check]:
    """Everything that is known, computed here."""
    return [_checked(name, compute, expected) for name, (compute, expected) in KNOWN.items()]


def _checked(name: str, compute: Callable[[], float], expected: float) -> Check:
    try:
        return Check(name, compute(), expected)
    except Exception as error:  # whatever a broken installation raises is what is to be told
        return Check(name, math.nan, expected, f"{type(error).__name__}: {error}".splitlines()[0])


def timings() -> dict[str, float]:
    """Seconds of typical work: an exact test of 2,000 rows by 999 redraws, and the kernel error of 2,000 rows of 10 classes."""
    from calibrant.estimators.binned import ECE
    from calibrant.estimators.skce import SKCE
    from calibrant.inference.exact import ExactTest

    rng = np.random.default_rng(0)
    p, classes = rng.random(2000), rng.dirichlet(np.ones(10), 2000)
    y, label = (rng.random(2000) < p) * 1, rng.integers(0, 10, 2000)
    return {
        "exact test, 2,000 rows": _seconds(lambda: ExactTest(ECE())(y, p)),
        "kernel error, 2,000 rows of 10 classes": _seconds(lambda: SKCE()(label, classes)),
    }


def _seconds(work: Callable[[], object]) -> float:
    """Of the second run, as the first may compile."""
    work()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
