"""What variational errors cost, against warm-started boosting and against one isotonic fit.

Run ``OMP_NUM_THREADS=1 python benchmarks/variational.py``. Everything runs in one process and is counted in CPU seconds, so
that threads gain nothing. Boosting needs the package of Berta et al. (2026), see ``boosting.py``, and isotonic regression
is also compared with scikit-learn's; what is not installed is left out, and said so. Boosting of a hundred classes takes
a quarter of an hour: one of its five folds is fitted, and counted five times.
"""

from functools import partial
from importlib.util import find_spec
from time import process_time

import numpy as np
from boosting import IS_INSTALLED, Boosting
from harness import best, classes

from calibrant import Categorical, Variational
from calibrant.estimators import Lp
from calibrant.recalibration import Isotonic

ROWS = 10_000
TARGETS = {2: 25, 10: 5, 100: 50}
"""How many times cheaper than boosting it is meant to be, by the number of classes."""

MAX_FITS = 10
"""Isotonic fits that an estimate of a million rows may cost."""


def overconfident(k: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Predictions that are too sure, and labels; of two classes, one column."""
    y, p = classes(k, n)
    both = np.stack([1 - p, p], axis=1) if k == 2 else p
    sharp = both**2 / (both**2).sum(axis=1, keepdims=True)
    return y, sharp[:, 1] if k == 2 else sharp


def one_fold(y: np.ndarray, p: np.ndarray) -> np.ndarray:
    """What boosting does for one of five folds."""
    cut = len(y) // 5
    return Boosting().find(y[cut:], Categorical(p[cut:]), None).map(p[:cut])


def against_boosting() -> None:
    print(f"(a) n={ROWS:,}, CPU seconds")
    print(f"{'classes':>8} {'ours':>9} {'boosting':>9} {'ratio':>7} {'meant':>6}   values (hard sign)")
    for k, target in TARGETS.items():
        y, p = overconfident(k, ROWS)
        loss = Lp(1 if k == 2 else 2)
        ours, _ = best(partial(Variational(loss), y, p), 3, clock=process_time)
        line = f"{k:>8} {ours:>9.3f}"
        if not IS_INSTALLED:
            print(f"{line} {'skipped: probmetrics and catboost are not installed':>50}")
        elif k < 100:
            theirs, found = best(partial(Variational(loss, Boosting()), y, p), 1, warm=k == 2, clock=process_time)
            value = float(Variational(loss, sign="hard")(y, p))
            print(f"{line} {theirs:>9.2f} {theirs / ours:>7.1f} {target:>6}   {value:.4f}, {float(found):.4f}")
        else:
            theirs = 5 * best(partial(one_fold, y, p), 1, warm=False, clock=process_time)[0]
            print(f"{line} {theirs:>9.2f} {theirs / ours:>7.1f} {target:>6}")


def against_isotonic(n: int = 1_000_000) -> None:
    y, p = overconfident(2, n)
    ours, _ = best(partial(Variational(Lp(1)), y, p), 2, clock=process_time)
    print(f"(b) n={n:,}, two classes: {ours:.2f} s; meant to be below {MAX_FITS} isotonic fits")
    fit, _ = best(partial(Isotonic().fit, y, p, folds=0), 2, clock=process_time)
    print(f"    Isotonic().fit(folds=0): {fit:.3f} s, {ours / fit:.1f} fits")
    if find_spec("sklearn") is None:
        print("    scikit-learn is not installed: its isotonic regression is skipped")
        return
    from sklearn.isotonic import IsotonicRegression

    theirs, _ = best(partial(IsotonicRegression(out_of_bounds="clip").fit, p, y), 2, clock=process_time)
    print(f"    scikit-learn's IsotonicRegression: {theirs:.3f} s, {ours / theirs:.1f} fits")


if __name__ == "__main__":
    against_isotonic()
    against_boosting()
