"""The worlds in which statements of uncertainty are tried: easy ones, and those where such statements usually fail."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import betaincinv, ndtri

from calibrant import (
    Bernoulli,
    Categorical,
    Ensemble,
    Laplace,
    LogNormal,
    NegativeBinomial,
    Normal,
    Poisson,
    Quantiles,
    StudentT,
)
from calibrant.distributions import Distribution
from calibrant.lab import GLM, BetaScores, Diagonal, Scores, ScoreWorld, Shifted, Tempered, TrueCurve, World, WrongScale

Kind: TypeAlias = Literal["two classes", "classes", "labels", "numbers", "counts", "ensembles", "quantiles"]

Weighting: TypeAlias = Literal["equal", "random", "by score"]


@dataclass(frozen=True, eq=False)
class DataSet:
    """Rows of a world: what happened, what was predicted, what was true, and how much each row counts."""

    targets: np.ndarray
    predictions: Distribution
    truth: Distribution
    weights: np.ndarray | None


@dataclass(frozen=True)
class Setting:
    """A world with a number of rows and weights."""

    name: str
    world: World
    n: int
    weighting: Weighting = "equal"

    @property
    def label(self) -> str:
        """The name with the number of rows, which tells settings apart."""
        return f"{self.name}, n = {self.n:,}"

    @property
    def is_calibrated(self) -> bool:
        """Whether targets are drawn from the predictions."""
        return self.world.is_calibrated

    @cached_property
    def kind(self) -> Kind:
        """What is predicted."""
        predictions, _ = self.world.given(np.full((1, self.world.features), 0.4))
        return _kind_of(predictions)

    @cached_property
    def n_classes(self) -> int:
        """How many classes there are; 0 where none."""
        predictions, _ = self.world.given(np.full((1, self.world.features), 0.4))
        return predictions.n_classes if isinstance(predictions, Categorical) else 0

    def draw(self, rng: np.random.Generator) -> DataSet:
        """One data set."""
        predictions, truth = self.world.given(rng.random((self.n, self.world.features)))
        targets = truth.sample(rng, 1)[0]
        weights = self.weights_of(predictions)
        if weights is not None:
            weights = weights * rng.exponential(size=self.n)
        return DataSet(targets, predictions, truth, weights)

    def weights_of(self, predictions: Distribution) -> np.ndarray | None:
        """Mean weights given predictions of two classes."""
        if self.weighting == "equal":
            return None
        assert isinstance(predictions, Categorical)
        p = np.asarray(predictions.probability(1), dtype=np.float64)
        return np.ones(len(p)) if self.weighting == "random" else 0.2 + p


def _kind_of(predictions: Distribution) -> Kind:
    if isinstance(predictions, Categorical):
        return "two classes" if predictions.n_classes == 2 else "classes"
    kinds: dict[type, Kind] = {
        Bernoulli: "labels",
        Ensemble: "ensembles",
        Quantiles: "quantiles",
        Poisson: "counts",
        NegativeBinomial: "counts",
    }
    return kinds.get(type(predictions), "numbers")


@dataclass(frozen=True)
class Constant(Scores):
    """One score for all rows.

    >>> Constant(0.3).quantile(np.array([0.1, 0.9]))
    array([0.3, 0.3])
    """

    score: float

    def quantile(self, u: np.ndarray) -> np.ndarray:
        """The score."""
        return np.full(u.shape, self.score)


@dataclass(frozen=True)
class Votes(Scores):
    """Shares of ``voters`` that say yes, as a forest predicts them: exact zeros and ones among them.

    >>> Votes(10, BetaScores(0.3, 0.3)).quantile(np.array([0.01, 0.5, 0.99]))
    array([0. , 0.5, 1. ])
    """

    voters: int
    before: Scores = BetaScores()  # noqa: RUF009  # frozen

    def quantile(self, u: np.ndarray) -> np.ndarray:
        """Rounded to whole votes."""
        return np.round(self.before.quantile(u) * self.voters) / self.voters


@dataclass(frozen=True)
class Softened(TrueCurve):
    """``amount + (1 - 2 amount) f``: what was called certain fails in a share of ``amount``.

    >>> Softened(0.05)(np.array([0.0, 0.5, 1.0]))
    array([0.05, 0.5 , 0.95])
    """

    amount: float

    def at(self, scores: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """A flatter line through the middle."""
        return self.amount + (1 - 2 * self.amount) * scores


@dataclass(frozen=True)
class TopFails(TrueCurve):
    """Right below ``start``; above it only a share ``kept`` of what is claimed comes true.

    >>> TopFails(0.5, 0.7)(np.array([0.4, 0.8])).round(2)
    array([0.4 , 0.56])
    """

    start: float = 0.5
    kept: float = 0.7

    def at(self, scores: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """A step down at the start."""
        return np.where(scores > self.start, self.kept * scores, scores)


@dataclass(frozen=True)
class Dominant(World):
    """``n_classes`` classes of which the first takes nearly all; ``temperature`` above 1 makes the model over-confident.

    >>> Dominant(3).draw(2, np.random.default_rng(0))[1]
    <Categorical: 2 predictions of 3 classes>
    """

    n_classes: int = 10
    temperature: float = 1.0

    @property
    def features(self) -> int:
        """The share of the first class, and those of the others."""
        return self.n_classes - 1

    @property
    def is_calibrated(self) -> bool:
        """Temperature 1."""
        return self.temperature == 1

    def given(self, u: np.ndarray) -> tuple[Distribution, Distribution]:
        """What the first class leaves is shared evenly among the others, up to chance."""
        first = betaincinv(20.0, 0.4, u[:, :1])
        others, _ = Tempered(self.n_classes - 1).given(u[:, 1:])
        rest = np.asarray(others.matrix)  # type: ignore[attr-defined]
        predictions = Categorical(np.concatenate([first, (1 - first) * rest], axis=1))
        return predictions, predictions.temper(self.temperature)


@dataclass(frozen=True)
class Labels(World):
    """Several labels per row, independent of each other; ``softness`` above 0 makes the model over-confident.

    >>> Labels(3).draw(2, np.random.default_rng(0))[1]
    <Bernoulli: 2 predictions of 3 labels>
    """

    n_labels: int = 5
    softness: float = 0.0

    @property
    def features(self) -> int:
        """One per label."""
        return self.n_labels

    @property
    def is_calibrated(self) -> bool:
        """Not softened."""
        return self.softness == 0

    def given(self, u: np.ndarray) -> tuple[Distribution, Distribution]:
        """The features are the scores."""
        return Bernoulli(u), Bernoulli(self.softness + (1 - 2 * self.softness) * u)


Family: TypeAlias = Literal["laplace", "student", "log-normal", "poisson", "negative binomial"]


@dataclass(frozen=True)
class OfFamily(World):
    """Calibrated forecasts of one family, whose location, scale or rate depends on the feature; counts have mean ``rate``.

    >>> OfFamily("poisson", 0.05).draw(3, np.random.default_rng(0))[1]
    <Poisson: 3 predictions>
    """

    family: Family
    rate: float = 1.0

    @property
    def is_calibrated(self) -> bool:
        """Always."""
        return True

    def given(self, u: np.ndarray) -> tuple[Distribution, Distribution]:
        """Predictions that are the truth."""
        predictions = self._at(u[:, 0])
        return predictions, predictions

    def _at(self, x: np.ndarray) -> Distribution:
        if self.family == "laplace":
            return Laplace(loc=2 * x - 1, scale=0.5 + x)
        if self.family == "student":
            return StudentT(df=np.full_like(x, 3.0), loc=2 * x - 1, scale=0.5 + x)
        if self.family == "log-normal":
            return LogNormal(2 * x - 1, np.full_like(x, 0.8))
        rate = self.rate * (0.5 + x)
        if self.family == "poisson":
            return Poisson(rate)
        return NegativeBinomial(rate, 0.5 * np.ones_like(x))


@dataclass(frozen=True)
class Members(World):
    """Ensembles of ``size`` members whose spread is ``factor`` times that of the targets; at factor 1 both are exchangeable.

    >>> Members(3).draw(2, np.random.default_rng(0))[1]
    <Ensemble: 2 predictions of 3 members>
    """

    size: int
    factor: float = 1.0

    @property
    def features(self) -> int:
        """One for the centre, and one per member."""
        return self.size + 1

    @property
    def is_calibrated(self) -> bool:
        """Factor 1."""
        return self.factor == 1

    def given(self, u: np.ndarray) -> tuple[Distribution, Distribution]:
        """Members and target are draws from one normal distribution."""
        centre, spread = 2 * u[:, 0] - 1, 0.5 + u[:, 0]
        members = centre[:, None] + self.factor * spread[:, None] * ndtri(u[:, 1:])
        return Ensemble(members), Normal(centre, spread)


@dataclass(frozen=True)
class GivenQuantiles(World):
    """Quantiles of normal forecasts at ``levels``, whose spread is ``factor`` times the true one.

    >>> GivenQuantiles((0.1, 0.5, 0.9)).is_calibrated
    True
    """

    levels: tuple[float, ...]
    factor: float = 1.0

    @property
    def is_calibrated(self) -> bool:
        """Factor 1."""
        return self.factor == 1

    def given(self, u: np.ndarray) -> tuple[Distribution, Distribution]:
        """The quantiles, and the normal distributions they belong to."""
        centre, spread = 2 * u[:, 0] - 1, 0.5 + u[:, 0]
        values = centre[:, None] + self.factor * spread[:, None] * ndtri(np.array(self.levels))
        return Quantiles(values, np.array(self.levels)), Normal(centre, spread)


def _scores(alpha: float, beta: float, curve: TrueCurve = Diagonal()) -> ScoreWorld:  # noqa: B008  # frozen
    return ScoreWorld(BetaScores(alpha, beta), curve)


OVER, MILD, UNDER = (GLM("logit", "logit", b1=slope) for slope in (0.4, 0.8, 2.0))
DECILES = tuple(np.arange(1, 10) / 10)
FOREST = Votes(100, BetaScores(0.3, 0.6))


def _settings() -> tuple[Setting, ...]:
    even, extreme = _scores(1, 1), _scores(0.5, 0.5)
    two = [
        *(Setting("even", even, n) for n in (20, 100, 1_000, 10_000)),
        *(Setting("extreme", extreme, n) for n in (100, 1_000)),
        *(Setting("0.1 % events", _scores(0.5, 500), n) for n in (1_000, 10_000)),
        *(Setting("1 % events", _scores(0.5, 50), n) for n in (100, 1_000)),
        Setting("0.5 % events", _scores(1, 199), 2_000),
        Setting("2 % events, long tail", _scores(0.05, 2.45), 10_000),
        Setting("99.9 % events", _scores(500, 0.5), 1_000),
        *(Setting("98 % events, certain", _scores(2.8, 0.05), n) for n in (100, 1_000)),
        Setting("constant 30 %", ScoreWorld(Constant(0.3)), 100),
        Setting("constant 0.1 %", ScoreWorld(Constant(0.001)), 1_000),
        *(Setting("tenths", ScoreWorld(Votes(10)), n) for n in (100, 1_000)),
        Setting("forest", ScoreWorld(FOREST), 1_000),
        *(Setting("random weights", even, n, "random") for n in (100, 1_000)),
        Setting("weights by score", extreme, 1_000, "by score"),
        *(Setting("over-confident", _scores(0.5, 0.5, OVER), n) for n in (20, 100, 1_000, 10_000)),
        *(Setting("mildly over-confident", _scores(0.5, 0.5, MILD), n) for n in (100, 1_000)),
        Setting("under-confident", _scores(1, 1, UNDER), 1_000),
        *(Setting("2 points too low", _scores(0.5, 0.5, Shifted(0.02)), n) for n in (1_000, 10_000)),
        Setting("cohort, log-odds 0.5 too low", _scores(1, 9, GLM("logit", "logit", b0=0.5)), 700),
        Setting("1 % events, doubled", _scores(0.5, 50, GLM("logit", "logit", b0=0.7)), 1_000),
        Setting("forest, too certain", ScoreWorld(FOREST, Softened(0.05)), 1_000),
        Setting("2 % events, top fails", _scores(0.05, 2.45, TopFails()), 10_000),
        Setting("over-confident, weights by score", _scores(0.5, 0.5, OVER), 1_000, "by score"),
    ]
    many = [
        *(Setting(f"{k} classes", Tempered(k), n) for k in (3, 10) for n in (100, 1_000)),
        Setting("100 classes", Tempered(100), 1_000),
        *(Setting(f"{k} classes, one dominant", Dominant(k), 300) for k in (3, 10)),
        *(Setting(f"{k} classes, over-confident", Tempered(k, 2.0, 0.5), n) for k in (3, 10) for n in (100, 1_000)),
        Setting("10 classes, one dominant, over-confident", Dominant(10, 2.0), 1_000),
        *(Setting("5 labels", Labels(), n) for n in (100, 1_000)),
        Setting("5 labels, over-confident", Labels(5, 0.15), 1_000),
    ]
    forecasts = [
        *(Setting("normal", WrongScale(), n) for n in (20, 100, 1_000)),
        *(Setting("normal, too narrow", WrongScale(0.7), n) for n in (100, 1_000)),
        Setting("laplace", OfFamily("laplace"), 300),
        Setting("student, 3 degrees", OfFamily("student"), 100),
        *(Setting("log-normal", OfFamily("log-normal"), n) for n in (100, 1_000)),
        *(Setting("counts of 0.05", OfFamily("poisson", 0.05), n) for n in (100, 1_000)),
        Setting("counts of 4", OfFamily("poisson", 4.0), 300),
        Setting("negative binomial", OfFamily("negative binomial", 2.0), 300),
        *(Setting("3 members", Members(3), n) for n in (100, 1_000)),
        Setting("50 members", Members(50), 300),
        Setting("50 members, too narrow", Members(50, 0.7), 300),
        *(Setting("quantiles 10, 50, 90 %", GivenQuantiles((0.1, 0.5, 0.9)), n) for n in (100, 300)),
        Setting("deciles", GivenQuantiles(DECILES), 300),
        Setting("quantiles, too narrow", GivenQuantiles((0.1, 0.5, 0.9), 0.7), 300),
    ]
    return *two, *many, *forecasts


SETTINGS = _settings()
"""All worlds of the study."""
