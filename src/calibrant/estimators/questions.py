"""What is asked of a kernel regression on the simplex: at which points, of which outcomes."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from calibrant._array import as_double, namespace
from calibrant._softmax import Softmax
from calibrant.distributions.base import Distribution, matched
from calibrant.distributions.categorical import Categorical
from calibrant.estimators.lensed import View
from calibrant.lenses import Event, Lens
from calibrant.typing import Array


@dataclass(frozen=True, eq=False)
class Question:
    """Points of the simplex ``(n, K)``, and the outcomes whose frequencies around them are asked for.

    Whole vectors ask for the frequencies of all K classes. An event has the points ``(1 - q, q)`` and asks for the
    second alone. Frequencies are compared with the points, or with another ``reference``, ``(n, q)``.
    """

    name: str
    points: Array
    event: Event | None = None
    reference: Array | None = None

    @classmethod
    def of_vectors(cls, predictions: Categorical) -> Self:
        """All classes at once."""
        return cls("canonical", as_double(predictions.matrix))

    @classmethod
    def of_event(cls, event: Event) -> Self:
        """One event."""
        q = as_double(event.predicted)
        return cls(event.name, namespace(q).stack([1 - q, q], axis=1), event)

    @property
    def first(self) -> int:
        """The first class whose frequency is asked for."""
        return 0 if self.event is None else 1

    @property
    def predicted(self) -> Array:
        """The probabilities of the outcomes asked for, ``(n, q)``."""
        return self.points[:, self.first :] if self.reference is None else self.reference

    def outcomes(self, targets: Array) -> Array:
        """Class numbers from 0 to K - 1, ``(n,)``, for targets of the problem; ``(m, n)`` for m redraws on the host."""
        if self.event is None:
            return targets
        if isinstance(targets, np.ndarray):
            return self.event.happened(targets).view(np.uint8)
        return self.event.problem(targets)[0]

    def happened(self, outcomes: Array) -> Array:
        """Whether each outcome asked for occurred, ``(..., n, q)`` as booleans, for outcomes ``(..., n)``."""
        classes = matched(np.arange(self.first, self.points.shape[1]), outcomes)
        return outcomes[..., None] == namespace(outcomes).astype(classes, outcomes.dtype)

    def asked(self, local: Softmax) -> Softmax:
        """The averages of the outcomes asked for."""
        cut = slice(self.first, None)
        return Softmax(local.log_sum, local.mean[:, cut], local.squares, local.mean_of_squares[:, cut])


def questions(lens: Lens | None, predictions: Distribution) -> tuple[list[Question], str]:
    """The questions a lens asks, or whole vectors where there is none and classes are several; and their name."""
    if lens is None and isinstance(predictions, Categorical) and predictions.n_classes > 2:
        return [Question.of_vectors(predictions)], "canonical"
    view = View.of(lens, predictions)
    return [Question.of_event(event) for event in view.events], view.reduction
