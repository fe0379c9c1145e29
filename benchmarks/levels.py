"""How often tests of calibration reject calibrated predictions at 5 %: worlds where laws for large n are far away.

``python benchmarks/levels.py`` prints the tests of the kernel matrix (some minutes), ``python benchmarks/levels.py cme``
the references of the test of the mean embedding, ``quantiles`` instead of ``cme`` a test whose expectations are approximate, and
``large`` the first with 1,000 rows. ``python benchmarks/levels.py 100`` draws fewer data sets.
"""

import sys
import warnings
from collections.abc import Callable
from itertools import product

import numpy as np

from calibrant import SKCE, AggregatedTest, Categorical, ExactTest, Normal
from calibrant._validate import InputError
from calibrant.distributions import Distribution, Logistic
from calibrant.estimators import SampledLocations
from calibrant.inference import (
    BlockTest,
    BootstrapTest,
    CMETest,
    GammaTest,
    HosmerLemeshow,
    SpectralTest,
    Spiegelhalter,
    WildBootstrapTest,
)
from calibrant.kernels import Exponential, Gaussian
from calibrant.results import Table
from calibrant.typing import HypothesisTest

World = Callable[[np.random.Generator, int], Distribution]

WORLDS: dict[str, World] = {
    "p ~ U(.001, .02)": lambda rng, n: Categorical(rng.uniform(0.001, 0.02, n)),
    "p ~ Beta(.5, .5)": lambda rng, n: Categorical(rng.beta(0.5, 0.5, n)),
    "p = .999": lambda _, n: Categorical(np.full(n, 0.999)),
    "ties, exact 0 and 1": lambda rng, n: Categorical(rng.choice([0.0, 0.1, 0.5, 1.0], n)),
    "3 classes": lambda rng, n: Categorical(rng.dirichlet(np.ones(3), n)),
    "10 classes": lambda rng, n: Categorical(rng.dirichlet(np.full(10, 0.5), n)),
    "one dominant class": lambda rng, n: Categorical(rng.dirichlet([50.0, 0.5, 0.2], n)),
}
"""Calibrated predictions, from a generator and a number of rows."""

TESTS: dict[str, HypothesisTest] = {
    "spectral": SpectralTest(),
    "gamma": GammaTest(),
    "wild": WildBootstrapTest(n_resamples=99),
    "bootstrap": BootstrapTest(n_resamples=99),
    "block": BlockTest(),
    "exact": ExactTest(SKCE(), 99),
    "aggregated": AggregatedTest(n_resamples=99),
}
ONE_EVENT: dict[str, HypothesisTest] = {
    "Hosmer-Lemeshow": HosmerLemeshow(),
    "Spiegelhalter": Spiegelhalter(),
}


def rejected(test: HypothesisTest, world: World, n: int, sets: int) -> str:
    """The share of data sets that the test rejects at 5 %; those it refuses to judge count as not rejected."""
    rng, count, refused = np.random.default_rng(1), 0, 0
    for i in range(sets):
        predictions = world(rng, n)
        try:
            count += test(predictions.sample(rng, 1)[0], predictions, rng=i).pvalue <= 0.05
        except InputError:
            refused += 1
    return "refused" if refused > sets / 2 else f"{count / sets:.3f}"


def kernel_tests(sets: int, sizes: tuple[int, ...]) -> Table:
    """Every test in every world."""
    rows = []
    for n, (name, world) in product(sizes, WORLDS.items()):
        predictions = world(np.random.default_rng(0), 2)
        tests = TESTS | (ONE_EVENT if isinstance(predictions, Categorical) and predictions.n_classes == 2 else {})
        found = {key: rejected(test, world, n, sets) for key, test in tests.items()}
        rows.append({"n": n, "world": name, **{key: found.get(key, "") for key in (*TESTS, *ONE_EVENT)}})
        print(rows[-1], flush=True)
    return Table({key: [row[key] for row in rows] for key in rows[0]})


def logistic_by_quantiles(sets: int) -> str:
    """Logistic forecasts with a kernel of length scale 0.03 on targets, whose expectations are sums over 128 quantiles."""

    def world(rng: np.random.Generator, n: int) -> Distribution:
        return Logistic(rng.normal(size=n), 1.0)

    return rejected(GammaTest(SKCE(Exponential(1.0), Exponential(0.03))), world, 400, sets)


def embedding_tests(sets: int) -> Table:
    """Ten locations from the data; normal forecasts with a standard deviation of 0.1 around even means, unit length scales."""

    def world(rng: np.random.Generator, n: int) -> Distribution:
        return Normal(rng.random(n), 0.1)

    settings = (Exponential(1.0), Gaussian(1.0), SampledLocations(10))
    rows = []
    for reference in ("chi2", "F", "exact"):
        test = CMETest(*settings, reference=reference, n_resamples=39)
        few = {16: sets, 64: sets, 256: sets, 1024: sets if reference != "exact" else sets // 4}
        rows.append({"reference": reference, **{f"n = {n:,}": rejected(test, world, n, m) for n, m in few.items()}})
        print(rows[-1], flush=True)
    return Table({key: [row[key] for row in rows] for key in rows[0]})


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sets = next((int(argument) for argument in sys.argv[1:] if argument.isdigit()), 400)
    if "cme" in sys.argv:
        print(embedding_tests(sets).to_markdown())
    elif "quantiles" in sys.argv:
        print("gamma test of logistic forecasts by quantiles, n = 400:", logistic_by_quantiles(sets))
    else:
        print(kernel_tests(sets, (1000,) if "large" in sys.argv else (16, 100)).to_markdown())
