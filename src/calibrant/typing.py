"""The protocols calibrant is built of, and the alias :data:`Array`.

Anything with the right shape takes part: an estimator is a callable value, an engine is anything with ``map``.
"""

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias, runtime_checkable

from calibrant.results import Estimate, TestResult

Array: TypeAlias = Any
"""An array of any array-API library. Array-API typing is immature: the one ``Any`` of public signatures."""

ArrayLike: TypeAlias = Any
"""What the public calls accept: an array, a list, a pandas or polars column or frame, a ``Distribution``."""

Seed: TypeAlias = Any
"""``None`` (the fixed seed 0), an integer, a ``numpy.random.SeedSequence`` or a ``numpy.random.Generator``."""


@runtime_checkable
class Estimator(Protocol):
    """A frozen value that holds the settings of an estimate; calling it does the work."""

    def __call__(self, y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Estimate:
        """Estimate from targets and predictions, truth first."""
        ...


@runtime_checkable
class HypothesisTest(Protocol):
    """A frozen value that holds the settings of a test; calling it does the work."""

    def __call__(
        self, y_true: ArrayLike, y_pred: ArrayLike, *, rng: Seed = None, engine: "Engine | None" = None
    ) -> TestResult:
        """Test that the predictions are calibrated."""
        ...


@runtime_checkable
class Engine(Protocol):
    """Where tasks run: anything with the ``map`` of ``concurrent.futures.Executor``."""

    def map(self, fn: Callable[..., Any], /, *tasks: Any) -> Iterator[Any]:
        """Apply ``fn`` to each task; results come in the order of the tasks."""
        ...
