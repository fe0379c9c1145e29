"""Several files of predictions of the same rows, one per model."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from calibrant import io
from calibrant._validate import InputError
from calibrant.cli import display
from calibrant.cli.flags import Data, sentences
from calibrant.cli.pipes import is_stream
from calibrant.distributions.base import Distribution
from calibrant.io.opening import open_columns
from calibrant.reports.model_comparison import Comparison, compare
from calibrant.results import how_many
from calibrant.results.text import enumeration
from calibrant.typing import Engine


def compared(
    files: Sequence[Path],
    data: Data,
    id: str | None,
    title: str | None,
    n_resamples: int,
    seed: int,
    engine: Engine | None = None,
) -> Comparison:
    """The models of several files; slices, weights and clusters are those of the first."""
    if any(is_stream(file) for file in files):
        raise InputError("several models come from files: save what comes through the pipe first")
    if len(files) > 1 and len(data.y_pred) > 1:
        raise InputError(
            "several files and several --y-pred: give one file with --y-pred for each model, or one --y-pred"
        )
    if len(files) == 1:
        sources = {name: (files[0], replace(data, y_pred=(name,))) for name in data.y_pred}
    else:
        sources = {name: (file, data) for name, file in zip(names_of(files), files, strict=True)}
    names = list(sources)
    first, keys = sources[names[0]][1].read(files[0]), keys_of(files[0], data, id)
    models: dict[str, Distribution] = {names[0]: first.y_pred}
    for name in names[1:]:
        file, fields = sources[name]
        alone = replace(fields, by=(), sample_weight=None, clusters=None, time=None, block=None)
        other = alone.read(file, told=first.notes)
        rows = _rows(keys, keys_of(file, data, id), files[0], file)
        check_truth(first, other, rows, files[0], file)
        models[name] = other.y_pred[rows]
    heading = title or f"Comparison of {enumeration(names)}"
    with display.steps() as progress:
        found = compare(
            first.y_true,
            models,
            by=first.by,
            sample_weight=first.sample_weight,
            clusters=first.clusters,
            columns=first.columns,
            title=heading,
            n_resamples=n_resamples,
            rng=seed,
            engine=engine,
            progress=progress,
        )
    return replace(found, notes=(*sentences(first.notes), *found.notes))


def names_of(files: Sequence[Path]) -> list[str]:
    """What to call the models: their files without endings, or with folders where two are called alike.

    >>> names_of([Path("x/a.csv"), Path("b.csv")]), names_of([Path("x/a.csv"), Path("y/a.csv")])
    (['a', 'b'], ['x/a.csv', 'y/a.csv'])
    """
    stems = [file.stem for file in files]
    if len(set(stems)) == len(stems):
        return stems
    if len({str(file) for file in files}) < len(files):
        raise InputError("a file is named twice: give each model once")
    return [str(file) for file in files]


def keys_of(file: Path, data: Data, id: str | None) -> np.ndarray | None:
    """The column that names the rows, each once; none where no column was said."""
    if id is None:
        return None
    keys = open_columns(file, data.layout).single(id, "id")
    found, counts = np.unique(keys.astype(str), return_counts=True)
    if counts.max() > 1:
        raise InputError(
            f"--id {id}: {str(found[int(np.argmax(counts))])!r} occurs {counts.max()} times in {file.name}"
        )
    return keys.astype(str)


def _rows(own: np.ndarray | None, others: np.ndarray | None, first: Path, file: Path) -> slice | np.ndarray:
    """The rows of another file in the order of the first."""
    if own is None or others is None:
        return slice(None)
    for there, here, one, other in ((own, others, first, file), (others, own, file, first)):
        missing = np.setdiff1d(there, here)
        if len(missing):
            raise InputError(
                f"--id: {other.name} lacks {how_many(len(missing), 'row')} of {one.name}, such as {str(missing[0])!r}"
            )
    order = np.argsort(others)
    rows: np.ndarray = order[np.searchsorted(others[order], own)]
    return rows


def check_truth(first: io.Dataset, other: io.Dataset, rows: slice | np.ndarray, one: Path, file: Path) -> None:
    """Refuse files of other rows."""
    if len(other.y_true) != len(first.y_true):
        raise InputError(
            f"{file.name} has {how_many(len(other.y_true), 'row')} and {one.name} has {len(first.y_true):,}: models are compared "
            "on the same rows; if these are parts of one data set, say --shards"
        )
    differ = first.y_true != other.y_true[rows]
    differ = differ if differ.ndim == 1 else differ.any(axis=1)
    if differ.any():
        row = int(np.flatnonzero(differ)[0])
        raise InputError(
            f"the truth differs in {how_many(int(differ.sum()), 'row')} between {one.name} and {file.name}, first in row {row}: "
            "give the same rows in the same order, or the column that names them with --id; parts of one data set with --shards"
        )


def numbers_of_models(comparison: Comparison) -> dict[str, float]:
    """What gates may name: every number of every model, as ``ECE of a``, ``pvalue of a``, and differences.

    These are ``Log loss of b - a``, with ``low``, ``high`` and ``pvalue`` before it.
    """
    named: dict[str, float] = {}
    for row in comparison.differences.rows():
        ends = {"": row["difference"], "low ": row["low"], "high ": row["high"]}
        for sign, pair in ((1.0, (row["a"], row["b"])), (-1.0, (row["b"], row["a"]))):
            what = f"{row['measure']} of {pair[0]} - {pair[1]}"
            turned = ends if sign > 0 else {"": -ends[""], "low ": -ends["high "], "high ": -ends["low "]}
            named |= {f"{end}{what}": value for end, value in turned.items()} | {f"pvalue {what}": row["pvalue"]}
    for model, report in comparison.reports.items():
        for x in reversed(report.numbers):
            named |= {f"{x.label} of {model}": x.value, f"{x.estimator_name} of {model}": x.value}
        if report.verdict.pvalue is not None:
            named[f"pvalue of {model}"] = report.verdict.pvalue
    return named
