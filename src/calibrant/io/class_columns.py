"""Columns of class probabilities: which they are, what their classes are called, and in what unit they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

import numpy as np

from calibrant._validate import RANGE_SLACK, SUM_SLACK, InputError, check_is, did_you_mean
from calibrant._wording import said
from calibrant.io.columns import Columns

UNITS = ("fraction", "percent", "log", "logit")
"""What probabilities can be given in."""

MAX_ODD_SHARE = 0.1
"""The share of rows up to which values that are no probabilities are mistakes, and not another unit."""


@dataclass(frozen=True)
class Scale:
    """The unit of probabilities, or the probability that each word means.

    >>> Scale.parse("high=0.9, low=40%").words
    {'high': 0.9, 'low': 0.4}
    """

    unit: str = "fraction"
    words: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str | None) -> "Scale":
        """From the text of an option."""
        check_is(text, (str, type(None)), said("scale"), "a text")
        if text is None or text in UNITS:
            return cls(text or "fraction")
        pairs = [part.rpartition("=") for part in text.split(",")]
        try:
            words = {word.strip(): _fraction(number) for word, _, number in pairs}
        except ValueError:
            words = {}
        if not words or "" in words or not all(0 <= p <= 1 for p in words.values()):
            near = did_you_mean(text, UNITS)
            raise InputError(f"{said('scale')} {text!r} cannot be read{near}; or words, as high=0.9,low=0.4")
        return cls(words=words)

    def values(self, table: Columns, names: Sequence[str]) -> np.ndarray:
        """The columns as probabilities, ``(n, columns)``."""
        if self.words:
            return self._of_words(table, names)
        values = table.values(names, "number")
        if self.unit == "fraction" or values.dtype.kind not in "biuf":
            return values
        if self.unit == "percent":
            return values / 100
        if values.shape[1] > 1:
            shares = np.exp(values - values.max(axis=1, keepdims=True))
            found: np.ndarray = shares / shares.sum(axis=1, keepdims=True)
            return found
        return np.exp(values) if self.unit == "log" else 1 / (1 + np.exp(-np.clip(values, -700, 700)))

    def _of_words(self, table: Columns, names: Sequence[str]) -> np.ndarray:
        text = np.char.strip(table.values(names, "group").astype(str))
        if unknown := sorted(set(np.unique(text).tolist()) - set(self.words)):
            more = ",".join([*(f"{word}={p:g}" for word, p in self.words.items()), f"{unknown[0]}=?"])
            raise InputError(f"{table.path.name} says {unknown[0]!r}, too: say what it means, {said('scale', more)}")
        known = {word: self.words[word] for word in np.unique(text).tolist()}
        return np.vectorize(known.__getitem__, otypes=[float])(text)


def _fraction(text: str) -> float:
    text = text.strip()
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)


FRACTION = Scale()
"""Probabilities from 0 to 1."""


@dataclass(frozen=True, eq=False)
class ClassColumns:
    """Columns of class probabilities, their values ``(n, columns)``, the names of the classes, and what a reader must know."""

    names: list[str]
    values: np.ndarray
    labels: tuple[str, ...] | None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        table: Columns,
        wish: str | None,
        usual: Sequence[str],
        truth: np.ndarray | None,
        *,
        is_part: bool,
        scale: Scale,
    ) -> "ClassColumns":
        """Those that are wished, or of usual names: a column of decisions gives way to one of probabilities.

        A part of a file cannot tell the two: there names alone decide.
        """
        names, labels = cls.names_of(table, wish, usual, truth)
        if labels is None and truth is not None and len(names) > 1 and truth.dtype.kind not in "biuf":
            labels = labels_among(names, truth)
        if wish is not None or is_part or scale != FRACTION:
            return cls(names, scale.values(table, names), labels)._checked(table, is_part, scale)
        values = table.values(names)
        if _are_probabilities(values) and not _are_decisions(values):
            return cls(names, values, labels)
        for pattern in usual:
            if (other := table.usual([pattern])) and other != names:
                better = table.values(other)
                if _are_probabilities(better) and not _are_decisions(better):
                    note = f"{_listed(names)} holds no probabilities: {_listed(other)} is taken instead"
                    return cls(other, better, stars(other, usual), (note,))
        return cls(names, scale.values(table, names), labels)._checked(table, is_part, scale)

    @staticmethod
    def names_of(
        table: Columns, wish: str | None, usual: Sequence[str], truth: np.ndarray | None = None
    ) -> tuple[list[str], tuple[str, ...] | None]:
        """The columns and the names of their classes.

        Without a wish and usual names, columns that are called after the classes in the truth will do, ``A`` or ``probs.A``.
        """
        if wish is not None and wish not in table.names and "=" in wish:
            pairs = [part.partition("=") for part in wish.split(",")]
            names = [name for _, _, column in pairs for name in table.find(column.strip(), (), "y_pred")]
            return names, tuple(label.strip() for label, _, _ in pairs)
        if wish is None and truth is not None and not table.usual(usual):
            found = np.unique(truth.astype(str)).tolist()
            for names in ([f"{head}{label}" for label in found] for head in _heads(found[0], table.names, truth)):
                if len(found) > 1 and set(names) <= set(table.names):
                    return names, tuple(found)
        names = table.find(wish, usual, "y_pred")
        return names, stars(names, usual if wish is None else (wish,))

    def _checked(self, table: Columns, is_part: bool, scale: Scale) -> "ClassColumns":
        """Refuses what are no probabilities, with the option that makes them some; decisions are noted."""
        values = self.values
        if values.dtype.kind not in "biuf" or is_part:
            return self
        odd = (values < -RANGE_SLACK) | (values > 1 + RANGE_SLACK)
        if odd.any():
            raise InputError(self._of_another_unit(table, np.asarray(odd.any(axis=1))))
        if not _are_decisions(values):
            return self
        note = f"{_listed(self.names)} holds nothing but 0 and 1: decisions, not probabilities, so that nothing says how sure the "
        return replace(self, notes=(f"{note}model was. Name a column of probabilities with {said('y_pred')}",))

    def _of_another_unit(self, table: Columns, odd: np.ndarray) -> str:
        row = int(odd.argmax())
        worst = float(self.values[row][np.abs(self.values[row] - 0.5).argmax()])
        verb = "holds" if len(self.names) == 1 else "hold"
        what = f"{table.path.name}: {_listed(self.names)} {verb} {worst:g} in row {row + 1}, no probability"
        if odd.mean() <= MAX_ODD_SHARE:
            return f"{what}: repair that row, or leave it out"
        low, high = self.values.min(), self.values.max()
        if low >= 0 and high <= 100 + 1e-9:
            return f"{what}: if these are percentages, say {said('scale', 'percent')}"
        if low >= 0:
            family = said("predict", "Normal(mean, sd)")
            return f"{what}: name a column of probabilities with {said('y_pred')}; of forecasts of numbers say {family}"
        if high <= 0:
            return f"{what}: if these are logarithms of probabilities, say {said('scale', 'log')}"
        return f"{what}: if these are log-odds or logits, say {said('scale', 'logit')}"

    def normalised(self) -> "ClassColumns":
        """Rows divided by their sums."""
        if self.values.shape[1] == 1:
            raise InputError(f"{said('normalise', '')} needs a column per class: leave it out with one column")
        if self.values.dtype.kind not in "biuf":
            raise InputError(f"{said('normalise', '')} needs numbers; {_listed(self.names)} hold others")
        sums = self.values.sum(axis=1, keepdims=True)
        if not (sums > 0).all():
            row = int((sums <= 0).argmax()) + 1
            raise InputError(f"{said('normalise', '')}: row {row} sums to 0, and cannot be divided by it")
        note = f"rows are divided by their sums, which lie between {sums.min():.4g} and {sums.max():.4g}"
        return replace(self, values=self.values / sums, notes=(*self.notes, note))

    def check(self, truth: np.ndarray) -> None:
        """Refuse rows that do not sum to one, and classes without a column."""
        if self.values.dtype.kind not in "biuf":
            return  # refused with words of its own
        error = np.abs(self.values.sum(axis=1) - 1)
        if error.max() > SUM_SLACK:
            row = int(error.argmax())
            raise InputError(
                f"{_listed(self.names)} sum to {self.values[row].sum():.6g} in row {row + 1}, not to 1: if they were rounded, say "
                f"{said('normalise', '')}; if they are separate labels, give a column of truth for each"
            )
        found = np.unique(truth)
        names = [str(label) for label in found]
        numbers = [str(i) for i in range(self.values.shape[1])]
        known = set(self.labels or numbers)
        if set(names) <= known or (set(names) <= set(numbers) and truth.dtype.kind in "biuf"):
            return
        if truth.dtype.kind == "f" or len(self.names) != self.values.shape[1]:
            return  # refused with words of its own
        lacking = next(name for name in names if name not in known)
        what = f"the truth holds {lacking!r}, and no column is called after it"
        if known & set(names) and len(names) != len(self.names):
            raise InputError(f"{what}: repair those rows, leave them out, or name the column of that class, too")
        pairs = ",".join(f"{label}={name}" for label, name in zip(self._guess(names), self.names, strict=True))
        raise InputError(f"{what}: say which column is which class, {said('y_pred', pairs)}")

    def _guess(self, names: list[str]) -> list[str]:
        """The classes in order where there are as many as columns, and places to fill in where not."""
        return (
            names
            if len(names) == len(self.names)
            else [names[i] if i < len(names) else "?" for i in range(len(self.names))]
        )


def _heads(label: str, names: Sequence[str], truth: np.ndarray) -> list[str]:
    """What may stand before a label in the name of its column: nothing, or the name of an object that it is in."""
    before = (name.removesuffix(label) for name in names if name.endswith(f".{label}"))
    return ["", *(before if truth.dtype.kind not in "biuf" else ())]


def labels_among(names: Sequence[str], truth: np.ndarray) -> tuple[str, ...] | None:
    """What columns are called, or the part in which their names differ, where the truth holds nothing else."""
    found = set(np.unique(truth.astype(str)).tolist())
    head, tail = _in_common(names), _in_common([name[::-1] for name in names])[::-1]
    for labels in (tuple(names), tuple(name[len(head) : len(name) - len(tail)] for name in names)):
        if found <= set(labels):
            return labels
    return None


def _in_common(names: Sequence[str]) -> str:
    """What all begin with."""
    alike = [len(set(letters)) == 1 for letters in zip(*names, strict=False)]
    return names[0][: alike.index(False) if False in alike else len(alike)]


def stars(names: Sequence[str], patterns: Sequence[str]) -> tuple[str, ...] | None:
    """What the star of a pattern stands for in each name, where one pattern with one star gave them all."""
    for pattern in patterns:
        head, star, tail = pattern.partition("*")
        if star and "*" not in tail and all(fnmatchcase(name.lower(), pattern.lower()) for name in names):
            return tuple(name[len(head) : len(name) - len(tail)] for name in names)
    return None


def _are_probabilities(values: np.ndarray) -> bool:
    return values.dtype.kind in "iubf" and bool(((values >= 0) & (values <= 1)).all())


def _are_decisions(values: np.ndarray) -> bool:
    """Whether all are 0 or 1."""
    return values.dtype.kind in "iubf" and bool(((values == 0) | (values == 1)).all())


def _listed(names: Sequence[str]) -> str:
    return f"column {names[0]!r}" if len(names) == 1 else f"columns {names[0]!r} to {names[-1]!r}"
