"""Better predictions written back to the columns that the old ones came from."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, check_fraction
from calibrant.distributions.base import Distribution
from calibrant.distributions.composite.mixture import Mixture
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.empirical.ensemble import Ensemble
from calibrant.distributions.empirical.quantiles import Quantiles
from calibrant.io.dataset import Predictions
from calibrant.recalibration.predictive.quantile import Recalibrated

LEVELS = tuple(round((i + 0.5) / 20, 3) for i in range(20))
"""The middles of twenty slices: 0.025, 0.075, …, 0.975, so that their quantiles are equally likely values as well."""


def rewrite(old: Predictions, better: Distribution, out: Path, levels: Sequence[float] = ()) -> list[str]:
    """Write the file anew with better predictions, everything else as it was; gives the columns that changed or are new.

    Predictions of the same family go where the old ones were: probabilities to the columns of probabilities, logarithms of
    them to those of logits, ``loc`` and ``scale`` to theirs. A parameter that was given as one number gets a column of its
    own name. Members of an ensemble become as many others, in increasing order, and quantiles those of the same levels.
    Predictions that have left their family leave the old columns as they were, and have quantiles in new ones,
    ``q_0.025`` to ``q_0.975``. ``levels`` asks for other quantiles, of any predictions that have some.

    >>> import tempfile
    >>> from calibrant import Normal
    >>> from calibrant import io
    >>> old = io.read_predictions(io.example("diabetes"), predict="Normal(mu, sigma)")
    >>> wider = Normal(old.prediction.loc, 2 * old.prediction.scale)
    >>> rewrite(old, wider, Path(tempfile.mkdtemp()) / "wider.csv")
    ['mu', 'sigma']
    """
    new: dict[str, np.ndarray] = {}
    for names, values in _parts(old, better, levels):
        widths = [old.file.width(name) if name in old.file.names else 1 for name in names]
        same = np.broadcast_to(values[:, :1], (len(values), sum(widths)))  # one scale for all coordinates
        parts = np.split(values if values.shape[1] == sum(widths) else same, np.cumsum(widths)[:-1], axis=1)
        new |= dict(zip(names, parts, strict=True))
    old.file.write(new, out)
    return list(new)


def _parts(old: Predictions, better: Distribution, levels: Sequence[float]) -> Iterator[tuple[list[str], np.ndarray]]:
    """Names of columns, and what goes there, ``(n, columns)``."""
    if isinstance(old.prediction, Ensemble) and isinstance(better, Recalibrated | Mixture):
        size = old.prediction.members.shape[1]
        better = Ensemble(better.quantile((np.arange(size) + 0.5) / size))
    if isinstance(better, Categorical):
        ((parameter, names),) = old.columns.items()
        width = sum(map(old.file.width, names))
        yield names, _class_columns(better, width, is_logit=parameter == "logits")
    elif isinstance(old.prediction, Quantiles):
        yield old.columns["values"], _quantiles(better, to_numpy(old.prediction.levels).tolist())
    elif type(better) is type(old.prediction) and all(hasattr(better, name) for name in old.columns):
        for parameter, names in old.columns.items():
            values, before = (to_numpy(getattr(p, parameter)) for p in (better, old.prediction))
            if names or not np.array_equal(values, before):
                values = values.reshape(len(values), -1)
                yield names or _fresh(old, _numbered(parameter, values.shape[1])), values
    else:
        levels = levels or LEVELS
    if levels:
        yield _fresh(old, [f"q_{level:g}" for level in levels]), _quantiles(better, levels)


def _quantiles(better: Distribution, levels: Sequence[float]) -> np.ndarray:
    """A column per level."""
    for level in levels:
        check_fraction(level, "--level")
    found = better.quantile(np.array(levels))
    if found is NotImplemented:
        raise InputError(f"--level: {type(better).__name__} predictions have no quantiles; leave it out")
    return to_numpy(found)


def _class_columns(better: Categorical, width: int, *, is_logit: bool) -> np.ndarray:
    """A column per class, or one for class 1; as logarithms, those of the smallest number above 0 for 0."""
    p = to_numpy(better.matrix).astype(np.float64)
    if not is_logit:
        return p if width > 1 else p[:, 1:]
    logits = np.log(np.maximum(p, np.finfo(np.float64).tiny))
    return logits if width > 1 else logits[:, 1:] - logits[:, :1]


def _numbered(parameter: str, width: int) -> list[str]:
    return [parameter] if width == 1 else [f"{parameter}_{i}" for i in range(width)]


def _fresh(old: Predictions, names: list[str]) -> list[str]:
    """Names for new columns; refused where the file has them already."""
    if taken := [name for name in names if name in old.file.names]:
        raise InputError(
            f"{old.file.path.name} has a column {taken[0]!r} already: rename it, as a new one gets that name"
        )
    return names
