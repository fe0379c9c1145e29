"""What is trained, in the order of what matters most."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

EPOCHS = 20

SEEDS = range(5)


@dataclass(frozen=True)
class Run:
    """A training: the architecture, the loss and its weight, and a seed, which is shared by losses to be compared."""

    network: str
    loss: str
    weight: float
    seed: int
    epochs: int = EPOCHS
    augments: bool = True

    @property
    def name(self) -> str:
        """A word for it.

        >>> Run("resnet18", "kde", 0.05, 3).name, Run("tiny", "xe", 0, 0, 4, False).name
        ('resnet18_kde_0.05_3', 'tiny_xe_0_0_epochs4_bare')
        """
        word = f"{self.network}_{self.loss}_{self.weight:g}_{self.seed}"
        return word + (f"_epochs{self.epochs}" if self.epochs != EPOCHS else "") + ("" if self.augments else "_bare")


MAIN = (("xe", 0.0), ("kde", 0.05), ("kde", 0.2), ("mmce", 1.0), ("fl53", 0.0), ("ls", 0.05), ("kde", 0.01))
"""Losses and weights of the paper's tables."""

NEXT = (("skce", 10.0), ("mmce", 4.0), ("skce", 100.0), ("kde", 1.0), ("kde", 0.1), ("kde", 0.001))
"""Ours, and the other weights of figure 4."""

LAST = (("kde-narrow", 0.2), ("mmce", 0.25), ("skce", 1.0), ("kde", 0.5))

ALSO_SECOND = (("skce", 10.0), ("mmce", 4.0), ("kde", 1.0))

SECOND_EPOCHS = 16

OTHERS = (
    Run("resnet18-wide", "xe", 0, 0),
    Run("densenet22", "xe", 0, 0, 14),
    Run("vgg11", "xe", 0, 0),
    Run("vgg11-plain", "xe", 0, 0, 30),
    Run("resnet18", "xe", 0, 0, 30, augments=False),
    Run("resnet18", "xe", 0, 0, 4),
    Run("perceptron", "xe", 0, 0, 15),
    Run("resnet10-narrow", "xe", 0, 0),
    Run("tiny", "xe", 0, 0, 12),
    Run("vgg11-plain", "xe", 0, 0, 10),
    Run("wrn16-4", "xe", 0, 0, 5),
    Run("vgg11", "xe", 0, 0, 30, augments=False),
)
"""Other sizes and schedules: over- and under-confident networks for recalibration."""


def runs() -> Iterator[Run]:
    """All of them; seeds first, so that a plan that breaks off has complete pairs."""
    for losses in (MAIN, NEXT):
        yield from _with_seeds("resnet18", losses, EPOCHS)
    yield from _with_seeds("wrn16-4", MAIN, SECOND_EPOCHS)
    yield from OTHERS
    yield from _with_seeds("wrn16-4", ALSO_SECOND, SECOND_EPOCHS)
    yield from _with_seeds("resnet18", LAST, EPOCHS)


SMALL = (*MAIN, ("skce", 10.0))
"""Losses and weights for small networks."""

SMALL_EPOCHS = 16

SMALL_OTHERS = (
    Run("resnet10-8", "xe", 0, 0, SMALL_EPOCHS),
    Run("tiny", "xe", 0, 0, SMALL_EPOCHS),
    Run("vgg11-8", "xe", 0, 0, 4),
    Run("vgg11-8", "xe", 0, 0, SMALL_EPOCHS, augments=False),
    Run("resnet10-8", "xe", 0, 0, 5),
    Run("perceptron", "xe", 0, 0, 8),
)
"""Small networks for recalibration."""


def small_runs() -> Iterator[Run]:
    """Small networks on few images, which a processor trains in a minute each."""
    yield from _with_seeds("vgg11-8", SMALL, SMALL_EPOCHS)
    yield from SMALL_OTHERS
    yield from _with_seeds("vgg11-8", (("kde", 1.0),), SMALL_EPOCHS)
    yield from (run for run in _with_seeds("resnet10-8", SMALL, SMALL_EPOCHS) if run not in SMALL_OTHERS)


KEPT = (
    Run("perceptron-512", "xe", 0, 0, 10),
    Run("resnet10-8", "xe", 0, 0, 3),
    Run("vgg11-8", "xe", 0, 0, 12),
    Run("vgg11-16-plain", "xe", 0, 0, 10),
    Run("vgg11-8", "xe", 0, 0, 12, augments=False),
    Run("resnet10-8", "ls", 0.1, 0, 10),
    Run("densenet10", "xe", 0, 0, 2),
    Run("wrn10-2", "xe", 0, 0, 2),
)
"""Networks whose logits are part of the project: short schedules and long ones, with crops and without."""

PLANS: dict[str, Callable[[], Iterator[Run]]] = {"paper": runs, "small": small_runs, "networks": lambda: iter(KEPT)}
"""By name."""


def _with_seeds(network: str, losses: Iterable[tuple[str, float]], epochs: int) -> Iterator[Run]:
    for seed in SEEDS:
        for loss, weight in losses:
            yield Run(network, loss, weight, seed, epochs)
