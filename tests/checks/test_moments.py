import numpy as np
import pytest

from calibrant import Categorical, Ensemble, Laplace, MultivariateNormal, Normal
from calibrant.checks.distribution import check_moments


class Binary(Categorical):
    @classmethod
    def example(cls, rng, n):
        return cls(rng.random(n))


def broken(kind, **methods):
    return type(f"Broken{kind.__name__}", (kind,), methods)


def check(family, rng):
    batch = family.example(rng, 6)
    check_moments(batch, batch.sample(rng, 40_000))


@pytest.mark.parametrize("family", [Normal, Laplace, Ensemble, MultivariateNormal, Binary])
def test_right_families_pass(family, rng):
    check(family, rng)


@pytest.mark.parametrize(
    ("family", "message"),
    [
        (broken(Normal, mean=property(lambda self: self.loc[1:])), "mean has shape"),
        (broken(Normal, mean=property(lambda self: self.loc + 0.2)), "mean does not agree with the draws"),
        (broken(Normal, mean=property(lambda self: self.loc + 1e-4)), "mean is not the integral of log_prob"),
        (broken(Ensemble, mean=property(lambda self: self.members[:, 0])), "mean does not agree with the draws"),
        (broken(Normal, std=property(lambda self: self.scale[1:])), "std has shape"),
        (broken(Laplace, std=property(lambda self: self.scale)), "std does not agree with the draws"),
        (broken(Normal, std=property(lambda self: 1.0001 * self.scale)), "std is not the integral of log_prob"),
        (broken(MultivariateNormal, std=property(lambda self: 1 + 0 * self.loc)), "std does not agree with the draws"),
        (broken(Binary, std=property(lambda self: self.probs)), "std does not agree with the draws"),
        (broken(Normal, below=lambda self, y: Normal.cdf(self, y) + 1e-9), "more lies below a value than up to it"),
        (broken(Ensemble, below=Ensemble.cdf), "below and cdf do not agree with the draws"),
        (broken(Normal, crps=lambda self, y: Normal.crps(self, y) + 0.2), "crps does not agree with the draws"),
        (broken(Normal, crps=lambda self, y: Normal.crps(self, y) + 1e-4), "crps is not the integral of cdf"),
        (broken(Binary, crps=lambda self, y: Binary.squared_error(self, y) * 2), "crps does not agree with the draws"),
        (
            broken(Normal, crps=lambda self, y: Normal.crps(self, y if y.ndim == 1 else y + 1e-6)),
            "crps of a stack of targets is not that of its members",
        ),
    ],
)
def test_wrong_families_fail(family, message, rng):
    with pytest.raises(AssertionError, match=message):
        check(family, rng)


def test_scores_of_single_values_are_held_to_their_steps(rng):
    """An error too small for the draws."""

    def fair_members(self, y):
        x = self.members
        far = np.abs(x - np.asarray(y)[..., None]).mean(axis=-1)
        return far - np.abs(x[:, :, None] - x[:, None]).mean(axis=(1, 2)) / 2 + 2e-3

    with pytest.raises(AssertionError, match="crps is not the integral of cdf"):
        check(broken(Ensemble, crps=fair_members), rng)


def test_below_without_cdf_is_refused(rng):
    with pytest.raises(AssertionError, match="below without cdf"):
        check(broken(Normal, cdf=lambda self, y: NotImplemented, below=Normal.cdf), rng)


def test_infinite_spread_is_not_compared(rng):
    class Cauchy(Normal):
        """As if of infinite spread."""

        std = property(lambda self: np.full(len(self), np.inf))

    check(Cauchy, rng)


def test_a_family_with_a_mean_alone_is_judged_by_it(rng):
    class Bare(Normal):
        std = NotImplemented

    batch = Bare(np.zeros(3), 1.0)
    draws = rng.normal(size=(20_000, 3))
    check_moments(batch, draws)
    with pytest.raises(AssertionError, match="mean"):
        check_moments(batch, draws + 1)
