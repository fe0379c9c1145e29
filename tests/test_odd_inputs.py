"""Inputs as people have them in Python: each gives the number that is meant, or one line whose advice gives it when followed."""

import decimal
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from calibrant import ECE, Categorical, EqualMass, InputError, TopLabel

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
arrow = pytest.importorskip("pyarrow")
torch = pytest.importorskip("torch")

N = 80
rng = np.random.default_rng(7)
P = np.round(rng.random(N), 6)
Y = (rng.random(N) < P**2) * 1
TWO = np.stack([1 - P, P], axis=1)
WORDS = np.array(["no", "yes"])[Y]
THREE = rng.dirichlet(np.ones(3), N)
K = (rng.random((N, 1)) >= np.cumsum(THREE, axis=1)[:, :-1]).sum(axis=1)
NAMES = np.array(["cat", "dog", "owl"])[K]
FIRST = np.arange(N) == 0

ERROR = ECE(EqualMass(5))


def value(y_true, y_pred, **names):
    return ERROR(y_true, y_pred, **names).value


BINARY, CLASSES, WITHOUT_FIRST = value(Y, P), value(K, THREE), value(Y[1:], P[1:])


@dataclass(frozen=True)
class Case:
    """Targets, predictions and names, and what they are worth."""

    y_true: Any
    y_pred: Any
    names: dict[str, Any]
    worth: float = BINARY


def of(y_true, y_pred, worth=BINARY, **names):
    return Case(y_true, y_pred, names, worth)


def masked(values, dtype):
    return pandas.Series(values, dtype=dtype).mask(FIRST)


WORKS = {
    "lists of text": of(WORDS.tolist(), TWO.tolist(), labels=["no", "yes"]),
    "one column of text": of(WORDS, P, pos_label="yes"),
    "one column and both names": of(WORDS, P, labels=["no", "yes"]),
    "names in another order": of(WORDS, TWO[:, ::-1], labels=["yes", "no"]),
    "a positive label that is the first": of(WORDS, TWO, value(1 - Y, 1 - P), labels=["no", "yes"], pos_label="no"),
    "truth values": of(Y == 1, P),
    "a list of truth values": of((Y == 1).tolist(), P.tolist()),
    "truth values of scikit-learn": of(Y == 1, TWO, labels=np.array([False, True])),
    "truth values as text": of((Y == 1).astype(str), P),
    "digits as text": of(Y.astype(str), P),
    "categories": of(pandas.Series(WORDS, dtype="category"), TWO, labels=["no", "yes"]),
    "objects that are numbers": of(Y.astype(object), P.astype(object)),
    "objects that are text": of(WORDS.astype(object), TWO, labels=["no", "yes"]),
    "decimals": of(Y, [decimal.Decimal(str(p)) for p in P]),
    "labels from 1": of(Y + 1, TWO, labels=[1, 2]),
    "labels from 1, one column": of(Y + 1, P, pos_label=2),
    "labels from 1 as text": of((K + 1).astype(str), THREE, CLASSES, labels=[1, 2, 3]),
    "minus one and one": of(2 * Y - 1, P),
    "floats": of(Y.astype(float), P),
    "floats in a tensor": of(torch.tensor(Y).float(), torch.tensor(P)),
    "a gradient": of(torch.tensor(Y), torch.tensor(P, requires_grad=True)),
    "a list of tensors": of(list(torch.tensor(Y)), list(torch.tensor(P))),
    "a label that is missing from a split": of(NAMES[K < 2], THREE[K < 2], value(K[K < 2], THREE[K < 2]), labels=["cat", "dog", "owl"]),
    "no positive row": of(WORDS[Y == 0], P[Y == 0], value(Y[Y == 0], P[Y == 0]), labels=["no", "yes"]),
    "a frame": of(WORDS, pandas.DataFrame(TWO, columns=["no", "yes"])),
    "a frame in another order": of(WORDS, pandas.DataFrame({"yes": P, "no": 1 - P})),
    "a frame with prefixes": of(NAMES, pandas.DataFrame(THREE, columns=["p_cat", "p_dog", "p_owl"]), CLASSES),
    "a frame of numbers in another order": of(Y, pandas.DataFrame({1: P, 0: 1 - P})),
    "a frame without names": of(WORDS, pandas.DataFrame(TWO), labels=["no", "yes"]),
    "polars": of(polars.Series(WORDS), polars.DataFrame(TWO, schema=["no", "yes"])),
    "categories of polars": of(polars.Series(WORDS, dtype=polars.Categorical), polars.DataFrame(TWO, schema=["no", "yes"])),
    "nullable numbers": of(pandas.Series(Y, dtype="Int64"), pandas.Series(P, dtype="Float64")),
    "nullable truth values": of(pandas.Series(Y == 1, dtype="boolean"), P),
    "text of arrow": of(pandas.Series(WORDS, dtype="string[pyarrow]"), TWO, labels=["no", "yes"]),
    "arrays of arrow": of(arrow.array(Y), arrow.array(P)),
    "a table of arrow": of(arrow.array(WORDS), arrow.table({"no": 1 - P, "yes": P})),
    "an index": of(pandas.Index(WORDS), TWO, labels=pandas.Index(["no", "yes"])),
    "one-hot": of(np.eye(3)[K], THREE, CLASSES),
    "one-hot lists": of(np.eye(2, dtype=int)[Y].tolist(), TWO.tolist()),
    "one-hot frame in another order": of(pandas.get_dummies(WORDS)[["yes", "no"]], pandas.DataFrame(TWO, columns=["no", "yes"])),
    "columns (n, 1)": of(Y[:, None], P[:, None]),
    "names by number": of(WORDS, TWO, labels={0: "no", 1: "yes"}),
    "half precision": of(Y, P.astype(np.float32)),
    "a single frame column": of(pandas.DataFrame({"y": Y}), pandas.DataFrame({"p": P})),
}  # fmt: skip


@pytest.mark.parametrize("case", WORKS)
def test_what_is_meant_is_found(case):
    one = WORKS[case]
    assert value(one.y_true, one.y_pred, **one.names) == pytest.approx(one.worth, rel=1e-5)


def softmax(z):
    return Categorical.from_logits(z)


REFUSED = {
    "text and two columns": (of(WORDS, TWO), r"labels=model\.classes_", of(WORDS, TWO, labels=["no", "yes"])),
    "text and one column": (of(WORDS, P), r"Give pos_label='no' or pos_label='yes'$", of(WORDS, P, pos_label="yes")),
    "a slip in the positive label": (of(WORDS, P, pos_label="Yes"), r"did you mean 'yes'\?", of(WORDS, P, pos_label="yes")),
    "a positive label that is not there": (
        of(WORDS[Y == 0], P[Y == 0], pos_label="yes"),
        r"give labels=\['no', 'yes'\], too$",
        of(WORDS[Y == 0], P[Y == 0], value(Y[Y == 0], P[Y == 0]), pos_label="yes", labels=["no", "yes"]),
    ),
    "a positive label of columns without names": (
        of(WORDS, TWO, pos_label="yes"),
        r"Give labels=\[\.\.\.\].*or its column alone",
        of(WORDS, TWO[:, 1], pos_label="yes"),
    ),
    "a positive label of three": (
        of(NAMES, THREE, labels=["cat", "dog", "owl"], pos_label="owl"),
        r"give the column of 'owl' alone",
        of(NAMES, THREE[:, 2], value((K == 2) * 1, THREE[:, 2]), pos_label="owl"),
    ),
    "labels against the names of a frame": (
        of(WORDS, pandas.DataFrame({"p_yes": P, "p_no": 1 - P}), labels=["no", "yes"]),
        "leave labels out$",
        of(WORDS, pandas.DataFrame({"p_yes": P, "p_no": 1 - P})),
    ),
    "one column of two names, yes first": (
        of(WORDS, P, labels=["yes", "no"]),
        "Give pos_label='yes' or pos_label='no'$",
        of(WORDS, P, labels=["yes", "no"], pos_label="yes"),
    ),
    "one-hot of unknown order": (
        of(pandas.get_dummies(WORDS)[["yes", "no"]], TWO[:, ::-1]),
        r"Give labels=\['yes', 'no'\], where they are in that order",
        of(pandas.get_dummies(WORDS)[["yes", "no"]], TWO[:, ::-1], labels=["yes", "no"]),
    ),
    "a class that was not seen": (
        of(np.where(FIRST, "maybe", WORDS), TWO, labels=["no", "yes"]),
        r"no column for: \['maybe'\].*leave those rows out",
        of(WORDS[1:], TWO[1:], WITHOUT_FIRST, labels=["no", "yes"]),
    ),
    "labels from 1 without a word": (of(K + 1, THREE), r"labels=range\(1, 4\)$", of(K + 1, THREE, CLASSES, labels=range(1, 4))),
    "labels from 1, one column": (of(Y + 1, P), "Give pos_label=1 or pos_label=2$", of(Y + 1, P, pos_label=2)),
    "logits": (of(K, np.log(THREE) + 2), r"use Categorical\.from_logits\(y_pred\)", of(K, softmax(np.log(THREE) + 2), CLASSES)),
    "log odds": (of(Y, np.log(P / (1 - P))), r"Categorical\.from_logits", of(Y, softmax(np.log(P / (1 - P))))),
    "log-probabilities": (of(K, np.log(THREE)), r"Give numpy\.exp of them$", of(K, np.exp(np.log(THREE)), CLASSES)),
    "log-probabilities of one column": (of(Y, np.log(P)), r"Give numpy\.exp of them$", of(Y, np.exp(np.log(P)))),
    "log-probabilities of 0": (of(K, np.where(THREE > 0.5, 0, -np.inf)), r"numpy\.exp of them$", of(K, THREE, CLASSES)),
    "a dict of models": (of(Y, {"a": P, "b": P}), r"calibrant\.compare and calibrant\.plots\.curves$", of(Y, P)),
    "percent": (of(Y, 100 * P), "divide percentages by 100", of(Y, 100 * P / 100)),
    "whole percent": (of(Y, np.round(100 * P)), "divide percentages by 100", of(Y, np.round(100 * P) / 100, value(Y, np.round(100 * P) / 100))),
    "text of numbers": (of(Y, P.astype(str)), r"give np\.asarray\(y_pred, dtype=float\)$", of(Y, np.asarray(P.astype(str), dtype=float))),
    "percent as text": (of(Y, [f"{100 * p:.4f}%" for p in P]), "give numbers, 85% as 0.85$", of(Y, P)),
    "decisions as text": (of(WORDS, WORDS, labels=["no", "yes"]), "such as predict_proba", of(WORDS, TWO, labels=["no", "yes"])),
    "swapped": (of(P, Y), "truth first", of(Y, P)),
    "swapped names": (of(TWO, WORDS, labels=["no", "yes"]), "truth first", of(WORDS, TWO, labels=["no", "yes"])),
    "NaN": (of(Y, np.where(FIRST, np.nan, P)), r"first in row 0 .*: drop or repair", of(Y[1:], P[1:], WITHOUT_FIRST)),
    "NaN in targets": (of(np.where(FIRST, np.nan, Y), P), "y_true .*first in row 0", of(Y[1:], P[1:], WITHOUT_FIRST)),
    "NA": (of(masked(Y, "Int64"), P), "y_true .*first in row 0", of(Y[1:], P[1:], WITHOUT_FIRST)),
    "NA among text": (
        of(masked(WORDS, "string"), P, pos_label="yes"),
        "y_true has missing values in 1 place, first in row 0: leave those rows out",
        of(WORDS[1:], P[1:], WITHOUT_FIRST, pos_label="yes"),
    ),
    "null of polars": (of(Y, polars.Series([None, *P[1:].tolist()])), "y_pred .*first in row 0", of(Y[1:], P[1:], WITHOUT_FIRST)),
    "None in a list": (of([None, *Y[1:].tolist()], P), "y_true has missing .* row 0: leave", of(Y[1:], P[1:], WITHOUT_FIRST)),
    "a generator": (of((y for y in Y), P), "give an array, a list", of([*(y for y in Y)], P)),
    "rows of names": (
        of(WORDS, [{"no": a, "yes": b} for a, b in TWO]),
        r"such as those of pandas\.DataFrame\(rows\)",
        of(WORDS, pandas.DataFrame([{"no": a, "yes": b} for a, b in TWO])),
    ),
    "soft targets": (of(0.2 + 0.6 * Y, Categorical(P)), r"such as y_true > 0\.5", of(0.2 + 0.6 * Y > 0.5, Categorical(P))),
    "a masked array": (of(Y, np.ma.masked_array(P, FIRST)), "drop the masked rows", of(Y[1:], P[1:], WITHOUT_FIRST)),
    "rows that do not sum to one": (of(K, 2 * THREE / 2.1), "normalise the rows", of(K, THREE, CLASSES)),
    "a tensor without values": (of(Y, torch.empty(N, device="meta")), "give one with data", of(Y, torch.tensor(P))),
    "labels as one text": (of(WORDS, TWO, labels="yes"), "labels must be a list of 2 names", of(WORDS, TWO, labels=["no", "yes"])),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_advice_works_when_it_is_followed(case):
    given, advice, followed = REFUSED[case]
    with pytest.raises(InputError, match=advice) as error:
        value(given.y_true, given.y_pred, **given.names)
    assert "\n" not in str(error.value)
    assert re.search(r"y_true|y_pred|labels", str(error.value))
    assert value(followed.y_true, followed.y_pred, **followed.names) == pytest.approx(followed.worth, rel=1e-5)


def test_there_are_enough_of_them():
    assert len(WORKS) + len(REFUSED) >= 60


def test_decisions_are_named_as_such():
    assert any("decisions, not probabilities" in note for note in ERROR(Y, Y).notes)
    assert any("decisions, not probabilities" in note for note in ECE(lens=TopLabel())(K, np.eye(3)[K]).notes)
    assert not ERROR(Y, P).notes
