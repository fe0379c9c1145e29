"""From a file to targets and predictions: CSV, Parquet, JSON lines and NPZ."""

import re
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, Literal

import numpy as np

from calibrant._validate import InputError, check_is, check_one_of, did_you_mean
from calibrant._wording import said
from calibrant.distributions.base import Distribution
from calibrant.distributions.composite.mixture import Mixture
from calibrant.distributions.composite.truncated import Censored, Truncated
from calibrant.distributions.continuous.finite_interval import Beta, Uniform
from calibrant.distributions.continuous.location_scale import Laplace, Logistic, Normal
from calibrant.distributions.continuous.positive import Gamma, LogNormal
from calibrant.distributions.continuous.power_exponential import PowerExponential
from calibrant.distributions.continuous.student_t import StudentT
from calibrant.distributions.dirichlet_family import Dirichlet
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.discrete.class_names import event_of
from calibrant.distributions.discrete.count_families import NegativeBinomial, Poisson
from calibrant.distributions.empirical.ensemble import Ensemble
from calibrant.distributions.empirical.piecewise import Histogram
from calibrant.distributions.empirical.quantiles import Quantiles
from calibrant.distributions.multivariate import MultivariateNormal
from calibrant.inference.suspicion import may_tell
from calibrant.io.class_columns import ClassColumns, Scale, labels_among, stars
from calibrant.io.columns import Columns, check_texts
from calibrant.io.layout import PLAIN, FileLayout
from calibrant.io.long_format import LongFormat
from calibrant.io.opening import Source, open_columns
from calibrant.io.quantile_columns import check_is_whole, levels_of_names, of_lines, rearranged
from calibrant.io.written_numbers import Role
from calibrant.spec import misfit, parse

TRUTH_NAMES = ("y_true", "y", "label", "labels", "target", "ground_truth", "correct")
PREDICTION_NAMES = (
    *("p_*", "prob_*", "proba_*", "p", "prob", "proba", "probability", "y_prob", "y_proba", "y_score", "score"),
    *("confidence", "predictions", "prediction", "y_pred"),
)
"""Usual names of probabilities, the surest first; ``y_pred`` is the last, as it often holds decisions."""

FAMILIES: Mapping[str, Callable[..., Distribution]] = {
    "Bernoulli": Bernoulli,
    "Beta": Beta,
    "Categorical": Categorical,
    "Categorical.from_logits": Categorical.from_logits,
    "Censored": Censored,
    "Dirichlet": Dirichlet,
    "Ensemble": Ensemble,
    "Gamma": Gamma,
    "Histogram": Histogram,
    "Histogram.from_cdf": Histogram.from_cdf,
    "Interval": Quantiles.interval,
    "Laplace": Laplace,
    "Logistic": Logistic,
    "LogNormal": LogNormal,
    "Mixture": Mixture,
    "MultivariateNormal": MultivariateNormal,
    "NegativeBinomial": NegativeBinomial,
    "NegativeBinomial.from_total_count": NegativeBinomial.from_total_count,
    "Normal": Normal,
    "Poisson": Poisson,
    "PowerExponential": PowerExponential,
    "Quantiles": Quantiles,
    "Quantiles.joined": Quantiles.joined,
    "Quantiles.rearranged": Quantiles.rearranged,
    "StudentT": StudentT,
    "Truncated": Truncated,
    "Uniform": Uniform,
}
"""What ``--predict`` may name; arguments are columns."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """What a file held: targets, predictions, columns to slice by, weights, and which columns were taken.

    ``clusters`` and ``time`` say which rows belong together, ``folds`` which of several models predicted them; ``columns`` are
    others that may say so by their names. ``notes`` say how columns were read where that may surprise.

    >>> data = read(example("digits"), y_true="digit", y_pred="p_*", by=["ink"])
    >>> len(data.y_true), list(data.by)
    (1797, ['ink'])
    """

    y_true: np.ndarray
    y_pred: Distribution
    by: Mapping[str, np.ndarray]
    sample_weight: np.ndarray | None
    source: str
    clusters: np.ndarray | None = field(default=None, kw_only=True)
    time: np.ndarray | None = field(default=None, kw_only=True)
    folds: np.ndarray | None = field(default=None, kw_only=True)
    columns: Mapping[str, np.ndarray] = field(default_factory=dict, kw_only=True)
    notes: tuple[str, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a file held of predictions: the name of their family, the columns of each of its parameters, and the file.

    Parameters that were given as a number have no columns.

    >>> found = read_predictions(example("diabetes"), predict="Normal(mu, scale=sigma)")
    >>> found.family, found.columns["loc"]
    ('Normal', ['mu'])
    """

    prediction: Distribution
    family: str
    columns: Mapping[str, list[str]]
    file: Columns
    notes: tuple[str, ...] = ()


def example(name: str) -> Path:
    """The path of an example file that ships with calibrant: ``digits`` or ``diabetes``.

    >>> example("digits").name
    'digits.csv'
    """
    return Path(__file__).parents[1] / "data" / f"{name}.csv"


def read(
    path: Source,
    *,
    y_true: str | None = None,
    y_pred: str | None = None,
    predict: str | None = None,
    by: Sequence[str] = (),
    sample_weight: str | None = None,
    clusters: str | None = None,
    time: str | None = None,
    fold: str | None = None,
    pos_label: str | None = None,
    missing: Literal["fail", "drop"] = "fail",
    scale: str | None = None,
    normalise: bool = False,
    rearrange: bool = False,
    forecast_id: str | None = None,
    format: str | None = None,
    sep: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
) -> Dataset:
    """Read targets and predictions from a file, or from several that are parts of one: a list, or a pattern such as ``part-*.csv``.

    ``y_true`` and ``y_pred`` name columns; several, by a pattern (``p_*``) or separated by commas. The part of a name
    that the star stands for is the class; ``cat=score_1,dog=score_2`` says the classes. ``y_true="answer==key"`` is whether two
    columns agree. ``predict`` names a family and its columns instead: ``Categorical.from_logits(logits='z_*')``. Without names,
    usual ones are looked for.

    ``missing="drop"`` leaves out rows without a value; ``scale`` says that probabilities are in ``percent``, their logarithms
    (``log``), log-odds or logits (``logit``), or words: ``high=0.9,low=0.4``; ``normalise`` divides rows by their sums;
    ``rearrange`` sorts quantiles that cross. Where each member of an ensemble has a line, ``forecast_id`` names the columns that
    the lines of a forecast share: ``predict="Ensemble(value)", forecast_id="day,station"``. ``format``
    is ``csv``, ``parquet``, ``jsonl``, ``json``, ``xlsx`` or ``npz`` where neither ending nor content says it; ``sep``,
    ``encoding`` and ``decimal`` are for text. What was read in another way than it is written is in ``notes``.

    >>> data = read(example("digits"), y_true="digit", y_pred="p_*", by=["ink"])
    >>> data.y_pred
    <Categorical: 1,797 predictions of 10 classes, labels=('0', '1', '2', '3', '4', '5', '6', '7', '8', '9')>
    """
    return dataset_of(
        open_columns(path, FileLayout(format, sep, encoding, decimal)),
        y_true=y_true,
        y_pred=y_pred,
        predict=predict,
        by=by,
        sample_weight=sample_weight,
        clusters=clusters,
        time=time,
        fold=fold,
        pos_label=pos_label,
        missing=missing,
        scale=scale,
        normalise=normalise,
        rearrange=rearrange,
        forecast_id=forecast_id,
    )


def dataset_of(
    table: Columns,
    *,
    y_true: str | None = None,
    y_pred: str | None = None,
    predict: str | None = None,
    by: Sequence[str] = (),
    sample_weight: str | None = None,
    clusters: str | None = None,
    time: str | None = None,
    fold: str | None = None,
    pos_label: str | None = None,
    missing: Literal["fail", "drop"] = "fail",
    scale: str | None = None,
    normalise: bool = False,
    rearrange: bool = False,
    forecast_id: str | None = None,
    is_part: bool = False,
) -> Dataset:
    """Targets and predictions from columns, as for :func:`read`; in a part of a file the positive label may be missing."""
    check_one_of(missing, ("fail", "drop"), "missing")
    check_texts(y_true=y_true, y_pred=y_pred, predict=predict, scale=scale, forecast_id=forecast_id)
    table = table if forecast_id is None else LongFormat(table, forecast_id)
    truth_names = truth_names_of(table, y_true)
    if isinstance(table, LongFormat):
        table.load(truth_names, "group")  # refuses a truth that differs within a forecast
    if missing == "drop":
        options = {"clusters": clusters, "time": time, "fold": fold, "sample_weight": sample_weight}
        others = {name: option for option, name in options.items() if name}
        known = _truth(_complete(table, truth_names, [], {}), truth_names, y_true, "label")
        numbers = prediction_names_of(table, y_pred, predict, known)
        table = _complete(table, truth_names, numbers, {**dict.fromkeys(names_of_groups(by), "by"), **others})
    are_classes = predict is None or predict.startswith(("Categorical", "Bernoulli"))
    truth = _truth(table, truth_names, y_true, "label" if are_classes else "number")
    if predict is None:
        _check_labels(truth, truth_names[0])
    if predict is not None:
        _check_alone(y_pred=y_pred, pos_label=pos_label, scale=scale, normalise="" if normalise else None)
        found = _family(predict, table, rearrange)
        y, prediction, source, notes = truth, found.prediction, predict, found.notes
        prediction = _with_labels(prediction, found, truth)
        names = [name for part in found.columns.values() for name in part]
    else:
        classes = ClassColumns.of(table, y_pred, PREDICTION_NAMES, truth, is_part=is_part, scale=Scale.parse(scale))
        classes = classes.normalised() if normalise else classes
        if truth.ndim == 2:
            classes = _in_order_of(truth_names, classes, y_true)
        y, prediction = _classes(truth, classes, pos_label, is_part, table)
        names, notes = classes.names, classes.notes
        source = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]} ({len(names)} columns)"
    told = (*table.notes, *notes)
    return Dataset(
        y_true=y,
        y_pred=prediction,
        by={name: table.single(name, "by") for name in names_of_groups(by)},
        sample_weight=None if sample_weight is None else table.single(sample_weight, "sample_weight"),
        clusters=None if clusters is None else table.single(clusters, "clusters"),
        time=None if time is None else table.single(time, "time"),
        folds=None if fold is None else table.single(fold, "fold"),
        columns={}
        if is_part or clusters or time
        else _telling(table, {*truth_names, *names, sample_weight, fold}, len(y)),
        source=f"truth: {', '.join(truth_names)}; predictions: {source}",
        notes=told,
    )


def truth_names_of(table: Columns, wish: str | None) -> list[str]:
    """The columns of the truth; of ``answer==key`` both."""
    if wish is not None and "==" in wish and wish not in table.names:
        return [name for part in wish.split("==", 1) for name in table.find(part.strip(), (), "y_true")]
    return table.find(wish, TRUTH_NAMES, "y_true")


def _truth(table: Columns, names: list[str], wish: str | None, role: Role) -> np.ndarray:
    """The truth, ``(n,)``, or ``(n, labels)``; of ``answer==key`` whether they agree."""
    if wish is not None and "==" in wish and wish not in table.names:
        answer, key = (np.char.strip(table.values([name]).astype(str)[:, 0]) for name in names)
        return (answer == key) * 1
    truth = _whole(table.values(names, role), names)
    return truth if truth.shape[1] > 1 else truth[:, 0]


def prediction_names_of(
    table: Columns, y_pred: str | None, predict: str | None, truth: np.ndarray | None = None
) -> list[str]:
    """The columns of predictions, before any value of theirs is looked at."""
    if predict is not None:
        return columns_of_family(predict, table)
    return ClassColumns.names_of(table, y_pred, PREDICTION_NAMES, truth)[0]


def _complete(table: Columns, truth: list[str], numbers: list[str], others: Mapping[str, str]) -> Columns:
    """The rows that have every value which is needed."""
    roles: dict[str, Role] = {**dict.fromkeys(truth, "label"), **dict.fromkeys(numbers, "number")}
    for wish, option in others.items():
        role: Role = "number" if option == "sample_weight" else "group"
        roles |= {name: role for name in table.find(wish, (), option) if name not in roles}
    return table.complete(roles)


def names_of_groups(by: Sequence[str]) -> Sequence[str]:
    """Names of columns; one may come alone."""
    check_is(by, (str, list, tuple), "by", "a list of names of columns")
    return [by] if isinstance(by, str) else by


def _telling(table: Columns, taken: Set[str | None], n: int) -> dict[str, np.ndarray]:
    """Other columns that may say, by their names, which rows belong together; those that cannot be read do not."""
    found: dict[str, np.ndarray] = {}
    for name in table.names:
        if name not in taken and may_tell(name):
            with suppress(InputError):
                values = table.load([name], "group")
                found |= {name: values[:, 0]} if values.shape == (n, 1) else {}
    return found


def read_predictions(
    path: Source,
    *,
    y_pred: str | None = None,
    predict: str | None = None,
    pos_label: str | None = None,
    scale: str | None = None,
    missing: Literal["fail", "drop"] = "fail",
    layout: FileLayout = PLAIN,
) -> Predictions:
    """Read predictions from a file that need not have the truth; columns are named as for :func:`read`.

    Rows without a prediction that are dropped are not written again, either.

    >>> read_predictions(example("diabetes"), predict="Normal(mu, scale=sigma)").columns
    {'loc': ['mu'], 'scale': ['sigma']}
    """
    check_texts(y_pred=y_pred, predict=predict, scale=scale)
    table = open_columns(path, layout)
    if missing == "drop":
        table = _complete(table, [], prediction_names_of(table, y_pred, predict), {})
    if predict is not None:
        _check_alone(y_pred=y_pred, pos_label=pos_label, scale=scale)
        return _family(predict, table)
    found = ClassColumns.of(table, y_pred, PREDICTION_NAMES, None, is_part=False, scale=Scale.parse(scale))
    probs = found.values
    classes = Categorical(probs[:, 0]) if probs.shape[1] == 1 else Categorical(probs, found.labels)
    written = ("probabilities are written in place of what they were read from",) if scale is not None else ()
    return Predictions(classes, "Categorical", {"probs": found.names}, table, (*table.notes, *found.notes, *written))


def has_truth(path: Source, layout: FileLayout = PLAIN) -> bool:
    """Whether a file has a column of a usual name for the truth."""
    return bool(open_columns(path, layout).usual(TRUTH_NAMES))


def _check_alone(**others: str | None) -> None:
    """Refuse other names of columns beside a family."""
    if given := [said(name) for name, value in others.items() if value is not None]:
        raise InputError(f"{said('predict')} names the columns itself: leave out {' and '.join(given)}")


def _check_labels(truth: np.ndarray, name: str) -> None:
    """Refuse a truth of numbers that are no labels: what is forecast is told by a family."""
    odd = (
        (truth != np.round(truth)) & ((truth < 0) | (truth > 1)) if truth.dtype.kind == "f" else np.zeros(1, dtype=bool)
    )
    if odd.any():
        families = f"{said('predict', 'Normal(mean, sd)')}, 'Quantiles(q_*)' or 'Ensemble(m_*)'"
        what = f"column {name!r} holds numbers such as {truth[odd][0]:g}, and no labels"
        raise InputError(f"{what}: say which columns make which forecast, {families}")


def _with_labels(prediction: Distribution, found: Predictions, truth: np.ndarray) -> Distribution:
    """Classes of a family under the names that their columns have, where the truth is text."""
    if not isinstance(prediction, Categorical) or prediction.labels is not None or truth.dtype.kind in "biuf":
        return prediction
    (names,) = found.columns.values()
    labels = labels_among(names, truth)
    return prediction if labels is None else replace(prediction, labels=labels)


def _classes(
    truth: np.ndarray, classes: ClassColumns, pos_label: str | None, is_part: bool, table: Columns
) -> tuple[np.ndarray, Distribution]:
    """Truth and class probabilities, with the names that the file's column names give the classes."""
    probs = classes.values
    if truth.ndim == 2 and pos_label is None:
        return truth, Bernoulli(probs, classes.labels)
    if probs.shape[1] == 1:
        named = None if is_part else pos_label
        return _against(truth, pos_label, is_part, table), Categorical(probs[:, 0], pos_label=named)
    if pos_label is not None:
        raise InputError(
            f"{said('pos_label')} goes with a single column of probabilities; with a column per class, leave it out"
        )
    classes.check(truth)
    return truth, Categorical(probs, classes.labels)


def _in_order_of(truth: list[str], classes: ClassColumns, y_true: str | None) -> ClassColumns:
    """Columns of probabilities in the order of the columns of truth, matched by what their stars stand for."""
    labels = stars(truth, TRUTH_NAMES if y_true is None else (y_true,))
    found = classes.labels
    if labels is None or found is None:
        return classes
    if sorted(labels) != sorted(found):
        either = f"{said('y_true')} has the labels {list(labels)[:5]} and {said('y_pred')} has {list(found)[:5]}"
        raise InputError(f"{either}: they must agree")
    order = [found.index(label) for label in labels]
    return replace(classes, names=[classes.names[i] for i in order], values=classes.values[:, order], labels=labels)


DECISIONS = ("prediction", "predicted", "pred", "y_pred", "answer", "response")
"""Usual names of what a model decided."""


def _against(truth: np.ndarray, pos_label: str | None, is_part: bool, table: Columns) -> np.ndarray:
    """The names of targets, which a positive label is one of; of a part, which may lack it, whether each is it; else numbers."""
    if pos_label is not None:
        names = truth.astype(str)
        if not is_part and pos_label not in (found := np.unique(names).tolist()):
            raise InputError(f"{said('pos_label')} {pos_label!r} never occurs{did_you_mean(pos_label, found)}")
        return (names == pos_label).astype(np.uint8) if is_part else names
    if truth.dtype.kind not in "iubf":
        found = np.unique(truth.astype(str)).tolist()[:4]
        decided = [name for name in table.names if name.lower() in DECISIONS][:1]
        sure = "".join(f"; of a confidence in {name!r} say {said('y_true', f'{name}==TRUTH')}" for name in decided)
        likely = found[::-1] if event_of(tuple(found)) else found
        which = " or ".join(said("pos_label", name) for name in (likely if len(found) == 2 else likely[:1]))
        what = f"the truth holds {', '.join(map(repr, found))}"
        raise InputError(f"{what}: say which one the probability is of, {which}{sure}")
    return truth


def _family(text: str, table: Columns, rearrange: bool = False) -> Predictions:
    check_is(text, str, "predict", "a text such as 'Normal(mu, sigma)'")

    def columns(value: object) -> list[str]:
        if isinstance(value, str):
            return table.find(value, (), "predict")
        is_setting = isinstance(value, tuple) and not any(isinstance(part, str) for part in value)
        if is_setting or isinstance(value, int | float | Predictions):
            return []
        raise InputError(f"{said('predict')} {text!r}: arguments are columns, numbers or families; got {value!r}")

    def values(names: list[str], value: Any) -> Any:
        if not names:
            return (
                tuple(values([], part) for part in value)
                if isinstance(value, tuple)
                else getattr(value, "prediction", value)
            )
        found = table.values(names, "number")
        return found if found.shape[1] > 1 else found[:, 0]

    def build(name: str, *args: object, **options: object) -> Predictions:
        parameters = signature(FAMILIES[name]).parameters
        if wrong := misfit(name, parameters, args, options, given=("levels",)):
            raise InputError(f"{said('predict')} {text!r}: {wrong}")
        bound = signature(FAMILIES[name]).bind_partial(*args, **options).arguments
        named = {key: columns(value) for key, value in bound.items()}
        given = {key: values(named[key], value) for key, value in bound.items()}
        notes: tuple[str, ...] = ()
        check_is_whole(name, given, table)
        given = of_lines(given) if named.get("levels") else given
        if name.partition(".")[0] == "Quantiles" and "levels" not in given and named.get("values"):
            given["levels"] = levels_of_names(named["values"], sum(map(table.width, named["values"])))
            pairs = zip(named["values"], given["levels"], strict=True)
            notes = (f"quantile levels read: {', '.join(f'{c} = {100 * u:g} %' for c, u in pairs)}",)
        given, told = rearranged(name, given, rearrange)
        return Predictions(FAMILIES[name](**given), name, named, table, (*notes, *told))

    found = parse(_quoted(text), {name: partial(build, name) for name in FAMILIES}, word=str)
    if not isinstance(found, Predictions):
        raise InputError(f"{said('predict')} {text!r} is not a family; known: {', '.join(FAMILIES)}")
    return found


def columns_of_family(text: str, table: Columns) -> list[str]:
    """The columns that ``predict`` names."""

    def named(*args: object, **options: object) -> list[str]:
        found: list[str] = []
        for value in (*args, *options.values()):
            found += table.find(value, (), "predict") if isinstance(value, str) else []
            found += value if isinstance(value, list) else []
        return found

    found = parse(_quoted(text), dict.fromkeys(FAMILIES, named), word=str)
    return found if isinstance(found, list) else []


def _quoted(text: str) -> str:
    """Patterns with a star, and names with a number after a point, as texts, which they need not be written as.

    >>> _quoted("Ensemble(m_*)"), _quoted("Normal(loc=mu, scale='s_*')"), _quoted("Interval(q_0.1, q_0.9, 0.8)")
    ("Ensemble('m_*')", "Normal(loc=mu, scale='s_*')", "Interval('q_0.1', 'q_0.9', 0.8)")
    """
    return re.sub(r"(?<=[(,=\s])([\w.]*\*[\w.*]*|[A-Za-z_]\w*\.\d[\w.]*)(?=\s*[,)])", r"'\1'", text)


def _whole(truth: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Labels that a file stored as 0.0 and 1.0 as the integers they are."""
    if truth.dtype.kind != "f":
        return truth
    if not np.isfinite(truth).all():
        raise InputError(f"column {names[0]!r} has infinite values: repair those rows")
    is_whole = np.all((truth == np.round(truth)) & (np.abs(truth) < np.float64(2.0**63)))
    return truth.astype(np.int64) if is_whole else truth
