# Written by `python -m calibrant._names`.

from calibrant._compiled.choice import precision as precision
from calibrant.engines.cluster import DaskEngine as DaskEngine
from calibrant.engines.cluster import connect as connect
from calibrant.engines.devices import DevicePool as DevicePool
from calibrant.engines.streaming import stream as stream
