# Written by `python -m calibrant._names`.

from calibrant.streams.base import State as State
from calibrant.streams.frames import bin_query as bin_query
from calibrant.streams.frames import frame_states as frame_states
from calibrant.streams.frames import from_bins as from_bins
from calibrant.streams.frames import merged as merged
from calibrant.streams.metric import StreamMetric as StreamMetric
from calibrant.streams.states import from_dict as from_dict
from calibrant.streams.states import state as state
