"""From a file to targets and predictions: CSV, Parquet, JSON lines and NPZ."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from calibrant._validate import InputError, did_you_mean
from calibrant.distributions.base import Distribution
from calibrant.distributions.bernoulli import Bernoulli
from calibrant.distributions.categorical import Categorical
from calibrant.distributions.censored import Censored
from calibrant.distributions.ensemble import Ensemble
from calibrant.distributions.histogram import Histogram
from calibrant.distributions.laplace import Laplace
from calibrant.distributions.mvnormal import MultivariateNormal
from calibrant.distributions.normal import Normal
from calibrant.distributions.quantiles import Quantiles
from calibrant.distributions.truncated import Truncated
from calibrant.spec import parse

TRUTH_NAMES = ("y_true", "y", "label", "labels", "target", "ground_truth")
PREDICTION_NAMES = ("p_*", "prob_*", "proba_*", "y_pred", "p", "prob", "y_prob", "predictions")

FAMILIES: Mapping[str, Callable[..., Distribution]] = {
    "Bernoulli": Bernoulli,
    "Categorical": Categorical,
    "Categorical.from_logits": Categorical.from_logits,
    "Censored": Censored,
    "Ensemble": Ensemble,
    "Histogram": Histogram,
    "Histogram.from_cdf": Histogram.from_cdf,
    "Laplace": Laplace,
    "MultivariateNormal": MultivariateNormal,
    "Normal": Normal,
    "Quantiles": Quantiles,
    "Truncated": Truncated,
}
"""What ``--predict`` may name; arguments are columns."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """What a file held: targets, predictions, columns to slice by, weights, and which columns were taken."""

    y_true: np.ndarray
    y_pred: Distribution
    by: Mapping[str, np.ndarray]
    sample_weight: np.ndarray | None
    source: str


def example(name: str) -> Path:
    """The path of an example file that ships with calibrant: ``digits`` or ``diabetes``.

    >>> example("digits").name
    'digits.csv'
    """
    return Path(__file__).parent / "data" / f"{name}.csv"


def read(
    path: str | Path,
    *,
    y_true: str | None = None,
    y_pred: str | None = None,
    predict: str | None = None,
    by: Sequence[str] = (),
    sample_weight: str | None = None,
    pos_label: str | None = None,
) -> Dataset:
    """Read targets and predictions from a file.

    ``y_true`` and ``y_pred`` name columns; several, by a pattern (``p_*``) or separated by commas. The part of a name
    that the star stands for is the class. ``predict`` names a family and its columns instead:
    ``Categorical.from_logits(logits='z_*')``. Without names, usual ones are looked for.

    >>> data = read(example("digits"), y_true="digit", y_pred="p_*", by=["ink"])
    >>> data.y_pred
    <Categorical: 1,797 predictions of 10 classes, labels=('0', '1', '2', '3', '4', '5', '6', '7', '8', '9')>
    """
    table = _open(Path(path))
    truth_names = table.find(y_true, TRUTH_NAMES, "--y-true")
    truth = _whole(table.values(truth_names), truth_names)
    truth = truth if truth.shape[1] > 1 else truth[:, 0]
    if predict is not None:
        if y_pred is not None or pos_label is not None:
            raise InputError("--predict names the columns itself: leave out --y-pred and --pos-label")
        y, prediction, source = truth, _family(predict, table), predict
    else:
        names = table.find(y_pred, PREDICTION_NAMES, "--y-pred")
        if truth.ndim == 2:
            names = _in_order_of(truth_names, names, y_true, y_pred)
        stars = _stars(names, PREDICTION_NAMES if y_pred is None else (y_pred,))
        y, prediction = _classes(truth, table.values(names), stars, pos_label)
        source = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]} ({len(names)} columns)"
    return Dataset(
        y_true=y,
        y_pred=prediction,
        by={name: table.single(name, "--by") for name in by},
        sample_weight=None if sample_weight is None else table.single(sample_weight, "--sample-weight"),
        source=f"truth: {', '.join(truth_names)}; predictions: {source}",
    )


def _classes(
    truth: np.ndarray, probs: np.ndarray, stars: tuple[str, ...] | None, pos_label: str | None
) -> tuple[np.ndarray, Distribution]:
    """Truth and class probabilities, with the names that the file's column names give the classes."""
    if truth.ndim == 2 and pos_label is None:
        return truth, Bernoulli(probs, stars)
    if probs.shape[1] == 1:
        return _against(truth, pos_label), Categorical(probs[:, 0])
    if pos_label is not None:
        raise InputError("--pos-label goes with a single column of probabilities; with a column a class, leave it out")
    return truth, Categorical(probs, stars)


def _in_order_of(truth: list[str], names: list[str], y_true: str | None, y_pred: str | None) -> list[str]:
    """Columns of probabilities in the order of the columns of truth, matched by what their stars stand for."""
    labels = _stars(truth, TRUTH_NAMES if y_true is None else (y_true,))
    found = _stars(names, PREDICTION_NAMES if y_pred is None else (y_pred,))
    if labels is None or found is None:
        return names
    if sorted(labels) != sorted(found):
        raise InputError(
            f"--y-true has the labels {list(labels)[:5]} and --y-pred has {list(found)[:5]}: they must agree"
        )
    return [names[found.index(label)] for label in labels]


def _against(truth: np.ndarray, pos_label: str | None) -> np.ndarray:
    """Zeros and ones: whether each target is the positive label."""
    names = truth.astype(str)
    found = np.unique(names).tolist()
    if pos_label is not None:
        if pos_label not in found:
            raise InputError(f"--pos-label {pos_label!r} never occurs{did_you_mean(pos_label, found)}")
        return (names == pos_label).astype(np.uint8)
    if truth.dtype.kind not in "iubf":
        found = found[:4]
        raise InputError(f"the truth holds text like {found}: say which one is predicted, --pos-label {found[-1]}")
    return truth


def _family(text: str, table: "_Columns") -> Distribution:
    def columns(pattern: object) -> Any:
        if isinstance(pattern, int | float):
            return float(pattern)
        if isinstance(pattern, Distribution) or (
            isinstance(pattern, tuple) and not any(isinstance(part, str) for part in pattern)
        ):
            return pattern  # of a family of families, or of a family with settings such as levels
        if not isinstance(pattern, str):
            raise InputError(f"--predict {text!r}: arguments are columns, numbers or families; got {pattern!r}")
        values = table.values(table.find(pattern, (), "--predict"))
        return values if values.shape[1] > 1 else values[:, 0]

    def build(family: Callable[..., Distribution], *args: object, **options: object) -> Distribution:
        return family(*map(columns, args), **{key: columns(value) for key, value in options.items()})

    prediction = parse(text, {name: partial(build, family) for name, family in FAMILIES.items()}, word=str)
    if not isinstance(prediction, Distribution):
        raise InputError(f"--predict {text!r} is not a family; known: {', '.join(FAMILIES)}")
    return prediction


def _stars(names: Sequence[str], patterns: Sequence[str]) -> tuple[str, ...] | None:
    """What the star of a pattern stands for in each name, where one pattern with one star gave them all."""
    for pattern in patterns:
        head, star, tail = pattern.partition("*")
        if star and "*" not in tail and all(fnmatchcase(name, pattern) for name in names):
            return tuple(name[len(head) : len(name) - len(tail)] for name in names)
    return None


def _whole(truth: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Labels that a file stored as 0.0 and 1.0 as the integers they are."""
    if truth.dtype.kind != "f":
        return truth
    if not np.isfinite(truth).all():
        raise InputError(f"column {names[0]!r} has NaN or infinite values: drop or repair those rows")
    return truth.astype(np.int64) if np.all(truth == np.round(truth)) else truth


class _Columns:
    """The columns of a file, by name."""

    def __init__(self, path: Path, names: Sequence[str], load: Callable[[Sequence[str]], np.ndarray]) -> None:
        self.path, self.names, self._load = path, list(names), load

    def find(self, wish: str | None, usual: Sequence[str], option: str) -> list[str]:
        """The columns a wish names: one, several separated by commas, or a pattern."""
        if wish is None:
            for pattern in usual:
                if found := [name for name in self.names if fnmatchcase(name, pattern)]:
                    return found
            raise InputError(f"{self.path.name} has columns {', '.join(self.names[:20])}: say which with {option}")
        found = []
        for part in [wish] if wish in self.names else wish.split(","):
            matches = [name for name in self.names if name == part or fnmatchcase(name, part)]
            if not matches:
                raise InputError(f"{option}: {self.path.name} has no column {part!r}{did_you_mean(part, self.names)}")
            found += matches
        return found

    def values(self, names: Sequence[str]) -> np.ndarray:
        """These columns side by side, ``(n, columns)``."""
        values = self._load(names)
        if not len(values):
            raise InputError(f"{self.path.name} has no rows")
        return values

    def single(self, name: str, option: str) -> np.ndarray:
        """One column, ``(n,)``."""
        found = self.find(name, (), option)
        values = self.values(found)
        if values.shape[1] != 1:
            raise InputError(f"{option} takes one column at a time; {name!r} means {', '.join(found[:5])}")
        if values.dtype == object and any(isinstance(v, list | np.ndarray) for v in values[:100, 0]):
            raise InputError(f"{option}: column {name!r} holds lists")
        return values[:, 0]


def _open(path: Path) -> _Columns:
    if not path.exists():
        near = did_you_mean(path.name, [p.name for p in path.parent.iterdir()]) if path.parent.is_dir() else ""
        raise InputError(f"there is no file {str(path)!r}{near if 'did you mean' in near else ''}")
    readers = {".npz": _npz, ".csv": _frame, ".parquet": _frame, ".jsonl": _frame, ".ndjson": _frame}
    if path.suffix.lower() not in readers:
        raise InputError(
            f"{path.name}: cannot read {path.suffix or 'a file without ending'}; known: {', '.join(readers)}"
        )
    return readers[path.suffix.lower()](path)


def _npz(path: Path) -> _Columns:
    try:
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (BadZipFile, ValueError, EOFError, OSError) as error:
        raise InputError(f"{path.name} cannot be read as NPZ: {_first_line(error)}") from error

    def load(names: Sequence[str]) -> np.ndarray:
        parts = [arrays[name] for name in names]
        if any(part.ndim == 0 for part in parts) or len({len(part) for part in parts}) > 1:
            raise InputError(f"{path.name}: {', '.join(names)} must be arrays with equally many rows")
        return np.concatenate([part.reshape(len(part), -1) if part.size else part[:, None] for part in parts], axis=1)

    return _Columns(path, list(arrays), load)


def _frame(path: Path) -> _Columns:
    try:
        import polars as pl
        from polars.selectors import by_name
    except ModuleNotFoundError as error:
        raise InputError(f"reading {path.suffix} files needs polars: pip install 'calibrant[cli]'") from error

    kind = path.suffix.lower()
    # Types are inferred from all rows: a column may begin with a hundred zeros. Brackets in a name are no pattern.
    scan: Callable[[], pl.LazyFrame] = {
        ".csv": lambda: pl.scan_csv(path, glob=False, infer_schema_length=None),
        ".parquet": lambda: pl.scan_parquet(path, glob=False),
    }.get(kind, lambda: pl.scan_ndjson(path.read_bytes(), infer_schema_length=None))

    def load(names: Sequence[str]) -> np.ndarray:
        frame = reading(lambda: lazy.select(by_name(*names)).collect().select(names))
        missing = {name: frame[name].null_count() for name in names if frame[name].null_count()}
        if missing:
            name, count = next(iter(missing.items()))
            raise InputError(f"{path.name}: column {name!r} has {count:,} missing values; drop or fill those rows")
        return frame.to_numpy()

    def reading(step: Callable[[], Any]) -> Any:
        try:
            return step()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise InputError(f"{path.name} cannot be read as {kind[1:]}: {_first_line(error)}") from error

    lazy = reading(scan)
    return _Columns(path, reading(lambda: lazy.collect_schema().names()), load)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
