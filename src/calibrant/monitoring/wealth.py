"""The wealth of bets against calibration: an e-process, small for ever where predictions are calibrated."""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

CELLS = 250_000
"""Numbers that the bets of rows handled together may take."""


@dataclass(frozen=True, eq=False)
class Wealth:
    """What bets have won after ``n`` rows, on the log scale; each may have begun at any row.

    Bet m multiplies its stake in row t by the likelihood ratio ``e_t`` of its alternative, whose mean is 1 if predictions are
    calibrated. A share ``w_s = 1 / (s (s + 1))`` of its capital is put in at row s, so that

        ``S_t = e_t (S_{t-1} + w_t)``    and    ``E_t = S_t + 1 / (t + 1)``

    is a martingale that begins at 1, and grows from any row on from which the alternative holds. The mean over bets is one
    too; by Ville's inequality it ever reaches ``1 / alpha`` with probability at most alpha, however often one looks.
    ``begun`` is the row since which each bet has won, the one after its wealth without fresh stakes was lowest, and ``won``
    how much since then (the CUSUM statistic, of which no level is claimed).
    Ville (1939); Shin, Ramdas & Rinaldo (2023).
    """

    shares: np.ndarray
    n: int
    stakes: np.ndarray
    won: np.ndarray
    begun: np.ndarray

    @classmethod
    def fresh(cls, shares: np.ndarray) -> Self:
        """Before the first row: nothing staked."""
        bets = len(shares)
        return cls(shares, 0, np.full(bets, -np.inf), np.zeros(bets), np.ones(bets, dtype=np.int64))

    @property
    def log_evalue(self) -> float:
        """The mean wealth of all bets, as its logarithm."""
        return float(_total(self.shares, self.stakes[None], np.array([self.n]))[0])

    @property
    def leads(self) -> np.ndarray:
        """Which bets have won most: one, or all that have won without end."""
        won = np.log(self.shares) + self.stakes
        return won == won.max()

    @property
    def best(self) -> int:
        """The bet that has won most, the first of several."""
        return int(np.argmax(self.leads))

    def after(self, log_ratios: np.ndarray) -> "Steps":
        """The wealth after each of some rows, from the log likelihood ratios ``(rows, bets)``."""
        rows = self.n + 1 + np.arange(len(log_ratios))
        gains = np.cumsum(log_ratios, axis=0)
        before = np.concatenate([np.zeros((1, len(self.shares))), gains[:-1]])
        entry = -np.log(rows * (rows + 1.0))[:, None] - before
        stakes = gains + np.logaddexp.accumulate(np.concatenate([self.stakes[None], entry]))[1:]
        return Steps(self, rows, gains, stakes, _total(self.shares, stakes, rows))


class Steps(NamedTuple):
    """Rows, the gains and stakes after each, ``(rows, bets)``, and the logarithm of the mean wealth, ``(rows,)``."""

    start: Wealth
    rows: np.ndarray
    gains: np.ndarray
    stakes: np.ndarray
    log_evalues: np.ndarray

    def upto(self, last: int) -> Wealth:
        """The wealth after the first rows, up to the index ``last``."""
        won = self.start.won + self.gains[: last + 1]
        lowest = won.min(axis=0)
        is_new = lowest < 0
        begun = np.where(is_new, self.rows[np.argmin(won, axis=0)] + 1, self.start.begun)
        return replace(
            self.start,
            n=int(self.rows[last]),
            stakes=self.stakes[last],
            won=won[-1] - np.minimum(lowest, 0),
            begun=begun,
        )


def _total(shares: np.ndarray, stakes: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """``log(sum_m share_m S_m + 1 / (t + 1))``, of every row."""
    whole = np.concatenate([np.log(shares) + stakes, -np.log(rows + 1.0)[:, None]], axis=1)
    return np.logaddexp.reduce(whole, axis=1)
