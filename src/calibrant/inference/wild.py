"""The wild bootstrap test of the kernel calibration error."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from calibrant._validate import check_count
from calibrant.inference.blocks import check_blocks
from calibrant.inference.draws import draw
from calibrant.inference.kernel_matrix import KernelMatrix
from calibrant.inference.matrix_test import MatrixTest, Outcome
from calibrant.typing import Engine, Seed


@dataclass(frozen=True)
class WildBootstrapTest(MatrixTest):
    """Test of calibration by random signs.

    U is ranked among ``T* = sum_{i != j} w_i w_j h_ij / (n(n-1))`` with independent signs w. Under the hypothesis residuals
    have mean zero given the predictions, so signs keep the variance; the level is exact where they are symmetric (two
    classes at 1/2), and holds for large n otherwise; refused where nothing unlikely is expected to
    happen. Cost as of :class:`BootstrapTest`. Dehling & Mikosch (1994).

    ``block=b`` is for rows in the order of time, whose outcomes depend on those shortly before: b rows after each other
    share their sign. The level then holds for large n if rows further apart than b are as good as independent, and
    there are many blocks. Leucht & Neumann (2013).

    >>> y_pred = np.linspace(0.05, 0.95, 60)
    >>> y_true = (np.random.default_rng(3).random(60) < y_pred) * 1
    >>> WildBootstrapTest(n_resamples=199)(y_true, y_pred).pvalue > 0.05
    True
    """

    n_resamples: int = 999
    block: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.n_resamples, "n_resamples")
        check_count(self.block, "block")

    def outcome(self, matrix: KernelMatrix, rng: Seed, engine: Engine | None) -> Outcome:
        """The statistic among those with random signs."""
        check_blocks(self.block, len(matrix))
        null = draw(partial(_signed, matrix, self.block), self.n_resamples, width=len(matrix), rng=rng, engine=engine)
        return Outcome.ranked(matrix.unbiased, null)


def _signed(matrix: KernelMatrix, block: int, seed: np.random.SeedSequence, size: int) -> np.ndarray:
    """U with so many sets of random signs, one a block of rows."""
    n = len(matrix)
    signs = 2.0 * np.random.default_rng(seed).integers(0, 2, (size, -(-n // block))) - 1
    signs = np.repeat(signs, block, axis=1)[:, :n]
    squares = np.einsum("mi,im->m", signs, matrix @ signs.T)
    return (squares - matrix.moments.diagonal.sum()) / (n * (n - 1))
