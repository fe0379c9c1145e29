"""What a report on forecasts of numbers, counts and vectors says and shows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from calibrant._array import to_numpy
from calibrant._clusters import Clusters
from calibrant._validate import InputError
from calibrant.distributions.empirical.quantiles import Quantiles, central_levels, fan_of, in_percent
from calibrant.distributions.multivariate import dimensions
from calibrant.estimators.forecast_errors.quantile_cells import CellResamples, SharesBelow
from calibrant.estimators.scoring_rules.forecast_scores import CRPS, EnergyScore, Pinball
from calibrant.estimators.scoring_rules.proper_scores import LogLoss
from calibrant.inference.exact_tests.aggregated import Pool
from calibrant.inference.exact_tests.cluster_signs import Signs
from calibrant.inference.multiplicity import holm
from calibrant.inference.pit_bands import band_of_signs
from calibrant.inference.proportions import Band, equal_rows
from calibrant.planning.affordable import affordable
from calibrant.plots.comparisons.witness_plot import WitnessDisplay
from calibrant.plots.forecasting.coverage import CoverageDisplay
from calibrant.plots.forecasting.fan import FanDisplay
from calibrant.plots.forecasting.pit_histogram import PITCurveDisplay, PITHistogramDisplay
from calibrant.plots.forecasting.spread_plot import SpreadDisplay
from calibrant.reports.core.evidence import EACH, KeyMeasure, null_of, number_of, resamples
from calibrant.reports.core.model import KeyNumber, Outline, Picture, Section, Step
from calibrant.reports.core.problem import ReportProblem, Slicing, by_column, ranked, slicings_of, split_slicings
from calibrant.reports.forecast_report.forecast_problem import (
    CENTRAL,
    ForecastProblem,
    PITProblem,
    coordinate_pit,
    spread_of,
)
from calibrant.reports.forecast_report.forecast_verdict import (
    AUTOMATIC,
    ForecastEvidence,
    gather_forecasts,
    groups_of,
    judge_forecasts,
)
from calibrant.reports.notes import forecast_notes
from calibrant.results import Table, how_many, number, percent
from calibrant.typing import ArrayLike

COVERED = tuple(np.round(np.arange(0.05, 1.0, 0.05), 2).tolist())
"""Levels of the intervals whose coverage is drawn."""

MAP_WORK = 50_000_000
"""Resampled targets that a picture may cost."""


def forecast_pictures(problem: ForecastProblem) -> Sequence[tuple[Step, Callable[[ForecastEvidence], Picture]]]:
    """The pictures by the names of their steps."""
    is_vector, has_spread, fan = dimensions(problem.predictions) > 0, spread_of(problem) is not None, problem.fan
    has_intervals = not is_vector if fan is None else bool(central_levels(fan))
    found = [
        (Step("PIT values", 2.0), _pit, True),
        (Step("Level curve"), _level_curve, fan is None),
        (Step("Coverage"), _coverage, has_intervals),
        (Step("Fan"), _fan, has_intervals and (fan is None or 0.5 in fan.levels)),
        (Step("Spread"), _spread, has_spread),
        (Step("Witness", 10.0), _witness, has_spread and not is_vector and problem.can_resample),
    ]
    if problem.clusters is not None:  # of others no band is known that allows for them
        able = (_fan,) if problem.untested else (_pit, _level_curve, _coverage, _fan)
        return [(step, partial(_made, make, problem)) for step, make, is_shown in found if is_shown and make in able]
    steps = [(step, partial(_made, make, problem)) for step, make, is_shown in found if is_shown]
    return [*steps, (Step("Resampled errors"), partial(_null, problem))]


def _made(make: Callable[[ForecastProblem], Picture], problem: ForecastProblem, _evidence: ForecastEvidence) -> Picture:
    return make(problem)


def _pit(problem: ForecastProblem) -> Picture:
    return histogram_of(problem.pit)


def _coverage(problem: ForecastProblem) -> Picture:
    return coverage_of(problem.pit if problem.is_ensemble else problem)  # intervals of ensembles end between members


def histogram_of(pit: PITProblem) -> Picture:
    """The histogram of PIT values, with the band of even ones; of quantile forecasts, one bar per cell between their quantiles."""
    if (fan := fan_of(pit.predictions)) is not None:
        return _cells_of(pit, fan)
    tables = PITHistogramDisplay.from_predictions(pit.targets, pit.predictions, **_rows_of(pit)).tables
    table = tables["pit_histogram"]
    share = table["observed"]
    ends, middle = share[0] + share[-1], share[len(share) // 2 - 1 : len(share) // 2 + 1].sum()
    return Picture(
        "pit_histogram",
        "Where outcomes lie in their forecasts",
        "Each bar is the share of outcomes at that level of their forecast. A calibrated forecast has bars of one height, "
        "all within the band in nineteen of twenty data sets. High ends: the forecast is too sure. A hump: too timid. A "
        "slope: too low where it rises, too high where it falls.",
        f"Histogram of PIT values in {table.n_rows} bars, of which {int(_outside(table).sum())} leave the band: "
        f"{percent(ends)} of outcomes lie in the two outermost bars and {percent(middle)} in the two in the middle, where "
        f"{percent(2 / len(share))} are expected.",
        tables,
    )


def _rows_of(problem: ReportProblem) -> dict[str, Any]:
    """Weights and clusters of rows, as displays take them."""
    return {"sample_weight": problem.weights, "clusters": None if problem.clusters is None else problem.clusters.codes}


def _cells_of(pit: PITProblem, fan: Quantiles) -> Picture:
    table = cell_histogram(SharesBelow.of(fan, pit.weights)(to_numpy(pit.targets)[None])[0], fan.levels, pit)
    beyond = int(_outside(table).sum())
    ends = table["observed"][0] + table["observed"][-1]
    return Picture(
        "pit_histogram",
        "Between which quantiles outcomes lie",
        "Each bar is the share of outcomes between two neighbouring quantiles, over the share that was promised there: its width. "
        "A calibrated forecast has bars of height one, all within their bands in at least nineteen of twenty data sets. High ends: "
        "the forecast is too sure. High middle: too timid. A slope: too low where it rises, too high where it falls.",
        f"Histogram of {how_many(table.n_rows, 'cell')} between quantiles, of which {beyond} leave the band: {percent(ends)} of "
        f"outcomes lie outside the outer quantiles, where {percent(1 - fan.levels[-1] + fan.levels[0])} are expected.",
        {"pit_histogram": table, "settings": Table(level=[0.95])},
    )


def cell_histogram(below: np.ndarray, given: np.ndarray, pit: PITProblem) -> Table:
    """Shares between quantiles, from those below each, with a band that holds all at once (Bonferroni over binomial ones)."""
    from scipy.stats import binom

    edges = np.concatenate([[0.0], given, [1.0]])
    n, chance = equal_rows(pit.weights, len(pit)), np.diff(edges)
    if pit.clusters is None:
        tail = 0.05 / (2 * len(chance))
        low, high = binom.ppf(tail, n, chance) / n, binom.isf(tail, n, chance) / n
    else:
        low, high = _cell_band(pit, pit.clusters, chance)
    observed = np.diff(np.concatenate([[0.0], below, [1.0]]))
    return Table(lower=edges[:-1], upper=edges[1:], observed=observed, low=low, high=high)


def _cell_band(pit: PITProblem, clusters: Clusters, chance: np.ndarray) -> Band:
    """A band of signs of clusters that holds the shares of all cells at once."""
    fan = fan_of(pit.predictions)
    assert fan is not None
    w = np.ones(len(pit)) if pit.weights is None else pit.weights
    beyond = SharesBelow.of(fan, pit.weights).beyond(to_numpy(pit.targets)) * (w / w.sum())[:, None]
    gaps = np.diff(beyond, axis=1, prepend=0.0, append=0.0)
    return band_of_signs(gaps, chance, np.sqrt(chance * (1 - chance)), clusters, 0.95, 0)


def _level_curve(problem: ForecastProblem) -> Picture:
    pit = problem.pit
    tables = PITCurveDisplay.from_predictions(pit.targets, pit.predictions, **_rows_of(pit)).tables
    table = tables["pit_curve"]
    gap = table["observed"] - table["level"]
    worst = int(np.argmax(np.abs(gap)))
    side = "more" if gap[worst] > 0 else "fewer"
    return Picture(
        "pit_curve",
        "The same without bars",
        "How many more outcomes than expected lie below each level. A calibrated forecast stays within the band everywhere in "
        "nineteen of twenty data sets. First up, then down: too sure; first down, then up: too timid; all up: too high; all "
        "down: too low.",
        f"PIT curve less the diagonal: {int(_outside(table).sum())} of {how_many(table.n_rows, 'point')} beyond the band; "
        f"at level {table['level'][worst]:.2g} there are {100 * abs(gap[worst]):.1f} points {side} outcomes below than expected.",
        tables,
    )


def coverage_of(rows: ReportProblem) -> Picture:
    """The coverage of central intervals of every size, or of those that quantiles were given for."""
    fan = fan_of(rows.predictions)
    sizes = COVERED if fan is None else central_levels(fan)
    tables = CoverageDisplay.from_predictions(rows.targets, rows.predictions, levels=sizes, **_rows_of(rows)).tables
    table = tables["coverage"]
    i = int(np.argmin(np.abs(table["expected"] - 0.9)))
    return Picture(
        "coverage",
        "What intervals promise, and what they hold",
        "Share of outcomes in central intervals of every size, with its 95 % confidence interval. Below the dashed line, "
        "intervals are too narrow.",
        f"Coverage curve: intervals that promise {percent(table['expected'][i])} held {percent(table['observed'][i])} of outcomes.",
        tables,
    )


def _fan(problem: ForecastProblem) -> Picture:
    sizes = (0.5, 0.8, 0.95) if problem.fan is None else central_levels(problem.fan)[-3:]
    tables, widest = FanDisplay.from_predictions(problem.targets, problem.predictions, levels=sizes).tables, sizes[-1]
    fan = tables["fan"]
    outside = int(((fan["outcome"] < fan[f"low_{widest:g}"]) | (fan["outcome"] > fan[f"high_{widest:g}"])).sum())
    beyond = how_many(outside, "outcome lies outside its", "outcomes lie outside their")
    rule, expected = (
        f"Of outcomes, {percent(1 - widest)} should lie outside the widest.",
        f", where {(1 - widest) * fan.n_rows:.0f} are expected",
    )
    if problem.is_ensemble:
        rule, expected = "Intervals end at the outermost members, so few members leave more outcomes outside.", ""
    return Picture(
        "fan",
        "Forecasts and outcomes, row by row",
        f"Rows in the order of their medians, evenly picked: central intervals, darker for smaller ones, and what happened. {rule}",
        f"Fan chart of {how_many(fan.n_rows, 'row')}: {beyond} {100 * widest:g} % interval{expected}.",
        tables,
    )


def _spread(problem: ForecastProblem) -> Picture:
    tables = _resampled(SpreadDisplay, problem)
    table = tables["spread"]
    few = " The spread of few members is itself by chance, which flattens the curve." if problem.is_ensemble else ""
    ends = [
        f"{number(float(table['predicted'][i]))}, errors are {number(float(table['observed'][i]))}" for i in (0, -1)
    ]
    return Picture(
        "spread",
        "How wide forecasts are, and how far off",
        "Root mean squared error of the forecast mean against the predicted standard deviation, in groups of equally many "
        f"rows. Above the dashed line, the forecast is surer than it should be.{few}",
        f"Errors against predicted spread in {how_many(table.n_rows, 'group')}: where the spread is {ends[0]}; where it is "
        f"{ends[1]}.",
        tables,
    )


def _witness(problem: ForecastProblem) -> Picture:
    tables = _resampled(WitnessDisplay, problem)
    beyond = int((tables["cells"]["adjusted"] <= 0.05).sum())
    return Picture(
        "witness",
        "Which errors come too often, and where",
        "By predicted spread, and by error in units of it: how much more was claimed than came true. Orange: such errors are rarer "
        "than claimed; blue: more frequent. Dots mark places beyond chance; a calibrated forecast has none in nineteen of twenty "
        "data sets.",
        f"Map of gaps by predicted spread and error: {beyond} of {tables['cells'].n_rows} places are beyond chance.",
        tables,
    )


def _null(problem: ForecastProblem, evidence: ForecastEvidence) -> Picture:
    return null_of(
        problem.pit,
        evidence.pit.pool,
        problem.error,
        *(("error", "PIT error") if problem.fan is None else ("quantile error", "error at the levels given")),
    )


def _resampled(display: type[SpreadDisplay | WitnessDisplay], problem: ForecastProblem) -> dict[str, Table]:
    """The tables of a display that resamples, with the settings of the problem."""
    return display.from_predictions(
        problem.targets,
        problem.predictions,
        n_resamples=affordable(min(199, problem.n_resamples), len(problem), MAP_WORK, least=99),
        sample_weight=problem.weights,
        rng=problem.fresh_seeds,
        engine=problem.engine,
    ).tables


def _outside(table: Table) -> np.ndarray:
    return (table["observed"] < table["low"]) | (table["observed"] > table["high"])


MEANINGS = {
    "pit_histogram": "How far the PIT values of outcomes are from evenly spread, as the largest gap between the "
    "two, up and down.",
    "within": f"Share of outcomes between the {50 - 50 * CENTRAL:g} % and the {50 + 50 * CENTRAL:g} % quantile of their "
    f"forecast; {100 * CENTRAL:g} % if the forecast is as wide as it should be.",
    "kernel": "How far whole forecasts are from what happened, given what was forecast, with no levels to choose. "
    "Unbiased: a calibrated forecast shows values around zero.",
    "quantiles": "How far the share of outcomes below each quantile is from its level, as the largest gap up and the largest "
    "gap down. Nothing is assumed between and beyond the levels given.",
    "between": "Share of outcomes between the outer quantiles; the difference of their levels if the forecast is as wide as it "
    "should be.",
    "pinball": "Mean loss of the quantiles at the levels given, in the unit of what is forecast; smaller is better.",
    "crps": "Mean distance of the forecast from what happened, in its unit; smaller is better.",
    "energy": "Mean distance of the forecast from what happened, over all coordinates; smaller is better.",
    "log": "Mean negative log density of what happened, in nats; smaller is better.",
}


def outline_of_forecasts(problem: ForecastProblem, by: Mapping[str, ArrayLike]) -> Outline[ForecastEvidence]:
    """The parts of the report."""
    slicings, missing = split_slicings(slicings_of(problem, by))
    pit, outcomes = _of_pit(problem), _of_outcomes(problem)
    sections: list[tuple[Step, Callable[[ForecastEvidence], Section]]] = []
    if problem.untested is not None:
        slicings = ()
    elif dimensions(problem.predictions):
        sections.append((Step("Each coordinate"), partial(_coordinates, problem)))
    if problem.fan is not None and problem.untested is None:
        sections.append((Step("Each level"), partial(_each_level, problem, problem.fan)))
    if not problem.is_ensemble and problem.untested is None:
        sections += [(group.step, partial(_group, problem, i)) for i, group in enumerate(groups_of(problem))]
    sections += [(slicing.step, partial(_slices, problem, slicing)) for slicing in slicings]
    return Outline(
        subject=_subject(problem),
        gather=(resamples(problem.n_resamples), partial(_gathered, problem, pit, outcomes, slicings)),
        numbers=[
            *((m.step, partial(_of_level, problem, m)) for m in pit),
            *((m.step, partial(_of_outcome, problem, m)) for m in outcomes),
        ],
        pictures=forecast_pictures(problem),
        sections=sections,
        judge=partial(judge_forecasts, problem),
        notes=partial(_notes, problem, missing),
    )


def _notes(problem: ForecastProblem, missing: Sequence[str]) -> Sequence[str]:
    return [*forecast_notes(problem), *missing]


def _of_pit(problem: ForecastProblem) -> list[KeyMeasure]:
    """What the PIT values show; the verdict states the first."""
    if (fan := problem.fan) is not None:
        low, high = (f"{100 * fan.levels[i]:g} %" for i in (0, -1))
        label, within = f"Between the {low} and {high} quantiles", problem.pit.within
        return [
            KeyMeasure(
                "Error at the levels given", MEANINGS["quantiles"], problem.pit.error, "fraction", "quantile error"
            ),
            KeyMeasure(label, MEANINGS["between"], within, "fraction", f"between {low} and {high}"),
        ]
    within = problem.pit.within
    return [
        KeyMeasure("PIT error", MEANINGS["pit_histogram"], problem.pit.error, "fraction", "error"),
        KeyMeasure(f"Within the central {100 * CENTRAL:g} %", MEANINGS["within"], within, "fraction", "within"),
    ]


def _of_outcomes(problem: ForecastProblem) -> list[KeyMeasure]:
    """The kernel error, and the scores that these predictions have; quantiles alone have their own score."""
    if problem.fan is not None:
        return [KeyMeasure("Pinball loss", MEANINGS["pinball"], Pinball(), "number", "pinball")]
    kernel = problem.kernel_error
    found = (
        [] if kernel is None else [KeyMeasure("Kernel error (SKCE)", MEANINGS["kernel"], kernel, "number", "kernel")]
    )
    if dimensions(problem.predictions):
        found.append(KeyMeasure("Energy score", MEANINGS["energy"], EnergyScore(), "number", "energy"))
    else:
        found.append(KeyMeasure("CRPS", MEANINGS["crps"], CRPS(), "number", "crps"))
    try:
        LogLoss().losses(problem.targets[:1], problem.predictions[:1])
    except InputError:  # no density
        return found
    return [*found, KeyMeasure("Log loss", MEANINGS["log"], LogLoss(), "number", "log")]


def _gathered(
    problem: ForecastProblem, pit: Sequence[KeyMeasure], outcomes: Sequence[KeyMeasure], slicings: Sequence[Slicing]
) -> ForecastEvidence:
    of_pit, of_outcomes = ({m.key: m.estimator for m in part if m.key != "kernel"} for part in (pit, outcomes))
    return gather_forecasts(problem, of_pit, of_outcomes, slicings)


def _of_level(problem: ForecastProblem, measure: KeyMeasure, evidence: ForecastEvidence) -> KeyNumber:
    return number_of(problem.pit, measure, evidence.pit.pool)


def _of_outcome(problem: ForecastProblem, measure: KeyMeasure, evidence: ForecastEvidence) -> KeyNumber:
    """With its test; but members of an ensemble are draws, and no distribution to resample from."""
    return number_of(problem, measure, None if evidence.outcomes is None else evidence.outcomes.pool)


def _group(problem: ForecastProblem, index: int, evidence: ForecastEvidence) -> Section:
    return by_column(problem.pit, evidence.pit.pool, evidence.groups[index], evidence.groups)


def _slices(problem: ForecastProblem, slicing: Slicing, evidence: ForecastEvidence) -> Section:
    title = f"By your column {slicing.name}" if slicing.name in AUTOMATIC else None  # told from the quarters
    return by_column(problem.pit, evidence.pit.pool, slicing, evidence.pit.slicings, title)


def _subject(problem: ForecastProblem) -> str:
    """The family; of quantiles, with their levels."""
    if problem.fan is not None:
        return f"Quantiles at {in_percent(problem.fan.levels)}"
    return type(problem.predictions).__name__


def _each_level(problem: ForecastProblem, fan: Quantiles, _evidence: ForecastEvidence) -> Section:
    """The share of outcomes below each quantile, beside its level."""
    below, pit = SharesBelow.of(fan, problem.weights), problem.pit
    pool = _pool_of_levels(problem, below, fan)
    shares = below(to_numpy(pit.targets)[None])[0]
    names = [f"below the {100 * u:g} % quantile" for u in fan.levels]
    means = [(float(u), float(share)) for u, share in zip(fan.levels, shares, strict=True)]
    errors = None if problem.clusters is None else np.abs(shares - fan.levels).tolist()
    table = ranked(pool, EACH, names, [len(problem)] * len(names), means, pool.adjusted([EACH]), errors)
    return Section("Each level", "outcomes", "p-values allow for their number (Westfall and Young).", table)


def _pool_of_levels(problem: ForecastProblem, below: SharesBelow, fan: Quantiles) -> Pool:
    """The gap of the share below each quantile, of resampled cells or under signs of clusters."""
    settings: dict[str, Any] = {"rng": problem.fresh_seeds, "engine": problem.engine}
    if (clusters := problem.clusters) is None:
        cells = CellResamples.of(fan)
        return Pool.draw({EACH: _Gaps(below)}, problem.pit.targets, cells, problem.n_resamples, **settings)
    w = np.ones(len(problem)) if problem.weights is None else problem.weights
    gaps = below.beyond(to_numpy(problem.pit.targets)) * (w / w.sum())[:, None]
    sums, signs = np.stack([clusters.sums(column) for column in gaps.T], axis=1), Signs(len(clusters))
    statistic = {EACH: partial(_signed_gaps, sums)}
    return Pool.draw(statistic, signs.observed, signs, problem.n_resamples, width=len(problem), **settings)


def _signed_gaps(sums: np.ndarray, signs: np.ndarray) -> np.ndarray:
    return np.abs(signs @ sums)


@dataclass(frozen=True, eq=False)
class _Gaps:
    below: SharesBelow

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        return np.abs(self.below(targets) - self.below.levels)


def _coordinates(problem: ForecastProblem, evidence: ForecastEvidence) -> Section:
    parts = coordinate_pit(problem)
    names = [f"coordinate {i}" for i in range(len(parts))]
    tests, means = evidence.coordinates, [part.means() for part in parts]
    pool = Pool({EACH: np.stack([np.append(t.null_distribution, t.statistic) for t in tests], axis=1)})  # type: ignore[arg-type]
    errors = None if problem.clusters is None else [float(part.estimate(part.error)) for part in parts]
    table = ranked(pool, EACH, names, [len(problem)] * len(parts), means, holm([test.pvalue for test in tests]), errors)
    return Section("Each coordinate", "coordinate", "p-values allow for their number (Holm).", table)
