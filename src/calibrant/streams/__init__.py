"""Streams and data in parts: small states that are updated, merged and finished, of every estimator of linear cost.

>>> from calibrant import ECE, state
>>> state(ECE()).update([1, 0], [0.9, 0.2]).n
2
"""

from calibrant._names import door

__getattr__, __dir__, __all__ = door(__name__)
