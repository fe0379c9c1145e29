"""Several GPUs of this machine as an engine: rows go to each once, tasks to whichever is free."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, InvalidStateError, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import ContextVar, copy_context
from copy import copy
from enum import Enum
from functools import cached_property, partial
from importlib.util import find_spec
from queue import SimpleQueue
from typing import Any, Self
from weakref import WeakSet

import numpy as np

from calibrant._array import to_numpy
from calibrant._compiled.choice import precision
from calibrant._tasks import check_plain
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.results import how_many

PANEL = 1 << 16
"""Rows of a panel that keep a GPU busy for some milliseconds; the cores of a CPU want fewer."""


def on_gpu(fn: Callable[..., Any], *arguments: Any, within: str = "float32") -> Any:
    """What ``fn`` gives on the GPU of this process, in arrays of NumPy, pairs computed within a precision; here without a GPU.

    >>> on_gpu(np.sum, np.array([1.0, 2.0])) in (3.0, np.array(3.0))
    True
    """
    if find_spec("torch") is None:
        return fn(*arguments)
    import torch

    if not torch.cuda.is_available():
        return fn(*arguments)
    from calibrant._compiled.cuda_memory import memory_for

    with precision(within), memory_for("a task and the rows that it needs"):
        return moved(fn(*moved(arguments, partial(there, "cuda"))), here)


def moved(value: Any, move: Callable[[Any], Any]) -> Any:
    """A copy of a value in which arrays, in collections and the fields of our own classes too, have been moved.

    What a class keeps in cached properties is made again. One that must be moved otherwise has a method ``moved_by``, which is
    given what moves its parts.

    >>> moved((np.array([2]), [3]), lambda x: x.tolist() if isinstance(x, np.ndarray) else x)
    ([2], [3])
    """
    if isinstance(value, tuple | list):
        return rebuilt(value, [moved(item, move) for item in value])
    if isinstance(value, Mapping):
        return {key: moved(item, move) for key, item in value.items()}
    if not is_ours(value):
        return move(value)
    if hasattr(value, "moved_by"):
        return value.moved_by(partial(moved, move=move))
    twin = copy(value)
    for name, item in list(vars(twin).items()):
        if isinstance(getattr(type(value), name, None), cached_property):
            del vars(twin)[name]
        else:
            object.__setattr__(twin, name, moved(item, move))  # which frozen classes allow
    return twin


def rebuilt(value: Any, items: list[Any]) -> Any:
    """A tuple or list of the kind of another, with these items; tuples whose items have names are made from each of them.

    >>> rebuilt((1, 2), [3, 4])
    (3, 4)
    """
    return value._make(items) if hasattr(value, "_make") else type(value)(items)


def is_ours(value: object) -> bool:
    """Whether this is a value of a class of calibrant, whose fields may hold arrays."""
    kind = type(value)
    return kind.__module__.startswith("calibrant.") and hasattr(value, "__dict__") and not issubclass(kind, Enum)


def there(device: Any, value: Any) -> Any:
    """Arrays of numbers, of NumPy and of torch, as tensors on a device; all else as it is."""
    import torch

    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        native = np.array(value, dtype=value.dtype.newbyteorder("="), order="C")  # a copy, which torch may write to
        return torch.from_numpy(native).to(device)
    if isinstance(value, torch.Tensor):
        return check_plain(value).to(device)
    return value


def here(value: Any) -> Any:
    """Tensors as arrays of NumPy; all else as it is."""
    import torch

    return to_numpy(value) if isinstance(value, torch.Tensor) else value


_pool_of_task: ContextVar["DevicePool | None"] = ContextVar("pool of task", default=None)


class Placed:
    """A value that devices hold copies of, each made when it is first needed there."""

    def __init__(self, value: Any, place: Callable[[Any, Callable[[Any], Any]], Any]) -> None:
        self.value, self.place, self.copies = value, place, dict[Any, Any]()

    def on(self, device: Any) -> Any:
        """The copy of a device."""
        found = self.copies.get(device)
        if found is None:
            found = self.copies[device] = self.place(self.value, _Mover(device))
        return found


class DevicePool:
    """The GPUs of this machine, one task at a time on each: an engine with ``share`` and ``map``.

    ``DevicePool(["cuda:0", "cuda:1"])`` are those, ``DevicePool()`` is all that torch sees; ``["cpu", "cpu"]`` are two threads
    with tensors on the CPU. Rows and predictions that are shared are moved to each device once, when they are first needed
    there; bare arrays stay as they are, since only their owner knows what computes with them. A task goes to the first device
    that is free; one without memory for it lets go of rows that other tasks brought there. Results come in the order of the
    tasks, on the host, and are added there, so that digits do not depend on how many devices there are. The first task that
    fails raises its error at once, and no other is started. Inside tasks, the precision is that of where ``map`` was called
    (:func:`calibrant.engines.precision`).

    >>> from calibrant import SKCE
    >>> with DevicePool(["cpu", "cpu"]) as engine:  # where there are GPUs: DevicePool()
    ...     estimate = SKCE()([0, 1, 2], [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6]], engine=engine)
    >>> round(estimate.value, 4)
    -0.061
    """

    panel = PANEL

    def __init__(self, devices: Sequence[str] | None = None) -> None:
        self.devices = _devices(devices)
        self._free: SimpleQueue[Any] = SimpleQueue()
        for device in self.devices:
            self._free.put(device)
        self._threads = ThreadPoolExecutor(len(self.devices), "calibrant-device")
        self._shared: WeakSet[Placed] = WeakSet()
        self._is_open = True

    def __repr__(self) -> str:
        return f"DevicePool({[str(device) for device in self.devices]})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Wait for tasks that run, and take no more."""
        self._is_open = False
        self._threads.shutdown(cancel_futures=True)

    def share(self, value: Any) -> Placed:
        """What stands for a value among the tasks of :meth:`map`; each device gets it once, when it first needs it."""
        shared = Placed(value, _rows)
        self._shared.add(shared)
        return shared

    def map(self, fn: Callable[..., Any], /, *tasks: Any) -> Iterator[Any]:
        """Apply ``fn`` to each task; all are handed out from now on, and results come in the order of the tasks."""
        if not self._is_open:
            raise self._closed()
        if _pool_of_task.get() is self:
            raise InputError(f"a task of {self!r} would wait for itself: leave its engine out inside of tasks")
        failed: Future[Any] = Future()
        work = partial(self._run, failed, Placed(fn, _function))
        futures = [self._threads.submit(copy_context().run, work, arguments) for arguments in zip(*tasks, strict=True)]
        for future in futures:
            future.add_done_callback(partial(self._left, failed))
        return _results(futures, failed)

    def _closed(self) -> InputError:
        return InputError(f"{self!r} is closed: make a new one, and use it and its results inside its with block")

    def _left(self, failed: "Future[Any]", future: "Future[Any]") -> None:
        """Closing leaves tasks that have not begun: who waits for one would wait without end."""
        if future.cancelled():
            with suppress(InvalidStateError):
                failed.set_exception(self._closed())

    def _run(self, failed: "Future[Any]", fn: Placed, arguments: tuple[Any, ...]) -> Any:
        """One task on a device that is free, of which there are as many as threads."""
        if failed.done():
            raise CancelledError
        device = self._free.get()
        _pool_of_task.set(self)  # in the context of this task alone
        try:
            with _current(device):
                return self._result(fn, arguments, device)
        except BaseException as error:
            with suppress(InvalidStateError):  # of two that fail, the first
                failed.set_exception(error)
            raise
        finally:
            self._free.put(device)

    def _result(self, fn: Placed, arguments: tuple[Any, ...], device: Any) -> Any:
        """What the task gives; where there is no memory for it, once more without the shared values that others need."""
        import torch

        from calibrant._compiled.cuda_memory import GPUMemoryError, OutOfMemoryError, memory_for

        def result() -> Any:
            values = [part.on(device) if isinstance(part, Placed) else part for part in arguments]
            return moved(fn.on(device)(*values), here)

        with suppress(GPUMemoryError, OutOfMemoryError):
            return result()
        for shared in list(self._shared):
            shared.copies.pop(device, None)
        torch.cuda.empty_cache()
        with memory_for("a task and the rows that it needs"):
            return result()


class _Mover:
    """Moves arrays to a device, each once however often it occurs in a value."""

    def __init__(self, device: Any) -> None:
        self.device, self.seen = device, dict[int, tuple[Any, Any]]()

    def __call__(self, value: Any) -> Any:
        if id(value) not in self.seen:
            self.seen[id(value)] = value, there(self.device, value)
        return self.seen[id(value)][1]


def _rows(value: Any, move: Callable[[Any], Any]) -> Any:
    """Rows and predictions, by themselves or in tuples and lists, are moved; bare arrays are not."""
    if isinstance(value, tuple | list):
        return rebuilt(value, [_rows(item, move) for item in value])
    return moved(value, move) if is_ours(value) else value


def _function(fn: Any, move: Callable[[Any], Any]) -> Any:
    """The function; where it holds statistics of resamples that can be moved, with those and their predictions moved."""
    if not isinstance(fn, partial) or not any(_moves(part) for part in fn.args):
        return fn
    return partial(fn.func, *(_held(part, move) for part in fn.args), **fn.keywords)


def _moves(part: Any) -> bool:
    return any(map(_moves, part)) if isinstance(part, tuple) else hasattr(part, "moved_by")


def _held(part: Any, move: Callable[[Any], Any]) -> Any:
    if isinstance(part, tuple):
        return rebuilt(part, [_held(item, move) for item in part])
    return moved(part, move) if isinstance(part, Distribution) or _moves(part) else part


def _results(futures: "list[Future[Any]]", failed: "Future[Any]") -> Iterator[Any]:
    """In order; the first error of any task ends it, and tasks that have not begun are left."""
    futures.reverse()  # so that each is let go once its result is here
    try:
        while futures:
            wait([futures[-1], failed], return_when=FIRST_COMPLETED)
            if failed.done():
                failed.result()
            yield futures.pop().result()
    finally:
        for future in futures:
            future.cancel()


def _current(device: Any) -> AbstractContextManager[object]:
    """Where kernels are started."""
    import torch

    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def _devices(names: Sequence[str] | None) -> tuple[Any, ...]:
    """Devices of torch that are there, no GPU twice."""
    if find_spec("torch") is None:
        raise InputError("DevicePool needs torch: pip install torch; without it there are threads:8 and processes:4")
    import torch

    if names is None:
        names = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
        if not names:
            raise InputError(
                "torch sees no GPU: see nvidia-smi and CUDA_VISIBLE_DEVICES, or install a torch with CUDA; "
                "on the CPU there are threads:8 and processes:4"
            )
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise InputError(
            f"devices must be a list of names such as ['cuda:0', 'cuda:1'], or None for all; got {names!r}"
        )
    found = tuple(_device(name) for name in names)
    twice = [device for device in found if device.type == "cuda" and found.count(device) > 1]
    if twice:
        raise InputError(f"devices names {twice[0]} twice: a GPU does one task at a time")
    return found


def _device(name: Any) -> Any:
    import torch

    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise InputError(f"device {name!r} is not known: say 'cuda:0', or 'cpu'") from error
    if device.type == "cpu":
        return torch.device("cpu")
    if device.type != "cuda":
        raise InputError(f"device {name!r} is neither of CUDA nor 'cpu', and there is no engine for it")
    number, count = device.index or 0, torch.cuda.device_count()
    if number >= count:
        raise InputError(
            f"device {name!r} is not there: torch sees {how_many(count, 'GPU')}; see nvidia-smi and CUDA_VISIBLE_DEVICES"
        )
    return torch.device("cuda", number)
