"""Arguments that go: they work until a stated version, and say what takes their place.

Names go by a line in ``DEPRECATED`` of :mod:`calibrant._names`. ``docs/maintaining.md`` says how long both stay.
"""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from calibrant._validate import InputError

Call = TypeVar("Call", bound=Callable[..., Any])


def renamed_argument(old: str, new: str, until: str) -> Callable[[Call], Call]:
    """An argument of a function or a class that has a new name; the old one warns until a version.

    >>> @renamed_argument("bins", "n_bins", "2.0")
    ... def histogram(values, n_bins=10):
    ...     return n_bins
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     histogram([], bins=3)
    3
    >>> print(caught[0].message)
    histogram(bins=) goes in calibrant 2.0; write histogram(n_bins=)
    >>> histogram([], n_bins=4)
    4
    """

    def decorate(call: Call) -> Call:
        target: Callable[..., Any] = vars(call)["__init__"] if isinstance(call, type) else call

        @wraps(target)
        def wrapper(*args: Any, **options: Any) -> Any:
            if old in options:
                if new in options:
                    raise InputError(f"{call.__name__} takes {new}= or its old name {old}=, not both; leave {old}= out")
                message = f"{call.__name__}({old}=) goes in calibrant {until}; write {call.__name__}({new}=)"
                warnings.warn(message, FutureWarning, stacklevel=2)
                options[new] = options.pop(old)
            return target(*args, **options)

        if not isinstance(call, type):
            return wrapper  # type: ignore[return-value]
        type.__setattr__(call, "__init__", wrapper)
        return call

    return decorate
