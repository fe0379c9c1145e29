"""What a report on forecasts of numbers, counts and vectors says and shows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.empirical.quantiles import Quantiles, in_percent
from calibrant.distributions.multivariate import dimensions
from calibrant.estimators.forecast_errors.quantile_cells import CellResamples, SharesBelow
from calibrant.estimators.scoring_rules.forecast_scores import CRPS, EnergyScore, Pinball
from calibrant.estimators.scoring_rules.proper_scores import LogLoss
from calibrant.inference.exact_tests.aggregated import Pool
from calibrant.inference.multiplicity import holm
from calibrant.reports.core.evidence import EACH, KeyMeasure, number_of, resamples
from calibrant.reports.core.model import KeyNumber, Outline, Section, Step
from calibrant.reports.core.problem import Slicing, by_column, ranked, slicings_of
from calibrant.reports.forecast_report.forecast_pictures import forecast_pictures
from calibrant.reports.forecast_report.forecast_problem import CENTRAL, ForecastProblem, coordinate_pit
from calibrant.reports.forecast_report.forecast_verdict import (
    AUTOMATIC,
    ForecastEvidence,
    gather_forecasts,
    groups_of,
    judge_forecasts,
)
from calibrant.reports.notes import forecast_notes
from calibrant.typing import ArrayLike

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
    slicings = slicings_of(problem, by)
    pit, outcomes = _of_pit(problem), _of_outcomes(problem)
    sections: list[tuple[Step, Callable[[ForecastEvidence], Section]]] = []
    if dimensions(problem.predictions):
        sections.append((Step("Each coordinate"), partial(_coordinates, problem)))
    if problem.fan is not None:
        sections.append((Step("Each level"), partial(_each_level, problem, problem.fan)))
    if not problem.is_ensemble:
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
        notes=partial(forecast_notes, problem),
    )


def _of_pit(problem: ForecastProblem) -> list[KeyMeasure]:
    """What the PIT values show; the verdict states the first."""
    if (fan := problem.fan) is not None:
        low, high = (f"{100 * fan.levels[i]:g} %" for i in (0, -1))
        label, within = f"Between the {low} and {high} quantiles", problem.pit.within
        return [
            KeyMeasure(
                "Error at the levels given", MEANINGS["quantiles"], problem.pit.error, "percent", "quantile error"
            ),
            KeyMeasure(label, MEANINGS["between"], within, "percent", f"between {low} and {high}"),
        ]
    within = problem.pit.within
    return [
        KeyMeasure("PIT error", MEANINGS["pit_histogram"], problem.pit.error, "percent", "error"),
        KeyMeasure(f"Within the central {100 * CENTRAL:g} %", MEANINGS["within"], within, "percent", "within"),
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
    pool = Pool.draw(
        {EACH: _Gaps(below)},
        pit.targets,
        CellResamples.of(fan),
        problem.n_resamples,
        rng=problem.fresh_seeds,
        engine=problem.engine,
    )
    shares = below(to_numpy(pit.targets)[None])[0]
    names = [f"below the {100 * u:g} % quantile" for u in fan.levels]
    means = [(float(u), float(share)) for u, share in zip(fan.levels, shares, strict=True)]
    table = ranked(pool, EACH, names, [len(problem)] * len(names), means, pool.adjusted([EACH]))
    return Section("Each level", "outcomes", "p-values allow for their number (Westfall and Young).", table)


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
    table = ranked(pool, EACH, names, [len(problem)] * len(parts), means, holm([test.pvalue for test in tests]))
    return Section("Each coordinate", "coordinate", "p-values allow for their number (Holm).", table)
