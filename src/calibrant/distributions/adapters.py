"""Predictions of other libraries, known by their structure: none of these libraries is ever imported here."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calibrant._array import is_array, to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution

DENSITIES = ("log_prob", "logpdf", "log_pdf", "logpmf", "log_pmf", "cdf")
"""What makes an object a distribution: no array and no data frame has one of these."""

MEMBERS = ("member", "members", "ensemble", "number", "sample", "samples", "realization", "draw")
"""Names of dimensions that run over the members of an ensemble."""

LEVELS = ("quantile", "quantiles")
"""Names of dimensions that run over quantiles."""


def adapted(y_pred: Any) -> Distribution | None:
    """Predictions of another library as ours; ``None`` where they are numbers, and not distributions.

    Objects of SciPy, PyTorch, Pyro, NumPyro, TensorFlow Probability, GPyTorch, skpro and everything alike; one with a
    batch of distributions, or a list of one a row. Known families become our own, with their closed forms; others keep
    their object (:class:`~calibrant.distributions.foreign.Foreign`). Arrays of xarray with a dimension of members or
    of quantiles become those.

    >>> from scipy.stats import norm
    >>> adapted(norm([0.0, 1.0, 2.0], scale=1.0))
    <Normal: 3 predictions>
    """
    if isinstance(y_pred, np.ndarray | Distribution):
        return None
    if _root(y_pred) == "xarray":
        return _labelled(y_pred)
    if isinstance(y_pred, list | tuple):
        return _from_list(y_pred) if y_pred and all(map(is_distribution, y_pred)) else None
    return _from_object(y_pred) if is_distribution(y_pred) else None


def is_distribution(x: Any) -> bool:
    """Whether an object quacks like a distribution of another library.

    >>> is_distribution([0.1, 0.9])
    False
    """
    return not is_array(x) and any(callable(getattr(x, name, None)) for name in DENSITIES)


def _root(x: Any) -> str:
    """The library that the type of an object comes from."""
    return type(x).__module__.partition(".")[0]


def _from_object(x: Any) -> Distribution:
    from calibrant.distributions.foreign import Foreign
    from calibrant.distributions.known import Unlike

    try:
        return _known(x, batch_shape(x))
    except Unlike:
        return Foreign(x)


def _from_list(rows: Sequence[Any]) -> Distribution:
    """One distribution a row: all of one known family, or each by itself."""
    from calibrant.distributions.foreign import Foreign
    from calibrant.distributions.known import Parameters, Unlike

    if any(int(np.prod(batch_shape(x))) != 1 for x in rows):
        raise InputError("y_pred is a list of distributions: each must be of one row, or give one batch without a list")
    tables = {id(table): table for table in map(_table, rows)}
    names = {_name(x) for x in rows}
    try:
        if len(tables) > 1 or len(names) > 1:
            raise Unlike
        build = next(iter(tables.values())).get(names.pop(), _unlike)
        return build(Parameters([_lookup(x) for x in rows], (), (len(rows),)))
    except Unlike:
        return Foreign(tuple(rows))


def _known(x: Any, shape: tuple[int, ...]) -> Distribution:
    """One batch as a family of our own; raises ``Unlike`` where it is none."""
    from calibrant.distributions.known import VECTORS, Parameters

    name = _name(x)
    if _root(x) == "gpytorch" and name.endswith("multivariatenormal"):
        return _process(x)
    base: Any = getattr(x, "base_dist", getattr(x, "distribution", None))
    if name == "independent" and base is not None:
        return _independent(x, base)
    components = getattr(x, "component_distribution", getattr(x, "components_distribution", None))
    if components is not None:
        return _mixture(x, components)
    if len(shape) == 2 and shape[1] > 1 and name.startswith("bernoulli"):
        return VECTORS[name](Parameters([_lookup(x)], shape, shape))
    rows = rows_of(shape, type(x).__name__)
    return _table(x).get(name, _unlike)(Parameters([_lookup(x)], shape, (rows,)))


def _unlike(_: Any) -> Distribution:
    from calibrant.distributions.known import Unlike

    raise Unlike


def rows_of(shape: tuple[int, ...], name: str) -> int:
    """How many rows a batch has."""
    if len(shape) > 2 or (len(shape) == 2 and shape[1] != 1):
        raise InputError(
            f"y_pred is a {name} of shape {shape}: give one distribution a row, (n,); several numbers of one row are "
            "Independent(..., 1), or MultivariateNormal"
        )
    return int(np.prod(shape, dtype=np.int64))


def batch_shape(x: Any) -> tuple[int, ...]:
    """The shape of a batch of distributions."""
    shape = getattr(x, "batch_shape", None)
    if shape is not None:
        return tuple(int(k) for k in shape)
    if isinstance(getattr(x, "shape", None), tuple):  # skpro
        return tuple(x.shape)
    if isinstance(getattr(x, "dim", None), int):  # vectors of SciPy, one distribution each
        return ()
    arrays = frozen_parameters(x).values() if is_frozen(x) else _numbers(x)
    return np.broadcast_shapes(*(np.shape(array) for array in arrays))


def frozen_parameters(x: Any) -> dict[str, Any]:
    """Shapes, location and scale of a frozen distribution of SciPy, by name."""
    shapes = [] if x.dist.shapes is None else x.dist.shapes.split(", ")
    is_count = hasattr(x.dist, "pmf")
    names = [*shapes, "loc"] if is_count else [*shapes, "loc", "scale"]
    return {"loc": 0.0, **({} if is_count else {"scale": 1.0})} | dict(zip(names, x.args, strict=False)) | dict(x.kwds)


def _numbers(x: Any) -> list[Any]:
    """Parameters of SciPy's new distributions; of others, what they say of one number."""
    values = [getattr(x, name) for name in getattr(x, "_parameters", {})]
    method = next(m for name in ("ppf", "icdf", "quantile", *DENSITIES[::-1]) if callable(m := getattr(x, name, None)))
    return values or [to_numpy(method(0.5))]


def _name(x: Any) -> str:
    """What the family of an object is called."""
    return str(x.dist.name) if is_frozen(x) else type(x).__name__.lower()


def is_frozen(x: Any) -> bool:
    """Whether an object is one of SciPy's distributions with frozen parameters."""
    return hasattr(x, "dist") and hasattr(x, "args") and hasattr(x, "kwds")


def _table(x: Any) -> Any:
    from calibrant.distributions.known import CLASSES, FROZEN

    return FROZEN if is_frozen(x) else CLASSES


def _lookup(x: Any) -> Callable[[str], Any]:
    """A parameter of an object by its name."""
    if is_frozen(x):
        return frozen_parameters(x).get
    return lambda name: _attribute(x, name)


def _attribute(x: Any, name: str) -> Any:
    """An attribute; of TensorFlow Probability also what has to be called, ``probs_parameter()`` and ``covariance()``."""
    value = getattr(x, name, None)
    maker = getattr(x, f"{name}_parameter", None) if value is None else value if name == "covariance" else None
    return maker() if callable(maker) else value


def _process(x: Any) -> Distribution:
    """A Gaussian process at n points: what it says of each point, not of all together."""
    from calibrant.distributions.mvnormal import MultivariateNormal
    from calibrant.distributions.normal import Normal

    mean, scale = x.mean, x.stddev
    return Normal(mean, scale) if mean.ndim == 1 else MultivariateNormal(mean, scale=scale)


def _independent(x: Any, base: Any) -> Distribution:
    """A batch whose last axis is one vector a row; of one coordinate, numbers."""
    from calibrant.distributions.known import VECTORS, Parameters

    event: tuple[int, ...] = tuple(int(k) for k in x.event_shape)
    if not event or event == (1,):
        return _known(base, batch_shape(base))
    shape = (rows_of(batch_shape(x), "Independent"), *event)
    if len(event) > 1:
        raise InputError(f"y_pred is Independent over {len(event)} axes: targets are numbers or vectors, one a row")
    build: Callable[[Any], Distribution] = VECTORS.get(_name(base), _unlike)
    return build(Parameters([_lookup(base)], batch_shape(base), shape))


def _mixture(x: Any, components: Any) -> Distribution:
    """Components on the last axis of the batch, and their probabilities."""
    from calibrant.distributions.known import CLASSES, Parameters
    from calibrant.distributions.mixture import Mixture

    weights = getattr(x, "mixture_distribution", getattr(x, "mixing_distribution", None))
    shape = batch_shape(components)
    if weights is None or len(shape) != 2 or _name(components) not in CLASSES:
        return _unlike(x)
    p = Parameters([_lookup(components)], shape, shape)
    parts = tuple(CLASSES[_name(components)](p.of_column(k)) for k in range(shape[1]))
    probs = Parameters([_lookup(weights)], shape[:1], shape[:1])("probs", event=1)
    return Mixture(parts, probs / probs.sum(axis=1)[:, None])


def _labelled(x: Any) -> Distribution:
    """An array with names of its dimensions, rows on the first that is neither members nor quantiles."""
    from calibrant.distributions.ensemble import Ensemble
    from calibrant.distributions.quantiles import Quantiles

    members = [d for d in x.dims if d in MEMBERS]
    levels = [d for d in x.dims if d in LEVELS]
    others = [d for d in x.dims if d not in (*members, *levels)]
    if len(members) + len(levels) != 1 or len(others) not in (1, 2):
        raise InputError(
            f"y_pred is a DataArray with dimensions {tuple(x.dims)}: one must be of members ({', '.join(MEMBERS)}) or of "
            f"quantiles ({', '.join(LEVELS)}), beside one of rows and perhaps one of coordinates; give probabilities as .values"
        )
    values = x.transpose(others[0], *members, *levels, *others[1:]).values
    return Ensemble(values) if members else Quantiles(values, np.asarray(x[levels[0]].values, dtype=np.float64))
