"""Worlds with known truth, one kind of target a file."""

from calibrant.lab.problems.classification import (
    Localised,
    RareTop,
    Sharp,
    Sigmoid,
    Smooth,
    Tempered,
    TwiceTempered,
    TwoClasses,
)
from calibrant.lab.problems.curves import GLM, Curve, Diagonal, Logistic, Power, Shifted
from calibrant.lab.problems.regression import TRUTH, LeastSquares, SyntheticNormal, WrongScale
from calibrant.lab.problems.scores import BetaScores, EmpiricalScores, Scores, ScoreWorld, tce
from calibrant.lab.problems.world import World

__all__ = [
    "GLM",
    "TRUTH",
    "BetaScores",
    "Curve",
    "Diagonal",
    "EmpiricalScores",
    "LeastSquares",
    "Localised",
    "Logistic",
    "Power",
    "RareTop",
    "ScoreWorld",
    "Scores",
    "Sharp",
    "Shifted",
    "Sigmoid",
    "Smooth",
    "SyntheticNormal",
    "Tempered",
    "TwiceTempered",
    "TwoClasses",
    "World",
    "WrongScale",
    "tce",
]
