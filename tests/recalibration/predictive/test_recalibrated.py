import numpy as np
import pytest
from scipy.special import ndtr

from calibrant import SKCE, Categorical, Ensemble, Laplace, NegativeBinomial, Normal, Poisson
from calibrant._validate import InputError
from calibrant.checks import check_distribution
from calibrant.distributions import Censored
from calibrant.kernels import Exponential, Gaussian
from calibrant.recalibration import Recalibrated
from calibrant.recalibration.predictive.quantile import Lines

BENT = ([-1.0, 0.0, 0.5], [-0.5, 0.1, 0.8])


def test_it_is_a_distribution(rng):
    check_distribution(Recalibrated, rng)


def test_it_is_a_distribution_of_members(rng):
    class OfMembers(Recalibrated):
        @classmethod
        def example(cls, rng, n):
            return cls(Ensemble.example(rng, n), *BENT)

    check_distribution(OfMembers, rng)


def test_density_is_the_slope_of_the_distribution_function():
    batch = Recalibrated(Laplace([0.0, 1.0], [1.0, 2.0]), *BENT)
    y = np.linspace(-7, 7, 30)[:, None] + np.zeros(2)
    slope = (batch.cdf(y + 1e-6) - batch.cdf(y - 1e-6)) / 2e-6
    assert np.exp(batch.log_prob(y)) == pytest.approx(slope, rel=1e-5, abs=1e-10)  # rounding over step


def test_a_line_is_a_factor_and_a_shift(rng):
    """Normal scores times 1/2, less 1/4: twice the scale, and half a scale up."""
    base = Normal(rng.normal(size=5), rng.uniform(1, 2, 5))
    found = Recalibrated(base, [-1, 1], [-0.75, 0.25])
    expected = Normal(base.loc + 0.5 * base.scale, 2 * base.scale)
    y = expected.sample(rng, 50)
    assert found.log_prob(y) == pytest.approx(expected.log_prob(y))
    assert found.cdf(y) == pytest.approx(expected.cdf(y))
    levels = np.array([0, 1e-20, 0.3, 0.999999, 1])
    assert found.quantile(levels) == pytest.approx(expected.quantile(levels))


def test_tails_of_a_model_that_is_far_too_sure():
    """Ten times the scale: 30 standard deviations of the base are three; no level is lost on either side."""
    found = Recalibrated(Normal([0.0], 1.0), [-1, 1], [-0.1, 0.1])
    assert found.cdf(np.array([30.0])) == pytest.approx(ndtr(3))
    assert np.all(np.isfinite(found.sample(np.random.default_rng(0), 20_000)))
    assert np.isfinite(found.log_prob(np.array([-1e4, 1e4])[:, None])).all()


def test_members_for_what_takes_no_distribution_function():
    found = Recalibrated(Normal([0.0, 3.0], 1.0), *BENT)
    assert found.ensemble(4).members == pytest.approx(found.quantile(np.array([0.125, 0.375, 0.625, 0.875])))


@pytest.mark.parametrize("n", [3, 60])
def test_kernel_errors_take_them(n, rng):
    """A line is a factor: the error is that of the scaled predictions, but for tails that 100 quantiles leave out."""
    base = Normal(rng.normal(size=n), rng.uniform(1, 2, n))
    scaled = Normal(base.loc, 2 * base.scale)
    y = rng.normal(base.loc, 1.0)
    found = Recalibrated(base, [-1, 0, 1], [-0.5, 0, 0.5])
    error = SKCE(Exponential(1.0), Gaussian(1.0))
    assert error(y, found).value == pytest.approx(error(y, scaled).value, rel=0.02, abs=1e-4)
    assert np.isfinite(SKCE()(y, found).value)
    distances = np.hypot(*(part[:, None] - part for part in scaled.host))
    assert np.linalg.norm(found.coords[:, None] - found.coords, axis=-1) == pytest.approx(distances, abs=0.05)


class TestLines:
    @pytest.mark.parametrize(
        ("points", "at", "expected"),
        [
            (([], []), [-1, 2], [-1, 2]),
            (([1], [3]), [-1, 2], [1, 4]),
            (([0, 2], [0, 1]), [-2, 0, 1, 2, 4], [-1, 0, 0.5, 1, 2]),
            (([-1, 0, 2], [-3, 0, 1]), [-2, -1, 1, 4], [-6, -3, 0.5, 2]),
            (([0, 1, 2, 3], [0, 2, 3, 4]), [-1, 4], [-1.5, 5]),  # slopes 3/2 to the third, 1 from the second on
        ],
    )
    def test_by_hand(self, points, at, expected):
        lines = Lines(*points)
        assert lines(np.array(at, dtype=float)) == pytest.approx(expected)
        assert lines.inverse(np.array(expected, dtype=float)) == pytest.approx(at)

    def test_certainty_stays(self):
        lines = Lines(*BENT)
        assert lines(np.array([-np.inf, np.inf])).tolist() == [-np.inf, np.inf]
        assert np.all(np.isfinite(lines.log_density(np.array([-np.inf, np.inf]))))

    @pytest.mark.parametrize("points", [([0, 0], [0, 1]), ([0, 1], [1, 0]), ([0, np.inf], [0, 1]), ([[0, 1]], [0, 1])])
    def test_points_that_do_not_increase_are_refused(self, points):
        with pytest.raises(InputError, match="must be finite numbers that increase"):
            Lines(*points)

    def test_points_come_in_pairs(self):
        with pytest.raises(InputError, match="scores and values must be as many; got 2 and 1"):
            Lines([0, 1], [1])


def test_classes_have_no_levels():
    with pytest.raises(InputError, match="Recalibrated takes predictions of numbers .* got Categorical"):
        Recalibrated(Categorical([0.5]), [0], [0])


def test_moments_and_scores_of_a_line_are_those_of_the_normal(rng):
    base = Normal(rng.normal(size=5), rng.uniform(1, 2, 5))
    found = Recalibrated(base, [-1, 1], [-0.75, 0.25])  # twice the scale
    expected = Normal(base.loc + 0.5 * base.scale, 2 * base.scale)
    assert found.mean == pytest.approx(expected.mean, abs=1e-6)
    assert found.std == pytest.approx(expected.std, rel=1e-6)
    assert found.crps(base.loc) == pytest.approx(expected.crps(base.loc), rel=1e-6)


def test_members_that_are_recalibrated_are_still_members(rng):
    """A map that leaves all as it is; what lies below a member does not count it."""
    base = Ensemble(rng.normal(size=(5, 60)))
    found = Recalibrated(base, [0.0], [0.0])
    y = base.sample(rng, 3)
    assert found.below(y) == pytest.approx(base.below(y), abs=1e-12)
    assert found.mean == pytest.approx(base.mean, abs=1e-9)
    assert found.std == pytest.approx(base.std, abs=1e-6)


@pytest.mark.parametrize("base", [Poisson([0.2, 3.0]), NegativeBinomial([1.0, 5.0], 0.5)], ids=["Poisson", "negative"])
def test_probabilities_of_counts_sum_to_one(base):
    found = Recalibrated(base, scores=[-1.0, 0.5], values=[-0.6, 0.1])
    y = np.arange(400)[:, None]
    chances = np.exp(found.log_prob(np.repeat(y, 2, axis=1)))
    # The base's levels end at 1 - 1e-16, which this map makes 1 - 4e-5: what lies beyond is not known any better.
    assert chances.sum(axis=0) == pytest.approx(1, abs=4e-5)
    upto = np.stack([found.cdf(np.full(2, k)) for k in range(400)])
    assert np.cumsum(chances, axis=0)[:30] == pytest.approx(upto[:30], abs=1e-5)


def test_counts_beyond_the_last_level_have_a_probability():
    found = Recalibrated(Poisson([3.0]), scores=[-1.0, 1.0], values=[-0.5, 0.5])
    logs = np.array([found.log_prob(np.array([k]))[0] for k in range(5, 120, 5)])
    assert np.all(np.isfinite(logs))
    assert np.all(np.diff(logs) < 0)


def test_a_value_with_a_probability_of_its_own_keeps_one():
    rain = Censored(Normal([0.0], 1.0), low=0.0)
    found = Recalibrated(rain, scores=[-1.0, 1.0], values=[-2.0, 2.0])
    assert np.exp(found.log_prob(np.zeros(1))) == pytest.approx(found.cdf(np.zeros(1)))
    x = np.linspace(1e-6, 12, 20_001)
    density = np.exp([found.log_prob(np.array([v]))[0] for v in x])
    assert np.trapezoid(density, x) == pytest.approx(1 - found.cdf(np.zeros(1))[0], abs=1e-4)
