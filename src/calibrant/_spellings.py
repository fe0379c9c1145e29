"""What settings share: a keyword that is none of theirs is answered with the spelling that was meant."""

from collections.abc import Collection
from inspect import Parameter, signature
from typing import Any, Self

from calibrant._validate import did_you_mean, shown

SPELLINGS = (
    (("n_bins", "num_bins", "bins", "nbins"), "n_bins", "n_bins={}"),
    (("n_bins", "num_bins", "nbins"), "bins", "bins=EqualWidth({}), or bins=EqualMass({}) for bins of equally many rows"),
    (("strategy", "adaptive", "quantile"), "bins", "bins=EqualWidth(15), or bins=EqualMass(15) for bins of equally many rows"),
    (("bandwidth", "length_scale", "sigma", "gamma"), "on_predictions", "on_predictions=Exponential({})"),
    (("kernel",), "on_predictions", "on_predictions={}"),
    (
        ("n_permutations", "n_bootstrap", "n_bootstraps", "n_boot", "n_samples", "num_samples", "n_sim", "n_iter", "B"),
        "n_resamples",
        "n_resamples={}",
    ),
    (("level", "confidence", "conf_level"), "confidence_level", "confidence_level={}"),
)  # fmt: skip
"""Words of other libraries, the field that a class must have for them, and how it is written here."""


class Settings:
    """A frozen value of settings.

    >>> from calibrant import ECE
    >>> ECE(n_bins=10)
    Traceback (most recent call last):
    ...
    TypeError: ECE takes no n_bins: write bins=EqualWidth(10), or bins=EqualMass(10) for bins of equally many rows
    """

    def __new__(cls, *values: Any, **options: Any) -> Self:
        """Refuse what ``__init__`` would, with the remedy."""
        known = getattr(cls, "__dataclass_fields__", {})
        for name in options:
            if name not in known:
                _refuse(cls, name, options[name])
        if len(values) > 1 and all(map(_is_column, values[:2])) and _needs_no_column(cls):
            made = f"{cls.__name__}(){_call_of(cls)[0]}"
            raise TypeError(f"{cls.__name__}(y_true, y_pred) takes data for settings: write {made}(y_true, y_pred)")
        return super().__new__(cls)


def _is_column(value: object) -> bool:
    """Whether a setting looks like data: a list, an array, a column of a frame."""
    return not isinstance(value, str | tuple | dict) and hasattr(value, "__len__") and not callable(value)


def _needs_no_column(cls: type) -> bool:
    """Whether settings take their data in a call, and the first of them, if any, has a default."""
    first = [*signature(cls.__init__).parameters.values(), None][1]  # type: ignore[misc]
    return "y_true" in _call_of(cls)[1] and (first is None or first.default is not Parameter.empty)


def _refuse(cls: type, name: str, value: object) -> None:
    """Say how a keyword is spelt that is not among the parameters."""
    parameters = signature(cls.__init__, follow_wrapped=False).parameters  # type: ignore[misc]  # settings are dataclasses
    if name in parameters or any(p.kind is Parameter.VAR_KEYWORD for p in parameters.values()):
        return
    known = [parameter for parameter in parameters if parameter != "self"]
    start = f"{cls.__name__} takes no {name}"
    for words, field, text in SPELLINGS:
        if name in words and field in known:
            raise TypeError(f"{start}: write {text.replace('{}', shown(value))}")
    call, used = _call_of(cls)
    option = "rng" if name in ("seed", "random_state") else name
    if option in used:
        raise TypeError(f"{start}: it belongs to the call, {cls.__name__}(...){call}(y_true, y_pred, {option}=...)")
    raise TypeError(f"{start}{did_you_mean(name, known) if known else ': it has no settings'}")


def _call_of(cls: type) -> tuple[str, Collection[str]]:
    """How settings take their data, and by which arguments."""
    call = ".fit" if hasattr(cls, "fit") else ""
    method = getattr(cls, "fit" if call else "__call__", None)
    return call, () if method is None else signature(method).parameters
