"""Distributions of other libraries that are families of our own, known by name: one line each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from calibrant._array import is_array, namespace, to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.composite.mixture import Mixture
from calibrant.distributions.composite.truncated import Truncated
from calibrant.distributions.continuous.finite_interval import Beta, Uniform
from calibrant.distributions.continuous.location_scale import Laplace, Logistic, Normal
from calibrant.distributions.continuous.positive import Gamma, LogNormal
from calibrant.distributions.continuous.power_exponential import PowerExponential
from calibrant.distributions.continuous.student_t import StudentT
from calibrant.distributions.dirichlet_family import Dirichlet
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.discrete.count_families import NegativeBinomial, Poisson
from calibrant.distributions.empirical.ensemble import Ensemble
from calibrant.distributions.empirical.quantiles import Quantiles
from calibrant.distributions.multivariate import MultivariateNormal
from calibrant.distributions.reading.foreign import Foreign, batch_shape, frozen_parameters, is_frozen, rows_of
from calibrant.typing import Array

Lookup: TypeAlias = Callable[[str], Any]
"""A parameter by its name; ``None`` where there is none."""


class Unlike(Exception):
    """What has a known name is no member of the family after all."""


@dataclass(frozen=True, eq=False)
class Parameters:
    """Parameters of one batch, or of single distributions per row: called with names to try, it gives ``(n, ...)``.

    >>> Parameters([{"loc": np.zeros(3), "scale": 2.0}.get], (3,), (3,))("sigma", "scale")
    array([2., 2., 2.])
    """

    lookups: Sequence[Lookup]
    batch_shape: tuple[int, ...]
    shape: tuple[int, ...]
    column: int | None = None

    def __call__(self, *names: str, event: int = 0) -> Array:
        """The first of these that exists, in the wanted shape; ``event`` more axes belong to each row."""
        found = [_first(lookup, names) for lookup in self.lookups]
        if any(value is None for value in found):
            raise Unlike(names[0])
        if len(found) == 1:
            return self._spread(found[0], event)
        rows = [to_numpy(_as_floats(value)) for value in found]
        return np.stack([row.reshape(row.shape[row.ndim - event :]) for row in rows])

    def _spread(self, value: Any, event: int) -> Array:
        """One array over the whole batch; one column of it, of mixtures."""
        values = _as_floats(value)
        xp, own = namespace(values), tuple(values.shape[values.ndim - event :])
        spread = xp.broadcast_to(values, (*self.batch_shape, *own)) + xp.zeros_like(values)  # a copy
        spread = xp.reshape(spread, (*self.shape, *own))
        return spread if self.column is None else spread[:, self.column, ...]

    def of_column(self, column: int) -> "Parameters":
        """Those of one component of a mixture."""
        return Parameters(self.lookups, self.batch_shape, self.shape, column)


def _first(lookup: Lookup, names: Sequence[str]) -> Any:
    values = (lookup(name) for name in names)
    return next((value for value in values if value is not None and not callable(value)), None)


def _as_floats(value: Any) -> Array:
    """Numbers of any kind as floats in their own library; frames on the host."""
    values = value if is_array(value) else np.asarray(value, dtype=np.float64)
    xp = namespace(values)
    return values if xp.isdtype(values.dtype, "real floating") else xp.astype(values, xp.float64)


def _only(condition: Any) -> None:
    """Decline what the family here cannot be."""
    if not bool(np.all(condition)):
        raise Unlike


def _gamma(p: Parameters) -> Distribution:
    _only(p("loc") == 0)
    return Gamma(p("a"), 1 / p("scale"))


def _exponential(p: Parameters) -> Distribution:
    _only(p("loc") == 0)
    return Gamma(1.0, 1 / p("scale"))


def _log_normal(p: Parameters) -> Distribution:
    _only(p("loc") == 0)
    return LogNormal(np.log(p("scale")), p("s"))


def _beta(p: Parameters) -> Distribution:
    _only((p("loc") == 0) & (p("scale") == 1))
    return Beta(p("a"), p("b"))


def _poisson(p: Parameters) -> Distribution:
    _only(p("loc") == 0)
    return Poisson(p("mu"))


def _negative_binomial(p: Parameters) -> Distribution:
    _only(p("loc") == 0)
    return NegativeBinomial.from_total_count(p("n"), p("p"))


def _truncated(p: Parameters) -> Distribution:
    loc, scale = p("loc"), p("scale")
    return Truncated(Normal(loc, scale), loc + p("a") * scale, loc + p("b") * scale)


FROZEN: Mapping[str, Callable[[Parameters], Distribution]] = {
    "norm": lambda p: Normal(p("loc"), p("scale")),
    "laplace": lambda p: Laplace(p("loc"), p("scale")),
    "gennorm": lambda p: PowerExponential(p("loc"), p("scale"), p("beta")),
    "logistic": lambda p: Logistic(p("loc"), p("scale")),
    "t": lambda p: StudentT(p("df"), p("loc"), p("scale")),
    "uniform": lambda p: Uniform(p("loc"), p("loc") + p("scale")),
    "expon": _exponential,
    "gamma": _gamma,
    "lognorm": _log_normal,
    "beta": _beta,
    "poisson": _poisson,
    "nbinom": _negative_binomial,
    "truncnorm": _truncated,
    "bernoulli": lambda p: Categorical(p("p")),
}
"""SciPy's names of distributions with frozen parameters, ``scipy.stats.norm(loc, scale)``."""

CLASSES: Mapping[str, Callable[[Parameters], Distribution]] = {
    "normal": lambda p: Normal(p("mu", "loc"), p("sigma", "scale")),
    "standardnormal": lambda p: Normal(p("mu"), p("sigma")),
    "laplace": lambda p: Laplace(p("mu", "loc"), p("scale")),
    "logistic": lambda p: Logistic(p("mu", "loc"), p("scale")),
    "lognormal": lambda p: LogNormal(p("mu", "loc"), p("sigma", "scale")),
    "studentt": lambda p: StudentT(p("df"), p("loc"), p("scale")),
    "tdistribution": lambda p: StudentT(p("df"), p("mu"), p("sigma")),
    "gamma": lambda p: Gamma(p("concentration", "alpha"), p("rate", "beta")),
    "exponential": lambda p: Gamma(1.0, p("rate")),
    "beta": lambda p: Beta(p("concentration1", "alpha"), p("concentration0", "beta")),
    "uniform": lambda p: Uniform(p("low", "lower", "a"), p("high", "upper", "b")),
    "poisson": lambda p: Poisson(p("rate", "mu")),
    "negativebinomial": lambda p: NegativeBinomial.from_total_count(p("total_count"), 1 - p("probs")),
    "categorical": lambda p: Categorical(p("probs", event=1)),
    "categoricalprobs": lambda p: Categorical(p("probs", event=1)),
    "categoricallogits": lambda p: Categorical(p("probs", event=1)),
    "bernoulli": lambda p: Categorical(p("probs")),
    "bernoulliprobs": lambda p: Categorical(p("probs")),
    "bernoullilogits": lambda p: Categorical(p("probs")),
    "generalizednormal": lambda p: PowerExponential(p("loc"), p("scale"), p("power")),
    "dirichlet": lambda p: Dirichlet(p("concentration", event=1)),
    "dirichlet_frozen": lambda p: Dirichlet(p("alpha", event=1)),
    "multivariatenormal": lambda p: MultivariateNormal(p("loc", event=1), covariance=p("covariance_matrix", event=2)),
    "multivariatenormaldiag": lambda p: MultivariateNormal(p("loc", event=1), covariance=p("covariance", event=2)),
    "multivariatenormaltril": lambda p: MultivariateNormal(p("loc", event=1), covariance=p("covariance", event=2)),
    "multivariate_normal_frozen": lambda p: MultivariateNormal(p("mean", event=1), covariance=p("cov", event=2)),
}
"""Names of classes, in small letters: PyTorch, NumPyro, Pyro, TensorFlow Probability, skpro and SciPy's new ones."""

VECTORS: Mapping[str, Callable[[Parameters], Distribution]] = {
    "normal": lambda p: MultivariateNormal(p("loc"), scale=p("scale")),
    "bernoulli": lambda p: Bernoulli(p("probs")),
    "bernoulliprobs": lambda p: Bernoulli(p("probs")),
    "bernoullilogits": lambda p: Bernoulli(p("probs")),
}
"""Classes of which the last axis of a batch is one vector per row: ``Independent(Normal(loc, scale), 1)``."""

MEMBERS = ("member", "members", "ensemble", "number", "sample", "samples", "realization", "draw")
"""Names of dimensions that run over the members of an ensemble."""

LEVELS = ("quantile", "quantiles")
"""Names of dimensions that run over quantiles."""


def from_object(x: Any) -> Distribution:
    """One object with a batch of distributions: a family of our own, or the object itself."""
    try:
        return _known(x, batch_shape(x))
    except Unlike:
        return Foreign(x)


def from_list(rows: Sequence[Any]) -> Distribution:
    """One distribution per row: all of one known family, or each by itself."""
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
    name = _name(x)
    if type(x).__module__.startswith("gpytorch") and name.endswith("multivariatenormal"):
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
    raise Unlike


def _name(x: Any) -> str:
    """What the family of an object is called."""
    return str(x.dist.name) if is_frozen(x) else type(x).__name__.lower()


def _table(x: Any) -> Any:
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
    mean, scale = x.mean, x.stddev
    return Normal(mean, scale) if mean.ndim == 1 else MultivariateNormal(mean, scale=scale)


def _independent(x: Any, base: Any) -> Distribution:
    """A batch whose last axis is one vector per row; of one coordinate, numbers."""
    event: tuple[int, ...] = tuple(int(k) for k in x.event_shape)
    if not event or event == (1,):
        return _known(base, batch_shape(base))
    shape = (rows_of(batch_shape(x), "Independent"), *event)
    if len(event) > 1:
        raise InputError(f"y_pred is Independent over {len(event)} axes: targets are numbers or vectors, one per row")
    build: Callable[[Any], Distribution] = VECTORS.get(_name(base), _unlike)
    return build(Parameters([_lookup(base)], batch_shape(base), shape))


def _mixture(x: Any, components: Any) -> Distribution:
    """Components on the last axis of the batch, and their probabilities."""
    weights = getattr(x, "mixture_distribution", getattr(x, "mixing_distribution", None))
    shape = batch_shape(components)
    if weights is None or len(shape) != 2 or _name(components) not in CLASSES:
        return _unlike(x)
    p = Parameters([_lookup(components)], shape, shape)
    parts = tuple(CLASSES[_name(components)](p.of_column(k)) for k in range(shape[1]))
    probs = Parameters([_lookup(weights)], shape[:1], shape[:1])("probs", event=1)
    return Mixture(parts, probs / probs.sum(axis=1)[:, None])


def labelled(x: Any) -> Distribution:
    """An array with names of its dimensions, rows on the first that is neither members nor quantiles."""
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
