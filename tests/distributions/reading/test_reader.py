import numpy as np
import pytest
from scipy import stats

from calibrant._validate import InputError
from calibrant.distributions.reading.foreign import Reader

RATE = np.array([1.0, 2.0, 0.5])


class Levels:
    """Has a distribution function alone, as an exponential."""

    batch_shape = (3,)

    def cdf(self, y):
        return -np.expm1(-np.maximum(y, 0) * RATE)


class Inverse(Levels):
    def quantile(self, u):
        return -np.log1p(-u) / RATE


class Density:
    batch_shape = (3,)

    def log_prob(self, y):
        return np.log(RATE) - y * RATE


class Draws(Density):
    def sample(self, shape, seed):
        return np.random.default_rng(seed).exponential(1 / RATE, (*shape, 3))


@pytest.mark.parametrize("kind", [Levels, Inverse])
def test_quantiles_are_asked_for_or_searched(kind):
    u = np.array([[1e-12, 0.5, 1 - 1e-12], [0.1, 0.2, 0.9]])
    assert Reader(kind()).quantile(u) == pytest.approx(-np.log1p(-u) / RATE, rel=1e-3)
    drawn = Reader(kind()).draws(np.random.default_rng(0), 40_000)
    assert np.all(np.abs(drawn.mean(axis=0) * RATE - 1) < 5 / 200)


def test_objects_that_can_only_be_drawn_from():
    reader = Reader(Draws())
    assert reader.quantile(np.full(3, 0.5)) is NotImplemented
    assert reader.cdf(np.ones(3)) is NotImplemented
    drawn = reader.draws(np.random.default_rng(0), 40_000)
    assert np.all(np.abs(drawn.mean(axis=0) * RATE - 1) < 5 / 200)
    assert np.array_equal(drawn, reader.draws(np.random.default_rng(0), 40_000))
    assert reader.log_prob(np.ones((2, 3))) == pytest.approx(np.log(RATE) - RATE + np.zeros((2, 1)))


def test_objects_with_too_little_say_what_they_lack():
    with pytest.raises(
        InputError,
        match="y_pred is a Density that cannot be drawn from: it needs one of rvs, sample, icdf, ppf, quantile, cdf",
    ):
        Reader(Density()).draws(np.random.default_rng(0), 1)


class Noise:
    """What the library itself draws from: no generator is taken."""

    batch_shape = ()

    def logpdf(self, y):
        return np.zeros_like(y)


def test_keys_of_other_libraries(monkeypatch):
    seen = []
    monkeypatch.setattr("calibrant.distributions.reading.foreign.random_key", lambda rng: seen.append(rng) or "key")

    class Keyed(Noise):
        def sample(self, key, shape):
            assert key == "key"
            return np.zeros(shape)

    assert Reader(Keyed()).draws(np.random.default_rng(0), 4).shape == (4, 1)
    assert len(seen) >= 1


def test_generators_of_scipy():
    for law in (stats.gumbel_r(RATE), stats.Normal(mu=RATE, sigma=1.0)):
        first, second = (Reader(law).draws(np.random.default_rng(3), 5) for _ in range(2))
        assert np.array_equal(first, second)
        assert first.shape == (5, 3)


class TestTorch:
    @pytest.fixture
    def d(self):
        return pytest.importorskip("torch").distributions

    @pytest.fixture
    def rate(self):
        return pytest.importorskip("torch").tensor(RATE)

    def test_values_that_cannot_be_are_not_asked_for(self, d, rate):
        """torch refuses them; below the support lies nothing, above it all."""
        reader = Reader(d.Chi2(rate))
        y = np.array([[-1.0, 2.0, -3.0], [1.0, 1.0, 1.0]])
        assert reader.cdf(y) == pytest.approx(stats.chi2(RATE).cdf(y), abs=1e-9)
        with np.errstate(divide="ignore"):
            assert reader.log_prob(y) == pytest.approx(stats.chi2(RATE).logpdf(y), rel=1e-9)
        assert reader.possible(y).tolist() == [[False, True, False], [True, True, True]]

    def test_quantiles_by_bisection(self, d, rate):
        u = np.array([[0.01, 0.5, 0.99]])
        assert Reader(d.Chi2(rate)).quantile(u) == pytest.approx(stats.chi2(RATE).ppf(u), rel=1e-6)
        drawn = Reader(d.Pareto(rate, 3.0)).draws(np.random.default_rng(0), 1000)  # one half cannot be
        assert np.all(drawn >= RATE)

    def test_draws_leave_the_library_as_it_was(self, d, rate):
        torch = pytest.importorskip("torch")
        torch.manual_seed(7)
        expected = torch.rand(3)
        torch.manual_seed(7)
        reader = Reader(d.VonMises(rate, rate))
        first, second = (reader.draws(np.random.default_rng(3), 5) for _ in range(2))
        assert np.array_equal(first, second)
        assert torch.equal(torch.rand(3), expected)

    def test_counts(self, d, rate):
        reader = Reader(d.Geometric(rate / 3))
        assert reader.is_whole
        assert reader.draws(np.random.default_rng(0), 5).dtype.kind == "i"
        assert reader.log_prob(np.array([1.0, 0.5, 2.0]))[1] == -np.inf


def test_discrete_distributions_of_other_numbers_are_no_counts():
    assert Reader(stats.binom(5, [0.2, 0.6])).is_whole
    assert not Reader(stats.rv_discrete(values=([0.5, 1.5], [0.3, 0.7]))()).is_whole
    assert not Reader(stats.norm([0.0])).is_whole
