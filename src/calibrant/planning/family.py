"""A way to do a piece of work: what does it, and by which monomials its time and memory grow."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from calibrant.planning.load import KINDS, NUMBER, Kind, Load


@dataclass(frozen=True)
class Family:
    """Estimators, tests or recalibrators of one cost.

    ``make`` gives the thing itself for a load; ``terms`` are monomials of the load, whose coefficients are measured;
    ``numbers`` counts what is held at once beside the data. ``is_shared`` is work that all threads share; ``has_state``
    work that can be done in batches.

    >>> doubling = Family("sorting", lambda load: sorted, lambda load: (load.sorting,), lambda load: load.n)
    >>> doubling.terms(Load(1024, 2, "binary")), doubling.bytes(Load(1024, 2, "binary"))
    ((10240.0,), 24576.0)
    """

    name: str
    make: Callable[[Load], Any]
    terms: Callable[[Load], tuple[float, ...]]
    numbers: Callable[[Load], float]
    kinds: tuple[Kind, ...] = KINDS
    is_shared: bool = False
    has_state: bool = False

    def bytes(self, load: Load) -> float:
        """Memory, with the data."""
        return load.data_bytes + NUMBER * self.numbers(load)
