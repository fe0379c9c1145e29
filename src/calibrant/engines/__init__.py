"""Where work is done: threads, processes, Dask clusters. An engine is anything with the ``map`` of an executor."""

from calibrant.engines.cluster import DaskEngine
from calibrant.engines.connecting import connect
from calibrant.engines.streaming import stream

__all__ = ["DaskEngine", "connect", "stream"]
