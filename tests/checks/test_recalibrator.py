from dataclasses import dataclass, replace

import numpy as np
import pytest

from calibrant import Categorical, Laplace, Normal
from calibrant._validate import InputError
from calibrant.checks import check_recalibrator
from calibrant.recalibration import Found, Platt, QuantileRecalibration, Recalibrator, Temperature
from calibrant.recalibration.maps import ClassMap, Map


@pytest.mark.parametrize(("recalibrator", "on"), [(Platt(), 2), (Temperature(), 4), (QuantileRecalibration(), Laplace)])
def test_ours_pass(recalibrator, on, rng):
    check_recalibrator(recalibrator, rng, on)


@dataclass(frozen=True, eq=False)
class TowardsRates(ClassMap):
    """A share of the base rates."""

    n_classes: int
    rates: np.ndarray

    def probabilities(self, p):
        return 0.8 * p / p.sum(axis=1, keepdims=True) + 0.2 * self.rates


@dataclass(frozen=True)
class Blending(Recalibrator):
    """A recalibrator of one's own, right in everything; broken ones change one thing."""

    def find(self, targets, predictions, weights):
        w = np.ones(len(targets)) if weights is None else weights
        k = predictions.n_classes
        return Found(self.made(k, np.bincount(targets, w, minlength=k) / w.sum()))

    def made(self, k, rates):
        return TowardsRates(k, rates)


def test_one_of_ones_own_passes(rng):
    for k in (2, 3):
        check_recalibrator(Blending(), rng, k)


class Unnormalised(TowardsRates):
    def probabilities(self, p):
        return 0.9995 * super().probabilities(p)


class Single(TowardsRates):
    def apply(self, predictions):
        return Categorical(super().apply(predictions).matrix.astype(np.float32), predictions.labels)


class Nameless(TowardsRates):
    def apply(self, predictions):
        return Categorical(super().apply(predictions).matrix)


class Sociable(TowardsRates):
    def probabilities(self, p):
        return 0.5 * p + 0.5 * p.mean(axis=0)


class Forgetful(TowardsRates):
    def to_dict(self):
        return {**super().to_dict(), "rates": np.round(self.rates, 1).tolist()}


class Lenient(TowardsRates):
    def check(self, predictions):
        pass


class Partial(TowardsRates):
    """The first class is special."""

    def probabilities(self, p):
        found = super().probabilities(p)
        lift = np.where(np.arange(p.shape[1]) == 0, 1.1, 1.0)
        return found * lift / (found * lift).sum(axis=1, keepdims=True)


class Fragile(TowardsRates):
    def probabilities(self, p):
        q = np.exp(np.log(p))
        return np.where(p.min(axis=1, keepdims=True) == 0, np.nan, q)


def made_by(kind):
    class Broken(Blending):
        def made(self, k, rates):
            return kind(k, rates)

    return Broken()


class Unweighted(Blending):
    def find(self, targets, predictions, weights):
        return super().find(targets, predictions, None)


class Counting(Blending):
    """The sum of weights is taken for a number of rows, against ten that know nothing."""

    def find(self, targets, predictions, weights):
        w = np.ones(len(targets)) if weights is None else weights
        k = predictions.n_classes
        return Found(self.made(k, (np.bincount(targets, w, minlength=k) + 10 / k) / (w.sum() + 10)))


class Restless(Blending):
    """Different digits every time."""

    def find(self, targets, predictions, weights):
        found = super().find(targets, predictions, weights).map
        return Found(replace(found, rates=0.9 * found.rates + 0.1 * np.random.default_rng().dirichlet(found.rates + 1)))


class Meddling(Blending):
    def find(self, targets, predictions, weights):
        predictions.matrix[:] = 0.5 * predictions.matrix + 0.5 / predictions.n_classes
        return super().find(targets, predictions, weights)


class Few(Blending):
    """Needs every class."""

    def find(self, targets, predictions, weights):
        assert len(np.unique(targets)) == predictions.n_classes, "all classes must happen"
        return super().find(targets, predictions, weights)


@pytest.mark.parametrize(
    ("recalibrator", "message"),
    [
        (made_by(Unnormalised), "do not sum to one"),
        (made_by(Single), "probabilities are float32, not double precision"),
        (made_by(Nameless), "names of classes are lost"),
        (made_by(Sociable), "the answer for a row depends on other rows"),
        (made_by(Forgetful), "the map from JSON gives other digits"),
        (made_by(Lenient), "are not refused, but fail with ValueError"),
        (made_by(Partial), "with classes in another order answers differ by"),
        (made_by(Fragile), "not finite|NaN"),
        (Unweighted(), "weights change nothing"),
        (Counting(), "weights and the same times 1.5 give answers that differ by"),
        (Restless(), "a second fit gives other digits"),
        (Meddling(), "fit changes what it is given"),
        (Few(), "all classes must happen"),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, Recalibrator) else x,
)
def test_broken_ones_do_not(recalibrator, message, rng):
    with np.errstate(all="ignore"), pytest.raises((AssertionError, ValueError), match=message):
        check_recalibrator(recalibrator, rng)


def test_claims_may_be_loosened(rng):
    check_recalibrator(made_by(Partial), rng, relabelling=None)
    check_recalibrator(Counting(), rng, weighting=1.0)


def test_maps_that_refuse_to_be_saved_do_so_in_words(rng):
    with pytest.raises(AssertionError, match="a map that cannot be saved does not say so"):
        check_recalibrator(Blending(), rng, is_saved=False)


@dataclass(frozen=True)
class Backwards(Map):
    """Quantiles in the wrong order."""

    def apply(self, predictions):
        found = Normal(predictions.loc, predictions.scale)
        object.__setattr__(found, "scale", -predictions.scale)
        return found

    def check(self, predictions):
        if not isinstance(predictions, Normal):
            raise InputError("numbers only")


class GoingBackwards(Blending):
    def find(self, targets, predictions, weights):
        return Found(Backwards())


def test_quantiles_that_fall(rng):
    with np.errstate(all="ignore"), pytest.raises(AssertionError, match="the map gives quantiles that fall"):
        check_recalibrator(GoingBackwards(), rng, Normal)
