"""The numbers of a report on class probabilities: errors, scores, what clinical studies report of risks, and ranks."""

import numpy as np

from calibrant._array import to_numpy
from calibrant.estimators.binned.binning import EqualMass
from calibrant.estimators.binned.ece import ECE
from calibrant.estimators.scoring_rules.auc import AUC
from calibrant.estimators.scoring_rules.proper_scores import Brier, LogLoss
from calibrant.estimators.smooth.fitted_curves import ICI
from calibrant.estimators.smooth.weak_calibration import (
    MIN_EXPECTED,
    CalibrationIntercept,
    CalibrationRatio,
    CalibrationSlope,
)
from calibrant.lenses.class_lenses import ClassWise, TopLabel
from calibrant.plots.classification.risk_coverage_plot import RiskCoverageDisplay
from calibrant.reports.class_report.class_problem import ClassProblem
from calibrant.reports.core.evidence import KeyMeasure
from calibrant.reports.core.model import Picture
from calibrant.results import percent

MEANINGS = {
    "top": "How far the stated confidence is from how often the favoured class is right, on average over 15 groups of "
    "equally many rows.",
    "class": "The same for the probability of every class in turn, averaged over classes.",
    "event": "How far the predicted probability is from how often the event happened, on average over 15 groups of "
    "equally many rows.",
    "ratio": "Events that happened for each one that was predicted, on the whole.",
    "intercept": "How far all log-odds would have to move for events to be as many as predicted (calibration in the large).",
    "slope": "Of the log-odds: below 1 predictions are too extreme, above 1 too timid.",
    "ici": "Mean distance of the predictions from a smooth curve of what happened (integrated calibration index). Noise makes it "
    "larger, the more so the fewer rows there are.",
    "auc": "How often an event has a higher prediction than a row without it. It says how well the two are told apart, and "
    "nothing of calibration.",
    "kernel": "How far the probabilities of all classes together are from what happened, with no groups to choose. "
    "Unbiased: a calibrated model shows values around zero.",
    "brier": "Mean squared distance of the probabilities from what happened; smaller is better.",
    "log": "Mean negative log probability of what happened, in nats; smaller is better.",
}


UNTESTED = ("kernel", "ratio", "intercept", "slope", "ici", "auc")
"""Keys of numbers that are not among the statistics of the verdict; kernel errors are added by themselves."""


def measures_of(problem: ClassProblem) -> list[KeyMeasure]:
    """The numbers of the report; the verdict states the first."""
    rest = [
        KeyMeasure("Brier score", MEANINGS["brier"], Brier(), "number", "brier"),
        KeyMeasure("Log loss", MEANINGS["log"], LogLoss(), "number", "log"),
    ]
    if (kernel := problem.kernel_error) is not None:
        rest.append(KeyMeasure("Kernel error (SKCE)", MEANINGS["kernel"], kernel, "number", "kernel"))
    if problem.kind != "multi-class":
        return [
            KeyMeasure("Calibration error", MEANINGS["event"], problem.error, "fraction", "error"),
            *of_risks(problem),
            *rest,
        ]
    each = ECE(EqualMass(15), lens=ClassWise())
    return [
        KeyMeasure("Calibration error of the confidence", MEANINGS["top"], problem.error, "fraction", "error"),
        KeyMeasure("Class-wise calibration error", MEANINGS["class"], each, "fraction", "class-wise error"),
        *rest,
    ]


def of_risks(problem: ClassProblem) -> list[KeyMeasure]:
    """What clinical studies report of predicted risks, where the rows have it."""
    if problem.kind != "binary":
        return []
    (event,) = problem.lens.events(problem.predictions)
    scores, happened = event.probability, event.observed(to_numpy(problem.targets))
    found = []
    if scores.mean() > MIN_EXPECTED:
        found.append(
            KeyMeasure("Observed over expected", MEANINGS["ratio"], CalibrationRatio(), "number", "ratio", 1.0)
        )
    if happened.min() == happened.max():
        return found
    found.append(
        KeyMeasure("Calibration intercept", MEANINGS["intercept"], CalibrationIntercept(), "number", "intercept", 0.0)
    )
    if np.ptp(scores) > 0:
        found.append(KeyMeasure("Calibration slope", MEANINGS["slope"], CalibrationSlope(), "number", "slope", 1.0))
        found.append(KeyMeasure("ICI", MEANINGS["ici"], ICI(), "number", "ici"))
        found.append(KeyMeasure("AUC", MEANINGS["auc"], AUC(), "number", "auc"))
    return found


SHARE = 0.8
"""The share of answers that the words look at."""


def answered(problem: ClassProblem, _evidence: object = None) -> Picture:
    """The risk-coverage curve of the confidence, and the areas in words."""
    tables = RiskCoverageDisplay.from_predictions(
        problem.targets, problem.predictions, lens=TopLabel(), sample_weight=problem.weights
    ).tables
    curve, area = tables["curve"], tables["areas"]["value"][0]
    risk = float(np.interp(SHARE, curve["coverage"], curve["risk"]))
    wrong, ranked = percent(curve["risk"][-1]), _ranked(problem, float(curve["risk"][-1]))
    return Picture(
        "risk_coverage",
        "If only the surest answers count",
        f"How often answers are wrong, against how many are given. Of all, {wrong} are wrong, of the surest {percent(SHARE)} "
        f"{percent(risk)}; over all shares it is {percent(area)} on average (AURC)."
        f"{ranked} The dashed line is what the confidences themselves claim: calibrated confidences lie on the curve.",
        f"Risk-coverage curve: {wrong} of all answers are wrong, and {percent(risk)} of the surest {percent(SHARE)}.",
        tables,
    )


def _ranked(problem: ClassProblem, wrong: float) -> str:
    """How well the confidence ranks answers, where some are right and some are wrong."""
    if not 0 < wrong < 1:
        return ""
    ranks = AUC(TopLabel())
    area = float(ranks(problem.targets, problem.predictions, sample_weight=problem.weights))
    return f" A right answer is surer than a wrong one in {percent(area)} of pairs (AUROC)."
