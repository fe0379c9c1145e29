"""Coefficients of the cost model: measured here, or shipped with calibrant."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from calibrant.planning.family import Family
from calibrant.planning.load import Load
from calibrant.results import SCHEMA

SHIPPED = Path(__file__).with_name("rates.json")

BUILT_IN = "built-in rates"

AGGREGATED = "aggregated "
"""How the name of a test of several statistics begins; they cost what one costs, several times."""


@dataclass(frozen=True)
class Rates:
    """Seconds of one processor a unit of each monomial, by kind of predictions and family.

    >>> shipped().source
    'built-in rates'
    """

    seconds: Mapping[str, tuple[float, ...]]
    machine: Mapping[str, str]
    source: str

    @property
    def is_shipped(self) -> bool:
        """Whether they were measured elsewhere."""
        return self.source == BUILT_IN

    def predicted(self, family: Family, load: Load, threads: int = 1) -> float:
        """Seconds that the work takes with so many threads."""
        rates = self.seconds[key_of(family, load)]
        total = sum(rate * term for rate, term in zip(rates, family.terms(load), strict=True))
        return total / threads if family.is_shared else total

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        seconds = {key: list(rates) for key, rates in self.seconds.items()}
        return {"schema": SCHEMA, "kind": "rates", "machine": dict(self.machine), "seconds": seconds}

    def save(self) -> Path:
        """Keep them for later plans; says where."""
        path = kept()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.to_dict(), indent=1) + "\n", "utf-8")
        return path


def key_of(family: Family, load: Load) -> str:
    """The name of a family's rates."""
    return f"{load.kind}: {family.name.removeprefix(AGGREGATED)}"


def kept() -> Path:
    """Where measured rates are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "calibrant" / "rates.json"


def current() -> Rates:
    """Those measured on this machine, where they are complete; else the built-in ones."""
    try:
        found = _read(kept(), f"rates measured here, {kept()}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return shipped()
    same = {key: len(rates) for key, rates in shipped().seconds.items()}
    return found if {key: len(rates) for key, rates in found.seconds.items()} == same else shipped()


@cache
def shipped() -> Rates:
    """Those that calibrant brings: of a plain machine with two cores."""
    return _read(SHIPPED, BUILT_IN)


def _read(path: Path, source: str) -> Rates:
    data = json.loads(path.read_text("utf-8"))
    seconds = {str(key): tuple(map(float, rates)) for key, rates in data["seconds"].items()}
    return Rates(seconds, data["machine"], source)
