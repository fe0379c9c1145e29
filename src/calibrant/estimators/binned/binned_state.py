"""Binned errors of streams and of data in parts: small states that are updated, merged and finished."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._names import Words
from calibrant._numerics.sums import sum_any
from calibrant._validate import InputError, as_real
from calibrant.distributions.reading.conversion import Classes, as_part
from calibrant.estimators.binned.binning import Edges, Tally, tally
from calibrant.estimators.binned.ece import ECE, binned_estimate, with_limits
from calibrant.lenses.class_lenses import PositiveClass
from calibrant.results import Estimate
from calibrant.spec import parse
from calibrant.typing import ArrayLike

NAMES = Words("estimators", "lenses")
"""What a stored state may name."""


@dataclass(frozen=True, eq=False)
class BinnedState:
    """What an ECE with fixed bins needs to know of the rows so far: a few sums a bin, whatever their number.

    States are values: :meth:`update` and :meth:`merge` give new ones. Sums are exact, so any split of the data, in any
    order, gives the same digits as :class:`~calibrant.ECE` on all of it at once. Several events
    (``ECE(lens=ClassWise())``) have a few sums each.

    >>> from calibrant import ECE
    >>> monday = BinnedState(ECE()).update([1, 0, 1], [0.9, 0.2, 0.7])
    >>> tuesday = BinnedState(ECE()).update([0, 1], [0.4, 0.6])
    >>> monday.merge(tuesday).finalize().value == ECE()([1, 0, 1, 0, 1], [0.9, 0.2, 0.7, 0.4, 0.6]).value
    True
    """

    ece: ECE = ECE()  # noqa: RUF009  # frozen
    n: int = 0
    lens: str | None = None
    names: tuple[str, ...] = ()
    tallies: tuple[Tally, ...] = field(default=(), repr=False)
    is_weighted: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.ece, ECE) or not self.ece.bins.is_fixed or self.ece.label_binned:
            raise InputError(
                "a state keeps sums in bins that do not depend on the data: use ECE(EqualWidth(15)) or "
                "ECE(Edges((0, 0.5, 1))), with label_binned=False; or take the bins "
                f"from a first sample, state(..., like=(y_true, y_pred)); got {self.ece!r}"
            )

    def update(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
    ) -> Self:
        """The state after these rows too; there may be none."""
        part = as_part(y_true, y_pred, sample_weight, Classes(labels, pos_label))
        if part is None:
            return self
        targets, predictions, weights = part
        ece, events, lens = self.ece.look(predictions)
        tallies = tuple(
            tally(e.probability, e.observed(targets), ece.bins.bins(e.probability), weights) for e in events
        )
        names = tuple(event.name for event in events)
        about = {"ece": ece, "lens": lens, "names": names, "is_weighted": weights is not None}
        return self.merge(replace(self, n=len(predictions), tallies=tallies, **about))  # type: ignore[arg-type]

    def merge(self, other: Self) -> Self:
        """The state after the rows of both."""
        if not self.n or not other.n:
            return other if other.n else self
        mine, yours = (self.ece.bins, self.names), (other.ece.bins, other.names)
        if mine != yours:
            raise InputError(f"states of different bins or events cannot be merged: {mine} and {yours}")
        tallies = tuple(a + b for a, b in zip(self.tallies, other.tallies, strict=True))
        is_weighted = self.is_weighted or other.is_weighted
        return replace(self, n=self.n + other.n, tallies=tallies, is_weighted=is_weighted)

    def finalize(self) -> Estimate:
        """The error of all rows so far, with its bin table."""
        if not self.n:
            raise InputError("the state has seen no rows: update it first")
        found = binned_estimate(self.ece, self.n, self.lens, list(self.names), list(self.tallies))
        if self.is_weighted:
            return replace(found, withheld="a state does not keep squares of weights; ECE() of all rows has one")
        return with_limits(found, self.ece, list(self.tallies), 1 / self.n)

    @classmethod
    def from_sums(
        cls,
        edges: Sequence[float],
        *,
        weight: ArrayLike,
        predicted: ArrayLike,
        observed: ArrayLike,
        norm: float = 1,
    ) -> Self:
        """A state from a table that was aggregated elsewhere: of each bin the rows, the sum of p and the sum of y.

        >>> state = BinnedState.from_sums((0, 0.5, 1), weight=[10, 20], predicted=[3.0, 15.0], observed=[4, 16])
        >>> round(state.finalize().value, 4)
        0.0667
        """
        ece = ECE(Edges(tuple(edges)), norm, PositiveClass())
        bins = ece.bins.bins(np.zeros(0))
        columns = {"weight": weight, "predicted": predicted, "observed": observed}
        w, p, y = (_bin_sums(column, name, len(bins)) for name, column in columns.items())
        for name, column in (("observed", y), ("predicted", p)):
            if np.any(column > w):
                i = int(np.argmax(column > w))
                raise InputError(f"{name} must not exceed weight; got {column[i]} of {w[i]} in bin {i}")
        slack = 1e-9 * w
        if np.any((p < bins.edges[:-1] * w - slack) | (p > bins.edges[1:] * w + slack)):
            raise InputError("predicted must be the sum of the scores of each bin; means lie outside of the edges")
        even, size = 2 * np.arange(len(bins)), 2 * len(bins)
        mass = sum_any(w - y, even, size) + sum_any(y, even + 1, size)
        tallies = (Tally(bins, mass, sum_any(p, even, size)),)
        is_weighted = bool(np.any(w != np.rint(w)))
        return cls(ece, max(round(float(w.sum())), 1), "positive class", ("1",), tallies, is_weighted)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: sums as hexadecimal integers, so that nothing is lost on the way between machines.

        >>> state = BinnedState().update([1, 0], [0.9, 0.2])
        >>> BinnedState.from_dict(state.to_dict()).finalize().value == state.finalize().value
        True
        """
        return {
            "state": "binned",
            "ece": repr(self.ece),
            "n": self.n,
            "lens": self.lens,
            "weighted": self.is_weighted,
            "events": [
                {"name": name, "mass": [*map(hex, t.mass)], "score": [*map(hex, t.score)]}
                for name, t in zip(self.names, self.tallies, strict=True)
            ],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The state of :meth:`to_dict`."""
        ece = parse(data["ece"], NAMES)
        bins, events = ece.bins.bins(np.zeros(0)), data["events"]
        size = 2 * len(bins)
        tallies = tuple(Tally(bins, _from_hex(e["mass"], size), _from_hex(e["score"], size)) for e in events)
        names, is_weighted = tuple(e["name"] for e in events), bool(data.get("weighted", False))
        return cls(ece, int(data["n"]), data["lens"], names, tallies, is_weighted)


def _bin_sums(column: ArrayLike, name: str, n_bins: int) -> np.ndarray:
    sums = to_numpy(as_real(column, name)).astype(np.float64)
    if sums.shape != (n_bins,):
        raise InputError(f"{name} must have one number per bin, {n_bins}; got shape {sums.shape}")
    if np.any(sums < 0):
        raise InputError(f"{name} must not be negative; got {sums.min()}")
    return sums


def _from_hex(texts: Sequence[str], size: int) -> np.ndarray:
    if not isinstance(texts, list | tuple) or len(texts) != size:
        raise ValueError(f"it has not {size} sums where it should")
    return np.array([int(text, 16) for text in texts], dtype=object)
