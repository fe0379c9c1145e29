"""Whether rows after each other are alike: then p-values for independent rows mislead."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

LOUD = 3.3
"""Standard errors from which a correlation is no chance: one false alarm in a thousand."""


@dataclass(frozen=True)
class Memory:
    """Correlation of the PIT values of each row with those of the next, on the scale of normal scores.

    Independent rows have a correlation of 0 with a standard error of ``1 / sqrt(n)``, whatever the predictions, if these are
    calibrated; a bias alone does not look like memory, as the mean is taken off.

    >>> rng = np.random.default_rng(0)
    >>> Memory.of(rng.random(500)).is_beyond_chance, Memory.of(np.repeat(rng.random(100), 5)).is_beyond_chance
    (False, True)
    """

    correlation: float
    n: int

    @classmethod
    def of(cls, pit: np.ndarray) -> "Memory":
        """From PIT values between 0 and 1, in the order of the rows."""
        z = ndtri(np.clip(pit, 1e-9, 1 - 1e-9))
        z = z - z.mean()
        total = float(z @ z)
        return cls(float(z[1:] @ z[:-1]) / total if total > 0 else 0.0, len(z))

    @property
    def is_beyond_chance(self) -> bool:
        """Whether independent rows would show this in one of a thousand cases at most."""
        return bool(self.n > 10 and abs(self.correlation) * np.sqrt(self.n) > LOUD)

    @property
    def block(self) -> int:
        """Rows after which little of the memory is left, at least 2: where a correlation that fades by this factor is 1 %."""
        r = min(max(abs(self.correlation), 0.1), 0.99)
        return int(np.ceil(np.log(0.01) / np.log(r)))

    def in_words(self, what: str = "PIT values") -> str:
        """The warning."""
        return (
            f"Rows after each other are alike (correlation {self.correlation:+.2f} of their {what}): p-values and bands are for "
            f"independent rows and MISLEAD here. Use blocks of at least {self.block} rows: WildBootstrapTest(block={self.block}), "
            f"Bootstrap(block={self.block}), ShuffleTest(block={self.block})."
        )
