"""From what the caller gave to targets and predictions that belong together."""

import warnings
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from calibrant._array import is_array, to_numpy
from calibrant._clusters import Clusters, as_clusters
from calibrant._validate import (
    InputError,
    as_array,
    as_weights,
    check_not_empty,
    check_same_length,
    frame_columns,
    has_no_rows,
)
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.discrete.class_names import names_of
from calibrant.typing import Array, ArrayLike

SWAPPED = "the arguments look swapped: calibrant takes the truth first, f(y_true, y_pred)"


def as_distribution(y_pred: ArrayLike) -> Distribution:
    """Predictions as a distribution; bare ``(n,)`` and ``(n, k)`` numbers are class probabilities.

    Distributions of other libraries are read, too: :func:`~calibrant.distributions.reading.conversion.adapted`.

    >>> as_distribution([0.2, 0.9])
    <Categorical: 2 predictions of 2 classes>
    """
    found = y_pred if isinstance(y_pred, Distribution) else adapted(y_pred)
    return Categorical(y_pred) if found is None else found


@dataclass(frozen=True, eq=False)
class Classes:
    """What a caller says of the classes: the name of each column of probabilities, and which of two is the event.

    Every public call takes both, ``labels=`` and ``pos_label=``, and hands them on in this.
    """

    labels: ArrayLike | None = None
    pos_label: Any = None

    def of(self, y_pred: Distribution) -> Distribution:
        """Predictions with these names."""
        if self.labels is None and self.pos_label is None:
            return y_pred
        if isinstance(y_pred, Categorical | Bernoulli):
            return y_pred.named(self.labels, self.pos_label)
        raise InputError(
            f"labels and pos_label name classes, and y_pred is a {type(y_pred).__name__} distribution: leave them out"
        )


UNNAMED = Classes()
"""Nothing is said: names of columns count, or numbers."""


def as_problem(
    y_true: ArrayLike, y_pred: ArrayLike, classes: Classes = UNNAMED, *, in_parts: bool = False
) -> tuple[Array, Distribution]:
    """Targets and predictions, checked, one target a prediction; a part of the data may lack the positive label.

    >>> y_true, y_pred = as_problem([0, 1], [0.2, 0.7])
    >>> y_true, type(y_pred).__name__
    (array([0, 1]), 'Categorical')
    """
    if isinstance(y_true, Distribution):
        raise InputError(f"y_true is a {type(y_true).__name__}: {SWAPPED}")
    truth = as_array(y_true, "y_true")
    check_not_empty(truth, "y_true")
    given = y_pred if isinstance(y_pred, Distribution) else adapted(y_pred)
    if given is None:
        if is_fractional(truth) and not is_fractional(as_array(y_pred, "y_pred")):
            raise InputError(f"y_true holds fractions and y_pred does not: {SWAPPED}")
        given = Categorical(y_pred, classes.labels, classes.pos_label)
    else:
        given = classes.of(given)
    check_same_length(truth.shape[0], len(given), "y_true", "y_pred")
    targets = given.as_targets(_in_order(y_true, truth, given))
    if not in_parts and isinstance(given, Categorical):
        _check_occurrence(targets, truth, given)
    return targets, given.checked()


def _in_order(y_true: ArrayLike, truth: Array, predictions: Distribution) -> Array:
    """Columns of targets in the order of those of the predictions, where both have names."""
    if not isinstance(predictions, Categorical | Bernoulli) or truth.ndim != 2 or truth.shape[1] == 1:
        return truth
    names, columns = predictions.labels, frame_columns(y_true, "y_true")
    if columns is None or (names is None and isinstance(predictions, Bernoulli)):
        return truth
    if names is None:
        raise InputError(
            f"y_true has the columns {list(columns)[:5]}, and which columns of y_pred are they? Give labels={list(columns)}, where "
            "they are in that order"
        )
    wanted, found = names_of(names), names_of(columns)
    if sorted(wanted) != sorted(found):
        raise InputError(
            f"y_true has the columns {list(found)[:5]} and y_pred has {list(wanted)[:5]}: give both the same names, or arrays"
        )
    return truth[:, [found.index(name) for name in wanted]]


def _check_occurrence(targets: Array, truth: Array, predictions: Categorical) -> None:
    """Refuse a positive label that no target is, as a slip of the pen is none; warn of class numbers that begin with 1."""
    if predictions.lacks_first_class(targets):
        message = "class 0 never occurs in y_true though the predictions expect it: labels start at 0, not 1"
        warnings.warn(message, UserWarning, stacklevel=6)
    if not predictions.names_one_class or bool(to_numpy(targets).any()):
        return
    found, label = np.unique(to_numpy(truth)).tolist(), predictions.pos_label
    near = get_close_matches(str(label), [str(name) for name in found], n=1)
    raise InputError(
        f"pos_label={label!r} never occurs in y_true{f' (did you mean {near[0]!r}?)' if near else ''}: where that is right, "
        f"give labels=[{found[0]!r}, {label!r}], too"
    )


def as_weighted_problem(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    sample_weight: ArrayLike | None,
    classes: Classes = UNNAMED,
    *,
    in_parts: bool = False,
) -> tuple[Array, Distribution, np.ndarray | None]:
    """Targets, predictions and weights, checked; rows without weight are left out."""
    targets, predictions = as_problem(y_true, y_pred, classes, in_parts=in_parts)
    weights = as_weights(sample_weight, len(predictions), in_parts=in_parts)
    if weights is None or weights.min() > 0:
        return targets, predictions, weights
    rows = np.flatnonzero(weights)
    return targets[rows, ...], predictions[rows], weights[rows]


def as_clustered_problem(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    sample_weight: ArrayLike | None,
    clusters: ArrayLike | Clusters | None,
    classes: Classes = UNNAMED,
) -> tuple[Array, Distribution, np.ndarray | None, Clusters | None]:
    """The same with the cluster of each row; ``None`` where none are given."""
    if clusters is None:
        return *as_weighted_problem(y_true, y_pred, sample_weight, classes), None
    targets, predictions = as_problem(y_true, y_pred, classes)
    n = len(predictions)
    weights = as_weights(sample_weight, n)
    known = clusters if isinstance(clusters, Clusters) else as_clusters(clusters, n)
    if weights is None or weights.min() > 0:
        return targets, predictions, weights, known
    rows = np.flatnonzero(weights)
    if len(known[rows]) == 1:
        raise InputError(
            "sample_weight leaves rows of a single cluster, and chance needs several: give others a weight"
        )
    return targets[rows, ...], predictions[rows], weights[rows], known[rows]


def as_part(
    y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike | None, classes: Classes = UNNAMED
) -> tuple[Array, Distribution, np.ndarray | None] | None:
    """The same of a part of the data, which may have no rows, or none that counts: then ``None``.

    It may lack classes, too, and nobody is warned of it.
    """
    if has_no_rows(y_true) and has_no_rows(y_pred):
        return None
    weights = None if sample_weight is None else to_numpy(as_array(sample_weight, "sample_weight"))
    if weights is None or weights.ndim != 1 or weights.dtype.kind not in "fiub" or not weights.size or weights.any():
        return as_weighted_problem(y_true, y_pred, weights, classes, in_parts=True)
    as_weighted_problem(y_true, y_pred, np.ones_like(weights), classes, in_parts=True)  # which checks the rest
    return None


def is_fractional(x: Array) -> bool:
    """Whether the first rows hold numbers that are not whole."""
    if isinstance(x, np.ndarray) and x.dtype.kind != "f":
        return False
    first = to_numpy(x[: min(1000, x.shape[0]), ...] if x.ndim else x)
    return first.dtype.kind == "f" and bool(np.any(first != np.round(first)))


DENSITIES = ("log_prob", "logpdf", "log_pdf", "logpmf", "log_pmf", "cdf")
"""What makes an object a distribution: no array and no data frame has one of these."""


def adapted(y_pred: Any) -> Distribution | None:
    """Predictions of another library as ours; ``None`` where they are numbers, and not distributions.

    Objects of SciPy, PyTorch, Pyro, NumPyro, TensorFlow Probability, GPyTorch, skpro and everything alike; one with a
    batch of distributions, or a list of one per row. Known families become our own, with their closed forms; others keep
    their object (:class:`~calibrant.distributions.Foreign`). Arrays of xarray with a dimension of members or
    of quantiles become those.

    >>> from scipy.stats import norm
    >>> adapted(norm([0.0, 1.0, 2.0], scale=1.0))
    <Normal: 3 predictions>
    """
    if isinstance(y_pred, np.ndarray | Distribution):
        return None
    is_list = isinstance(y_pred, list | tuple)
    is_labelled = type(y_pred).__module__.partition(".")[0] == "xarray"
    if not is_labelled and not (y_pred and all(map(is_distribution, y_pred)) if is_list else is_distribution(y_pred)):
        return None
    from calibrant.distributions.reading.known import from_list, from_object, labelled

    return (labelled if is_labelled else from_list if is_list else from_object)(y_pred)


def is_distribution(x: Any) -> bool:
    """Whether an object quacks like a distribution of another library.

    >>> is_distribution([0.1, 0.9])
    False
    """
    return not is_array(x) and any(callable(getattr(x, name, None)) for name in DENSITIES)
