"""Which kernel errors a report can afford to redraw."""

from collections.abc import Iterator

from calibrant.distributions.base import Distribution
from calibrant.distributions.bernoulli import Bernoulli
from calibrant.estimators.base import BaseEstimator
from calibrant.estimators.skce import SKCE
from calibrant.inference.aggregated import scales_around
from calibrant.inference.exact import within_budget
from calibrant.planning.work import KERNEL_WORK, work_of


def kernel_errors(predictions: Distribution, kernel: SKCE | None, n_redraws: int) -> dict[str, BaseEstimator]:
    """Kernel errors by name, as many as the work allows: the report's own, then others from coarse to fine.

    ``kernel`` is what the report shows; it is left out where only random waves could stand for it.

    >>> from calibrant import Categorical
    >>> list(kernel_errors(Categorical([0.2, 0.7]), SKCE(), 99))
    ['kernel', 'kernel 1', 'kernel 2', 'kernel 3']
    >>> list(kernel_errors(Categorical([0.2, 0.7]), SKCE(), 10**9))
    []
    """
    if kernel is None or isinstance(predictions, Bernoulli):  # labels have no common kernel
        return {}
    left, found = KERNEL_WORK, dict[str, BaseEstimator]()
    for name, wished in _wished(kernel.resolved(predictions)):
        chosen, _ = within_budget(wished, predictions, n_redraws, KERNEL_WORK / 4)
        if name == "kernel" and chosen is not wished:
            continue
        work = n_redraws * work_of(chosen, predictions)
        if work <= left:
            left -= work
            found[name] = chosen
    return found


def _wished(kernel: SKCE) -> Iterator[tuple[str, SKCE]]:
    assert kernel.on_targets is not None
    if kernel.block is None:
        yield "kernel", kernel
    # From coarse to fine, but the finest second: two scales far from each other see more than two close ones.
    coarse, *rest = reversed(scales_around(kernel.on_predictions, kernel.on_targets))
    for i, estimator in enumerate([coarse, *reversed(rest)]):
        yield f"kernel {i + 1}", estimator
