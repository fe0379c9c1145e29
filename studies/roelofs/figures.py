"""Other figures and tables of Roelofs, Cain, Shlens & Mozer (2022), as tables. Errors are in points (hundredths), p = 2.

The paper prints no numbers for figures 6 to 8: what can be checked are its statements about them.
"""

import itertools
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from scipy.optimize import brentq

from calibrant._validate import InputError, did_you_mean
from calibrant.estimators import DensityECE
from calibrant.inference import interval_of_share
from calibrant.lab import BetaScores, Diagonal, LogisticCurve, Power, ScoreWorld, fit_curves, tce
from calibrant.results import Table
from calibrant.typing import Engine
from studies.roelofs.batches import Batch, simulate
from studies.roelofs.fits import FITS, Fit, errors

DEFAULTS = ("EW", "EM", "EM debiased", "EW sweep", "EM sweep")
BINS = 15
"""Of the methods that do not choose it."""

SCORES = (BetaScores(), BetaScores(1.1, 0.1))
DEGREES = (1.0, 1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)

TABLE_3 = """This table cannot be reproduced. The paper does not say how many rows its simulated data sets have. Of 162 settings
(nine numbers of rows from 100 to 25,000, and fixed bins of equal width or mass, both sweeps and the debiased error) none
gives the printed column: the nearest (20 bins of equal width, 5,000 rows) misses one network by 1.1 points, and the paper's
own 15 bins of equal width by 1.5 at best (1,600 rows). At the size of the real data sets these miss by up to 1.8. As the same
fits give figures 4 and 9 to 14 to the digits of their simulation, it is this column that has another origin, not the fits."""

SIMULATED_ECE = (8.42, 8.79, 8.44, 8.09, 18.87, 15.78, 17.53, 19.69, 9.26, 6.87)
"""Means of simulated errors as printed in table 3, in the order of the fits."""


def figure_1(n_sets: int = 100_000, *, seed: int = 0, engine: Engine | None = None) -> Table:
    """What fifteen bins of equal width find in 200 rows of a calibrated model: shares of data sets by their error.

    The paper has a million data sets, and its scores are those of a ResNet-110 on CIFAR-10.

    >>> bool(figure_1(300)["share"][0] < 0.05)  # below one point
    True
    """
    cells = [(ScoreWorld(BetaScores(2.8, 0.05), Diagonal()), 200)]
    ((_, found),) = simulate(partial(_errors, ("EW",)), cells, n_sets, seed=seed, engine=engine)
    edges = np.arange(0.0, 11.0)
    shares = np.histogram(np.minimum(found[0], edges[-1]), edges)[0] / n_sets
    names = [f"{a:.0f} to {b:.0f} points" for a, b in itertools.pairwise(edges)]
    names[-1] = f"{edges[-2]:.0f} points and more"
    return Table(error=[*names, "mean"], middle=[*(edges[:-1] + 0.5), found.mean()], share=[*shares, np.nan])


def figure_15(
    n_sets: int = 1000,
    *,
    sizes: Sequence[int] = (200, 800, 3200),
    bins: Sequence[int] = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64),
    seed: int = 0,
    engine: Engine | None = None,
) -> Table:
    """Mean error with so many bins of equal mass, over uniform scores, and how many bins the sweep takes on average.

    >>> table = figure_15(40, sizes=[200], bins=[4, 64])
    >>> table["model"].tolist(), bool(table["mean"][2] < table["mean"][3])
    (['uncalibrated', 'uncalibrated', 'calibrated', 'calibrated'], True)
    """
    worlds = {"uncalibrated": LogisticCurve(), "calibrated": Diagonal()}
    keys = [(name, n) for name in worlds for n in sizes]
    cells = [(ScoreWorld(BetaScores(), worlds[name]), n) for name, n in keys]
    found = dict(simulate(partial(_by_bins, tuple(bins)), cells, n_sets, seed=seed, engine=engine))
    rows = []
    for i, ((name, n), (world, _)) in enumerate(zip(keys, cells, strict=True)):
        means = found[i].mean(axis=1)
        about = {"model": name, "n": n, "tce": 100 * tce(world), "chosen": means[-1]}
        rows += [{**about, "bins": b, "mean": mean} for b, mean in zip(bins, means[:-1], strict=True)]
    return Table({key: [row[key] for row in rows] for key in rows[0]})


def _by_bins(bins: tuple[int, ...], batch: Batch) -> list[np.ndarray]:
    """Errors in points with so many bins of equal mass, then the number that the sweep takes."""
    return [*(100 * batch.plug_in("mass", b) for b in bins), batch.sweep("mass")[1].astype(float)]


def figure_6(
    n_sets: int = 1000,
    *,
    fits: Sequence[str] = tuple(FITS),
    sizes: Sequence[int] = (200, 800, 3200, 12800),
    seed: int = 0,
    engine: Engine | None = None,
) -> Table:
    """Bias of every method with its default bins against the number of rows, on the fits to ten networks.

    >>> table = figure_6(50, fits=["resnet110_c10"], sizes=[3200])
    >>> biases = dict(zip(table["method"].tolist(), table["bias"].tolist()))
    >>> abs(biases["EM sweep"]) < 0.5, biases["EW"] < -1.5
    (True, True)
    """
    keys = [(name, n) for name in fits for n in sizes]
    cells = [(_fit(name).world(), n) for name, n in keys]
    results = simulate(partial(_errors, DEFAULTS), cells, n_sets, seed=seed, engine=engine)
    return _biases([{"fit": name, "n": n} for name, n in keys], cells, DEFAULTS, dict(results))


def figure_6_kde(
    n_sets: int = 100,
    *,
    fits: Sequence[str] = tuple(FITS),
    sizes: Sequence[int] = (200, 800, 3200, 12800),
    seed: int = 0,
    engine: Engine | None = None,
) -> Table:
    """The line of the kernel density estimate of Zhang, Kailkhura & Han (2020), one data set after the other.

    >>> table = figure_6_kde(4, fits=["resnet110_c10"], sizes=[200])
    >>> table["method"].tolist(), table.n_rows
    (['KDE'], 1)
    """
    keys = [(name, n) for name in fits for n in sizes]
    cells = [(_fit(name).world(), n) for name, n in keys]
    results = simulate(_density_errors, cells, n_sets, seed=seed, engine=engine)
    return _biases([{"fit": name, "n": n} for name, n in keys], cells, ("KDE",), dict(results))


def _density_errors(batch: Batch) -> list[np.ndarray]:
    hits, estimator = np.diff(batch.observed, axis=1), DensityECE(2)
    return [np.array([100 * float(estimator(y, s)) for y, s in zip(hits, batch.scores, strict=True)])]


def figure_7(
    n_sets: int = 1000,
    *,
    degrees: Sequence[float] = DEGREES,
    sizes: Sequence[int] = (200, 5000),
    seed: int = 0,
    engine: Engine | None = None,
) -> Table:
    """Mean error found by EW and by the EM sweep against the true error, where the truth is a power of the score.

    Scores are uniform, or beta-distributed with 1.1 and 0.1. At degree 1 the model is calibrated.

    >>> table = figure_7(20, degrees=[1.0, 10.0], sizes=[200])
    >>> table.n_rows, bool(table["bias"][0] > table["bias"][2])
    (8, True)
    """
    methods = ("EW", "EM sweep")
    keys = [(scores, n, d) for scores in SCORES for n in sizes for d in degrees]
    cells = [(ScoreWorld(scores, Power(d)), n) for scores, n, d in keys]
    results = simulate(partial(_errors, methods), cells, n_sets, seed=seed, engine=engine)
    named = [{"alpha": scores.alpha, "beta": scores.beta, "n": n, "degree": d} for scores, n, d in keys]
    return _biases(named, cells, methods, dict(results))


def figure_8(
    n_sets: int = 1000,
    *,
    true_errors: Sequence[float] = (2.0, 4.0, 6.0, 8.0, 10.0, 12.0),
    sizes: Sequence[int] = (200, 500, 1000, 2000, 5000, 10000),
    seed: int = 0,
    engine: Engine | None = None,
) -> Table:
    """How often miscalibration is missed (type II) by tests that reject 5 % of calibrated models (type I).

    Scores are uniform and the truth is a power of them. A method rejects where its error exceeds the 95 % quantile of
    what it finds in as many data sets of the calibrated model. ``low`` and ``high`` are the 95 % limits of the share.

    >>> figure_8(50, true_errors=[10.0], sizes=[1000])["missed"].max() < 0.1
    np.True_
    """
    worlds = [ScoreWorld(BetaScores(), Power(d)) for d in (1.0, *map(degree_of, true_errors))]
    cells = [(world, n) for n in sizes for world in worlds]
    methods = ("EW", "EM", "EM debiased", "EM sweep")
    found = dict(simulate(partial(_errors, methods), cells, n_sets, seed=seed, engine=engine))
    rows = []
    for i, (world, n) in enumerate(cells):
        if world.is_calibrated:
            limits = np.quantile(found[i], 0.95, axis=1)
            continue
        for method, values, limit in zip(methods, found[i], limits, strict=True):
            missed = int(np.sum(values <= limit))
            low, high = interval_of_share(missed, n_sets)
            share = missed / n_sets
            rows.append(
                {"n": n, "true_error": 100 * tce(world), "method": method, "missed": share, "low": low, "high": high}
            )
    return Table({key: [row[key] for row in rows] for key in rows[0]})


def degree_of(error: float) -> float:
    """The degree of the power whose true error over uniform scores is so many points.

    >>> round(degree_of(100 / 30**0.5), 6)
    2.0
    """
    most = 100 * _power_error(1e6)
    if not 0 < error < most:
        raise InputError(f"error must lie between 0 and {most:.1f} points; got {error!r}")
    return float(brentq(lambda d: 100 * _power_error(d) - error, 1.0, 1e6, xtol=1e-12))


def table_1() -> Table:
    """Parameters of all fits as printed, and their true errors in the norms 2 and 1.

    >>> round(table_1()["tce_2"][0], 4)
    np.float64(10.7087)
    """
    rows = [(*vars(fit).values(), *(100 * tce(fit.world(printed=True), p) for p in (2, 1))) for fit in FITS.values()]
    columns = ("fit", "alpha", "beta", "model", "b0", "b1", "tce_2", "tce_1")
    return Table(dict(zip(columns, zip(*rows, strict=True), strict=True)))


def table_2(fit: str = "resnet110_c10", n: int = 10_000, *, seed: int = 0) -> Table:
    """The twelve curves fitted to data that were simulated from a fit, best first by their AIC.

    >>> table_2("resnet152_imgnet")["model"][0]
    np.str_('logflip_logflip_b0_b1')
    """
    return fit_curves(*_fit(fit).world().draw(n, np.random.default_rng(seed)))


def table_3(n_sets: int = 100, *, seed: int = 0, engine: Engine | None = None) -> Table:
    """Mean EW error with 15 bins on data sets of the size of the real ones, beside the printed mean.

    The two do not agree, by up to 1.8 points, and cannot be made to: :data:`TABLE_3`.
    """
    cells = [(fit.world(), 25_000 if name.endswith("imgnet") else 10_000) for name, fit in FITS.items()]
    found = dict(simulate(partial(_errors, ("EW",)), cells, n_sets, seed=seed, engine=engine))
    return Table(
        fit=list(FITS),
        n=[n for _, n in cells],
        mean=[found[i].mean() for i in range(len(cells))],
        error=[found[i].std(ddof=1) / n_sets**0.5 for i in range(len(cells))],
        published=SIMULATED_ECE,
    )


def _fit(name: str) -> Fit:
    if name not in FITS:
        raise InputError(f"there is no fit {name!r}{did_you_mean(name, list(FITS))}")
    return FITS[name]


def _power_error(degree: float) -> float:
    """``(E (f - f^d)^2)^(1/2)`` over uniform scores."""
    return float(np.sqrt(max(1 / 3 - 2 / (degree + 2) + 1 / (2 * degree + 1), 0)))


def _errors(methods: Sequence[str], batch: Batch) -> list[np.ndarray]:
    return [errors(batch, method, BINS) for method in methods]


def _biases(
    keys: Sequence[Mapping[str, object]],
    cells: Sequence[tuple[ScoreWorld, int]],
    methods: Sequence[str],
    found: dict[int, np.ndarray],
) -> Table:
    """A row per cell and method: true error, mean, bias and its standard error, standard deviation."""
    rows = []
    for i, (key, (world, _)) in enumerate(zip(keys, cells, strict=True)):
        truth = 100 * tce(world)
        for method, values in zip(methods, found[i], strict=True):
            mean, sd = values.mean(), values.std(ddof=1)
            error = sd / len(values) ** 0.5
            rows.append(
                {**key, "method": method, "tce": truth, "mean": mean, "bias": mean - truth, "error": error, "sd": sd}
            )
    return Table({name: [row[name] for row in rows] for name in rows[0]})
