"""Recalibration and calibration errors in scikit-learn's manner (extra ``sklearn``).

Nothing else of calibrant imports scikit-learn.
"""

from calibrant._names import door

__getattr__, __dir__, __all__ = door(__name__)
