"""What is measured of normal models and of their ensemble: accuracy, calibration, and what a lost loop does to the latter.

The program behind the published figures sums an inner product over all pairs of components (k, l) of two mixtures, but leaves
out those with k > 1 and l = 1: 9 of 100 for ten components. What is left is not symmetric in the two rows, and its two
estimators sum over different triangles.
"""

import numpy as np

from calibrant import SKCE, ExactTest, LogLoss, Mixture, Normal, Pinball
from calibrant.inference import BootstrapTest
from calibrant.inference.kernel_tests.kernel_matrix import KernelMatrix
from calibrant.kernels import Exponential, Gaussian, MixtureWasserstein
from calibrant.residuals import residuals
from studies.widmann.data import MEASURED, SKCES, Models

PINBALL = Pinball(tuple(np.arange(1, 20) / 20))
"""The mean over 19 quantiles."""

ON_TARGETS = Gaussian(1.0)
OF_NORMALS = SKCE(Exponential(1.0), ON_TARGETS)
"""The kernel ``exp(-W2) exp(-(y - y')^2 / 2)``."""


def of_mixtures(components: int) -> SKCE:
    """The same kernel with the transport between components in place of W2."""
    return SKCE(Exponential(1.0, MixtureWasserstein(components)), ON_TARGETS)


def evaluate(models: Models, n_resamples: int, seed: int, exact_resamples: int = 0) -> np.ndarray:
    """All quantities of each of k models, of their ensemble, and of the ensemble with pairs left out, ``(k + 2, 7)``.

    The p-values are those of the bootstrap as published and of the exact test; the latter is NaN without resamples of its
    own. With pairs left out there are only the kernel errors; the rest is NaN.

    >>> few = Models(np.array([0.1, -0.4, 0.9]), np.array([[0.0, 0.0, 1.0], [0.2, -0.3, 0.7]]), np.array([0.5, 0.4]))
    >>> evaluate(few, 99, seed=0).shape
    (4, 7)
    """
    normals = [Normal(mean, sd) for mean, sd in zip(models.means, models.sds, strict=True)]
    ensemble, y = Mixture(tuple(normals)), models.targets
    draws = n_resamples, exact_resamples
    found = [_measured(y, p, p.loc, OF_NORMALS, draws, seed) for p in normals]
    kernel = of_mixtures(len(normals))
    found.append(_measured(y, ensemble, models.means.mean(axis=0), kernel, draws, seed))
    incomplete = np.full(len(MEASURED), np.nan)
    incomplete[SKCES] = with_pairs_left_out(y, ensemble)
    return np.stack([*found, incomplete])


def _measured(
    y: np.ndarray, predictions: Normal | Mixture, mean: np.ndarray, estimator: SKCE, draws: tuple[int, int], seed: int
) -> np.ndarray:
    """The quantities of one model, with one matrix for both errors and the p-value of the bootstrap."""
    bootstrap, exact = draws
    matrix = KernelMatrix.of(estimator, y, predictions, None)
    pvalue = BootstrapTest(estimator, bootstrap).outcome(matrix, seed, None).pvalue
    accuracy = LogLoss()(y, predictions).value, np.mean((y - mean) ** 2), float(PINBALL(y, predictions))
    held = ExactTest(estimator, exact)(y, predictions, rng=seed).pvalue if exact else np.nan
    return np.array([*accuracy, matrix.unbiased, matrix.biased, pvalue, held])


def with_pairs_left_out(y: np.ndarray, ensemble: Mixture) -> tuple[float, float]:
    """The unbiased and the biased error of an ensemble of equal weights as they were published.

    The pairs left out are those of the other components with the first: ``(K - 1) / K^2`` times the inner product of
    their residuals.

    >>> both = Mixture([Normal([0.0, 1.0], 1.0), Normal([0.5, 1.5], 1.0)])
    >>> unbiased, biased = with_pairs_left_out(np.array([0.3, 0.2]), both)
    >>> biased < SKCE(Exponential(1.0, MixtureWasserstein(2)), ON_TARGETS, unbiased=False)([0.3, 0.2], both).value
    True
    """
    first, *others = ensemble.components
    count, n = len(ensemble.components), len(ensemble)
    whole, rest, one = (residuals(ON_TARGETS, y, p) for p in (ensemble, Mixture(tuple(others)), first))
    inner = whole.inner(whole) - (count - 1) / count**2 * rest.inner(one)
    kernel = of_mixtures(count).on_predictions
    points = kernel.metric.embed(ensemble)  # type: ignore[attr-defined]  # the transport embeds mixtures
    terms = kernel(points, points) * inner
    unbiased, biased = 2 * np.triu(terms, 1).sum(), 2 * np.tril(terms, -1).sum() + np.trace(terms)
    return float(unbiased / (n * (n - 1))), float(biased / n**2)
