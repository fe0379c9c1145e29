import numpy as np
import pytest

from calibrant import (
    Bernoulli,
    Categorical,
    Ensemble,
    Laplace,
    LogNormal,
    MultivariateNormal,
    Normal,
    Quantiles,
)
from calibrant.checks import check_distribution
from calibrant.distributions import Distribution
from calibrant.distributions.continuous.location_scale import LocationScale


def broken(kind, **methods):
    """The same with other methods."""
    return type(f"Broken{kind.__name__}", (kind,), methods)


def wider(factor, method):
    """A method of a family as if its scale were larger."""
    return lambda self, x: getattr(type(self).__mro__[1](self.loc, factor * self.scale), method)(x)


def sorted_rows(self, rows):
    return Normal.__getitem__(self, rows if isinstance(rows, slice) else np.sort(rows))


def first_rows(self, rows):
    return Ensemble.__getitem__(self, slice(0, len(self) - 1) if rows == slice(1, len(self)) else rows)


def last_density(self, y):
    return Normal.log_prob(self, y if y.ndim == 1 else np.broadcast_to(y[-1], y.shape))


def uncorrelated(self, y):
    return MultivariateNormal(self.loc, np.sqrt(np.diagonal(self.covariance, axis1=1, axis2=2))).log_prob(y)


class Dry(Quantiles):
    """With a chance of exactly zero."""

    @classmethod
    def example(cls, rng, n):
        return cls(np.concatenate([np.zeros((n, 2)), rng.uniform(1, 2, (n, 1))], axis=1), [0.2, 0.5, 0.9], (0.0, 3.0))


@pytest.mark.parametrize(
    ("family", "message"),
    [
        (broken(Normal, __len__=lambda self: Normal.__len__(self) - 1), r"len\(\) is not the number of rows"),
        (broken(Normal, sample=lambda self, rng, size: Normal.sample(self, rng, size)[:, 1:]), "sample gives"),
        (broken(Normal, as_targets=lambda self, y: np.round(y, 3)), "a draw is no valid target"),
        (broken(Normal, point=lambda self, y: Normal.point(self, y)[1:]), "gives the wrong number of rows"),
        (broken(Normal, __getitem__=lambda self, rows: self), "rows that are taken have the wrong shape"),
        (broken(Normal, shifted=lambda self, by: self), "shifted does not move position"),
        (broken(Normal, shifted=lambda self, by: Normal(self.loc + by, 1.1 * self.scale)), "not the law of Y"),
        (broken(LogNormal, position=LocationScale.position, shifted=LocationScale.shifted), "not the law of Y"),
        (broken(Normal, __getitem__=sorted_rows), "rows that are taken are other predictions"),
        (broken(Ensemble, __getitem__=first_rows), "rows that are taken are other predictions"),
        (broken(Normal, cdf=wider(1.1, "cdf")), "cdf does not agree with the draws"),  # right at the median
        (broken(Normal, cdf=wider(1.001, "cdf")), "quantile (does not reach|lies beyond) its level"),
        (
            broken(Normal, cdf=wider(1.001, "cdf"), quantile=wider(1.001, "quantile")),
            "cdf is not the integral of log_prob",
        ),
        (broken(Laplace, quantile=wider(1.1, "quantile")), "quantile does not agree with the draws"),
        (broken(Laplace, quantile=lambda self, u: Laplace.quantile(self, u) - 1e-5), "does not reach its level"),
        (broken(Laplace, quantile=lambda self, u: Laplace.quantile(self, u) + 1e-5), "lies beyond its level"),
        (broken(Normal, log_prob=lambda self, y: Normal.log_prob(self, y) + 1e-4), "does not integrate to one"),
        (
            broken(Normal, log_prob=wider(1.1, "log_prob"), cdf=Distribution.cdf),
            "log_prob does not agree with the draws",
        ),
        (broken(Normal, log_prob=last_density), "log_prob of a stack of targets is not that of its members"),
        (
            broken(Categorical, log_prob=lambda self, y: Categorical.log_prob(self, 2 - y)),
            "log_prob does not agree with the draws",
        ),
        (broken(Bernoulli, log_prob=lambda self, y: Bernoulli.log_prob(self, y) + 1e-3), "more than one in all"),
        (broken(Dry, below=lambda self, y: self.cdf(y)), "does not integrate to one"),
        (broken(MultivariateNormal, log_prob=uncorrelated), "log_prob does not agree with the draws"),
        (broken(Normal, cf=lambda self, w: Normal.cf(self, -w)), "cf does not agree with the draws"),
        (broken(Normal, cf=wider(1.001, "cf")), "cf is not the integral of log_prob"),
        (
            broken(MultivariateNormal, cf=lambda self, w: MultivariateNormal.cf(self, 2 * w)),
            "cf does not agree with the draws",
        ),
        (broken(Normal, temper=lambda self, t: Normal(self.loc, self.scale * t)), r"is not proportional to p\^\(1/T\)"),
    ],
)
def test_wrong_families_fail(family, message, rng):
    with pytest.raises(AssertionError, match=message):
        check_distribution(family, rng)
