"""Distributions of other libraries that are no family of our own: asked for what they can say."""

from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any, Self

import numpy as np

from calibrant._array import is_array, is_jax, matched, random_key, seeded, to_numpy
from calibrant._validate import InputError, of_what
from calibrant.distributions.base import Distribution, one_a_row
from calibrant.distributions.empirical.ensemble import SLICES, Ensemble
from calibrant.distributions.empirical.piecewise import MIN_LEVEL
from calibrant.distributions.quadrature import cf_by_cells, crps_by_cells, least_reaching, moments_by_cells
from calibrant.results import how_many
from calibrant.typing import Array, ArrayLike

CDF = ("cdf",)
QUANTILE = ("icdf", "ppf", "quantile")
DENSITY = ("log_prob", "logpdf", "log_pdf")
MASS = ("log_prob", "logpmf", "log_pmf")
SAMPLE = ("rvs", "sample")
SAID = tuple(dict.fromkeys((*CDF, *DENSITY, *MASS)))
"""One of these a distribution has, and no array or data frame."""
FARTHEST = 1e300
"""Where the search for a value that has a level ends."""


@dataclass(frozen=True, eq=False)
class Reader:
    """A batch of n distributions in one object; values and levels are ``(..., n)`` on the host."""

    source: Any

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Of the batch: ``(n,)``, ``(n, 1)`` or ``()``."""
        return batch_shape(self.source)

    def __len__(self) -> int:
        return rows_of(self.shape, type(self.source).__name__)

    @cached_property
    def is_whole(self) -> bool:
        """Whether it is a distribution of counts: discrete, and not of other numbers."""
        source = self.source
        if is_frozen(source):
            is_discrete = hasattr(source.dist, "pmf")
        elif hasattr(source, "get_tag"):  # skpro
            is_discrete = source.get_tag("distr:measuretype", "continuous") == "discrete"
        else:
            is_discrete = getattr(getattr(source, "support", None), "is_discrete", False)
            is_discrete |= any("Discrete" in kind.__name__ for kind in type(source).__mro__)
        return bool(is_discrete) and bool(np.all(self.typical == np.round(self.typical)))

    @cached_property
    def like(self) -> Any:
        """Some array of the library that the object computes with; ``None`` for NumPy."""
        return _array_in(self.source, 3)

    @cached_property
    def typical(self) -> np.ndarray:
        """A value of each row that can happen, ``(n,)``."""
        median = self._called(QUANTILE, np.full(len(self), 0.5))
        if median is not NotImplemented:
            return median
        return np.zeros(len(self)) if self._sampler is None else self._drawn(np.random.default_rng(0), 1)[0]

    def cdf(self, y: np.ndarray) -> Any:
        """``P(Y <= y)``."""
        inside = self.possible(y)
        if inside.all():
            return self._called(CDF, y)
        found = self._called(CDF, np.where(inside, y, self.typical))
        return NotImplemented if found is NotImplemented else np.where(inside, found, y > self.typical)

    def log_prob(self, y: np.ndarray) -> Any:
        """Log density or mass; minus infinity where nothing can be."""
        inside = self.possible(y)
        found = self._called(MASS if self.is_whole else DENSITY, np.where(inside, y, self.typical))
        return NotImplemented if found is NotImplemented else np.where(inside, found, -np.inf)

    def possible(self, y: np.ndarray) -> np.ndarray:
        """Where values lie in the support, as far as the object says; many refuse others."""
        check = getattr(getattr(self.source, "support", None), "check", None)
        allowed = y == np.round(y) if self.is_whole else np.ones(y.shape, dtype=bool)
        return allowed & to_numpy(check(self._given(y))).reshape(y.shape) if callable(check) else allowed

    def quantile(self, u: np.ndarray) -> Any:
        """Values ``(..., n)`` at these levels, by bisection where there is only a distribution function."""
        found = self._called(QUANTILE, self._told_from_one(u))
        if found is not NotImplemented or self.cdf(self.typical) is NotImplemented:
            return found
        flat = u.reshape(-1, len(self))
        return least_reaching(self.cdf, flat.T, self._end(flat, -1).T, self._end(flat, 1).T).T.reshape(u.shape)

    def _told_from_one(self, u: np.ndarray) -> np.ndarray:
        """Levels next to one that the library of the object does not take for one."""
        if not is_jax(self.like) or self.like.dtype == np.float64:
            return u
        return np.where(u < 1, np.minimum(u, 1 - 2.0**-24), u)

    def _end(self, u: np.ndarray, side: int) -> np.ndarray:
        """Values ``(m, n)`` on one side of these levels, ever farther from a typical value."""
        step = np.ones(u.shape)
        while True:
            end = self.typical + side * step
            is_beyond = (self.cdf(end) < u if side < 0 else self.cdf(end) >= u) | (step > FARTHEST)
            if is_beyond.all():
                return end
            step = np.where(is_beyond, step, 4 * step)

    def draws(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """``(size, n)``, of this generator: by the object where it takes one, else at random levels, else by its library."""
        takes = set() if self._sampler is None else set(signature(self._sampler).parameters)
        if not takes & {"random_state", "rng"} and self._has_levels:
            values = self.quantile(np.maximum(rng.random((size, len(self))), MIN_LEVEL))
        elif self._sampler is not None:
            values = self._drawn(rng, size)
        else:
            raise InputError(
                f"y_pred is a {type(self.source).__name__} that cannot be drawn from: it needs one of "
                f"{', '.join((*SAMPLE, *QUANTILE, *CDF))}"
            )
        return np.round(values).astype(np.int64) if self.is_whole else values

    @cached_property
    def _sampler(self) -> Any:
        return next((m for name in SAMPLE if callable(m := getattr(self.source, name, None))), None)

    def _drawn(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draws by the object itself, seeded by whatever it takes."""
        takes = set(signature(self._sampler).parameters)
        if "random_state" in takes:
            drawn = self._sampler((size, *self.shape), random_state=rng)
        elif "rng" in takes:
            drawn = self._sampler((size,), rng=rng)
        elif "key" in takes:
            drawn = self._sampler(random_key(rng), (size,))
        elif "seed" in takes:
            drawn = self._sampler((size,), seed=random_key(rng) if is_jax(self.like) else int(rng.integers(2**31 - 1)))
        else:
            with seeded(self.like, rng):
                drawn = self._sampler((size,))
        return to_numpy(drawn).reshape(size, len(self)).astype(np.float64)

    @cached_property
    def _has_levels(self) -> bool:
        half = np.full(len(self), 0.5)
        try:
            return any(self._called(names, half) is not NotImplemented for names in (QUANTILE, CDF))
        except ValueError:  # a distribution function that refuses one half, as it cannot happen
            return True

    def _called(self, names: tuple[str, ...], x: np.ndarray) -> Any:
        """The first of these methods that exists, at values ``(..., n)``; ``NotImplemented`` where none does."""
        for name in names:
            method = getattr(self.source, name, None)
            if not callable(method):
                continue
            try:
                with np.errstate(all="ignore"):
                    if type(self.source).__module__.startswith("skpro"):  # takes one column, and nothing else
                        stack = [np.asarray(method(row[:, None])) for row in x.reshape(-1, len(self))]
                        return np.stack(stack).reshape(x.shape)
                    return to_numpy(method(self._given(x))).reshape(x.shape).astype(np.float64)
            except NotImplementedError:
                continue
        return NotImplemented

    def _given(self, x: np.ndarray) -> Any:
        """Values in the shape and library of the object."""
        shaped = x[..., None] if len(self.shape) == 2 else x[..., 0] if self.shape == () else x
        return shaped if self.like is None else matched(np.ascontiguousarray(shaped), self.like)


def _array_in(x: Any, depth: int) -> Any:
    """The first array of another library among what an object holds."""
    for value in vars(x).values() if hasattr(x, "__dict__") and depth else ():
        if isinstance(value, type | np.ndarray | np.generic):
            continue
        if is_array(value):
            return value
        found = _array_in(value, depth - 1)
        if found is not None:
            return found
    return None


def rows_of(shape: tuple[int, ...], name: str) -> int:
    """How many rows a batch has."""
    if len(shape) > 2 or (len(shape) == 2 and shape[1] != 1):
        raise InputError(
            f"y_pred is a {name} of shape {shape}: give one distribution per row, (n,); several numbers of one row are "
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
    if any(kind.__name__ == "multi_rv_frozen" for kind in type(x).__mro__):  # vectors of SciPy, one distribution each
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
    method = next(m for name in (*QUANTILE, *CDF, *MASS, *DENSITY) if callable(m := getattr(x, name, None)))
    return values or [to_numpy(method(0.5))]


def is_frozen(x: Any) -> bool:
    """Whether an object is one of SciPy's distributions with frozen parameters."""
    return hasattr(x, "dist") and hasattr(x, "args") and hasattr(x, "kwds")


@dataclass(frozen=True, eq=False)
class Foreign(Distribution):
    """A batch of n distributions of numbers in one object of another library, or a tuple of one object per row.

    Uses whatever there is of ``cdf``, quantiles (``ppf``, ``icdf``, ``quantile``), densities (``logpdf``, ``log_prob``, ...) and
    draws (``rvs``, ``sample``). Quantiles that are missing are found by bisection; moments, ranked scores and
    characteristic functions are integrals of the distribution function. Objects that can only be drawn from have no
    scores but those of draws. Coordinates are 64 quantiles, nearly the Wasserstein distance W2, or as many draws.

    >>> from scipy.stats import gumbel_r
    >>> Foreign(gumbel_r([0.0, 1.0], scale=2.0)).cdf(np.array([0.0, 1.0])).round(4)
    array([0.3679, 0.3679])
    """

    source: Any
    rows: np.ndarray | None = None

    def __post_init__(self) -> None:
        for x in self.source if isinstance(self.source, tuple) and self.source else (self.source,):
            if not hasattr(x, "batch_shape") and not any(callable(getattr(x, name, None)) for name in SAID):
                raise InputError(
                    f"source must be a distribution with one of {', '.join(SAID)}, or a tuple of one per row; "
                    f"got {of_what(x)}"
                )
        first = self._readers[0].source
        if tuple(getattr(first, "event_shape", ())) or isinstance(getattr(first, "dim", None), int):
            raise InputError(
                f"y_pred is a {type(first).__name__} of vectors, which is no family here: give draws of it, as in "
                "Ensemble.from_draws(y_pred.sample((100,)))"
            )
        self._readers[0].draws(np.random.default_rng(0), 1)  # says what is missing

    @cached_property
    def _readers(self) -> list[Reader]:
        objects = self.source if isinstance(self.source, tuple) else (self.source,)
        return [Reader(x) for x in objects]

    def __len__(self) -> int:
        if self.rows is not None:
            return len(self.rows)
        return len(self.source) if isinstance(self.source, tuple) else len(self._readers[0])

    def __getitem__(self, rows: slice | Array) -> Self:
        chosen = np.arange(len(self))[rows if isinstance(rows, slice) else to_numpy(rows)]
        part = object.__new__(type(self))
        if isinstance(self.source, tuple):
            object.__setattr__(part, "source", tuple(self.source[i] for i in chosen))
            object.__setattr__(part, "rows", None)
        else:
            object.__setattr__(part, "source", self.source)
            object.__setattr__(part, "rows", chosen if self.rows is None else self.rows[chosen])
        return part

    def __repr__(self) -> str:
        first = self._readers[0].source
        name = getattr(getattr(first, "dist", None), "name", type(first).__name__)
        return f"<Foreign: {how_many(len(self), 'prediction')} of {type(first).__module__.partition('.')[0]}, {name}>"

    def _asked(self, method: str, x: np.ndarray) -> Any:
        """What the object says of values ``(..., n)``, each about its own row."""
        if len(self._readers) > 1 or self.rows is None:
            parts = [
                getattr(r, method)(x if len(self._readers) == 1 else x[..., [i]]) for i, r in enumerate(self._readers)
            ]
            return NotImplemented if any(part is NotImplemented for part in parts) else np.concatenate(parts, axis=-1)
        # all rows of the object at once, as often as the most wanted row is wanted
        reader, turn = self._readers[0], _turns(self.rows)
        fill = np.full(len(reader), 0.5) if method == "quantile" else reader.typical
        whole = np.broadcast_to(fill, (*x.shape[:-1], turn.max() + 1, len(reader))).copy()
        whole[..., turn, self.rows] = x
        found = getattr(reader, method)(whole)
        return NotImplemented if found is NotImplemented else found[..., turn, self.rows]

    @property
    def is_whole(self) -> bool:
        """Whether targets are counts."""
        return all(reader.is_whole for reader in self._readers)

    def as_targets(self, y_true: ArrayLike) -> Array:
        """Numbers ``(n,)`` that can happen, as far as the object says."""
        y = to_numpy(one_a_row(y_true, "y_true"))
        possible = self._asked("possible", y) if len(y) == len(self) else np.ones(1, dtype=bool)
        if not possible.all():
            row = int(np.argmin(possible))
            raise InputError(f"y_true has {y[row]:g} in row {row}, which {self!r} call impossible")
        return y

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draws ``(size, n)``."""
        if len(self._readers) > 1:
            return np.concatenate([reader.draws(rng, size) for reader in self._readers], axis=1)
        if self.rows is None:
            return self._readers[0].draws(rng, size)
        turn = _turns(self.rows)
        drawn = self._readers[0].draws(rng, size * (int(turn.max()) + 1))
        return drawn.reshape(size, turn.max() + 1, -1)[:, turn, self.rows]

    def log_prob(self, targets: Array) -> Array:
        """Log density or mass."""
        found = self._asked("log_prob", to_numpy(targets).astype(np.float64))
        return super().log_prob(targets) if found is NotImplemented else found

    def cdf(self, y: Array) -> Any:
        """``P(Y <= y)``."""
        values = to_numpy(y).astype(np.float64)
        return self._asked("cdf", np.floor(values) if self.is_whole else values)

    def below(self, y: Array) -> Any:
        """``P(Y < y)``."""
        values = to_numpy(y).astype(np.float64)
        return self.cdf(np.ceil(values) - 1) if self.is_whole else self.cdf(values)

    def quantile(self, u: Array) -> Any:
        """Values ``(n, m)`` at the levels u."""
        levels = np.repeat(to_numpy(u).astype(np.float64)[:, None], len(self), axis=1)
        found = self._asked("quantile", levels)
        return NotImplemented if found is NotImplemented else found.T

    @cached_property
    def _nodes(self) -> np.ndarray:
        values = self.quantile((np.arange(SLICES) + 0.5) / SLICES)
        if values is NotImplemented:
            values = np.sort(self.sample(np.random.default_rng(0), SLICES), axis=0).T
        return values / SLICES**0.5

    @property
    def coords(self) -> np.ndarray:
        """Quantiles in the middle of 64 slices over 8, or as many draws in order."""
        return self._nodes

    @property
    def parameters(self) -> list[Array]:
        """What is known of each row."""
        return [self._nodes]

    def point(self, y: Array) -> Ensemble:
        """A single member."""
        return Ensemble.certain(to_numpy(y))

    @cached_property
    def _moments(self) -> Any:
        return moments_by_cells(self)

    @property
    def mean(self) -> Any:
        """By integration."""
        return NotImplemented if self._moments is NotImplemented else self._moments[0]

    @property
    def std(self) -> Any:
        """By integration."""
        return NotImplemented if self._moments is NotImplemented else self._moments[1]

    def crps(self, y: Array) -> Any:
        """By integration."""
        return crps_by_cells(self, y)

    def cf(self, w: Array) -> Any:
        """By integration."""
        return cf_by_cells(self, w)

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Gumbel distributions of SciPy."""
        from scipy.stats import gumbel_r

        return cls(gumbel_r(rng.normal(size=n), rng.uniform(0.5, 2, n)))


def _turns(rows: np.ndarray) -> np.ndarray:
    """How often each row number has come before.

    >>> _turns(np.array([3, 1, 3, 3]))
    array([0, 0, 1, 2])
    """
    order = np.argsort(rows, kind="stable")
    first = np.r_[True, np.diff(rows[order]) != 0]
    turns = np.empty(len(rows), dtype=np.intp)
    turns[order] = np.arange(len(rows)) - np.maximum.accumulate(np.where(first, np.arange(len(rows)), 0))
    return turns
