"""Which estimator and which recalibrator, by the number of rows: the tables of ``docs/choose.md``.

``python benchmarks/choose.py`` draws data sets from worlds with known truth: how far errors are from it, and what recalibrators
change of the log loss of new rows.
"""

import numpy as np

from calibrant import ECE, DebiasedECE, EqualMass, EqualWidth, LogLoss, SmoothECE, Sweep, TopLabel, Variational, io
from calibrant.estimators import Lp
from calibrant.lab import (
    GLM,
    BetaScores,
    Diagonal,
    ScoreWorld,
    Tempered,
    TwiceTempered,
    World,
    bias_study,
    fit_world,
    tce,
)
from calibrant.recalibration import (
    BetaScaling,
    Default,
    DirichletScaling,
    Isotonic,
    Platt,
    Recalibrator,
    SplineScaling,
    StructuredMatrix,
    Temperature,
)

SIZES = (100, 300, 1_000, 3_000)
N_TEST = 20_000

ESTIMATORS = {
    "ECE(EqualWidth(15))": ECE(EqualWidth(15)),
    "ECE(EqualMass(15))": ECE(EqualMass(15)),
    "ECE(Sweep())": ECE(Sweep()),
    "DebiasedECE(norm=1)": DebiasedECE(EqualMass(15), norm=1),
    "SmoothECE()": SmoothECE(),
    "Variational(Lp(1))": Variational(Lp(1)),
}

TWO_CLASSES = (Temperature(), Platt(), BetaScaling(), SplineScaling(), Default(), Isotonic(smoothed=True), Isotonic())
SEVERAL_CLASSES = (Temperature(), StructuredMatrix(diagonal=True), StructuredMatrix(), DirichletScaling(), Default())


def print_errors(n_sets: int = 100) -> None:
    """Bias and root mean squared error of estimators of two classes, in percentage points of the L1 error."""
    digits = io.read(io.example("digits"), y_true="digit", y_pred="p_*")
    like_digits = fit_world(digits.y_true, digits.y_pred, lens=TopLabel())
    worlds = {
        "like the digits": like_digits,
        "calibrated": ScoreWorld(BetaScores(1.0, 1.0), Diagonal()),
    }
    for name, world in worlds.items():
        truth = tce(world, norm=1)
        print(f"\n{name}: the truth is {100 * truth:.2f} points\n")
        print(f"| estimator | {' | '.join(f'n = {n:,}' for n in SIZES)} |\n|{'---|' * (len(SIZES) + 1)}")
        table = bias_study(world, ESTIMATORS, SIZES, n_sets)
        for estimator in ESTIMATORS:
            rows = [row for row in table.rows() if row["estimator"] == estimator]
            bias = [row["mean"] - truth for row in rows]
            cells = [f"{100 * b:+.1f} ({100 * np.hypot(b, r['sd']):.1f})" for b, r in zip(bias, rows, strict=True)]
            print(f"| `{estimator}` | {' | '.join(cells)} |")


def change(world: World, recalibrator: Recalibrator, n: int, seed: int) -> float:
    """What learning from n rows changes of the log loss of new rows, in thousandths."""
    rng = np.random.default_rng(seed)
    y, p = world.draw(n, rng)
    new_y, new_p = world.draw(N_TEST, np.random.default_rng(1_000_000 + seed))
    better = recalibrator.fit(y, p, folds=0)(new_p)
    return 1_000 * (LogLoss()(new_y, better).value - LogLoss()(new_y, new_p).value)


def print_recalibrators(n_sets: int = 20) -> None:
    """What recalibrators change of the log loss of new rows, in thousandths."""
    bent = ScoreWorld(BetaScores(1.0, 1.0), GLM("logit", "log", 1.0, 1.6))
    worlds = {
        "two classes, one temperature is right": (Tempered(2, temperature=2.0), TWO_CLASSES),
        "two classes, a bent curve": (bent, TWO_CLASSES),
        "four classes, near the faces of the simplex": (TwiceTempered(n_classes=4), SEVERAL_CLASSES),
    }
    for name, (world, recalibrators) in worlds.items():
        print(f"\n{name}\n")
        print(f"| recalibrator | {' | '.join(f'n = {n:,}' for n in SIZES)} |\n|{'---|' * (len(SIZES) + 1)}")
        for recalibrator in recalibrators:
            changes = [[change(world, recalibrator, n, seed) for seed in range(n_sets)] for n in SIZES]
            cells = [
                f"{np.mean(c):+.0f} ± {np.std(c) / n_sets**0.5:.0f}" if np.all(np.isfinite(c)) else "∞" for c in changes
            ]
            print(f"| `{recalibrator}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    print_errors()
    print_recalibrators()
