"""Streams and data in parts: small states that are updated, merged and finished, of every estimator of linear cost.

>>> from calibrant import ECE, state
>>> state(ECE()).update([1, 0], [0.9, 0.2]).n
2
"""

from calibrant.streams.choose import from_dict, state
from calibrant.streams.frames import frame_states, merged
from calibrant.streams.metric import Metric
from calibrant.streams.sql import bin_query, from_bins

__all__ = ["Metric", "bin_query", "frame_states", "from_bins", "from_dict", "merged", "state"]
