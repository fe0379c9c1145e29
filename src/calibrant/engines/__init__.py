"""Where work is done: threads, processes, GPUs, Dask clusters. An engine is anything with the ``map`` of an executor."""

from calibrant._names import door

__getattr__, __dir__, __all__ = door(__name__)
