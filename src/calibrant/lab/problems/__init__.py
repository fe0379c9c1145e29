"""Worlds with known truth, one kind of target a file."""

from calibrant.lab.problems.classification import Localised, Sharp, Sigmoid, Smooth, Tempered, TwoClasses
from calibrant.lab.problems.regression import TRUTH, LeastSquares, SyntheticNormal, WrongScale
from calibrant.lab.problems.world import World

__all__ = [
    "TRUTH",
    "LeastSquares",
    "Localised",
    "Sharp",
    "Sigmoid",
    "Smooth",
    "SyntheticNormal",
    "Tempered",
    "TwoClasses",
    "World",
    "WrongScale",
]
