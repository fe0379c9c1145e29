import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from calibrant import SKCE, ExactTest, LogLoss, Mixture, Normal
from studies.widmann.data import Models, networks
from studies.widmann.models import OF_NORMALS, PINBALL, evaluate, of_mixtures, with_pairs_left_out


@pytest.fixture
def few(rng):
    return Models(rng.normal(size=5), rng.normal(size=(3, 5)), np.array([0.5, 1.0, 2.0]))


def test_quantities_are_those_of_the_estimators(few):
    found = evaluate(few, 99, seed=0)
    normals = [Normal(mean, sd) for mean, sd in zip(few.means, few.sds, strict=True)]
    estimators = [OF_NORMALS] * 3 + [of_mixtures(3)]
    for row, predictions, estimator in zip(found, [*normals, Mixture(normals)], estimators, strict=False):
        y = few.targets
        biased = SKCE(estimator.on_predictions, estimator.on_targets, unbiased=False)
        assert row[0] == pytest.approx(LogLoss()(y, predictions).value, rel=1e-12)
        assert row[2] == PINBALL(y, predictions).value
        assert row[3:5] == pytest.approx([estimator(y, predictions).value, biased(y, predictions).value], rel=1e-12)
        assert 0 < row[5] <= 1
    assert found[3, 1] == pytest.approx(np.mean((few.means.mean(axis=0) - few.targets) ** 2))
    assert np.isnan(found[4]).tolist() == [True, True, True, False, False, True, True]
    assert np.isnan(found[:, 6]).all()


def test_the_exact_test_is_that_of_the_library(few):
    found = evaluate(few, 99, seed=3, exact_resamples=99)
    ensemble = Mixture([Normal(mean, sd) for mean, sd in zip(few.means, few.sds, strict=True)])
    assert found[3, 6] == ExactTest(of_mixtures(3), 99)(few.targets, ensemble, rng=3).pvalue
    assert found[0, 6] == ExactTest(OF_NORMALS, 99)(few.targets, Normal(few.means[0], 0.5), rng=3).pvalue
    assert np.isnan(found[4, 6])


@pytest.mark.parametrize(("iteration", "low", "high"), [(100, 0.1, 1.0), (1000, 0.001, 0.05), (1500, 0.0, 0.005)])
def test_the_exact_test_rejects_the_late_ensembles(iteration, low, high):
    """The published bootstrap does not: its p-values are 0.483, 0.123 and 0.077."""
    case = networks()[iteration, "test"]
    ensemble = Mixture([Normal(mean, sd) for mean, sd in zip(case.models.means, case.models.sds, strict=True)])
    pvalue = ExactTest(of_mixtures(10), 999)(case.models.targets, ensemble, rng=0).pvalue
    assert low <= pvalue <= high
    assert case.of_ensemble[5] > 0.05


def test_the_pinball_loss_by_its_definition(rng):
    """For every level the mean over the checks of what was observed, with quantiles that invert the distribution."""
    y, loc, scale = 0.7, np.array([0.2, -1.0]), np.array([1.0, 0.3])
    mixture = Mixture([Normal(loc[:1], scale[:1]), Normal(loc[1:], scale[1:])])
    levels = np.arange(1, 20) / 20
    quantiles = mixture.quantile(levels)[0]
    assert norm.cdf((quantiles[:, None] - loc) / scale).mean(axis=1) == pytest.approx(levels, rel=1e-12)
    losses = [(1 - t) * max(q - y, 0) + t * max(y - q, 0) for t, q in zip(levels, quantiles, strict=True)]
    assert PINBALL([y], mixture).value == pytest.approx(np.mean(losses), rel=1e-12)


def brute_force(models):
    """Terms of all rows with the pairs (k > 1, l = 1) left out, each inner product integrated."""

    def residual(i, k):
        return [(1.0, models.targets[i], 0.0), (-1.0, models.means[k, i], models.sds[k])]

    def expected(m, s, other, spread):
        total = np.hypot(s, spread)
        if total == 0:
            return np.exp(-((m - other) ** 2) / 2)
        density = norm(m - other, total).pdf
        return quad(lambda d: np.exp(-(d**2) / 2) * density(d), -12, 12, epsabs=1e-12, limit=200)[0]

    k, n = models.means.shape
    inner = np.zeros((n, n))
    for i, j in np.ndindex(n, n):
        for a, b in np.ndindex(k, k):
            if a == 0 or b > 0:
                for w, m, s in residual(i, a):
                    inner[i, j] += sum(w * v * expected(m, s, o, t) for v, o, t in residual(j, b)) / k**2
    return inner


def test_pairs_left_out_by_brute_force(few):
    models = Models(few.targets[:3], few.means[:2, :3], few.sds[:2])
    mixture = Mixture([Normal(mean, sd) for mean, sd in zip(models.means, models.sds, strict=True)])
    kernel = of_mixtures(2).on_predictions
    points = kernel.metric.embed(mixture)
    terms = kernel(points, points) * brute_force(models)
    unbiased = 2 * (terms[0, 1] + terms[0, 2] + terms[1, 2]) / 6
    biased = (2 * (terms[1, 0] + terms[2, 0] + terms[2, 1]) + np.trace(terms)) / 9
    assert with_pairs_left_out(models.targets, mixture) == pytest.approx((unbiased, biased), rel=1e-7)


@pytest.mark.parametrize("key", [(0, "test"), (100, "test"), (1500, "test")])
def test_pairs_left_out_explain_what_was_published(key):
    case = networks()[key]
    mixture = Mixture([Normal(mean, sd) for mean, sd in zip(case.models.means, case.models.sds, strict=True)])
    assert with_pairs_left_out(case.models.targets, mixture) == pytest.approx(case.of_ensemble[3:5], rel=1e-9)
    assert case.of_ensemble[3:5] != pytest.approx(case.all_pairs, rel=0.05)
