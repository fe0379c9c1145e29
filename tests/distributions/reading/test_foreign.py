import pickle

import numpy as np
import pytest
from scipy import stats

from calibrant import CRPS, SKCE, ExactTest, LogLoss
from calibrant._validate import InputError
from calibrant.checks import check_distribution
from calibrant.distributions import Foreign
from calibrant.distributions.reading.conversion import adapted
from calibrant.residuals import Route

LOC, SCALE = np.array([0.0, 1.0, 5.0, -2.0]), np.array([1.0, 2.0, 0.5, 1.0])


@pytest.fixture
def law():
    return stats.gumbel_r(LOC, SCALE)


@pytest.fixture
def batch(law):
    return Foreign(law)


def test_it_says_what_the_object_says(batch, law):
    y, u = np.array([[0.0, 1.0, 5.0, -2.0], [1.0, -1.0, 6.0, 0.0]]), np.array([0.1, 0.9])
    assert batch.cdf(y) == pytest.approx(law.cdf(y), rel=1e-13)
    assert batch.below(y) == pytest.approx(law.cdf(y), rel=1e-13)
    assert batch.log_prob(y) == pytest.approx(law.logpdf(y), rel=1e-13)
    assert pytest.approx(law.ppf(u[:, None]), rel=1e-13) == batch.quantile(u).T
    assert batch.mean == pytest.approx(law.mean(), rel=1e-9)
    assert batch.std == pytest.approx(law.std(), rel=1e-9)
    assert np.array_equal(
        batch.sample(np.random.default_rng(1), 3), law.rvs((3, 4), random_state=np.random.default_rng(1))
    )


def test_rows_may_be_taken_in_any_order_and_repeatedly(batch, law):
    rows = np.array([3, 1, 3, 3, 0])
    part, y = batch[rows], np.arange(10.0).reshape(2, 5) / 5
    exact = stats.gumbel_r(LOC[rows], SCALE[rows])
    assert part.cdf(y) == pytest.approx(exact.cdf(y), rel=1e-13)
    assert pytest.approx(exact.ppf(np.array([[0.2], [0.7]])), rel=1e-13) == part.quantile(np.array([0.2, 0.7])).T
    assert part.sample(np.random.default_rng(0), 3).shape == (3, 5)
    assert part[1:3].cdf(y[:, 1:3]) == pytest.approx(exact.cdf(y)[:, 1:3], rel=1e-13)
    drawn = part.sample(np.random.default_rng(0), 40_000)
    assert np.abs(drawn.mean(axis=0) - exact.mean()).max() < 5 * exact.std().max() / 200
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 2])[0, 1]) < 0.03  # draws of a row that is taken twice are independent


def test_one_object_a_row():
    laws = (stats.gumbel_r(0, 1), stats.norm(1, 2), stats.gamma(2.0, 1.0))
    batch = adapted(list(laws))
    assert isinstance(batch, Foreign)
    y = np.array([[0.3, 1.0, 2.0], [1.0, 0.0, 3.0]])
    assert batch.cdf(y) == pytest.approx(np.stack([law.cdf(y[:, i]) for i, law in enumerate(laws)], axis=1))
    assert len(batch[np.array([2, 2, 0, 1])]) == 4
    assert batch[np.array([2, 0])].mean == pytest.approx([laws[2].mean(), laws[0].mean()], rel=1e-6)
    assert batch.sample(np.random.default_rng(0), 7).shape == (7, 3)


def test_counts(rng):
    class Binomial(Foreign):
        @classmethod
        def example(cls, rng, n):
            return cls(stats.binom(12, rng.uniform(0.1, 0.9, n)))

    check_distribution(Binomial, rng)
    batch = Binomial.example(rng, 40)
    y = batch.sample(rng, 1)[0]
    assert batch.below(np.full(40, 3.0)) == pytest.approx(batch.cdf(np.full(40, 2.0)))
    assert np.isfinite(LogLoss()(y, batch).value)
    assert ExactTest(SKCE(), n_resamples=99)(y, batch).pvalue > 0.01
    with pytest.raises(InputError, match="y_true has 0.5 in row 1, which <.* of scipy, binom> call impossible"):
        batch[:2].as_targets([1.0, 0.5])


def test_errors_and_tests_work_out_of_the_box(rng):
    batch = Foreign(stats.gumbel_r(rng.normal(size=60), 1.0))
    honest = batch.sample(rng, 1)[0]
    result = SKCE()(honest, batch)
    assert result.route == "spectral; plain"
    assert SKCE(route=Route.QUANTILE)(honest, batch).value == pytest.approx(result.value, abs=3e-4)
    assert ExactTest(SKCE(), n_resamples=99)(honest, batch).pvalue > 0.05
    assert ExactTest(SKCE(), n_resamples=99)(honest + 2, batch).pvalue == 0.01
    assert CRPS()(honest, batch).value == pytest.approx(batch.crps(honest).mean())


class TestTorch:
    @pytest.fixture
    def torch(self):
        return pytest.importorskip("torch")

    def test_objects_that_can_only_be_drawn_from(self, torch, rng):
        angles = torch.tensor(rng.normal(size=40))
        batch = adapted(torch.distributions.VonMises(angles, torch.full((40,), 4.0, dtype=torch.float64)))
        honest = batch.sample(rng, 1)[0]
        assert SKCE()(honest, batch).route == "sampled; plain"
        assert ExactTest(SKCE(), n_resamples=19)(honest, batch).pvalue > 0.05
        assert np.isfinite(LogLoss()(honest, batch).value)
        assert CRPS()(honest, batch).value > 0
        assert batch.mean is batch.std is batch.crps(honest) is batch.cf(np.ones(1)) is NotImplemented
        assert batch.coords.shape == (40, 64)

    def test_targets_outside_of_the_support(self, torch):
        batch = adapted(torch.distributions.Weibull(torch.ones(3), 2.0))
        with pytest.raises(
            InputError, match="y_true has -1 in row 1, which <Foreign: 3 predictions of torch, Weibull> call"
        ):
            batch.as_targets([1.0, -1.0, 2.0])

    def test_vectors_are_refused_with_a_remedy(self, torch):
        with pytest.raises(
            InputError, match=r"a LogisticNormal of vectors, which is no family here: .* Ensemble.from_draws"
        ):
            adapted(torch.distributions.LogisticNormal(torch.zeros(3, 2), torch.ones(3, 2)))


def test_words_and_travel(batch):
    assert repr(batch) == "<Foreign: 4 predictions of scipy, gumbel_r>"
    again = pickle.loads(pickle.dumps(batch[:2]))
    assert np.array_equal(again.cdf(np.zeros(2)), batch.cdf(np.zeros(4))[:2])


def test_points_are_members(batch):
    assert batch.point(np.zeros(4)).members.shape == (4, 1)


def test_arrays_inside_of_what_an_object_holds_say_its_library():
    torch = pytest.importorskip("torch")

    class Wrapped:
        batch_shape = (3,)

        def __init__(self):
            self.inner = torch.distributions.Normal(torch.tensor([0.0, 1.0, 2.0]), torch.ones(3))

        def cdf(self, y):
            return self.inner.cdf(y)

        def icdf(self, u):
            return self.inner.icdf(u)

    assert Foreign(Wrapped()).quantile(np.array([0.5])).ravel().tolist() == [0.0, 1.0, 2.0]
