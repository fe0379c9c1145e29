"""Studies: every measure on many data sets of every world and size, in one tidy table, and the record of unfinished ones."""

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from calibrant import __version__
from calibrant._files import write_whole
from calibrant._tasks import mapping
from calibrant._validate import InputError, check_count, check_fraction, check_is
from calibrant.inference.monte_carlo import as_seed_sequence
from calibrant.inference.proportions import interval_of_share
from calibrant.lab.world import World
from calibrant.results import Estimate, Table, TestResult, jsonable
from calibrant.results.text import brief
from calibrant.typing import Engine


@dataclass(frozen=True)
class StudyRecord:
    """A file of JSON lines: the settings of a study, then the results of every cell by its number.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     record = StudyRecord(Path(folder) / "study.jsonl", {"seed": 0})
    ...     before = record.read()
    ...     record.add(2, {"mean": 0.5})
    ...     before, record.read()
    ({}, {2: {'mean': 0.5}})
    """

    path: Path
    settings: dict[str, Any]

    def read(self) -> dict[int, Any]:
        """Finished cells. A new file begins with the settings; an old one must have the same."""
        lines = self.path.read_text("utf-8").splitlines(keepends=True) if self.path.exists() else []
        whole = [line for line in lines if line.endswith("\n")]  # else it was cut off while it was written
        begin = json.dumps({"settings": jsonable(self.settings)}) + "\n"
        if not whole and begin.startswith("".join(lines)):
            whole = [begin]
        first, *cells = map(self._parsed, whole or lines)
        self._check_settings(first.get("settings"))
        if whole != lines:
            write_whole(self.path, "".join(whole))
        return {cell["cell"]: cell["results"] for cell in cells}

    def add(self, cell: int, results: object) -> None:
        """Append a finished cell."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"cell": cell, "results": jsonable(results)}, allow_nan=False) + "\n")

    def _parsed(self, line: str) -> dict[str, Any]:
        try:
            value = json.loads(line)
        except json.JSONDecodeError:
            value = None
        if not isinstance(value, dict):
            raise InputError(f"{self.path} is no record of a study: found {line[:40]!r}; give another path")
        return value

    def _check_settings(self, found: Any) -> None:
        if not isinstance(found, dict):
            raise InputError(f"{self.path} is no record of a study: it does not begin with settings; give another path")
        for key, value in jsonable(self.settings).items():
            if found.get(key) != value:
                raise InputError(
                    f"{self.path} belongs to another study: {key} is {found.get(key)!r} there and {value!r} here; "
                    "give another path, or delete the file"
                )


def resumed(
    work: Callable[..., np.ndarray], tasks: Sequence[tuple[Any, ...]], record: StudyRecord | None, engine: Engine | None
) -> list[np.ndarray]:
    """The numbers that ``work`` finds for every task; those that the record holds are not worked out again.

    >>> resumed(lambda a, b: np.array([a + b]), [(1, 2), (3, 4)], None, None)
    [array([3]), array([7])]
    """
    done = {} if record is None else {i: np.array(values, dtype=float) for i, values in record.read().items()}
    todo = [i for i in range(len(tasks)) if i not in done]
    found = mapping(engine)(work, *zip(*(tasks[i] for i in todo), strict=True)) if todo else ()
    for i, values in zip(todo, found, strict=True):
        done[i] = values
        if record is not None:
            record.add(i, values)
    return [done[i] for i in range(len(tasks))]


CHUNK = 25
"""Data sets of one task. Seeds depend on it, so it is the same for everyone."""

LEVEL = 0.95
"""The confidence level of the intervals whose coverage is counted, and of those around rejection rates."""

Measure: TypeAlias = Callable[..., Any]
"""Targets and predictions to an estimate, a test result or a number; gets ``rng`` if it has such a parameter."""

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with the cell at work, how many tasks are done, and how many there are."""

Row: TypeAlias = dict[str, Any]

COLUMNS = ("rejected", "rejected_low", "rejected_high", "mean", "sd", "truth", "bias", "rmse", "coverage")


@dataclass(frozen=True)
class Study:
    """Rejection rates of tests; bias, spread and coverage of estimators.

    Calling it draws ``n_sets`` data sets for every world and size, and puts all ``measures``, pairs of a name and an
    estimator or test, to each of them. The table has one row a world, size and measure. Tests have ``rejected``, the
    share of p-values up to ``alpha``, and its limits ``rejected_low`` and ``rejected_high``. Estimators have ``mean``,
    ``sd`` and, where the world knows the ``truth``, ``bias``, ``rmse`` and the ``coverage`` of their 95 % intervals.
    What does not apply is NaN.

    The digits depend on the settings, never on the engine. Finished cells are kept in the file at ``path``, so that a
    study that was broken off goes on where it stopped.

    >>> from calibrant import ECE, Brier, ExactTest
    >>> from calibrant.lab import Sigmoid
    >>> measures = [("score", Brier()), ("test", ExactTest(ECE(), n_resamples=19))]
    >>> table = Study([Sigmoid(), Sigmoid(0.2)], [100], measures, n_sets=20)()
    >>> table["rejected"]
    array([ nan, 0.05,  nan, 0.9 ])
    """

    worlds: Sequence[World]
    sizes: Sequence[int]
    measures: Sequence[tuple[str, Measure]]
    n_sets: int = 500
    seed: int = 0
    alpha: float = 0.05

    def __post_init__(self) -> None:
        for name in ("worlds", "sizes", "measures"):
            check_is(getattr(self, name), Iterable, name, "a list")
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for world in self.worlds:
            check_is(world, World, "every one of worlds", "a world such as Sigmoid()")
        for size in self.sizes:
            check_count(size, "every one of sizes")
        for name, measure in self.measures:
            if not callable(measure):
                raise InputError(f"measures must be pairs of a name and a callable; {name!r} has {measure!r}")
        _check_different([world.name for world in self.worlds], "worlds")
        _check_different(self.sizes, "sizes")
        _check_different([name for name, _ in self.measures], "measures")
        check_count(self.n_sets, "n_sets", least=2)
        check_count(self.seed, "seed", least=0)
        check_fraction(self.alpha, "alpha")

    def __call__(
        self,
        *,
        engine: Engine | None = None,
        progress: Progress | None = None,
        path: str | PathLike[str] | None = None,
    ) -> Table:
        """Run the cells that the file does not hold yet."""
        cells = [(world, n) for world in self.worlds for n in self.sizes]
        record = None if path is None else StudyRecord(Path(path), self.settings())
        done = {} if record is None else {i: [_revived(row) for row in rows] for i, rows in record.read().items()}
        todo = [i for i in range(len(cells)) if i not in done]
        sizes = [min(CHUNK, self.n_sets - start) for start in range(0, self.n_sets, CHUNK)]
        seeds = [seed.spawn(len(sizes)) for seed in np.random.SeedSequence(self.seed).spawn(len(cells))]
        tasks = [(*cells[i], seed, size) for i in todo for seed, size in zip(seeds[i], sizes, strict=True)]
        results = _results(partial(_measure_chunk, self.measures), tasks, engine, progress)
        for i in todo:
            values = np.concatenate(list(islice(results, len(sizes))), axis=1)
            done[i] = [self._row(*cells[i], *pair) for pair in zip(self.measures, values, strict=True)]
            if record is not None:
                record.add(i, done[i])
        rows = [row for i in range(len(cells)) for row in done[i]]
        return Table({key: [row[key] for row in rows] for key in rows[0]})

    def settings(self) -> dict[str, Any]:
        """What decides the digits, as plain data."""
        return {
            "calibrant": __version__,
            "worlds": [world.name for world in self.worlds],
            "sizes": [int(n) for n in self.sizes],
            "measures": [[name, _described(name, measure)] for name, measure in self.measures],
            "n_sets": int(self.n_sets),
            "seed": int(self.seed),
            "alpha": float(self.alpha),
        }

    def _row(self, world: World, n: int, measure: tuple[str, Measure], values: np.ndarray) -> Row:
        """One row of the table, from value, interval and p-value of every data set, ``(n_sets, 4)``."""
        name, function = measure
        numbers: Row = dict.fromkeys(COLUMNS, np.nan)
        value, low, high, pvalue = values.T
        if not np.all(np.isnan(pvalue)):
            count = int(np.sum(pvalue <= self.alpha))
            limits = interval_of_share(count, len(values), LEVEL)
            numbers |= {"rejected": count / len(values), "rejected_low": limits.low, "rejected_high": limits.high}
        else:
            numbers |= _moments(value, low, high, world.truth(getattr(function, "estimator", function)))
        return {"world": world.name, "n": int(n), "measure": name, "n_sets": len(values), **numbers}


def _moments(value: np.ndarray, low: np.ndarray, high: np.ndarray, truth: float | None) -> Row:
    """Mean and spread of the values, and how they and their intervals lie to the truth."""
    with np.errstate(invalid="ignore"):  # infinite values have no spread
        row: Row = {"mean": float(value.mean()), "sd": float(value.std(ddof=1))}
    if truth is None:
        return row
    row |= {"truth": truth, "bias": row["mean"] - truth, "rmse": float(np.sqrt(np.mean((value - truth) ** 2)))}
    if not np.all(np.isnan(low)):
        row["coverage"] = float(np.mean((low <= truth) & (truth <= high)))
    return row


def _results(
    work: Callable[..., np.ndarray],
    tasks: list[tuple[Any, ...]],
    engine: Engine | None,
    progress: Progress | None,
) -> Iterator[np.ndarray]:
    """The results of all tasks in their order, wherever they run."""
    results = mapping(engine)(work, *zip(*tasks, strict=True))
    for i, ((world, n, *_), result) in enumerate(zip(tasks, results, strict=True)):
        if progress is not None:
            progress(f"{world.name}, n = {n:,}", i + 1, len(tasks))
        yield result


def _measure_chunk(
    measures: Sequence[tuple[str, Measure]], world: World, n: int, seed: np.random.SeedSequence, size: int
) -> np.ndarray:
    """Value, interval and p-value of every measure on ``size`` data sets, ``(measures, size, 4)``."""
    numbers = np.empty((len(measures), size, 4))
    takes_rng = ["rng" in inspect.signature(measure).parameters for _, measure in measures]
    for j, child in enumerate(as_seed_sequence(seed).spawn(size)):
        data, resamples = child.spawn(2)
        y_true, y_pred = world.draw(n, np.random.default_rng(data))
        for i, (name, measure) in enumerate(measures):
            options = {"rng": np.random.default_rng(resamples)} if takes_rng[i] else {}
            try:
                numbers[i, j] = _numbers(measure(y_true, y_pred, **options))
            except InputError as error:
                raise InputError(f"measure {name!r} on {world.name} with n = {n:,}: {error}") from error
    return numbers


def _numbers(result: object) -> tuple[float, float, float, float]:
    """Value, both ends of the 95 % interval and p-value, NaN for what there is not."""
    if isinstance(result, TestResult):
        return np.nan, np.nan, np.nan, result.pvalue
    if isinstance(result, Real):
        return float(result), np.nan, np.nan, np.nan
    if not isinstance(result, Estimate):
        raise InputError(f"it must give an Estimate, a TestResult or a number; got {result!r}")
    if not result.has_interval:
        return float(result), np.nan, np.nan, np.nan
    return float(result), *result.confidence_interval(LEVEL), np.nan


def _check_different(values: Sequence[object], name: str) -> None:
    if not values or len(set(values)) < len(values):
        raise InputError(f"{name} must be different ones, at least one; got {list(values)}")


def _described(name: str, measure: Measure) -> str:
    """What a measure is, in words that stay the same when the program runs again."""
    where = getattr(measure, "__module__", None)
    text = f"{where}.{measure.__qualname__}" if hasattr(measure, "__qualname__") else repr(measure)
    if " at 0x" in text or "<lambda>" in text:
        raise InputError(f"measure {name!r} cannot be told from others in a file: use a named function or a dataclass")
    return text


def _revived(row: Row) -> Row:
    """Numbers that JSON lacks come back from their names."""
    return row | {key: float(row[key]) for key in COLUMNS}


Measures: TypeAlias = Mapping[str, Measure] | Sequence[Measure]
"""Measures by name; those of a list are named by their settings."""


def bias_study(
    world: World,
    estimators: Measures,
    sizes: Sequence[int],
    n_sets: int = 200,
    *,
    seed: int = 0,
    engine: Engine | None = None,
    progress: Progress | None = None,
    path: str | PathLike[str] | None = None,
) -> Table:
    """Bias, standard deviation and root mean squared error of estimators on data sets of a world with known truth.

    Columns ending in ``_error`` are Monte-Carlo standard errors of the column before: ``sd / sqrt(n_sets)`` for the bias,
    and those of normal values for ``sd`` and ``rmse``. ``engine``, ``progress`` and ``path`` are those of
    :class:`~calibrant.lab.Study`.

    >>> from calibrant import ECE, EqualMass
    >>> from calibrant.lab import BetaScores, ScoreWorld
    >>> table = bias_study(ScoreWorld(BetaScores()), {"few": ECE(EqualMass(5)), "many": ECE(EqualMass(50))}, [500], 50)
    >>> table["estimator"].tolist(), table["bias"].round(2)
    (['few', 'many'], array([0.03, 0.1 ]))
    """
    table = Study([world], sizes, _named(estimators, "estimators"), n_sets, seed)(
        engine=engine, progress=progress, path=path
    )
    if np.any(np.isfinite(table["rejected"])):
        raise InputError("estimators must give numbers, not p-values: for tests there is power_study")
    sd, bias, rmse = table["sd"], table["bias"], table["rmse"]
    spread = np.sqrt(2 * sd**4 + 4 * sd**2 * bias**2)  # of the squared error of a normal value
    with np.errstate(invalid="ignore"):
        return Table(
            n=table["n"],
            estimator=table["measure"],
            truth=table["truth"],
            mean=table["mean"],
            bias=bias,
            bias_error=sd / np.sqrt(n_sets),
            sd=sd,
            sd_error=sd / np.sqrt(2 * (n_sets - 1)),
            rmse=rmse,
            rmse_error=spread / (2 * rmse * np.sqrt(n_sets)),
        )


def power_study(
    worlds: Mapping[str, World] | Sequence[World],
    tests: Measures,
    sizes: Sequence[int],
    n_sets: int = 200,
    *,
    alpha: float = 0.05,
    seed: int = 0,
    engine: Engine | None = None,
    progress: Progress | None = None,
    path: str | PathLike[str] | None = None,
) -> Table:
    """How often tests reject at level ``alpha``, world by world: their level where it is calibrated, else their power.

    ``error`` is the Monte-Carlo standard error of the share, ``low`` and ``high`` are its exact 95 % limits.

    >>> from calibrant import ECE, EqualMass, ExactTest
    >>> from calibrant.lab import BetaScores, Power, ScoreWorld
    >>> worlds = {"right": ScoreWorld(BetaScores()), "wrong": ScoreWorld(BetaScores(), Power(2))}
    >>> power_study(worlds, {"exact": ExactTest(ECE(EqualMass(5)), 19)}, [200], 20)["rejected"]
    array([0.05, 1.  ])
    """
    check_is(worlds, Iterable, "worlds", "a list, or a dictionary of names")
    some = list(worlds.values()) if isinstance(worlds, Mapping) else list(worlds)
    names = list(worlds) if isinstance(worlds, Mapping) else [getattr(world, "name", None) for world in some]
    table = Study(some, sizes, _named(tests, "tests"), n_sets, seed, alpha)(engine=engine, progress=progress, path=path)
    if np.any(np.isnan(table["rejected"])):
        raise InputError("tests must give p-values: for estimators there is bias_study")
    rejected = table["rejected"]
    titles = {world.name: name for world, name in zip(some, names, strict=True)}
    return Table(
        world=[titles[name] for name in table["world"].tolist()],
        n=table["n"],
        test=table["measure"],
        rejected=rejected,
        error=np.sqrt(rejected * (1 - rejected) / n_sets),
        low=table["rejected_low"],
        high=table["rejected_high"],
    )


def _named(measures: Measures, name: str) -> list[tuple[str, Measure]]:
    """Pairs for a study."""
    if isinstance(measures, Mapping):
        return list(measures.items())
    if callable(measures):
        raise InputError(f"{name} must be a list, or a dictionary of names; got {measures!r}")
    check_is(measures, Iterable, name, "a list, or a dictionary of names")
    return [(_title(measure), measure) for measure in measures]


def _title(measure: Callable[..., Any]) -> str:
    return getattr(measure, "__name__", None) or brief(measure)
