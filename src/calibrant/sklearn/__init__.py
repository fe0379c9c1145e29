"""Recalibration and calibration errors in scikit-learn's manner (extra ``sklearn``).

Nothing else of calibrant imports scikit-learn.
"""

from calibrant.sklearn.classifier import RecalibratedClassifier
from calibrant.sklearn.held_out import RecalibrationWarning
from calibrant.sklearn.regressor import RecalibratedRegressor
from calibrant.sklearn.scoring import scorer

__all__ = ["RecalibratedClassifier", "RecalibratedRegressor", "RecalibrationWarning", "scorer"]
