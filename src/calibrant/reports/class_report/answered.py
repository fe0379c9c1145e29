"""Whether the confidence tells right answers from wrong ones, beside whether it is calibrated."""

import numpy as np

from calibrant.estimators.scoring_rules.auc import AUC
from calibrant.lenses.class_lenses import TopLabel
from calibrant.plots.classification.risk_coverage_plot import RiskCoverageDisplay
from calibrant.reports.class_report.class_problem import ClassProblem
from calibrant.reports.core.model import Picture
from calibrant.results import percent

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
