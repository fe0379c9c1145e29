"""Estimators of the frequencies around each row: plain ratios of kernel sums, or corrected ones."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from calibrant._array import namespace
from calibrant._softmax import Softmax
from calibrant._validate import InputError
from calibrant.estimators.dirichlet import DirichletRows, influences, regression, weight_panels
from calibrant.estimators.local import Around, LocalEstimator, Redraws, shares_of_rows
from calibrant.estimators.questions import Question
from calibrant.estimators.ratios import FULL, NONE, PARTIAL, Ratios
from calibrant.typing import Array, Engine

KEPT = 3000
"""Up to so many rows, weights are kept between redraws."""


class FrequencyEstimator(LocalEstimator):
    """The mean over rows of a function of the frequencies around them.

    Subclasses have the field ``debias``, too, and write :meth:`terms` and :meth:`slopes`.
    """

    debias: bool | Literal["partial"]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.debias not in (FULL, PARTIAL, NONE):
            raise InputError(f"debias must be True, 'partial' or False; got {self.debias!r}")

    @abstractmethod
    def terms(self, ratios: Ratios, predicted: Array) -> Array:
        """What each frequency adds, elementwise; the terms of a row are added up."""

    @abstractmethod
    def slopes(self, frequency: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        """The derivatives of the terms with respect to the frequencies, for the standard error."""

    def around(
        self, question: Question, outcomes: Array, weights: np.ndarray | None, engine: Engine | None = None
    ) -> Around:
        """One regression; with a given bandwidth the weights of NumPy arrays a second time, for what each row adds to others.

        The influence of a row is how the mean answers to a little more weight of it: by its own term, and by those around it.
        """
        bandwidth = self.likeliest(question, weights)
        rows = DirichletRows.of(question.points, bandwidth.value, weights)
        local = regression(rows, outcomes, question.points.shape[1], engine)
        ratios = Ratios.of(question.asked(local), len(rows), self.debias)
        terms = namespace(local.mean).sum(self.terms(ratios, question.predicted), axis=1)
        shares = shares_of_rows(local.is_empty, weights, terms)
        influence = None
        if isinstance(terms, np.ndarray) and not isinstance(self.bandwidth, str):
            values = self._changes(question, local, shares)
            own = shares * (terms - shares @ terms)
            influence = own + influences(rows, local, values, outcomes.astype(np.int64), engine)
        return Around(question, bandwidth, local.is_empty, shares, terms, influence)

    def _changes(self, question: Question, local: Softmax, shares: np.ndarray) -> np.ndarray:
        """How the mean answers to a row around each being of each class, ``(n, classes)``."""
        frequency = question.asked(local).mean
        slopes = self.slopes(frequency, question.predicted) * shares[:, None]
        values = np.zeros(question.points.shape)
        values[:, question.first :] = slopes
        values -= (slopes * frequency).sum(axis=1, keepdims=True)
        return values

    def redraws(self, question: Question, weights: np.ndarray | None) -> Redraws:
        """Bandwidth and weights depend on the predictions alone; each redraw is a product with them."""
        return _Frequencies.of(self, question, weights)


@dataclass(frozen=True, eq=False)
class _Frequencies(Redraws):
    estimator: FrequencyEstimator
    question: Question
    rows: DirichletRows
    weights: np.ndarray
    kept: list[tuple[np.ndarray, np.ndarray]] | None

    @classmethod
    def of(cls, estimator: FrequencyEstimator, question: Question, weights: np.ndarray | None) -> Self:
        rows = DirichletRows.of(question.points, estimator.likeliest(question, weights).value, weights)
        w = np.ones(len(rows)) if weights is None else weights
        return cls(estimator, question, rows, w, list(weight_panels(rows)) if len(rows) <= KEPT else None)

    def means(self, outcomes: np.ndarray) -> np.ndarray:
        """Products of the weights with what happened, panel by panel."""
        m, q = len(outcomes), self.question.predicted.shape[1]
        happened = np.moveaxis(self.question.happened(outcomes), 1, 0).reshape(-1, m * q).astype(np.float64)
        total, weight = np.zeros(m), 0.0
        for index, weights in self.kept or weight_panels(self.rows):
            squared = weights * weights
            squares = squared.sum(axis=1)
            local = Softmax(squares, weights @ happened, squares, squared @ happened)
            ratios = Ratios.of(local, len(self.rows), self.estimator.debias)
            predicted = np.tile(self.question.predicted[index], m)
            terms = self.estimator.terms(ratios, predicted).reshape(-1, m, q).sum(axis=2)
            w = np.where(squares > 0, self.weights[index], 0.0)
            total, weight = total + w @ terms, weight + w.sum()
        return total / weight
