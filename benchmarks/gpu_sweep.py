"""Whether everything public gives on the device what it gives on the host: labels as NumPy arrays and as tensors."""

from collections.abc import Iterator

import numpy as np
import torch
from gpu_record import DEVICE, say

import calibrant
from calibrant._validate import InputError
from calibrant.estimators import BaseEstimator
from calibrant.kernels import Exponential, Gaussian, LabelMatrix

ROWS = 600
"""Fewer than the compiled ways start at, and more than one tile."""

TOLERANCE = 1e-5
"""Of pairs in single precision."""


def measures() -> Iterator[object]:
    """One of each public estimator, and some of each kind of test."""
    for name in calibrant.__all__:
        made = getattr(calibrant, name)
        if isinstance(made, type) and issubclass(made, BaseEstimator):
            yield made()
    yield from (calibrant.SKCE(block=20), calibrant.SKCE(on_predictions=Gaussian(0.5)), calibrant.KCE(Exponential(0.3)))
    yield calibrant.SKCE(on_targets=LabelMatrix(((1.0, 0.5, 0.0), (0.5, 1.0, 0.0), (0.0, 0.0, 1.0))))
    for statistic in (calibrant.ECE(), calibrant.SKCE(), calibrant.PITError()):
        yield calibrant.ExactTest(statistic, 19)
    yield calibrant.AggregatedTest(n_resamples=19)
    yield calibrant.Bootstrap(calibrant.Brier(), 20)


def problems(device: torch.device | None) -> Iterator[tuple[str, np.ndarray, object]]:
    """Predictions of each kind, on the device or the host, and targets."""
    rng = np.random.default_rng(4)

    def there(values: np.ndarray) -> object:
        return values if device is None else torch.from_numpy(values).to(device)

    p, row = rng.dirichlet([1.0, 2.0, 0.5], ROWS), rng.normal(size=ROWS)
    yield "two classes", (rng.random(ROWS) < p[:, 0]) * 1, there(p[:, 0].copy())
    yield "three classes", (p.cumsum(axis=1) > rng.random((ROWS, 1))).argmax(axis=1), there(p)
    yield "normals", row + rng.normal(size=ROWS), calibrant.Normal(there(row), there(0.5 + rng.random(ROWS)))
    yield "members", row + rng.normal(size=ROWS), calibrant.Ensemble(there(row[:, None] + rng.normal(size=(ROWS, 8))))
    yield "counts", rng.poisson(2.0, ROWS), calibrant.Poisson(there(1 + 2 * rng.random(ROWS)))
    yield (
        "vectors",
        rng.normal(size=(ROWS, 2)),
        calibrant.MultivariateNormal(there(rng.normal(size=(ROWS, 2))), there(0.5 + rng.random((ROWS, 2)))),
    )


def outcome(measure: object, y_true: object, y_pred: object, **settings: object) -> str | float:
    """A number, or the words of a refusal."""
    settings |= {} if isinstance(measure, BaseEstimator) else {"rng": 0}
    try:
        found = measure(y_true, y_pred, **settings)
    except InputError as error:
        return str(error)
    number = next(getattr(found, name) for name in ("pvalue", "value", "low") if hasattr(found, name))
    return float(number)


def differing(device: torch.device = DEVICE) -> Iterator[str]:
    """A line for everything that differs from the host, or fails."""
    for (name, y_true, here), (_, _, there) in zip(problems(None), problems(device), strict=True):
        for measure in measures():
            expected = outcome(measure, y_true, here)
            for labels in (y_true, torch.from_numpy(y_true).to(device)):
                line = f"{name}, {measure!r}, {type(labels).__name__}"
                try:
                    found = outcome(measure, labels, there)
                except Exception as error:
                    yield f"{line}: {type(error).__name__}: {str(error)[:150]}"
                    continue
                if isinstance(expected, str) or isinstance(found, str):
                    if expected != found:
                        yield f"{line}: {found!r} and not {expected!r}"
                elif not np.isclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
                    yield f"{line}: {found!r} and not {expected!r}"


def how_many() -> float:
    """How many differ; each is printed."""
    lines = list(differing())
    for line in lines:
        say(line)
    return float(len(lines))
