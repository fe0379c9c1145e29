"""What work costs: behind ``calibrant plan``, and behind what reports can afford.

>>> from calibrant.planning import plan
>>> plan(n=10**7, k=1000, budget=600).fits
True
"""

from calibrant._names import door

__getattr__, __dir__, __all__ = door(__name__)
