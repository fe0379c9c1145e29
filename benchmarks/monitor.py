"""Detection delay of the monitor against a fixed-window test at the same overall level, and rows a second.

    python benchmarks/monitor.py

Streams of 10,000 rows become miscalibrated at row 5,000. The monitor looks after every row. The fixed-window test is exact
(ECE, 15 equal-mass bins, 999 resamples) over windows of 1,000 rows, each at a tenth of the level: it can only see a defect
at the end of a window. Both raise a false alarm in at most 5 % of calibrated streams.
"""

from collections.abc import Callable

import numpy as np
from harness import best

from calibrant import ECE, EqualMass, ExactTest, Monitor

ROWS, CHANGE, WINDOW, STREAMS = 10_000, 5_000, 1_000, 100
ALPHA = 0.05

Defect = Callable[[np.ndarray], np.ndarray]


def odds(p: np.ndarray) -> np.ndarray:
    return np.log(p / (1 - p))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


DEFECTS: dict[str, Defect] = {
    "none": lambda p: p,
    "log odds up by 0.2": lambda p: sigmoid(odds(p) + 0.2),
    "log odds up by 0.5": lambda p: sigmoid(odds(p) + 0.5),
    "log odds up by 1": lambda p: sigmoid(odds(p) + 1),
    "over-confident, power 0.8": lambda p: sigmoid(0.8 * odds(p)),
    "over-confident, power 0.5": lambda p: sigmoid(0.5 * odds(p)),
    "wrong by 0.1 from 0.3 to 0.5": lambda p: np.where((p > 0.3) & (p < 0.5), p + 0.1, p),
}


def stream(defect: Defect, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = np.clip(rng.beta(1, 1, ROWS), 1e-6, 1 - 1e-6)
    true = np.where(np.arange(ROWS) < CHANGE, p, defect(p))
    return (rng.random(ROWS) < true) * 1, p


def by_monitor(y: np.ndarray, p: np.ndarray) -> int | None:
    alarm = Monitor(ALPHA).update(y, p).alarm
    return None if alarm is None else alarm.row


def by_windows(y: np.ndarray, p: np.ndarray) -> int | None:
    test = ExactTest(ECE(EqualMass(15)))
    level = ALPHA * WINDOW / ROWS
    for start in range(0, ROWS, WINDOW):
        rows = slice(start, start + WINDOW)
        if test(y[rows], p[rows], rng=start).pvalue <= level:
            return start + WINDOW
    return None


def summary(rows: list[int | None]) -> str:
    early = sum(row is not None and row <= CHANGE for row in rows)
    found = [row - CHANGE for row in rows if row is not None and row > CHANGE]
    late = len(rows) - early - len(found)
    median = np.median(found + [np.inf] * late)  # of all streams that were still watched when it began
    delay = f"{median:6,.0f}" if np.isfinite(median) else "     -"
    return f"{100 * early / len(rows):5.0f} % {100 * len(found) / len(rows):7.0f} % {delay}"


def main() -> None:
    """Print the tables."""
    print(f"{STREAMS} streams of {ROWS:,} rows, the defect from row {CHANGE:,} on")
    print(f"{'':30}{'monitor, every row':>25}{f'windows of {WINDOW:,}':>30}")
    print(f"{'defect':30}{'early':>7}{'found':>10}{'delay':>7}{'early':>13}{'found':>10}{'delay':>7}")
    for name, defect in DEFECTS.items():
        streams = [stream(defect, seed) for seed in range(STREAMS)]
        monitored, windowed = ([by(*rows) for rows in streams] for by in (by_monitor, by_windows))
        print(f"{name:30}{summary(monitored)}      {summary(windowed)}")
    y, p = stream(DEFECTS["none"], 0)
    seconds, _ = best(lambda: Monitor().update(y, p), 3)
    print(f"\n{ROWS / seconds:,.0f} rows a second, two classes")


if __name__ == "__main__":
    main()
