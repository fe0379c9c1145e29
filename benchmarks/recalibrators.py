"""Every recalibrator of several classes, before and after, on the outputs of two real networks.

Run ``python benchmarks/recalibrators.py [--data FOLDER] [--out docs/studies/recalibrators.md]``; a quarter of an hour of one core.
``--speed`` prints processor seconds of fits with five folds and held-out scores instead, beside a bounded search of scipy for one
temperature on the same likelihood, which makes no folds and no scores; a minute.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from scipy.optimize import minimize_scalar

from calibrant import ECE, SKCE, Brier, Categorical, EqualMass, ExactTest, LogLoss, TopLabel, Variational
from calibrant.cli.settings import RECALIBRATORS, parse_recalibrator
from calibrant.recalibration import SimplexRidge
from calibrant.results import Table, brief, number, percent

NETWORKS = {
    "wideresnet-16-4-cifar-10": "WideResNet-16-4 on CIFAR-10, 10 classes",
    "densenet-bc-100-cifar-100": "DenseNet-BC-100 on CIFAR-100, 100 classes",
}
THREE = "(Temperature(), StructuredMatrix(), SharedSpline())"
METHODS = (
    *("Default()", "Temperature()", "VectorScaling()", "MatrixScaling()", "StructuredMatrix()"),
    *(
        "StructuredMatrix(diagonal=True)",
        "DirichletScaling()",
        "SharedSpline()",
        "SimplexRidge()",
        "NadarayaWatson()",
        "PartitionWise()",
    ),
    *(f"Stack({THREE})", f"Best({THREE})", "Boosted('sklearn')"),
    *("OneVsRest(Platt())", "OneVsRest(Quadratic())", "OneVsRest(BetaScaling())", "OneVsRest(SplineScaling())"),
    *("OneVsRest(Isotonic())", "OneVsRest(Isotonic(smoothed=True))", "OneVsRest(VennAbers())"),
    *("OneVsRest(HistogramBinning())", "OneVsRest(ScalingBinning())"),
)
TOO_SLOW = {"densenet-bc-100-cifar-100": ("Boosted('sklearn')",)}
OF_NUMBERS = {"VarianceScaling", "QuantileRecalibration", "Dressing"}
SPLITS, RESAMPLES = 3, 199
UNCHANGED = "as they are"
ERROR = ExactTest(ECE(EqualMass(15), lens=TopLabel()), RESAMPLES)

TEXT = f"""# Recalibrators on real predictions

Each recalibrator is fitted on one half of 10,000 test images, and judged on the other; {SPLITS} random splits (seeds 0 to
{SPLITS - 1}), the same for all. Smaller is better.

* **log loss** and **Brier**: means over splits. **change** of the log loss: its mean over splits, ± the standard deviation
  between them. An infinite log loss has called something impossible that happened.
* **ECE**: of the confidence, `{brief(ERROR.estimator)}`, mean over splits; **if calibrated**:
  the mean ends of the band in which calibrated predictions, equal to these very ones, have it in 95 of 100 cases.
* **canonical**: `Variational(recalibrator=SimplexRidge())`, the L1 distance of all class probabilities from what
  happens, as far as held-out rows show it, and its 95 % lower bound, on the first split. It is at most the truth on
  average, and may be negative. **SKCE** in
  units of 0.0001 and its p-value from {RESAMPLES} resamples, on the first split; with 100 classes of random features in place
  of all pairs.
* **CPU s**: to fit once, on one core. **says worse**: in how many splits the fit itself said, from five folds of the rows it
  was given, that held-out log loss gets worse (`is_worse`); **is worse**: in how many splits it did on the other half.

`(…)` stands for `{THREE}`. `Boosted` takes over a minute a fit with 100 classes, and is left
out there. The networks' outputs are not part of this project; `python benchmarks/recalibrators.py --data FOLDER` wants them
there.

What it shows:

* No recalibrator makes log loss worse without saying so. Where it got worse on the other half, the fit's own five folds had
  warned, and no warning was wrong: one-vs-rest isotonic regression, whose zeros cost an infinite loss, and with 100 classes
  the two that put probabilities into bins.
* With 10 classes, maps in which classes borrow from each other (`StructuredMatrix`, which `Default` and `Best` choose here,
  and `DirichletScaling`) take away more than a third of the log loss and nine tenths of the canonical error, and the kernel test
  finds nothing left. One temperature mends the confidence, whose error lies inside its band, and little else: the canonical
  error of 0.07 and the test see what the error of the confidence does not.
* With 100 classes and 50 rows for each, few parameters win: a temperature is within 0.008 of the best, and everything that
  looks at one class at a time pays for it. `Default` stays with a
  temperature unless held-out rows say more, and is 0.002 better. The kernel test rejects them all: 5,000 rows of 100 classes
  are too few to put everything right. What is left is small, though: a canonical error of 0.29 before, of 0.01 to 0.04
  after the maps with
  the least log loss.

`Default` takes a temperature, and something else only where held-out rows gain by more than two standard errors:
[what that costs and gains](default.md) on tasks of a few dozen to some thousand rows, and in worlds with known truth."""


@dataclass(frozen=True)
class Trial:
    """One method on one split."""

    losses: np.ndarray
    brier: float
    error: float
    band: tuple[float, float]
    seconds: float
    says_worse: bool
    deep: tuple[float, float, float, float] | None


def measured(y: np.ndarray, p: np.ndarray, *, seconds: float, says_worse: bool, deep: bool) -> Trial:
    found = ERROR(y, p, rng=0)
    band = found.null_band()
    numbers = None
    if deep:
        canonical, kernel = Variational(recalibrator=SimplexRidge())(y, p), ExactTest(SKCE(), RESAMPLES)(y, p, rng=0)
        numbers = (canonical.value, canonical.confidence_interval().low, kernel.statistic, kernel.pvalue)
    losses = LogLoss().losses(y, Categorical(p))
    return Trial(losses, Brier()(y, p).value, found.statistic, (band.low, band.high), seconds, says_worse, numbers)


def trial(method: str, y: np.ndarray, p: np.ndarray, split: int) -> Trial:
    order = np.random.default_rng(split).permutation(len(y))
    fit, rest = order[: len(y) // 2], order[len(y) // 2 :]
    if method == UNCHANGED:
        return measured(y[rest], p[rest], seconds=0.0, says_worse=False, deep=split == 0)
    recalibrator = parse_recalibrator(method)
    start = process_time()
    fitted = recalibrator.fit(y[fit], p[fit], folds=0)
    seconds = process_time() - start
    says_worse = recalibrator.fit(y[fit], p[fit]).is_worse
    return measured(y[rest], fitted(p[rest]), seconds=seconds, says_worse=says_worse, deep=split == 0)


def changes(trials: Sequence[Trial], unchanged: Sequence[Trial]) -> np.ndarray:
    """The change of the log loss in each split."""
    return np.array([a.losses.mean() - b.losses.mean() for a, b in zip(trials, unchanged, strict=True)])


def row(method: str, trials: Sequence[Trial], unchanged: Sequence[Trial]) -> dict[str, str]:
    change, deep = changes(trials, unchanged), trials[0].deep
    assert deep is not None
    is_plain = method == UNCHANGED
    finite = np.isfinite(change).all() and not is_plain
    low, high = np.mean([t.band for t in trials], axis=0)
    return {
        "method": f"{method}" if is_plain else f"`{method.replace(THREE, '(…)')}`",
        "log loss": number(np.mean([t.losses.mean() for t in trials])),
        "change": f"{change.mean():+.4f} ± {change.std(ddof=1):.4f}" if finite else "",
        "Brier": f"{np.mean([t.brier for t in trials]):.4f}",
        "ECE": percent(float(np.mean([t.error for t in trials]))),
        "if calibrated": f"{percent(low)} to {percent(high)}",
        "canonical": f"{deep[0]:.3f} (≥ {max(deep[1], 0):.3f})",
        "SKCE": f"{1e4 * deep[2]:.2f} (p = {deep[3]:.3f})",
        "CPU s": "" if is_plain else f"{np.mean([t.seconds for t in trials]):.2f}",
        "says worse": "" if is_plain else f"{sum(t.says_worse for t in trials)} of {len(trials)}",
        "is worse": "" if is_plain else f"{int((change > 0).sum())} of {len(trials)}",
    }


def surprises(all_trials: dict[str, list[Trial]]) -> list[str]:
    """Splits in which the log loss got worse though the fit had not said so."""
    unchanged, lines = all_trials[UNCHANGED], []
    for method, trials in all_trials.items():
        for split, (after, before) in enumerate(zip(trials, unchanged, strict=True)):
            change = after.losses - before.losses
            if change.mean() > 0 and not after.says_worse:
                error = change.std(ddof=1) / len(change) ** 0.5
                lines.append(f"* `{method}`, split {split}: {change.mean():+.5f} ± {error:.5f} (standard error)")
    return lines


def section(title: str, all_trials: dict[str, list[Trial]]) -> str:
    unchanged = all_trials[UNCHANGED]
    order = sorted(all_trials, key=lambda m: (np.mean([t.losses.mean() for t in all_trials[m]]), m))
    rows = [row(method, all_trials[method], unchanged) for method in order]
    table = Table({name: [one[name] for one in rows] for name in rows[0]}).to_markdown()
    worse = sum(int((changes(trials, unchanged) > 0).sum()) for trials in all_trials.values())
    found = surprises(all_trials)
    said = f"In {worse} of {SPLITS * (len(all_trials) - 1)} fits the other half got worse; "
    silent = "each of them said so." if not found else f"{worse - len(found)} of them said so, {len(found)} did not:"
    warned = sum(t.says_worse for trials in all_trials.values() for t in trials)
    false = warned - worse + len(found)
    in_vain = f"{false} of {warned} warnings were about fits that did not get worse. " if false else ""
    return "\n\n".join([f"## {title}", table, in_vain + said + silent, *(["\n".join(found)] if found else [])])


def run(path: Path) -> dict[str, list[Trial]]:
    with np.load(path) as archive:
        y, p = archive["ground_truth"], archive["predictions"].astype(np.float64)
    found = {}
    for method in (UNCHANGED, *(m for m in METHODS if m not in TOO_SLOW.get(path.stem, ()))):
        print(f"{path.stem}: {method}", file=sys.stderr)
        found[method] = [trial(method, y, p, split) for split in range(SPLITS)]
    return found


JOBS = (
    *(("Temperature()", 20_000), ("Default()", 5_000)),
    *((name, 50_000) for name in ("Temperature()", "VectorScaling()", "StructuredMatrix(diagonal=True)")),
    *((name, 50_000) for name in ("StructuredMatrix()", "Default()")),
)
"""Methods and rows, of 100 classes."""


def drawn(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Predictions whose logits are 1.7 times too large."""
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(n, k))
    truth, seen = (np.exp(a * logits) / np.exp(a * logits).sum(axis=1, keepdims=True) for a in (1.0, 1.7))
    return (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), seen


def searched(y: np.ndarray, p: np.ndarray) -> None:
    """One temperature by a bounded search."""
    logits = np.log(p)
    own = logits[np.arange(len(y)), y]

    def loss(log_temperature: float) -> float:
        z = logits / np.exp(log_temperature)
        top = z.max(axis=1)
        return float((top + np.log(np.exp(z - top[:, None]).sum(axis=1)) - own / np.exp(log_temperature)).mean())

    minimize_scalar(loss, bounds=(-7, 7), method="bounded")


def speed(device: str | None = None) -> str:
    """A table of processor seconds; of tensors on a device, of seconds by the clock beside the search on the host."""
    clock, rows = perf_counter if device else process_time, []
    for method, n in JOBS:
        y, p = drawn(n, 100)
        start = clock()
        searched(y, p)
        search = clock() - start
        if device:
            import torch

            y, p = (torch.from_numpy(a).to(device) for a in (y, p))
        recalibrator = parse_recalibrator(method)
        recalibrator.fit(y[:500], p[:500])
        start = clock()
        recalibrator.fit(y, p)
        if device:
            torch.empty(1, device=device).cpu()  # waits until all is done
        seconds = clock() - start
        rows.append((f"`{method}`", f"{n:,} x 100", f"{seconds:.2f}", f"{search:.2f}", f"{seconds / search:.1f}"))
    names = ("fit with five folds", "rows x classes", "s" if device else "CPU s", "scalar search", "ratio")
    return Table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))).to_markdown()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    root = Path(__file__).resolve().parents[1]
    parser.add_argument(
        "--data", type=Path, default=root.parent / "shared" / "data", help="folder of the networks' outputs"
    )
    parser.add_argument("--out", type=Path, help="where to write the page")
    parser.add_argument("--speed", action="store_true", help="processor seconds instead")
    parser.add_argument("--device", help="with --speed: where tensors are, such as cuda")
    asked = parser.parse_args()
    if asked.speed:
        print(speed(asked.device))
        return
    missing = [name for name in NETWORKS if not (asked.data / f"{name}.npz").exists()]
    if missing:
        print(f"there is no {missing[0]}.npz in {asked.data}: say where the networks' outputs are with --data")
        return
    left_out = [name for name in RECALIBRATORS if name not in OF_NUMBERS and name not in " ".join(METHODS)]
    assert not left_out, f"add {left_out} to METHODS"
    page = "\n\n".join([TEXT, *(section(title, run(asked.data / f"{name}.npz")) for name, title in NETWORKS.items())])
    print(page)
    if asked.out is not None:
        asked.out.write_text(page + "\n", "utf-8")


if __name__ == "__main__":
    main()
