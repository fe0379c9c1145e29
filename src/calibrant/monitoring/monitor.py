"""A test of calibration that may be looked at after every row: the wealth of bets is an e-process."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._clusters import refuse_clusters
from calibrant._validate import InputError, check_count, check_fraction
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.empirical.quantiles import fan_of
from calibrant.distributions.multivariate import dimensions
from calibrant.distributions.reading.conversion import Classes, as_problem
from calibrant.monitoring.bets import Bets, ClassBets, Defect, EventBets, LabelBets
from calibrant.monitoring.history import History
from calibrant.monitoring.pit_bets import PITBets
from calibrant.monitoring.saved_state import SavedState
from calibrant.results import SCHEMA, Result, number
from calibrant.typing import ArrayLike

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


KINDS: dict[str, Callable[..., Bets]] = {bets.kind: bets for bets in (EventBets, ClassBets, LabelBets, PITBets)}


@dataclass(frozen=True)
class Alarm:
    """The row at which the evidence sufficed, the row since which it grew, and what it says: in words, and for programs.

    >>> from calibrant import Monitor
    >>> alarm = Monitor().update([0, 1] * 100, [0.9, 0.1] * 100).alarm
    >>> alarm.since <= alarm.row
    True
    """

    row: int
    since: int
    words: str
    defect: Defect

    def __str__(self) -> str:
        return f"row {self.row:,}: {self.words}, since about row {self.since:,}"


@dataclass(frozen=True, eq=False, repr=False)
class Monitor(Result):
    """An anytime-valid test of calibration over a stream; its alarm keeps the level ``alpha`` at every look.

    Rows come in order, predictions before outcomes. Hypothesis: given all that came before, each outcome is drawn from its
    prediction. Many bets against it (:mod:`calibrant.monitoring.bets`) are placed at every row, each of which may begin to
    win at any time; their mean wealth is the *e-value*. If the hypothesis holds, the e-value ever exceeds ``1 / alpha`` with
    probability at most alpha; ``pvalue`` is 1 over its largest so far, and may be read at any time.

    A monitor is a value: :meth:`update` gives a new one. Memory does not grow with the rows, and how rows come together
    changes no digit beyond rounding. ``history`` keeps sums in windows of ``window`` rows or more for the page,
    :func:`calibrant.monitor_report`; no alarm depends on them. O(bets) per row: 66 for two classes, about 2 k more for k classes.
    Ramdas, Grünwald, Vovk & Shafer (2023); Arnold, Henzi & Ziegel (2023).

    >>> from calibrant import Monitor
    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.random(3000)
    >>> drift = np.where(np.arange(3000) < 1500, 0.0, 0.15)  # the world changes half way
    >>> y_true = (rng.random(3000) < np.clip(y_pred + drift, 0, 1)) * 1
    >>> monitor = Monitor().update(y_true[:1500], y_pred[:1500])
    >>> monitor.alarm is None
    True
    >>> print(monitor.update(y_true[1500:], y_pred[1500:]).alarm)
    row 1,715: probabilities are too low, since about row 1,514
    """

    alpha: float = 0.05
    seed: int = 0
    bets: Bets | None = None
    wealth: Wealth | None = None
    peak: float = 0.0
    alarm: Alarm | None = None
    window: int = 1000
    history: History | None = None

    def __post_init__(self) -> None:
        check_fraction(self.alpha, "alpha")
        check_count(self.seed, "seed", least=0)
        check_count(self.window, "window")

    def update(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        clusters: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
    ) -> Self:
        """The monitor after these rows too."""
        refuse_clusters(
            self, clusters, "give it one row of each cluster, or test batches by AggregatedTest, which takes them"
        )
        targets, predictions = as_problem(y_true, y_pred, Classes(labels, pos_label), in_parts=True)
        bets = self._bets(predictions)
        history = self.history or History.fresh(bets, self.window, self.n)
        state = replace(self, bets=bets, wealth=self.wealth or Wealth.fresh(bets.shares), history=history)
        step, y = max(1, CELLS // len(bets.shares)), to_numpy(targets)
        for start in range(0, len(predictions), step):
            rows = slice(start, start + step)
            state = state._after(y[rows], predictions[rows])
        return state

    def _bets(self, predictions: Distribution) -> Bets:
        """Those of these predictions, which must be those of the rows before."""
        found = bets_on(predictions, self.seed)
        if self.bets is not None and found != self.bets:
            raise InputError(
                f"y_pred must be like the rows before, {self.bets}; got {found}: watch these with a new monitor, from a state of "
                "their own"
            )
        return found

    def _after(self, targets: np.ndarray, predictions: Distribution) -> Self:
        assert self.bets is not None
        assert self.wealth is not None
        assert self.history is not None
        ratios = self.bets.log_ratios(targets, predictions, self.wealth.n)
        steps = self.wealth.after(ratios)
        alarm, enough = self.alarm, -np.log(self.alpha)
        if alarm is None and (reached := steps.log_evalues >= enough).any():
            alarm = self._alarm(steps.upto(int(np.argmax(reached))))
        peak = max(self.peak, float(steps.log_evalues.max()))
        history = self.history.after(targets, predictions, steps.log_evalues)
        return replace(self, wealth=steps.upto(len(targets) - 1), peak=peak, alarm=alarm, history=history)

    def _alarm(self, wealth: Wealth) -> Alarm:
        assert self.bets is not None
        bets = self.bets.bets()
        defect = bets[wealth.best].defect
        says_so = wealth.leads & np.array([bet.defect == defect for bet in bets])
        # Where several that say so have won without end, the last to begin dates it best.
        return Alarm(wealth.n, int(wealth.begun[says_so].max()), self.bets.words(defect), defect)

    @property
    def n(self) -> int:
        """Rows so far."""
        return 0 if self.wealth is None else self.wealth.n

    @property
    def log_evalue(self) -> float:
        """The logarithm of the e-value after the last row."""
        return 0.0 if self.wealth is None else self.wealth.log_evalue

    @property
    def pvalue(self) -> float:
        """Valid at any time: 1 over the largest e-value so far."""
        return float(np.exp(-self.peak))

    @property
    def leaning(self) -> Alarm | None:
        """What the strongest bet says now, whether or not it suffices for an alarm; ``None`` before the first row."""
        return None if self.wealth is None else self._alarm(self.wealth)

    def restart(self) -> Self:
        """A fresh monitor with the same settings, as after a new model was put in place."""
        return replace(self, bets=None, wealth=None, peak=0.0, alarm=None, history=None)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, from which :meth:`from_dict` goes on."""
        wealth = None
        if self.wealth is not None:
            wealth = {
                "n": self.wealth.n,
                "stakes": [*map(repr, self.wealth.stakes.tolist())],  # may be infinite, which JSON has no word for
                "won": [*map(repr, self.wealth.won.tolist())],
                "begun": self.wealth.begun.tolist(),
            }
        return {
            "schema": SCHEMA,
            "kind": "monitor",
            "alpha": self.alpha,
            "seed": self.seed,
            "n": self.n,
            "log_evalue": self.log_evalue if np.isfinite(self.log_evalue) else repr(self.log_evalue),
            "pvalue": self.pvalue,
            "peak": repr(self.peak),
            "alarm": None if self.alarm is None else asdict(self.alarm),
            "bets": None if self.bets is None else {"kind": self.bets.kind, **asdict(self.bets)},  # type: ignore[call-overload]
            "wealth": wealth,
            "window": self.window,
            "history": None if self.history is None else self.history.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The monitor of :meth:`to_dict`; data that no monitor gave are refused."""
        saved = SavedState(data, "state")
        if saved.data.get("kind") != "monitor":
            raise InputError(f"data must be what Monitor.to_dict gave; got kind {str(saved.data.get('kind'))[:40]!r}")
        if (schema := saved.data.get("schema", SCHEMA)) != SCHEMA:
            raise InputError(
                f"the state has the format {str(schema)[:40]!r}; this version of calibrant reads {SCHEMA!r}"
            )
        fresh = cls(saved.number("alpha"), saved.whole("seed"), window=_window(saved))
        on, put, seen = saved.part("bets"), saved.part("wealth"), saved.part("alarm")
        if on is None or put is None:
            return fresh
        n, stakes, won = put.whole("n"), put.numbers("stakes"), put.numbers("won")
        bets = _kept_bets(on, len(stakes))
        begun = put.wholes("begun", 1, n + 1)
        if not (won >= 0).all():
            raise put.refusal("won", "numbers of at least 0", won.tolist())
        if not (peak := saved.number("peak")) >= 0:
            raise saved.refusal("peak", "a number of at least 0", peak)
        if not len(bets.shares) == len(stakes) == len(won) == len(begun):
            raise put.refusal("stakes", f"{len(bets.shares)} numbers, as won and begun", stakes.tolist())
        kept = saved.part("history") if "history" in data else None  # states of before there were histories have none
        return replace(
            fresh,
            bets=bets,
            wealth=Wealth(bets.shares, n, stakes, won, begun),
            peak=peak,
            alarm=None if seen is None else _kept_alarm(seen, bets, n),
            history=None if kept is None else History.from_saved(kept, bets, n),
        )

    def _lines(self) -> list[tuple[str, str]]:
        words = "none" if self.alarm is None else str(self.alarm)
        return [
            ("p-value", number(self.pvalue)),
            ("alarm", words),
            ("e-value", f"{np.exp(min(self.log_evalue, 700.0)):.3g}"),
            ("n", f"{self.n:,}"),
        ]


def _window(saved: SavedState) -> int:
    """States of before windows were kept had the usual ones."""
    return saved.whole("window", least=1) if "window" in saved.data else 1000


def _kept_bets(saved: SavedState, n_bets: int) -> Bets:
    """The bets of a state, of which so many have stakes."""
    kind = saved.text("kind", *KINDS)
    if kind == PITBets.kind:
        given = saved.numbers("given")
        if len(given) and not (np.diff([0.0, *given, 1.0]) > 0).all():
            raise saved.refusal("given", "levels between 0 and 1 that grow", given.tolist())
        return PITBets(saved.whole("d", most=n_bets), saved.whole("seed"), tuple(given.tolist()))
    if kind == EventBets.kind:
        return EventBets()
    names = saved.list("names")
    if not 0 < len(names) <= n_bets or not all(isinstance(name, str) for name in names):
        raise saved.refusal("names", f"1 to {n_bets} texts", names)
    return KINDS[kind](tuple(names))


def _kept_alarm(saved: SavedState, bets: Bets, n: int) -> Alarm:
    """The alarm of a state; those of before alarms had a defect kept the words of a bet alone."""
    row, words, defects = saved.whole("row", 1, n), saved.text("words"), [bet.defect for bet in bets.bets()]
    kept = saved.part("defect") if "defect" in saved.data else None
    found = [d for d in defects if (bets.words(d) == words if kept is None else asdict(d) == dict(kept.data))]
    if not found:
        raise saved.refusal("defect", "what a bet says", words)
    return Alarm(row, saved.whole("since", 1, row), words, found[0])


def bets_on(predictions: Distribution, seed: int) -> Bets:
    """The bets that fit these predictions."""
    if isinstance(predictions, Bernoulli):
        return LabelBets(tuple(predictions.label_names))
    if isinstance(predictions, Categorical):
        return EventBets() if predictions.n_classes == 2 else ClassBets(tuple(predictions.class_names))
    fan = fan_of(predictions)
    return PITBets(dimensions(predictions), seed, () if fan is None else tuple(fan.levels.tolist()))
