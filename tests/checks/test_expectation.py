import importlib
import pkgutil
from itertools import product

import numpy as np
import pytest

from calibrant import Ensemble, Mixture, MultivariateNormal, NegativeBinomial, Normal, Poisson, distributions
from calibrant.checks import check_expectation
from calibrant.distributions import Counts, Distribution
from calibrant.kernels import Energy, Exponential, Gaussian, Identity, Kernel, LabelMatrix, Matern
from calibrant.kernels import base as expectation

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


FAMILIES = {
    Distribution: [Normal.example, Mixture.example],
    MultivariateNormal: [MultivariateNormal.example, diagonal],
    Counts: [Poisson.example, NegativeBinomial.example],
}
"""Examples of families where their own is none or not enough."""


def forms():
    """What our own families register; others may have been registered by then."""
    for module in pkgutil.iter_modules(distributions.__path__, f"{distributions.__name__}."):
        importlib.import_module(module.name)
    return [form for form in expectation.registered() if all(part.__module__.startswith("calibrant.") for part in form)]


EXAMPLES = [
    example
    for kernel, p, q in forms()
    if p.__name__ >= q.__name__ or (kernel, q, p) not in forms()
    for example in product(KERNELS.get(kernel, []), FAMILIES.get(p, [p.example]), FAMILIES.get(q, [q.example]))
]
"""Of two families in one order: each check looks at both, and asks for symmetry."""


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
