"""What redraws of targets cost."""

from calibrant.distributions.base import Distribution
from calibrant.distributions.categorical import Categorical
from calibrant.distributions.ensemble import Ensemble
from calibrant.distributions.laplace import Laplace
from calibrant.kernels import Kernel


def work_of_redraw(kernel: Kernel, predictions: Distribution, dimensions: int) -> float:
    """Multiplications that one redraw costs, roughly."""
    if isinstance(predictions, Categorical):
        is_line = dimensions == 1 and kernel.has_product
        return work_of_labels(len(predictions), predictions.n_classes, is_line=is_line)
    if isinstance(predictions, Ensemble) and predictions.is_vector:
        return 200.0 * len(predictions) ** 2 * int(predictions.members.shape[1])  # sums over members
    if isinstance(predictions, Laplace):
        return 200.0 * work_of_numbers(len(predictions))  # its closed forms are long
    return work_of_numbers(len(predictions))


def work_of_labels(n: int, n_classes: int, *, is_line: bool) -> float:
    """Multiplications that one redraw of n labels costs: on a line none of pairs.

    >>> work_of_labels(1000, 10, is_line=False), work_of_labels(1000, 2, is_line=True)
    (10000000.0, 20000.0)
    """
    return 20.0 * n if is_line else float(n) ** 2 * n_classes


def work_of_numbers(n: int) -> float:
    """Multiplications that one redraw of n numbers costs: four exponentials a pair.

    >>> work_of_numbers(1000)
    50000000.0
    """
    return 50.0 * float(n) ** 2
