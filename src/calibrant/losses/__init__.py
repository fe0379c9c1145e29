"""Losses for training with torch that keep a model calibrated: modules over the estimators, and the usual baselines.

>>> import torch
>>> from calibrant.estimators.kde import KDE
>>> loss = CalibrationLoss(KDE(bandwidth=0.1), weight=0.5)
>>> logits = torch.tensor([[2.0, 0.0, 0.0], [1.0, 0.5, 0.0], [0.0, 1.0, 0.5]], requires_grad=True)
>>> loss(logits, torch.tensor([0, 1, 1])).backward()
"""

from calibrant.losses.baselines import FL53, FocalLoss, LabelSmoothing, Stepwise
from calibrant.losses.calibration import CalibrationLoss
from calibrant.losses.heads import Batch, class_head, mixture_head, normal_head
from calibrant.losses.sharpness import SharpnessRegularised, squared_error
from calibrant.losses.soft_binned import SoftBinnedECE

__all__ = [
    "FL53",
    "Batch",
    "CalibrationLoss",
    "FocalLoss",
    "LabelSmoothing",
    "SharpnessRegularised",
    "SoftBinnedECE",
    "Stepwise",
    "class_head",
    "mixture_head",
    "normal_head",
    "squared_error",
]
