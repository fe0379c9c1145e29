"""Losses for training with torch that keep a model calibrated: modules over the estimators, and the usual baselines.

>>> import torch
>>> from calibrant import KDE
>>> loss = CalibrationLoss(KDE(bandwidth=0.1), weight=0.5)
>>> logits = torch.tensor([[2.0, 0.0, 0.0], [1.0, 0.5, 0.0], [0.0, 1.0, 0.5]], requires_grad=True)
>>> loss(logits, torch.tensor([0, 1, 1])).backward()
"""

from calibrant._names import door

__getattr__, __dir__, __all__ = door(__name__)
