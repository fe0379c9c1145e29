import numpy as np
import pytest

from calibrant.checks import check_kernel
from calibrant.kernels import Energy, Exponential, Gaussian, Identity, Matern

LINE = np.linspace(-1, 2, 15)[:, None]


def broken(kind, **methods):
    """The same with other methods."""
    return type(f"Broken{kind.__name__}", (kind,), methods)


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
