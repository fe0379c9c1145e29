"""Expected kernel values ``L(P, Q) = E l(Z, Z')``, ``Z ~ P`` and ``Z' ~ Q`` independent: the registry of closed forms.

Closed forms live beside the family, the axis that grows; this file knows no family. A form is registered for a kernel and two
families and found by their classes, nearest first. A form that cannot serve a particular kernel returns ``NotImplemented``.
"""

from collections.abc import Callable
from itertools import product
from typing import Any, TypeVar

from calibrant.kernels import Kernel, Scaled, Sum

Form = TypeVar("Form", bound=Callable[..., Any])

_FORMS: dict[tuple[type, type, type], Callable[..., Any]] = {}


def closed_form(kernel: type, p: type, q: type) -> Callable[[Form], Form]:
    """Register ``form(kernel, p, q) -> (n, m)`` for a kernel and two families."""

    def register(form: Form) -> Form:
        _FORMS[kernel, p, q] = form
        return form

    return register


def registered() -> list[tuple[type, type, type]]:
    """What has a closed form, for checks and messages."""
    return list(_FORMS)


def expectation(kernel: Kernel, p: Any, q: Any) -> Any:
    """The matrix ``E l(Z_i, Z'_j)``, ``(n, m)``, in closed form, or ``NotImplemented``.

    >>> import numpy as np
    >>> from calibrant import Normal
    >>> from calibrant.kernels import Gaussian
    >>> expectation(Gaussian(1.0), Normal([0.0], 1.0), Normal([0.0], 1.0)).round(12) == (1 / np.sqrt(3)).round(12)
    array([[ True]])
    """
    # Linear in the kernel, whatever the families.
    if isinstance(kernel, Sum):
        parts = [expectation(part, p, q) for part in kernel.kernels]
        return NotImplemented if any(part is NotImplemented for part in parts) else sum(parts)
    if isinstance(kernel, Scaled):
        value = expectation(kernel.kernel, p, q)
        return NotImplemented if value is NotImplemented else kernel.factor * value
    for key in product(type(kernel).__mro__, type(p).__mro__, type(q).__mro__):
        if key in _FORMS:
            value = _FORMS[key](kernel, p, q)
            if value is not NotImplemented:
                return value
    return NotImplemented
