import pickle

import numpy as np
import pytest

from calibrant import (
    SKCE,
    AggregatedTest,
    Categorical,
    Ensemble,
    ExactTest,
    Gamma,
    InputError,
    Laplace,
    LogNormal,
    Mixture,
    MultivariateNormal,
    NegativeBinomial,
    Normal,
    Poisson,
    Quantiles,
    StudentT,
)
from calibrant.distributions import Beta, Truncated, Uniform
from calibrant.estimators import EachDraw
from calibrant.estimators.kernel_errors import kernel_resamples
from calibrant.estimators.kernel_errors.kernel_resamples import (
    LabelResamples,
    TargetResamples,
    work_of_numbers,
    work_of_resample,
)
from calibrant.kernels import Energy, Exponential, Gaussian, LabelMatrix, Matern
from calibrant.residuals import Route

ORDERED = LabelMatrix(((1.0, 0.5, 0.2), (0.5, 1.0, 0.5), (0.2, 0.5, 1.0)))


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("estimator", [SKCE(), SKCE(unbiased=False), SKCE(Exponential(0.3), ORDERED)], ids=repr)
def test_many_resamples_at_once_are_resamples_one_by_one(estimator, weighted, stored, rng, monkeypatch):
    if not stored:
        monkeypatch.setattr(kernel_resamples, "STORED", 0)
    predictions = Categorical(rng.dirichlet(np.ones(3), 600))
    weights = rng.random(600) if weighted else None
    drawn = predictions.sample(rng, 70)
    fast = estimator.given(predictions, weights)
    assert isinstance(fast, LabelResamples)
    assert fast(drawn) == pytest.approx(EachDraw(estimator, predictions, weights)(drawn), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("kernel", [Exponential(), Gaussian(), Matern(2.5)], ids=repr)
@pytest.mark.parametrize("n", [100, 700])
def test_two_classes(kernel, n, rng):
    """On a line the product is by sorting where the kernel has one."""
    predictions = Categorical(rng.random(n))
    drawn = predictions.sample(rng, 5)
    fast = SKCE(kernel).given(predictions, None)(drawn)
    assert fast == pytest.approx(EachDraw(SKCE(kernel), predictions, None)(drawn), rel=1e-10)


def test_memory_bounds_the_batch(rng, monkeypatch):
    predictions = Categorical(rng.dirichlet(np.ones(3), 40))
    drawn = predictions.sample(rng, 9)
    whole = SKCE().given(predictions, None)(drawn)
    monkeypatch.setattr(kernel_resamples, "MAX_NUMBERS", 500)
    assert SKCE().given(predictions, None)(drawn) == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("n", [20, 150])
@pytest.mark.parametrize(
    "family",
    [
        *(Normal, Laplace, Ensemble, Mixture, MultivariateNormal, Quantiles, Truncated),
        *(Beta, Gamma, LogNormal, NegativeBinomial, Poisson, StudentT, Uniform),
    ],
)
def test_targets_of_any_family(family, n, weighted, rng):
    predictions = family.example(rng, n)
    weights = rng.random(n) if weighted else None
    drawn = predictions.sample(rng, 3)
    for estimator in (SKCE(), SKCE(unbiased=False)):
        fast = estimator.given(predictions, weights)
        assert isinstance(fast, TargetResamples)
        assert fast(drawn) == pytest.approx(EachDraw(estimator, predictions, weights)(drawn), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(
    ("kernel", "route"),
    [(Gaussian(), Route.SPECTRAL), (Matern(), Route.QUANTILE), (Energy(), Route.QUANTILE), (Matern(), Route.SAMPLED)],
)
@pytest.mark.parametrize("n", [20, 80])
def test_every_route(kernel, route, n, rng):
    predictions = Gamma.example(rng, n)
    drawn, weights = predictions.sample(rng, 3), rng.random(n)
    for unbiased in (True, False):
        estimator = SKCE(on_targets=kernel, unbiased=unbiased, route=route)
        fast = estimator.given(predictions, weights)(drawn)
        assert fast == pytest.approx(EachDraw(estimator, predictions, weights)(drawn), rel=1e-9, abs=1e-13)


def test_a_target_far_away_changes_nothing_for_the_others(rng):
    predictions = Gamma.example(rng, 30)
    drawn = predictions.sample(rng, 3)
    drawn[2, 0] = 1e9
    fast = SKCE().given(predictions, None)(drawn)
    assert fast == pytest.approx(EachDraw(SKCE(), predictions, None)(drawn), rel=1e-9, abs=1e-13)


def test_resamples_without_common_features_are_taken_one_by_one(rng, monkeypatch):
    predictions = Gamma.example(rng, 30)
    drawn = predictions.sample(rng, 3)
    monkeypatch.setattr(kernel_resamples, "spectral_features", lambda *_: NotImplemented)
    fast = SKCE().given(predictions, None)(drawn)
    assert fast == pytest.approx(EachDraw(SKCE(), predictions, None)(drawn), rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Matern(1.5, 1.0)], ids=repr)
def test_predictions_of_another_library(kernel, rng):
    torch = pytest.importorskip("torch")
    host = Normal.example(rng, 20)
    predictions = Normal(torch.asarray(host.loc), torch.asarray(host.scale))
    drawn = host.sample(rng, 3)
    estimator = SKCE(Exponential(1.0), kernel)
    fast = estimator.given(predictions, None)(drawn)
    assert fast == pytest.approx(estimator.given(host, None)(drawn), rel=1e-10)


def test_mixtures_of_another_library_have_coordinates(rng):
    torch = pytest.importorskip("torch")
    host = [Normal.example(rng, 20) for _ in range(2)]
    y = rng.normal(size=20)
    mixture = Mixture([Normal(torch.asarray(c.loc), torch.asarray(c.scale)) for c in host])
    value = SKCE(Exponential(1.0), Gaussian(1.0))(torch.asarray(y), mixture).value
    assert value == pytest.approx(SKCE(Exponential(1.0), Gaussian(1.0))(y, Mixture(host)).value, rel=1e-9)


def test_blocks_are_resampled_one_by_one(rng):
    predictions = Categorical(rng.dirichlet(np.ones(3), 30))
    assert isinstance(SKCE(block=5).given(predictions, None), EachDraw)


@pytest.mark.parametrize("route", [Route.QUANTILE, Route.SPECTRAL])
def test_what_predictions_expect_is_made_once(route, rng, monkeypatch):
    """Targets beyond the range of the predictions have frequencies of their own."""
    predictions, drawn = Normal.example(rng, 30), rng.normal(size=(4, 30))
    drawn[2, 3] = 60.0
    estimator = SKCE(Exponential(1.0), Gaussian(1.0), route=route)
    slow = EachDraw(estimator, predictions, None)(drawn)
    assert estimator.given(predictions, None)(drawn) == pytest.approx(slow, rel=1e-9)
    calls = []
    kind = Ensemble if route is Route.QUANTILE else Normal
    cf = kind.cf
    monkeypatch.setattr(kind, "cf", lambda self, w: calls.append(1) or cf(self, w))
    estimator.given(predictions, None)(np.repeat(drawn[:1], 50, axis=0))
    assert len(calls) == 2  # to find the route, and for all resamples


@pytest.mark.parametrize("family", [Normal, MultivariateNormal])
def test_tables_of_a_few_resamples_at_a_time_have_the_digits_of_one_by_one(family, rng, monkeypatch):
    predictions = family.example(rng, 30)
    drawn, resamples = predictions.sample(rng, 11), SKCE().given(predictions, None)
    at_once = resamples(drawn)
    monkeypatch.setattr(kernel_resamples, "CACHED", 4 * 30**2)
    assert resamples(drawn) == pytest.approx(at_once, rel=1e-12)
    monkeypatch.setattr(kernel_resamples, "TABLES", 0)
    assert resamples(drawn) == pytest.approx(at_once, rel=1e-10)


def test_sums_over_members_take_little_memory(rng, monkeypatch):
    predictions = Ensemble(rng.normal(size=(30, 6, 2)))
    drawn = predictions.sample(rng, 4)
    whole = SKCE().given(predictions, None)(drawn)
    monkeypatch.setattr(kernel_resamples, "MAX_NUMBERS", 5000)
    assert SKCE().given(predictions, None)(drawn) == pytest.approx(whole, rel=1e-10)


def test_laplace_forecasts_count_for_more_than_normal_ones():
    """A report on a hundred rows would otherwise take a minute."""
    from calibrant import SKCE, Laplace, Normal
    from calibrant.estimators import RandomFeatureSKCE

    loc, scale = np.arange(100.0), np.ones(100)
    assert SKCE().affordable(Normal(loc, scale), 999, 1e10) == SKCE()
    assert isinstance(SKCE().affordable(Laplace(loc, scale), 999, 1e10), RandomFeatureSKCE)


def test_resamples_on_a_gpu_are_multiplied_there(gpu, rng, monkeypatch):
    torch = pytest.importorskip("torch")
    predictions = Categorical(rng.dirichlet(np.ones(3), 150))
    drawn = predictions.sample(rng, 5)
    estimator = SKCE(Exponential(0.3), ORDERED)  # labels that are like each other, which no kernel is compiled for
    right = estimator.given(predictions, None)(drawn)
    monkeypatch.setattr(kernel_resamples, "STORED", 0)
    monkeypatch.setattr(kernel_resamples, "Pairwise", None)  # no tiles
    there = estimator.given(Categorical(torch.tensor(predictions.probs, device=gpu)), None)
    assert isinstance(there, LabelResamples)
    assert there(drawn) == pytest.approx(right, abs=1e-7)


def test_two_classes_cost_no_pairs_where_the_kernel_can_be_sorted():
    two, three = Categorical(np.full(100, 0.5)), Categorical(np.full((100, 3), 1 / 3))
    assert work_of_resample(Exponential(1.0), two, 1) == 2000
    assert work_of_resample(Exponential(1.0), three, 3) == 100**2 * 3
    assert work_of_resample(Matern(1.5, 1.0), three, 3) == 100**2 * 3


@pytest.mark.parametrize("n", [10, 1000])
def test_numbers_cost_pairs_and_families_differ(n):
    zeros = np.zeros(n)
    assert work_of_resample(Exponential(1.0), Normal(zeros, 1.0), 2) == work_of_numbers(n) == 50 * n**2
    assert work_of_resample(Exponential(1.0), Laplace(zeros, 1.0), 2) == 200 * work_of_numbers(n)
    assert work_of_resample(Exponential(1.0), Ensemble(np.zeros((n, 7, 2))), 2) == 200 * n**2 * 7


def test_one_weight_that_outweighs_all_others_leaves_no_pairs(rng):
    """However resamples are made; no division by zero."""
    y, p, w = rng.integers(0, 2, 30), rng.random(30), np.r_[1e18, np.ones(29)]
    for predictions in (p, rng.dirichlet(np.ones(3), 30)):
        for test in (AggregatedTest(n_resamples=19), ExactTest(SKCE(), 19)):
            with pytest.raises(InputError, match="sample_weight leaves a single row"):
                test(y, predictions, sample_weight=w)


@pytest.mark.parametrize("unbiased", [True, False])
def test_weights_of_one_change_no_digit_on_a_line(unbiased, rng):
    predictions = Categorical(rng.random(700))
    estimator, drawn = SKCE(Exponential(0.2), unbiased=unbiased), predictions.sample(rng, 5)
    plain, weighted = (estimator.given(predictions, w)(drawn) for w in (None, np.ones(700)))
    assert (plain == weighted).all()


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_statistics_travel_after_their_first_use(kind, rng):
    """To other processes: without what they keep, with what they need."""
    predictions = Normal(rng.normal(size=12), 1.0) if kind == "numbers" else Categorical(rng.dirichlet(np.ones(3), 12))
    statistic, targets = SKCE().given(predictions, None), predictions.sample(rng, 4)
    before, fresh = statistic(targets), len(pickle.dumps(SKCE().given(predictions, None)))
    assert len(pickle.dumps(statistic)) == fresh
    assert np.array_equal(pickle.loads(pickle.dumps(statistic))(targets), before)


class TestOnALine:
    """More points than matrices are kept of, in one dimension."""

    @pytest.fixture
    def rows(self, rng, monkeypatch):
        monkeypatch.setattr(kernel_resamples, "SORTED", 20)
        p = rng.random(50)
        return Categorical(p), (rng.random((4, 50)) < p).astype(np.uint8)

    @pytest.mark.parametrize("estimator", [SKCE(Exponential(0.4), unbiased=False), SKCE(Exponential(0.4))])
    def test_both_forms_are_those_of_each_resample(self, estimator, rows):
        predictions, targets = rows
        found = estimator.given(predictions, None)(targets)
        assert found == pytest.approx([estimator(y, predictions).value for y in targets], rel=1e-10)

    def test_other_kernels_on_labels_are_sorted_too(self, rows):
        predictions, targets = rows
        estimator = SKCE(Exponential(0.4), LabelMatrix([[1.0, 0.2], [0.2, 2.0]]))
        found = estimator.given(predictions, None)(targets)
        assert found == pytest.approx([estimator(y, predictions).value for y in targets], rel=1e-10)


def test_what_is_sent_away_is_made_again(rng):
    predictions = Normal(rng.normal(size=30), np.ones(30))
    targets = rng.normal(size=(3, 30))
    given = SKCE(Exponential(0.4), Exponential(1.0)).given(predictions, None)
    here = given(targets)
    assert pickle.loads(pickle.dumps(given))(targets) == pytest.approx(here, rel=1e-14)
