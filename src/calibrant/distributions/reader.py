"""What can be asked of a distribution of another library, whatever its methods are called."""

from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np

from calibrant._array import is_array, is_jax, random_key, seeded, to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import matched
from calibrant.distributions.bisection import least_reaching
from calibrant.distributions.piecewise import LEAST_LEVEL

CDF = ("cdf",)
QUANTILE = ("icdf", "ppf", "quantile")
DENSITY = ("log_prob", "logpdf", "log_pdf")
MASS = ("log_prob", "logpmf", "log_pmf")
SAMPLE = ("rvs", "sample")
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
            values = self.quantile(np.maximum(rng.random((size, len(self))), LEAST_LEVEL))
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
    method = next(m for name in (*QUANTILE, *CDF, *MASS, *DENSITY) if callable(m := getattr(x, name, None)))
    return values or [to_numpy(method(0.5))]


def is_frozen(x: Any) -> bool:
    """Whether an object is one of SciPy's distributions with frozen parameters."""
    return hasattr(x, "dist") and hasattr(x, "args") and hasattr(x, "kwds")
