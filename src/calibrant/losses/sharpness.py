"""Squared error with a brake on sharpness: the squared calibration error, without computing it."""

from typing import Literal

import torch
from torch import Tensor

from calibrant._validate import InputError
from calibrant.estimators.sharpness import Sharpness
from calibrant.losses.calibration import CalibrationLoss
from calibrant.losses.heads import class_numbers, log_probabilities


def squared_error(logits: Tensor, targets: Tensor) -> Tensor:
    """The Brier score: ``mean (p - y)^2`` for two classes, the mean of sums over classes for more.

    >>> round(float(squared_error(torch.tensor([0.0, 0.0]), torch.tensor([0, 1]))), 4)
    0.25
    """
    p = torch.exp(log_probabilities(logits))
    n, k = p.shape
    gap = p - torch.nn.functional.one_hot(class_numbers(targets, n, k), k)
    error = (gap[:, 1] ** 2 if k == 2 else (gap**2).sum(dim=1)).mean()
    return error.to(torch.promote_types(logits.dtype, torch.float32))


class SharpnessRegularised(CalibrationLoss):
    """``MSE + gamma E ||E[y | f]||^2``: squared error and squared calibration error in one, up to a factor.

    As ``MSE = CE^2 + E||y||^2 - E||E[y | f]||^2``, minimising ``MSE + lambda CE^2`` is minimising this with
    ``gamma = lambda / (lambda + 1)``. The second term, called sharpness, is a mean of squared frequencies by kernel
    regression, debiased like :class:`~calibrant.estimators.sharpness.Sharpness`.
    Popordanoska, Sayer & Blaschko (2022), equation (6).

    >>> loss = SharpnessRegularised.of_weight(1.0, bandwidth=0.1)
    >>> loss.gamma
    0.5
    """

    def __init__(self, gamma: float = 0.5, *, bandwidth: float = 0.1, debias: bool | Literal["partial"] = True) -> None:
        if not 0 <= gamma < 1:
            raise InputError(f"gamma must be at least 0 and below 1, as lambda / (lambda + 1) is; got {gamma!r}")
        super().__init__(Sharpness(bandwidth=bandwidth, debias=debias), gamma, base=squared_error)

    @classmethod
    def of_weight(
        cls, weight: float, *, bandwidth: float = 0.1, debias: bool | Literal["partial"] = True
    ) -> "SharpnessRegularised":
        """For a weight lambda of the squared calibration error."""
        if not weight >= 0:
            raise InputError(f"weight must be a number of at least 0; got {weight!r}")
        return cls(weight / (weight + 1), bandwidth=bandwidth, debias=debias)

    @property
    def gamma(self) -> float:
        """The weight of the sharpness."""
        return self.weight
