"""The checks pass on all of ours and fail on each kind of mistake they look for."""

import importlib
import pkgutil
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from calibrant import (
    ECE,
    KCE,
    MMCE,
    SKCE,
    UCME,
    Bernoulli,
    Brier,
    Categorical,
    ClassWise,
    Ensemble,
    EqualMass,
    Laplace,
    LogLoss,
    Mixture,
    MultivariateNormal,
    Normal,
    TopLabel,
    distributions,
    expectation,
)
from calibrant._validate import InputError
from calibrant.checks import check_distribution, check_estimator, check_expectation, check_kernel
from calibrant.distributions.base import Distribution
from calibrant.estimators.ucme import GivenLocations
from calibrant.kernels import Energy, Exponential, Gaussian, Identity, Kernel, LabelMatrix, Matern

LINE = np.linspace(-1, 2, 15)[:, None]


def broken(kind, **methods):
    """The same with other methods."""
    return type(f"Broken{kind.__name__}", (kind,), methods)


def wider(factor, method):
    """A method of a family as if its scale were larger."""
    return lambda self, x: getattr(type(self).__mro__[1](self.loc, factor * self.scale), method)(x)


@pytest.mark.parametrize("kernel", [Gaussian(), Exponential(), Matern(2.5), Energy(), Identity()], ids=repr)
def test_our_kernels_pass(kernel):
    check_kernel(kernel, LINE)
    check_kernel(kernel, np.concatenate([LINE, LINE**2], axis=1))


def off_by_a_pair(self, span):
    nodes, weights = Gaussian.spectrum(self, span)
    return np.append(nodes, [1.0, 1.0]), np.append(weights, [1.0, -1.0])


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (
            broken(Gaussian, __call__=lambda self, x, y: Gaussian.__call__(self, x, y) * np.exp(1e-6 * (x - y.T))),
            "is not symmetric",
        ),
        (
            broken(Gaussian, __call__=lambda self, x, y: 1 - Gaussian.__call__(self, x, y)),
            "is not positive semi-definite: eigenvalue -",
        ),
        (
            broken(Gaussian, __call__=lambda self, x, y: Gaussian(float(np.ptp(x)))(x, y)),
            "of a few points differs",
        ),
        (broken(Gaussian, __call__=lambda self, x, y: Gaussian.__call__(self, x, y)[0]), r"gives shape \(15,\)"),
        (
            broken(Exponential, product=lambda self, x, v, **settings: Exponential.product(self, x, v, diagonal=True)),
            "the fast product of .* is wrong",
        ),
        (
            broken(Exponential, pair_sums=lambda self, x, v: 2 * Exponential.pair_sums(self, x, v)),
            "the pair sums of .* are wrong",
        ),
        (
            broken(Gaussian, spectrum=lambda self, span: Gaussian(self.unit * (1 + 1e-9)).spectrum(span)),
            "the spectrum of .* is wrong",
        ),
        (broken(Gaussian, spectrum=off_by_a_pair), "the spectrum of .* has negative weights"),
        (
            broken(Gaussian, frequencies=lambda self, rng, m, d: 1.5 * Gaussian.frequencies(self, rng, m, d)),
            "the random frequencies of .* are wrong",
        ),
        (broken(Gaussian, diagonal=lambda self, x: 2 + 0 * x[:, 0]), "the diagonal of .* is wrong"),
    ],
)
def test_wrong_kernels_fail(kernel, message):
    with pytest.raises(AssertionError, match=message):
        check_kernel(kernel(1.0), LINE)


def sorted_rows(self, rows):
    return Normal.__getitem__(self, rows if isinstance(rows, slice) else np.sort(rows))


def first_rows(self, rows):
    return Ensemble.__getitem__(self, slice(0, len(self) - 1) if rows == slice(1, len(self)) else rows)


def last_density(self, y):
    return Normal.log_prob(self, y if y.ndim == 1 else np.broadcast_to(y[-1], y.shape))


def uncorrelated(self, y):
    return MultivariateNormal(self.loc, np.sqrt(np.diagonal(self.covariance, axis1=1, axis2=2))).log_prob(y)


@pytest.mark.parametrize(
    ("family", "message"),
    [
        (broken(Normal, __len__=lambda self: Normal.__len__(self) - 1), r"len\(\) is not the number of rows"),
        (broken(Normal, sample=lambda self, rng, size: Normal.sample(self, rng, size)[:, 1:]), "sample gives"),
        (broken(Normal, as_targets=lambda self, y: np.round(y, 3)), "a draw is no valid target"),
        (broken(Normal, point=lambda self, y: Normal.point(self, y)[1:]), "gives the wrong number of rows"),
        (broken(Normal, __getitem__=lambda self, rows: self), "rows that are taken have the wrong shape"),
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


KERNELS = {
    Gaussian: [Gaussian(0.8)],
    Exponential: [Exponential(0.8)],
    Energy: [Energy()],
    Identity: [Identity()],
    LabelMatrix: [LabelMatrix(((1.0, 0.5, 0.2), (0.5, 1.0, 0.5), (0.2, 0.5, 1.0)))],
    Kernel: [Exponential(0.7) + 0.5 * Gaussian(2.0)],
}
"""Examples of each kernel that a form is registered for."""


def diagonal(rng, n):
    return MultivariateNormal(rng.normal(size=(n, 3)), rng.uniform(0.5, 2, (n, 3)))


FAMILIES = {Distribution: [Normal.example, Mixture.example], MultivariateNormal: [MultivariateNormal.example, diagonal]}
"""Examples of families where their own is none or not enough."""


def forms():
    """What our own families register; others may have been registered by then."""
    for module in pkgutil.iter_modules(distributions.__path__, f"{distributions.__name__}."):
        importlib.import_module(module.name)
    return [form for form in expectation.registered() if all(part.__module__.startswith("calibrant.") for part in form)]


EXAMPLES = [
    example
    for kernel, p, q in forms()
    for example in product(KERNELS.get(kernel, []), FAMILIES.get(p, [p.example]), FAMILIES.get(q, [q.example]))
]


def test_every_registered_form_has_an_example():
    assert [kernel.__name__ for kernel, _, _ in forms() if kernel not in KERNELS] == []


def name(part):
    return repr(part) if isinstance(part, Kernel) else getattr(part, "__self__", part).__name__


@pytest.mark.parametrize(("kernel", "p", "q"), EXAMPLES, ids=name)
def test_every_registered_form_is_right(kernel, p, q, rng):
    check_expectation(kernel, p(rng, 2), q(rng, 2), rng)


@pytest.fixture
def spoil(monkeypatch):
    """Multiplies a closed form by a factor where a condition holds."""

    def spoiled(key, condition, factor):
        form = expectation._FORMS[key]
        changed = lambda kernel, p, q: form(kernel, p, q) * (factor if condition(p, q) else 1)  # noqa: E731
        monkeypatch.setitem(expectation._FORMS, key, changed)

    return spoiled


def spread(batch):
    return bool(np.any(batch.scale > 0))


def is_narrow(batch):
    return 0 < batch.scale.min() < 1e-6


@pytest.mark.parametrize(
    ("condition", "factor", "message"),
    [
        (lambda p, q: True, 1.01, "of two points it is not the kernel"),
        (lambda p, q: spread(p) != spread(q), 1.01, "should be"),
        (lambda p, q: spread(p) and spread(q), 1.01, "should be"),
        (lambda p, q: spread(p) and not spread(q), 1.01, "not symmetric"),
        (lambda p, q: is_narrow(p) or is_narrow(q), 1 + 1e-6, "does not tend to the value at a point"),
        (lambda p, q: True, np.ones((7, 1, 1)), r"shape \(7, 2, 3\)"),
    ],
)
def test_wrong_closed_forms_fail(condition, factor, message, spoil, rng):
    spoil((Exponential, Normal, Normal), condition, factor)
    with pytest.raises(AssertionError, match=message):
        check_expectation(Exponential(0.8), Normal.example(rng, 2), Normal.example(rng, 3), rng)


def test_wrong_sums_over_members_fail(spoil, rng):
    """By quantiles: there is no density to integrate."""
    spoil((Kernel, Ensemble, Ensemble), lambda p, q: p.members.shape != q.members.shape, 1.01)
    with pytest.raises(AssertionError, match="should be"):
        check_expectation(Matern(1.5, 1.0), Ensemble.example(rng, 2), Ensemble.example(rng, 2), rng)


def test_wrong_forms_of_vectors_fail(spoil, rng):
    """By draws, which do not tell as much."""
    key = (Gaussian, MultivariateNormal, MultivariateNormal)
    spoil(key, lambda p, q: bool(p.full.any()) != bool(q.full.any()), 1.1)
    with pytest.raises(AssertionError, match="should be"):
        check_expectation(Gaussian(2.0), diagonal(rng, 2), diagonal(rng, 2), rng)


def test_missing_closed_forms_fail(rng):
    with pytest.raises(AssertionError, match="has no closed form for <Normal: 2 predictions>"):
        check_expectation(Matern(1.5, 1.0), Normal.example(rng, 2), Normal.example(rng, 2), rng)


@pytest.fixture
def classes(rng):
    predictions = Categorical.example(rng, 40)
    return predictions.sample(rng, 1)[0].astype(np.int64), predictions


@pytest.mark.parametrize(
    "estimator",
    [
        ECE(lens=TopLabel()),
        ECE(EqualMass(5), norm=2, lens=ClassWise()),
        Brier(),
        LogLoss(),
        SKCE(),
        SKCE(unbiased=False),
        KCE(),
        MMCE(),
        UCME(locations=GivenLocations([0, 2], [[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])),
    ],
    ids=repr,
)
def test_our_estimators_pass(estimator, classes):
    check_estimator(estimator, *classes)


@pytest.mark.parametrize("family", [Normal, Laplace, Mixture, Ensemble, MultivariateNormal])
def test_the_kernel_error_passes_on_every_family(family, rng):
    vectors = family is MultivariateNormal
    predictions = diagonal(rng, 8) if vectors else family.example(rng, 8)
    check_estimator(SKCE(Exponential(1.0), Gaussian(1.0)), predictions.sample(rng, 1)[0], predictions)


def first_half(self, targets, predictions, weights):
    found = Brier.estimate(self, targets[:20], predictions[:20], None if weights is None else weights[:20])
    return replace(found, n=len(predictions))


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (broken(Brier, estimate=lambda self, y, p, w: Brier.estimate(self, y[:1], p[:1], None)), "n is 1, not the"),
        (broken(Brier, estimate=first_half), "the order of rows matters"),
        (lambda: SKCE(block=7), "the order of rows matters"),
        (broken(Brier, given=lambda self, p, w: lambda y: 1.01 * Brier.given(self, p, w)(y)), "redraws in bulk differ"),
        (broken(Brier, given=lambda self, p, w: Brier.given(self, p, None)), "redraws in bulk differ"),
        (broken(Brier, reduce=lambda self, y, p: (self, y[1:], p[1:])), "the reduced problem has another value"),
        (broken(Brier, least=5.0), "lies outside of what the estimator says it can be"),
        (broken(Brier, __eq__=object.__eq__, __hash__=object.__hash__), "settings that are equal make different"),
        (broken(Brier, __hash__=object.__hash__), "equal estimators have different hashes"),
    ],
)
def test_wrong_estimators_fail(estimator, message, classes):
    with pytest.raises(AssertionError, match=message):
        check_estimator(estimator(), *classes)


def test_weights_may_be_refused_but_redraws_may_not(classes):
    def refuse(self, targets, predictions, weights):
        if weights is not None or targets.dtype in self.refused:
            raise InputError("no")
        return Brier.estimate(self, targets, predictions, weights)

    check_estimator(broken(Brier, estimate=refuse, refused=())(), *classes)
    with pytest.raises(AssertionError, match="a redraw is refused"):
        check_estimator(broken(Brier, estimate=refuse, refused=(np.uint8,))(), *classes)
