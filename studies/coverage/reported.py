"""Statements that curves, histograms and reports make, and whether they hold of one data set."""

from collections.abc import Sequence

import numpy as np

from calibrant import Categorical, EqualMass, PairedDifference, ReliabilityCurve, coverage
from calibrant.estimators import IsotonicCurve
from calibrant.inference import PITCurve, PITHistogram
from calibrant.results import Table
from studies.coverage.claims import holds
from studies.coverage.worlds import DataSet

N_RESAMPLES = 199
"""Resamples of a report in the study."""


def _one_place(table: Table, truth: np.ndarray, seed: int) -> Sequence[float]:
    """Whether the band holds the truth at a place taken at random: bands hold at every place by itself."""
    place = int(np.random.default_rng(seed).integers(table.n_rows))
    return [float(holds(table["low"], truth, table["high"])[place])]


def consistency_band(data: DataSet, seed: int) -> Sequence[float]:
    """The band around what was predicted holds what was observed."""
    curve = ReliabilityCurve(EqualMass(10), n_resamples=N_RESAMPLES)
    table = curve(data.targets, data.predictions, sample_weight=data.weights, rng=seed)
    return _one_place(table, table["observed"], seed)


def band_of_bins(data: DataSet, seed: int) -> Sequence[float]:
    """The band around what was observed holds the mean true frequency of the rows in a bin."""
    curve = ReliabilityCurve(EqualMass(10), band="confidence")
    table = curve(data.targets, data.predictions, sample_weight=data.weights)
    score, true = _scores(data)
    w = np.ones(len(score)) if data.weights is None else data.weights
    inside = (score[:, None] <= table["upper"]) & ((score[:, None] > table["lower"]) | (table["lower"] == 0))
    mean = (w * true) @ inside / np.maximum(w @ inside, np.finfo(float).tiny)
    return _one_place(table, mean, seed)


def band_of_isotonic_curve(data: DataSet, seed: int) -> Sequence[float]:
    """The band around the isotonic curve holds the truth itself."""
    curve = ReliabilityCurve(curve=IsotonicCurve(), band="confidence")
    table = curve(data.targets, data.predictions, sample_weight=data.weights)
    score, true = _scores(data)
    order = np.argsort(score, kind="stable")
    places = np.minimum(np.searchsorted(score[order], table["predicted"]), len(order) - 1)
    return _one_place(table, true[order][places], seed)


def _scores(data: DataSet) -> tuple[np.ndarray, np.ndarray]:
    """Predicted and true probabilities of the second of two classes."""
    assert isinstance(data.predictions, Categorical)
    assert isinstance(data.truth, Categorical)
    return tuple(np.asarray(x.probability(1), dtype=np.float64) for x in (data.predictions, data.truth))  # type: ignore[return-value]


def pit_bands(data: DataSet, seed: int) -> Sequence[float]:
    """The bands of the histogram and of the curve of PIT values hold everywhere at once."""
    tables = [
        PITHistogram(seed=seed)(data.targets, data.predictions),
        PITCurve(seed=seed)(data.targets, data.predictions),
    ]
    return [float(np.all(holds(table["low"], table["observed"], table["high"]))) for table in tables]


def share_inside(data: DataSet, seed: int) -> Sequence[float]:  # noqa: ARG001
    """The interval of the share of targets in central 80 % intervals holds what is expected."""
    table = coverage(data.targets, data.predictions, levels=[0.8])
    return [float(holds(table["low"], table["expected"], table["high"])[0])]


def paired(difference: PairedDifference, data: DataSet, seed: int) -> Sequence[float]:
    """Two models that are equally good: each sees its own half of what there is to know, so that no difference is true.

    NaN where the difference is withheld.
    """
    assert isinstance(data.predictions, Categorical)
    p = np.asarray(data.predictions.probability(1), dtype=np.float64)
    noise = np.random.default_rng(seed).choice([-1.0, 1.0], len(p)) * 0.3 * p * (1 - p)
    found = difference(data.targets, p + noise, p - noise, rng=seed)
    if found.withheld is not None:
        return [np.nan, np.nan]
    return [float(found.pvalue > 0.05), float(holds(np.array(found.interval.low), 0.0, np.array(found.interval.high)))]


def verdict(data: DataSet, seed: int) -> Sequence[float]:
    """No alarm; no slice flagged."""
    from calibrant.reports.evaluation import planned

    rng = np.random.default_rng(seed)
    by = {"site": rng.choice(list("abcd"), len(data.predictions))}
    _, outline = planned(data.targets, data.predictions, by, data.weights, N_RESAMPLES, seed, None)
    evidence = outline.gather[1]()
    numbers = [make(evidence) for _, make in outline.numbers]
    alarm = outline.judge(evidence, numbers).is_alarm
    rows = getattr(evidence, "pit", evidence)  # of forecasts, slices are those of PIT values
    adjusted = rows.pool.adjusted(rows.slices) if rows.slices else np.array([])
    return [float(not alarm), float(adjusted.min() > 0.05) if len(adjusted) else np.nan]
