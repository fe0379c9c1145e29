# Written by `python -m calibrant._names`.

from calibrant.sklearn.classifier import RecalibratedClassifier as RecalibratedClassifier
from calibrant.sklearn.held_out import RecalibrationWarning as RecalibrationWarning
from calibrant.sklearn.regressor import RecalibratedRegressor as RecalibratedRegressor
from calibrant.sklearn.scoring import scorer as scorer
