"""Recalibrators give probabilities, the same ones twice and from a file, and survive awkward rows."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, check_is
from calibrant.distributions.base import Distribution
from calibrant.distributions.continuous.location_scale import Laplace, Normal
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.recalibration.base import Recalibration, Recalibrator
from calibrant.recalibration.maps import Map


@dataclass(frozen=True, eq=False)
class _Problem:
    """Targets and predictions of as many rows."""

    y: np.ndarray
    predictions: Distribution

    def __getitem__(self, rows: np.ndarray) -> "_Problem":
        return _Problem(self.y[rows], self.predictions[rows])

    @property
    def arrays(self) -> list[np.ndarray]:
        """What the predictions are made of."""
        if isinstance(self.predictions, Categorical):
            return [to_numpy(self.predictions.matrix)]
        values: list[Any] = [getattr(self.predictions, part.name) for part in fields(self.predictions)]  # type: ignore[arg-type]
        return [to_numpy(value) for value in values if isinstance(value, np.ndarray)]

    def single(self) -> "_Problem":
        """The predictions in single precision."""
        parts = [part.astype(np.float32) for part in self.arrays]
        return _Problem(self.y, type(self.predictions)(*parts))


def drawn(rng: np.random.Generator, on: int | type[Distribution], n: int) -> _Problem:
    """Predictions that are too sure: probabilities that should be nearer to each other, scales that should be larger."""
    if isinstance(on, int):
        truth = rng.dirichlet(np.ones(on), n)
        y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
        return _Problem(y, Categorical(truth**2 / (truth**2).sum(axis=1, keepdims=True)))
    predictions = on.example(rng, n)
    y = predictions.sample(rng, 2)
    return _Problem(y[0] + (y[1] - y[0]) * 1.5, predictions)


def awkward(rng: np.random.Generator, on: int | type[Distribution]) -> dict[str, _Problem]:
    """Rows that other rows are not like, by name."""
    return _of_classes(rng, on) if isinstance(on, int) else _of_numbers(rng, on)


def _of_classes(rng: np.random.Generator, k: int) -> dict[str, _Problem]:
    p, y = rng.dirichlet(np.ones(k), 60), rng.integers(k, size=60)
    best = p.argmax(axis=1)
    sure = np.eye(k)[y]
    mixed = np.where(np.arange(60)[:, None] % 3 == 0, sure, p)
    rare = np.where(np.arange(60) == 7, k - 1, y % (k - 1)) if k > 2 else np.where(np.arange(60) == 7, 1, 0)
    rows = {
        "separable": (best, p),
        "separable the wrong way": ((best + 1) % k, p),
        "one class only": (np.zeros(60, dtype=np.int64), p),
        "a class of a single row": (rare, p),
        "constant predictions": (y, np.tile(p[:1], (60, 1))),
        "even predictions": (y, np.full((60, k), 1 / k)),
        "zeros and ones": (y, mixed),
        "nothing but zeros and ones": (np.where(np.arange(60) % 10 == 0, best, y), sure),
        "a class that is never possible": (y, _without(p)),
        "tiny probabilities": (y, np.where(p == p.max(axis=1, keepdims=True), 1 - 1e-15 * (k - 1), 1e-15)),
        "few values": (y, p[rng.integers(3, size=60)]),
        "two rows": (np.array([0, 1]), p[:2]),
    }
    return {name: _Problem(targets, Categorical(probs)) for name, (targets, probs) in rows.items()}


def _without(p: np.ndarray) -> np.ndarray:
    """Probabilities of which the last is 0."""
    rest = p.copy()
    rest[:, -1] = 0
    return rest / rest.sum(axis=1, keepdims=True)


def _of_numbers(rng: np.random.Generator, family: type[Distribution]) -> dict[str, _Problem]:
    predictions = family.example(rng, 60)
    y = predictions.sample(rng, 1)[0]
    centre = to_numpy(predictions.quantile(np.array([0.5])))[:, 0]
    return {
        "far off": _Problem(1e3 * y, predictions),
        "all on one side": _Problem(centre + np.abs(y - centre) + 1e-3, predictions),
        "targets at the centre": _Problem(centre, predictions),
        "a constant target": _Problem(np.full(60, 0.3), predictions),
        "equal rows": _Problem(y, predictions[np.zeros(60, dtype=np.int64)]),
        "two rows": _Problem(y[:2], predictions[:2]),
    }


def other_kinds(predictions: Distribution) -> Iterator[Distribution]:
    """Predictions that a map of these must refuse: other numbers of classes, and other families."""
    if isinstance(predictions, Categorical):
        k = predictions.n_classes
        yield from (Categorical(np.full((2, other), 1 / other)) for other in (k + 1, 2) if other != k)
        yield Normal([0.0], [1.0])
    else:
        yield Categorical([0.3, 0.4])
        yield Laplace([0.0], [1.0]) if isinstance(predictions, Normal) else Normal([0.0], [1.0])


ROUNDING = 1e-9
"""How far sums of probabilities may be from one."""

SINGLE = 0.01
"""How far answers to predictions in single precision may be from others, on average: some maps have steps."""


def check_recalibrator(
    recalibrator: Recalibrator,
    rng: np.random.Generator,
    on: int | type[Distribution] = 3,
    *,
    n: int = 200,
    many: int | None = 1_000,
    relabelling: float | None = 1e-6,
    weighting: float | None = 1e-6,
    is_saved: bool = True,
) -> None:
    """Everything a recalibrator must do ``on`` so many classes, or on a family of numbers such as ``Normal``.

    Valid answers in double precision, the same digits twice and from JSON; held-out scores; one column for one column;
    other kinds of predictions refused; separable data, missing classes, constant predictions, zeros and ones, single
    precision, few rows, and, where there may be more than two, ``many`` classes. What it claims may be loosened:
    ``relabelling`` is how far answers may be from those with the classes in another order, ``weighting`` how far those
    with all weights times a constant; ``None`` claims nothing. ``is_saved=False`` is for maps
    that refuse to be saved. One row may be refused.

    >>> from calibrant import Normal
    >>> from calibrant.recalibration import Temperature
    >>> check_recalibrator(Temperature(), np.random.default_rng(0))
    >>> check_recalibrator(Temperature(), np.random.default_rng(0), Normal)
    """
    check_is(recalibrator, Recalibrator, "recalibrator", "a recalibrator such as Temperature()")
    assert replace(recalibrator) == recalibrator, "settings that are equal make different recalibrators"  # type: ignore[type-var]
    problem = drawn(rng, on, n)
    fitted = _check_fit(recalibrator, problem)
    _check_answers(fitted, problem)
    _check_file(fitted.map, problem) if is_saved else _check_refusal_to_save(fitted)
    _check_kinds(fitted, problem)
    _check_weights(recalibrator, problem, rng, weighting)
    _check_single_precision(recalibrator, problem)
    if isinstance(problem.predictions, Categorical):
        _check_columns(recalibrator, problem)
        _check_relabelling(recalibrator, problem, rng, relabelling)
    for name, rows in awkward(rng, on).items():
        _check_valid(recalibrator.fit(rows.y, rows.predictions, folds=min(5, len(rows.y))).map, rows.predictions, name)
    _check_one_row(recalibrator, problem)
    _check_that_weights_count(recalibrator, problem, rng)
    if isinstance(on, int) and on > 2 and many is not None:
        rows = drawn(rng, many, 60)
        _check_valid(recalibrator.fit(rows.y, rows.predictions, folds=0).map, rows.predictions, f"{many:,} classes")


def _check_one_row(recalibrator: Recalibrator, problem: _Problem) -> None:
    """One row is enough, or refused in words."""
    row = problem[np.arange(1)]
    try:
        found = recalibrator.fit(row.y, row.predictions, folds=0)
    except InputError:
        return
    _check_valid(found.map, row.predictions, "one row")


def _check_fit(recalibrator: Recalibrator, problem: _Problem) -> Recalibration:
    """The result says what it is; nothing that was given is changed; a second fit has the same digits."""
    before = [problem.y.copy(), *(part.copy() for part in problem.arrays)]
    fitted = recalibrator.fit(problem.y, problem.predictions)
    assert all(map(np.array_equal, before, [problem.y, *problem.arrays])), "fit changes what it is given"
    assert fitted.n == len(problem.y), f"n is {fitted.n}, not the number of rows"
    assert fitted.scores is not None, "there are no held-out scores"
    has_density = type(problem.predictions).log_prob is not Distribution.log_prob
    judge = "log loss" if has_density else "CRPS"
    assert fitted.scores["score"][0] == judge, f"the first held-out score is not the {judge}"
    assert np.isfinite(fitted.scores["before"]).all(), "held-out scores before the map are not finite"
    assert recalibrator.fit(problem.y, problem.predictions, folds=0).scores is None, "folds=0 still holds rows out"
    again = recalibrator.fit(problem.y, problem.predictions, folds=0)
    assert _same(again.map, fitted.map, problem.predictions), "a second fit gives other digits"
    return fitted


def _check_valid(found: Map, predictions: Distribution, name: str = "") -> None:
    """Probabilities, or quantiles in their order; of as many rows as there were."""
    after, where = found(predictions), f"{name}: " if name else ""
    assert len(after) == len(predictions), f"{where}the map gives {len(after)} rows for {len(predictions)}"
    if not isinstance(after, Categorical):
        quantiles = to_numpy(after.quantile(np.array([0.1, 0.5, 0.9])))
        assert np.isfinite(quantiles).all(), f"{where}the map gives quantiles that are not finite"
        assert np.all(np.diff(quantiles, axis=1) >= 0), f"{where}the map gives quantiles that fall"
        return
    p = to_numpy(after.matrix)
    assert p.dtype == np.float64, f"{where}probabilities are {p.dtype}, not double precision"
    assert np.isfinite(p).all(), f"{where}probabilities are not finite"
    assert np.all((p >= 0) & (p <= 1)), f"{where}probabilities lie outside of [0, 1]"
    assert np.abs(p.sum(axis=1) - 1).max() < ROUNDING, f"{where}probabilities do not sum to one"


def _check_answers(fitted: Recalibration, problem: _Problem) -> None:
    """Valid, the same for a row whatever rows are beside it, and named as before."""
    _check_valid(fitted.map, problem.predictions)
    everything, part = (_numbers(fitted(rows)) for rows in (problem.predictions, problem.predictions[:7]))
    assert np.allclose(part, everything[:7], rtol=0, atol=1e-12), "the answer for a row depends on other rows"
    if isinstance(problem.predictions, Categorical):
        names = tuple(f"class {i}" for i in range(problem.predictions.n_classes))
        after = fitted(Categorical(problem.predictions.matrix, names))
        assert after.labels == names, "names of classes are lost"


def _check_columns(recalibrator: Recalibrator, problem: _Problem) -> None:
    """An array for an array: of two classes, one column for one column."""
    p = problem.arrays[0]
    fitted = recalibrator.fit(problem.y, p, folds=0)
    assert isinstance(fitted(p), np.ndarray), "arrays of probabilities do not become arrays"
    assert fitted(p).shape == p.shape, f"probabilities {p.shape} become {fitted(p).shape}"
    if p.shape[1] == 2:
        one = recalibrator.fit(problem.y, p[:, 1], folds=0)(p[:, 1])
        assert one.shape == (len(p),), f"one column becomes {one.shape}"
        assert np.allclose(one, fitted(p)[:, 1], rtol=0, atol=1e-6), "one column and two have different answers"


def _check_file(found: Map, problem: _Problem) -> None:
    """Every digit comes back from JSON."""
    again = Map.from_dict(json.loads(json.dumps(found.to_dict())))
    assert type(again) is type(found), f"{type(found).__name__} comes back from JSON as {type(again).__name__}"
    assert _same(again, found, problem.predictions), "the map from JSON gives other digits"


def _check_refusal_to_save(fitted: Recalibration) -> None:
    with TemporaryDirectory() as folder:
        _check_refused(lambda: fitted.save(Path(folder) / "map.json"), "a map that cannot be saved does not say so")
        assert not (Path(folder) / "map.json").exists(), "a map that cannot be saved leaves a file"


def _check_kinds(fitted: Recalibration, problem: _Problem) -> None:
    for predictions in other_kinds(problem.predictions):
        _check_refused(lambda rows=predictions: fitted(rows), f"{predictions!r} are not refused")  # type: ignore[misc]


def _check_refused(call: Callable[[], Any], message: str) -> None:
    try:
        call()
    except InputError:
        return
    except Exception as error:
        raise AssertionError(f"{message}, but fail with {error!r}") from error
    raise AssertionError(message)


def _check_weights(
    recalibrator: Recalibrator, problem: _Problem, rng: np.random.Generator, tolerance: float | None
) -> None:
    """No weight is absence, equal weights are as good as none, and a constant times all of them changes nothing."""
    w = rng.integers(0, 4, len(problem.y)).astype(np.float64)
    some = problem[np.flatnonzero(w)]
    weighted = recalibrator.fit(problem.y, problem.predictions, sample_weight=w, folds=0)
    absent = recalibrator.fit(some.y, some.predictions, sample_weight=w[w > 0], folds=0)
    assert _same(absent.map, weighted.map, problem.predictions), "rows without weight matter"
    if tolerance is not None:
        scaled = recalibrator.fit(problem.y, problem.predictions, sample_weight=1.5 * w, folds=0)
        gap = _gap(scaled.map, weighted.map, problem.predictions)
        assert gap <= tolerance, f"weights and the same times 1.5 give answers that differ by {gap:.2g}"
        alike = recalibrator.fit(problem.y, problem.predictions, sample_weight=np.full(len(w), 2.0), folds=0)
        gap = _gap(recalibrator.fit(problem.y, problem.predictions, folds=0).map, alike.map, problem.predictions)
        assert gap <= tolerance, f"equal weights give answers that differ from those without weights by {gap:.2g}"


def _check_that_weights_count(recalibrator: Recalibrator, problem: _Problem, rng: np.random.Generator) -> None:
    w = rng.uniform(0.1, 10, len(problem.y))
    weighted, plain = (recalibrator.fit(problem.y, problem.predictions, sample_weight=x, folds=0) for x in (w, None))
    assert not _same(weighted.map, plain.map, problem.predictions), "weights change nothing"


def _check_single_precision(recalibrator: Recalibrator, problem: _Problem) -> None:
    rows = (problem, problem.single())
    double, single = (_numbers(recalibrator.fit(r.y, r.predictions, folds=0)(r.predictions)) for r in rows)
    gap = float(np.abs(single - double).mean())
    assert gap <= SINGLE, f"single precision changes answers by {gap:.2g} on average"


def _check_relabelling(
    recalibrator: Recalibrator, problem: _Problem, rng: np.random.Generator, tolerance: float | None
) -> None:
    if tolerance is None:
        return
    p, order = problem.arrays[0], rng.permutation(problem.arrays[0].shape[1])
    order = order if np.any(order != np.arange(len(order))) else order[::-1]
    plain = recalibrator.fit(problem.y, p, folds=0)(p)
    renamed = recalibrator.fit(np.argsort(order)[problem.y], p[:, order], folds=0)(p[:, order])
    gap = float(np.abs(renamed - plain[:, order]).max())
    assert gap <= tolerance, f"with classes in another order answers differ by {gap:.2g}"


def _numbers(after: Distribution) -> np.ndarray:
    """Predictions as numbers, one line per row."""
    if isinstance(after, Categorical):
        return to_numpy(after.matrix)
    return to_numpy(after.quantile(np.array([0.05, 0.5, 0.95])))


def _gap(one: Map, other: Map, predictions: Distribution) -> float:
    return float(np.abs(_numbers(one(predictions)) - _numbers(other(predictions))).max())


def _same(one: Map, other: Map, predictions: Distribution) -> bool:
    return np.array_equal(_numbers(one(predictions)), _numbers(other(predictions)))
