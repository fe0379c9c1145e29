"""What boosted trees add: log loss beyond that of the truth, in thousandths of a nat: ``python benchmarks/boosted.py [n]``.

Libraries that are not installed are left out.
"""

import sys
from importlib.util import find_spec
from time import perf_counter

import numpy as np
from scipy.special import softmax

from calibrant.recalibration import Boosted, Default, Quadratic, StructuredMatrix

WORLDS = {
    "calibrated": lambda p: p,
    "too sure": lambda p: softmax(0.4 * np.log(p), axis=1),
    "not sure enough": lambda p: softmax(2 * np.log(p), axis=1),
    "biased": lambda p: softmax(0.6 * np.log(p) + np.linspace(-0.5, 0.5, p.shape[1]), axis=1),
    "mixed up": lambda p: 0.7 * p + 0.3 * np.roll(p, 1, axis=1),
    "a jump": lambda p: np.where(p[:, :1] > p[:, 1:2], *(softmax(s * np.arange(p.shape[1])) for s in (-1, 1))),
}
SEEDS = {2: 3, 3: 2, 10: 1}
"""Data sets a number of classes: the fewer, the longer they take."""


def ways(k):
    last = Quadratic() if k == 2 else StructuredMatrix()
    found = {"Default": Default(), type(last).__name__: last}
    for library in ("sklearn", "lightgbm", "catboost"):
        if find_spec(library):
            found[library] = Boosted(library)
            found[f"{library}, paper's order"] = Boosted(library, first=None, last=last)
    return found


def excess(recalibrator, truth, k, n, seed):
    """Kullback-Leibler divergence from the truth on fresh rows, and seconds of the fit."""
    rng = np.random.default_rng(seed)
    p, fresh = (np.maximum(rng.dirichlet(np.full(k, 0.5), size), 1e-9) for size in (n, 20_000))
    p, fresh = (x / x.sum(axis=1, keepdims=True) for x in (p, fresh))
    y = (truth(p).cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    start = perf_counter()
    found = recalibrator.fit(y, p, folds=0)
    seconds = perf_counter() - start
    right, said = truth(fresh), found(fresh)
    return 1000 * (right * np.log(right / said)).sum(axis=1).mean(), seconds


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    for k, seeds in SEEDS.items():
        print(f"\n{n:,} rows of {k} classes\n\n| |", " | ".join(WORLDS), "| seconds |")
        print("|---|" + "---|" * (len(WORLDS) + 1))
        for name, recalibrator in ways(k).items():
            runs = [[excess(recalibrator, truth, k, n, seed) for seed in range(seeds)] for truth in WORLDS.values()]
            values, seconds = np.moveaxis(np.array(runs), 2, 0)
            cells = " | ".join(f"{value:.1f}" for value in values.mean(axis=1))
            print(f"| {name} | {cells} | {seconds.mean():.2f} |", flush=True)


if __name__ == "__main__":
    main()
