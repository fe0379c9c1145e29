"""Can I believe these probabilities? Calibration of any predictive model.

>>> from calibrant import ECE, ExactTest
>>> y_true, y_pred = [1, 0, 1, 1, 0, 1], [0.9, 0.2, 0.7, 0.6, 0.4, 0.8]
>>> round(ECE()(y_true, y_pred).value, 4)
0.2667
>>> ExactTest(ECE())(y_true, y_pred).pvalue > 0.05
True
"""

from calibrant._names import door

__version__ = "1.0.0rc1"

__getattr__, __dir__, __all__ = door(__name__)
