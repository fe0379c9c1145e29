"""Whether a GPU keeps its digits far from zero, and says where double precision was not kept.

Run ``python benchmarks/gpu_offsets.py`` on a machine with a GPU: a minute or two, much of it for compiling. Predictions and
targets are moved together, so that errors must stay what they are; each is compared with arrays of NumPy around zero.
Numbers lie on a grid that all offsets leave exact. It prints a table, and ends with 1 where a bound is exceeded or a note is
missing. ``--device cpu`` tries the script itself: tiles of torch, which need no note.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import numpy as np
import torch

from calibrant import KDE, SKCE, Ensemble, MultivariateNormal, Normal
from calibrant.distributions import Distribution
from calibrant.engines import precision
from calibrant.kernels import Energy, Exponential, Gaussian, Kernel, Matern

BOUNDS = {"float64": 1e-9, "float32": 1e-4, "tf32x3": 2e-2}
OPEN = 1e-3
"""The least bound where a length scale is open: beyond 2,000 rows, rounding may exchange rows that it comes from."""
OFFSETS = (0.0, 1e3, 1e6, 2.0**30)
NOTE = "on the GPU, and added up in double precision"

Family = Callable[[float], tuple[np.ndarray, Distribution]]


def families(n: int, step: float = 2.0**-16) -> dict[str, Family]:
    """Targets and predictions at an offset."""
    rng = np.random.default_rng(0)

    def grid(x: np.ndarray) -> np.ndarray:
        return np.round(x / step) * step

    mu, loc = grid(rng.normal(size=n)), grid(rng.normal(size=(n, 10)))
    members, y = grid(rng.normal(mu[:, None], 1, (n, 30))), grid(rng.normal(mu, 1.5))
    vectors = grid(rng.normal(loc, 1.5))
    ones, spread = np.ones(n), grid(rng.uniform(0.5, 1.5, (n, 10)))
    return {
        "Normal": lambda o: (y + o, Normal(mu + o, ones)),
        "30 members": lambda o: (y + o, Ensemble(members + o)),
        "d = 10, one scale": lambda o: (vectors + o, MultivariateNormal(loc + o, ones)),
        "d = 10, diagonal": lambda o: (vectors + o, MultivariateNormal(loc + o, spread)),
    }


def kernels() -> Iterator[tuple[Kernel, Kernel]]:
    """On predictions, and on targets."""
    yield Exponential(2.0), Gaussian(2.0)
    yield Gaussian(2.0), Gaussian(2.0)
    yield Matern(1.5, 2.0), Gaussian(2.0)
    yield Exponential(), Gaussian(3.0)
    yield Exponential(), Gaussian()
    yield Exponential(2.0), Energy()


def on_device(predictions: Distribution, device: str, dtype: torch.dtype) -> Distribution:
    """The same predictions as tensors."""
    values = {f.name: getattr(predictions, f.name) for f in fields(predictions)}  # type: ignore[arg-type]
    made = {k: None if v is None else torch.as_tensor(v, dtype=dtype, device=device) for k, v in values.items()}
    return type(predictions)(**made)


def offsets(device: str, n: int) -> Iterator[tuple[str, float, float, bool]]:
    """What was tried, its error and bound, and whether what must be said of the precision is said."""
    for name, family in families(n).items():
        for on_predictions, on_targets in kernels():
            if isinstance(on_targets, Energy) and name != "Normal":
                continue  # by draws, or by all pairs of members
            estimator = SKCE(on_predictions, on_targets)
            right = estimator(*family(0.0)).value
            for kind, bound in BOUNDS.items():
                for offset in OFFSETS:
                    y, predictions = family(offset)
                    with precision(kind):
                        found = estimator(
                            torch.as_tensor(y, device=device), on_device(predictions, device, torch.float64)
                        )
                    is_told = any(NOTE in note for note in found.notes)
                    what = f"{type(on_predictions).__name__:<11} {type(on_targets).__name__:<9} {offset:>10.4g}"
                    label = f"{name:<18} {kind:<8} {what}"
                    least = OPEN if on_predictions.is_open or on_targets.is_open else 0.0
                    yield label, abs(found.value / right - 1), max(bound, least), not (is_told and kind == "float64")


def single(device: str, n: int) -> Iterator[tuple[str, float, float, bool]]:
    """Tensors of single precision at 280, next to the same numbers in double."""
    for name, family in families(n, 2.0**-12).items():
        y, predictions = family(280.0)
        estimator = SKCE(Exponential(2.0), Gaussian(2.0))
        right = estimator(y, predictions).value
        there = on_device(predictions, device, torch.float32)
        found = estimator(torch.as_tensor(y, dtype=torch.float32, device=device), there).value
        yield f"{name:<18} tensors of float32, at 280", abs(found / right - 1), 1e-4, True


def notes(device: str, n: int) -> Iterator[tuple[str, float, float, bool]]:
    """Classes: the note is there where it must be, and double precision is what it says."""
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(10), n)
    y = (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1).clip(max=9)
    estimators: list[Any] = [SKCE(Exponential(0.5)), SKCE(Exponential(0.5), block=20), KDE(bandwidth=0.1)]
    for estimator in estimators:
        right = estimator(y, p).value
        for kind, bound in (("float64", 1e-9), ("float32", 1e-2)):
            with precision(kind):
                found = estimator(torch.as_tensor(y, device=device), torch.as_tensor(p, device=device))
            is_told = any(NOTE in note for note in found.notes)
            wanted = kind == "float32" and device != "cpu"
            yield (
                f"{type(estimator).__name__} of 10 classes, {kind}, note: {is_told}",
                abs(found.value - right) / abs(right),
                bound,
                is_told == wanted,
            )


def main() -> int:
    """Print what was found; 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=3000)
    options = parser.parse_args()
    if options.device != "cpu" and not torch.cuda.is_available():
        print("no GPU here: --device cpu tries the script")
        return 1
    wrong = tried = 0
    for part in (offsets, single, notes):
        for label, error, bound, is_told in part(options.device, options.rows):
            is_right = error <= bound and is_told
            tried, wrong = tried + 1, wrong + (not is_right)
            print(f"{'right' if is_right else 'WRONG'}  {label}  error {error:.1e}, bound {bound:.0e}", flush=True)
    print(f"{tried - wrong} of {tried} are right")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
