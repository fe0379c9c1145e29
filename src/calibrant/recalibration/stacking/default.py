"""The recalibrator to use when none is asked for."""

from dataclasses import dataclass

import numpy as np

from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.recalibration.base import Found, Recalibrator
from calibrant.recalibration.maps import check_classes
from calibrant.recalibration.nonparametric.shared_spline import SharedSpline
from calibrant.recalibration.nonparametric.simplex_ridge import SimplexRidge
from calibrant.recalibration.nonparametric.spline import SplineScaling
from calibrant.recalibration.scaling.matrix import StructuredMatrix
from calibrant.recalibration.scaling.temperature import Temperature
from calibrant.recalibration.stacking.stack import Best

MAX_CLASSES = 20
"""Where a matrix of logits may be worth its coefficients, if there are as many rows, and the time to find them."""

MARGIN = 2.0
"""Standard errors by which held-out rows must gain from more than a temperature: the best of many tries gains one by chance."""

FEW_ROWS, FEW_NUMBERS = 1 << 16, 1 << 14
"""Rows of two classes, and probabilities of more, up to which all are held out, a fifth at a time; of more, one half is."""

MAX_NUMBERS = 1 << 20
"""Probabilities up to which a spline that all classes share is tried; its cost is the largest."""


@dataclass(frozen=True)
class Default(Recalibrator):
    """A temperature, unless held-out rows gain by more: from splines for two classes, for more also from a matrix or kernels.

    The map is the one of :class:`Temperature`, unless one of :class:`SplineScaling` for two classes, of
    :class:`StructuredMatrix` and, up to 2^20 probabilities, :class:`SharedSpline` for more, has a log loss on held-out rows
    that is less by more than two standard errors. The matrix is diagonal; up to 20 classes, and from as many rows on as it has
    coefficients, a full one is tried, too. Of more than two classes a :class:`SimplexRidge` comes on top where it, too,
    gains so much. Held out are all rows in five parts or, of more than 2^14 probabilities or 2^16 rows of two classes,
    one half. So few rows change nothing but the temperature, and many are put right in all that they show.
    Cheap enough to be fitted many times, with no settings: n log n for two classes, linear in n for more. What boosting does in
    Berta et al. (2026).

    >>> rng = np.random.default_rng(0)
    >>> f = rng.beta(0.5, 0.5, 2_000)
    >>> fitted = Default().fit(rng.binomial(1, f**2), f)
    >>> type(fitted.map).__name__, bool(fitted.scores["change"][0] < 0)
    ('SplineMap', True)
    """

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """What the chosen recalibrator finds."""
        check_classes(predictions, "Default")
        assert isinstance(predictions, Categorical)
        return self.chosen(len(targets), predictions.n_classes).find(targets, predictions, weights)

    def chosen(self, n: int, n_classes: int) -> Recalibrator:
        """The recalibrator for n rows and so many classes.

        >>> [type(one).__name__ for one in Default().chosen(100_000, 100).first.recalibrators]
        ['Temperature', 'StructuredMatrix']
        """
        is_few = n <= FEW_ROWS if n_classes == 2 else n * n_classes <= FEW_NUMBERS
        folds, tries = (5, None) if is_few else (2, 1)
        stages: list[Recalibrator] = [Temperature()]
        if n_classes == 2:
            stages.append(SplineScaling())
        else:
            stages.append(StructuredMatrix(diagonal=True))
            if n_classes <= MAX_CLASSES and n >= n_classes * (n_classes + 1):
                stages.append(StructuredMatrix())
            if n * n_classes <= MAX_NUMBERS:
                stages.append(SharedSpline())
        best = Best(tuple(stages), folds=folds, tries=tries, margin=MARGIN)
        return best if n_classes == 2 else SimplexRidge(best, margin=MARGIN)


def most_sensitive(n_classes: int) -> Recalibrator:
    """What calibration errors are looked for with: splines for two classes, as they lean towards all that may be wrong.

    Their direction is short where little is known, so that leaning costs nothing; :class:`Default` waits for proof.

    >>> most_sensitive(2), most_sensitive(3)
    (SplineScaling(bins=256, splines=20), Default())
    """
    return SplineScaling() if n_classes == 2 else Default()
