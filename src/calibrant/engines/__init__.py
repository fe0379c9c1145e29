"""Where work is done: threads, processes, GPUs, Dask clusters. An engine is anything with the ``map`` of an executor."""

from calibrant._fused.precision import precision
from calibrant.engines.cluster import DaskEngine
from calibrant.engines.connecting import connect
from calibrant.engines.devices import DevicePool
from calibrant.engines.streaming import stream

__all__ = ["DaskEngine", "DevicePool", "connect", "precision", "stream"]
