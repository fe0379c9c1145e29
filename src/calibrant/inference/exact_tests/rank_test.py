"""The rank histogram of ensembles, and the exact test that it is flat."""

from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from calibrant._array import to_numpy
from calibrant._clusters import refuse_clusters
from calibrant._spellings import Settings
from calibrant._validate import InputError, as_array, check_count, check_fraction, check_one_of, check_same_length
from calibrant.distributions.base import Distribution, as_numbers
from calibrant.distributions.empirical.ensemble import Ensemble
from calibrant.distributions.multivariate import dimensions
from calibrant.distributions.reading.conversion import as_problem
from calibrant.estimators.forecast_errors.pit import MemberRanks, Prerank, check_prerank, pit_of, randomised
from calibrant.inference.monte_carlo import draw, upper_rank
from calibrant.inference.pit_bands import histogram_table
from calibrant.results import Estimate, TestResult
from calibrant.typing import ArrayLike, Engine, Seed

Shape: TypeAlias = Literal["any", "slope", "convexity"]


@dataclass(frozen=True)
class RankTest(Settings):
    """Test that targets could be exchanged with the members of their ensembles, by the histogram of their ranks.

    A target that is as likely as any member has each of the ``m + 1`` ranks among them with the same chance; ties are broken
    at random, by ``seed``. ``shape="any"`` sums ``(count - n/B)^2 / (n/B)`` over the B bins; ``"slope"`` and ``"convexity"`` look
    at one direction each, in standard errors: a slope above 0 says that the ensemble is too low, a convexity above 0 (a U) that it
    is too narrow, below 0 (a hump) too wide. Counts of ranks are resampled, so the p-value is exact for every n and m.
    The estimate's table is the histogram, with a band for all bins at once.

    ``y_pred`` is an :class:`~calibrant.Ensemble`, or members ``(n, m)`` where those that are missing are NaN: ranks among different
    numbers of members are spread over ``n_bins`` equal bins (by default one a rank, of the smallest ensemble).
    Vectors need a ``prerank``. O(n m). Hamill (2001); Jolliffe & Primo (2008).

    >>> from calibrant import Ensemble
    >>> from calibrant.inference import RankTest
    >>> rng = np.random.default_rng(0)
    >>> members, y_true = Ensemble(rng.normal(size=(300, 4))), rng.normal(size=300)
    >>> RankTest()(y_true, members).pvalue > 0.05
    True
    >>> RankTest("convexity")(2 * y_true, members).pvalue
    0.001
    """

    shape: Shape = "any"
    n_bins: int | None = None
    prerank: Prerank | None = None
    n_resamples: int = 999
    level: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        check_one_of(self.shape, ("any", "slope", "convexity"), "shape")
        if self.n_bins is not None:
            check_count(self.n_bins, "n_bins", least=2)
        check_count(self.n_resamples, "n_resamples")
        check_fraction(self.level, "level")
        check_prerank(self.prerank, self.seed, ("average", "band"))

    def __call__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> TestResult:
        """Rank, count, resample the counts and compare."""
        refuse_clusters(self, clusters)
        if sample_weight is not None:
            raise InputError("RankTest counts rows and has no use for sample_weight: use ExactTest(PITError())")
        targets, ranks = self._ranks(y_true, y_pred)
        n, n_bins = len(targets), self.n_bins or int(ranks.numbers.min()) + 1
        if n_bins < 3 and self.shape == "convexity":
            raise InputError(f"a convexity needs at least 3 bins; got {n_bins}: give more members")
        pit = randomised(ranks(targets), self.seed)
        counts = np.bincount(np.minimum((pit * n_bins).astype(np.intp), n_bins - 1), minlength=n_bins)
        value, slope, convexity = (
            float(_statistic(counts[None], shape)[0]) for shape in (self.shape, "slope", "convexity")
        )
        notes = (f"slope {slope:+.2f}, convexity {convexity:+.2f} standard errors",)
        table = histogram_table(counts / n, n, self.level)
        estimate = Estimate(f"rank histogram ({self.shape})", value, n, self, table=table, notes=notes)
        resample = partial(_resample, n, n_bins, self.shape)
        null = draw(resample, self.n_resamples, width=n_bins, rng=rng, engine=engine)
        return TestResult(value, upper_rank(abs(value), np.abs(null)), n, self, estimate, null, notes)

    def _ranks(self, y_true: ArrayLike, y_pred: ArrayLike) -> tuple[np.ndarray, MemberRanks]:
        """Checked targets, and how they are ranked."""
        if not isinstance(y_pred, Distribution):
            return _some_missing(y_true, y_pred)
        targets, predictions = as_problem(y_true, y_pred)
        if not isinstance(predictions, Ensemble) and not dimensions(predictions):
            raise InputError(
                f"RankTest takes ensembles; got {type(predictions).__name__} predictions: use ExactTest(PITError())"
            )
        if isinstance(predictions, Ensemble) and not predictions.is_even:
            raise InputError("RankTest takes equally likely members: use ExactTest(PITError()) for those with weights")
        ranks = pit_of(predictions, self, self.prerank, self.seed)
        assert isinstance(ranks, MemberRanks)
        return to_numpy(targets), ranks


def _some_missing(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[np.ndarray, MemberRanks]:
    """Targets and members ``(n, m)``, of which some are NaN but never all of a row."""
    members = to_numpy(as_array(y_pred, "y_pred"))
    if members.ndim != 2 or members.dtype.kind not in "fiu":
        raise InputError(
            f"y_pred must be an Ensemble, or members (n, m) with NaN where one is missing; got shape {members.shape} of "
            f"{members.dtype}"
        )
    members = members.astype(np.float64)
    if np.isinf(members).any() or np.isnan(members).all(axis=1).any():
        raise InputError(
            "y_pred must have at least one member per row, and none that is infinite: drop or repair such rows"
        )
    targets = to_numpy(as_numbers(y_true, "y_true"))
    if targets.ndim != 1:
        raise InputError(f"y_true must be one number per row; got shape {targets.shape}")
    check_same_length(len(targets), len(members), "y_true", "y_pred")
    return targets, MemberRanks(members)


def _statistic(counts: np.ndarray, shape: Shape) -> np.ndarray:
    """Chi-square of counts ``(m, B)``, or their slope or convexity in standard errors, ``(m,)``."""
    expected = counts.sum(axis=1, keepdims=True) / counts.shape[1]
    if shape == "any":
        return ((counts - expected) ** 2 / expected).sum(axis=1)
    place = np.arange(counts.shape[1]) - (counts.shape[1] - 1) / 2
    contrast = place if shape == "slope" else place**2 - (place**2).mean()
    size = np.sqrt((contrast**2).sum())
    return counts @ contrast / (np.sqrt(expected[:, 0]) * (size if size > 0 else 1))


def _resample(n: int, n_bins: int, shape: Shape, seed: np.random.SeedSequence, size: int) -> np.ndarray:
    return _statistic(np.random.default_rng(seed).multinomial(n, np.full(n_bins, 1 / n_bins), size), shape)
