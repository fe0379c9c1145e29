import pickle

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from calibrant import SKCE, Bernoulli, Categorical, Ensemble, ExactTest, Laplace, Mixture, MultivariateNormal, Normal
from calibrant._validate import InputError
from calibrant.checks import check_distribution
from calibrant.distributions import Censored
from calibrant.distributions.composite.mixture import kind_of_targets
from calibrant.kernels import Energy, Exponential, Gaussian, Matern, expectation
from calibrant.residuals import Route, residuals

WEIGHTS = np.array([[0.2, 0.8], [0.5, 0.5], [1.0, 0.0]])
PARTS = [Normal([0.0, -3.0, 2.0], [1.0, 0.5, 1e-8]), Normal([4.0, 3.0, 9.0], [0.1, 0.5, 1.0])]


@pytest.fixture
def batch():
    return Mixture(PARTS, WEIGHTS)


def weighted(method, y):
    """The same from scipy, for y of any leading axes."""
    return sum(w * getattr(stats.norm(c.loc, c.scale), method)(y) for w, c in zip(WEIGHTS.T, PARTS, strict=True))


def test_density_and_distribution_are_weighted_sums(batch):
    y = np.array([[0.3, -2.0, 2.0], [4.1, 0.0, 2.1]])
    assert np.exp(batch.log_prob(y)) == pytest.approx(weighted("pdf", y), rel=1e-12)
    assert batch.cdf(y) == pytest.approx(weighted("cdf", y), rel=1e-12)


def test_far_densities_do_not_underflow():
    batch = Mixture([Normal([0.0], 1.0), Normal([1.0], 1.0)])
    assert batch.log_prob(np.array([-100.0])) == pytest.approx(stats.norm.logpdf(100) - np.log(2), rel=1e-13)


def test_characteristic_function_is_a_weighted_sum(batch):
    w = np.array([0.3, 2.0])
    for i in range(2):
        exact = sum(weight[:, None] * c.cf(w)[i] for weight, c in zip(WEIGHTS.T, PARTS, strict=True))
        assert batch.cf(w)[i] == pytest.approx(exact, rel=1e-13)


def root(row, level):
    return brentq(lambda y: row.cdf(np.array([y]))[0] - level, -20, 20, xtol=1e-14, rtol=1e-15)


def test_quantiles_are_roots():
    batch = Mixture([Normal([0.0, -3.0], [1.0, 0.5]), Normal([4.0, 3.0], [0.1, 0.5])], [[0.2, 0.8], [0.4, 0.6]])
    u = np.array([1e-9, 0.1, 0.2, 0.3, 0.9, 1 - 1e-9])
    for i in range(2):
        exact = np.array([root(batch[i : i + 1], v) for v in u])
        slope = np.exp(batch[i : i + 1].log_prob(exact[:, None]))[:, 0]
        # a rounding of the level moves the root by its inverse slope
        assert np.all(np.abs(batch.quantile(u)[i] - exact) < 4e-16 / slope + 1e-14)


def test_quantiles_have_full_precision(batch):
    """The least number whose level is reached: its neighbour below does not reach it."""
    u = np.array([0.01, 0.1, 0.35, 0.5, 0.75, 0.999])
    found = batch.quantile(u).T
    reached, below = batch.cdf(found), batch.cdf(np.nextafter(found, -np.inf))
    assert np.all(reached >= u[:, None])
    assert np.all(below < u[:, None])
    assert batch.quantile(np.array([0.0, 1.0])).tolist() == [[-np.inf, np.inf]] * 3


def test_quantiles_beside_zero_and_across_magnitudes():
    symmetric = Mixture([Normal([-1.0], 1.0), Normal([1.0], 1.0)])
    assert abs(symmetric.quantile(np.array([0.5]))[0, 0]) < 1e-15
    apart = Mixture([Normal([0.0], 1e-8), Normal([1e8], 1.0)])
    assert apart.quantile(np.array([0.25]))[0, 0] == pytest.approx(0.0, abs=1e-23)
    assert apart.quantile(np.array([0.4]))[0, 0] == pytest.approx(1e-8 * stats.norm.ppf(0.8), rel=1e-12)


def test_quantiles_of_mixed_members_are_members():
    batch = Mixture([Ensemble([[0.0, 1.0, 5.0]]), Ensemble([[-2.0, 0.0, 0.3]])], [0.5, 0.5])
    pooled = np.array([-2.0, 0.0, 0.0, 0.3, 1.0, 5.0])
    assert np.array_equal(batch.quantile((np.arange(6) + 0.5) / 6)[0], pooled)


def test_equal_components_are_the_component(rng):
    normal = Normal.example(rng, 4)
    batch, u = Mixture([normal, normal, normal]), np.array([0.1, 0.5, 0.97])
    assert batch.quantile(u) == pytest.approx(normal.quantile(u), rel=1e-14)
    assert batch.log_prob(normal.loc) == pytest.approx(normal.log_prob(normal.loc), rel=1e-13)


def test_draws_choose_components_by_their_weights(batch, rng):
    draws = batch.sample(rng, 40_000)
    for i, middle in enumerate((3.5, 0.0, 5.0)):
        share, weight = (draws[:, i] > middle).mean(), 1 - batch[i : i + 1].cdf(np.array([middle]))[0]
        assert abs(share - weight) <= 5 * np.sqrt(weight * (1 - weight) / 40_000)


def test_draws_of_vectors_keep_a_component_whole(rng):
    parts = [MultivariateNormal([[s, s]], 1e-3) for s in (-5.0, 5.0)]
    draws = Mixture(parts).sample(rng, 1000)
    assert draws.shape == (1000, 1, 2)
    assert np.all(np.sign(draws[..., 0]) == np.sign(draws[..., 1]))


@pytest.mark.parametrize("family", [Normal, Laplace])
@pytest.mark.parametrize("kernel", [Gaussian(0.8), Exponential(0.8)], ids=repr)
def test_closed_forms_are_sums_over_all_pairs(kernel, family, rng):
    parts, other = [family.example(rng, 2) for _ in range(3)], [family.example(rng, 4) for _ in range(2)]
    v, w = rng.dirichlet([1, 1, 1], 2), rng.dirichlet([1, 1], 4)
    exact = sum(
        v[:, k][:, None] * w[:, m][None, :] * expectation(kernel, parts[k], other[m]) for k, m in np.ndindex(3, 2)
    )
    p, q = Mixture(parts, v), Mixture(other, w)
    assert expectation(kernel, p, q) == pytest.approx(exact, rel=1e-13)
    assert expectation(kernel, q, p) == pytest.approx(exact.T, rel=1e-13)
    nested = Mixture([p, p], [0.3, 0.7])
    assert expectation(kernel, nested, q) == pytest.approx(exact, rel=1e-13)


def test_closed_forms_go_by_the_components(batch, rng):
    assert expectation(Matern(1.5, 1.0), batch, batch) is NotImplemented
    assert expectation(Energy(), batch, batch).shape == (3, 3)


def test_points_are_those_of_the_components(batch):
    point = batch.point(np.zeros(3))
    assert isinstance(point, Normal)
    assert point.scale.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_every_library_gives_the_same_numbers(xp, weights):
    ours = Mixture(PARTS, weights)
    parts = [Normal(xp.asarray(c.loc), xp.asarray(c.scale)) for c in PARTS]
    for given in (weights, None if weights is None else xp.asarray(weights)):
        other = Mixture(parts, given)
        found = expectation(Gaussian(0.8), other, other)
        assert isinstance(found, type(parts[0].loc))
        assert np.asarray(found) == pytest.approx(expectation(Gaussian(0.8), ours, ours), rel=1e-12)
        assert np.asarray(other.cf(np.array([0.7]))[1]) == pytest.approx(ours.cf(np.array([0.7]))[1], rel=1e-12)
        assert other.quantile(np.array([0.3])) == pytest.approx(ours.quantile(np.array([0.3])), rel=1e-12)


def test_single_precision_stays():
    batch = Mixture([Normal(np.zeros(2, dtype=np.float32), 1.0), Normal(np.ones(2, dtype=np.float32), 0.5)])
    assert expectation(Gaussian(0.8), batch, batch).dtype == np.float32


def test_weights_take_gradients():
    torch = pytest.importorskip("torch")
    weights = torch.tensor([0.3, 0.7], requires_grad=True, dtype=torch.float64)
    batch = Mixture([Normal(torch.tensor(c.loc), torch.tensor(c.scale)) for c in PARTS], weights)
    expectation(Gaussian(0.8), batch, batch).sum().backward()
    single = [[expectation(Gaussian(0.8), a, b).sum() for b in PARTS] for a in PARTS]
    assert weights.grad.numpy() == pytest.approx(2 * np.array(single) @ [0.3, 0.7], rel=1e-12)


def test_gradients_of_jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)

    def total(factor, weights, xp=np):
        batch = Mixture([Normal(xp.asarray(c.loc), factor * c.scale) for c in PARTS], weights)
        return expectation(Gaussian(0.8), batch, batch.point(np.zeros(3))).sum()

    weights, points = np.array([0.3, 0.7]), PARTS[0].point(np.zeros(3))
    slope, slopes = jax.grad(total, argnums=(0, 1))(1.0, jax.numpy.asarray(weights), jax.numpy)
    assert float(slope) == pytest.approx((total(1 + 1e-6, weights) - total(1 - 1e-6, weights)) / 2e-6, rel=1e-6)
    assert np.asarray(slopes) == pytest.approx([expectation(Gaussian(0.8), c, points).sum() for c in PARTS], rel=1e-12)
    jax.grad(total)(1.0, None, jax.numpy)  # weights that are not given take no part


@pytest.mark.parametrize("family", [Categorical, Bernoulli])
def test_class_probabilities_are_averaged_instead(family):
    """The remedy is the mixture."""
    weights, probabilities = [0.25, 0.75], [np.array([[0.2, 0.8]]), np.array([[0.6, 0.4]])]
    message = rf"a mixture of those is their weighted average: give {family.__name__}\(average\)"
    for components in ([family(p) for p in probabilities], [family(probabilities[0])]):
        with pytest.raises(InputError, match=message):
            Mixture(components)
    average = sum(w * p for w, p in zip(weights, probabilities, strict=True))
    assert family(average).matrix == pytest.approx(np.array([[0.5, 0.5]])) if family is Categorical else family(average)


@pytest.mark.parametrize(
    "component",
    [Normal([0.1, 1.5, -2.0], [1.0, 0.5, 2.0]), Ensemble(np.random.default_rng(0).normal(size=(3, 6)))],
    ids=["normal", "members"],
)
def test_a_single_component_is_as_good_as_itself(component):
    y, alone = np.array([0.3, 1.0, -1.0]), Mixture([component])
    for estimator in (SKCE(), SKCE(Exponential(1.0), Gaussian(2.0)), SKCE(Gaussian(), unbiased=False)):
        found, own = estimator(y, alone), estimator(y, component)
        assert found.value == pytest.approx(own.value, rel=1e-12)
        assert found.estimator == own.estimator
        assert found.route == own.route
    u = np.array([0.1, 0.5, 0.9])
    assert alone.quantile(u).tolist() == component.quantile(u).tolist()
    assert alone.sample(np.random.default_rng(1), 2).tolist() == component.sample(np.random.default_rng(1), 2).tolist()


def test_weights_may_be_shared_or_left_out():
    assert Mixture(PARTS).weights.tolist() == [[0.5, 0.5]] * 3
    assert Mixture(PARTS, [0.3, 0.7]).weights.tolist() == [[0.3, 0.7]] * 3


def test_rows_words_and_travel(batch):
    part = batch[np.array([2, 0])]
    assert part.weights.tolist() == WEIGHTS[[2, 0]].tolist()
    assert part.components[1].loc.tolist() == [9.0, 4.0]
    assert len(batch[1:]) == 2
    assert repr(batch) == "<Mixture: 3 predictions of 2 Normal components>"
    again = pickle.loads(pickle.dumps(batch))
    assert np.array_equal(again.log_prob(np.zeros(3)), batch.log_prob(np.zeros(3)))


@pytest.mark.parametrize(
    ("components", "weights", "message"),
    [
        ([], None, r"components must be a list of distributions; got \[\]"),
        ([[0.1, 0.2]], None, "components must be a list of distributions"),
        (PARTS[0], None, "components must be a list of distributions; got <Normal: 3 predictions>"),
        (
            [PARTS[0], MultivariateNormal(np.zeros((3, 2)), 1.0)],
            None,
            r"the same kind of targets; got Normal \(real numbers\), MultivariateNormal \(real vectors of 2 coordinates\)",
        ),
        (
            [Categorical([0.1, 0.2, 0.3]), Bernoulli([0.1, 0.2, 0.3])],
            None,
            r"the same kind of targets; got Categorical \(classes\), Bernoulli \(classes\)",
        ),
        (
            [PARTS[0], Categorical([0.1, 0.2, 0.3])],
            None,
            r"the same kind of targets; got Normal \(real numbers\), Categorical \(classes\)",
        ),
        ([PARTS[0], PARTS[1][:2]], None, r"components\[1\] has 2 rows and components\[0\] has 3: they must be equal"),
        (PARTS, [0.5, 0.2, 0.3], r"weights must be \(n, 2\) or \(2,\); got shape \(3,\)"),
        (PARTS, [[0.5, 0.5]], r"weights must be \(n, 2\) or \(2,\); got shape \(1, 2\)"),
        (PARTS, [[0.5, 0.5], [1.1, -0.1], [1.0, 0.0]], "weights must not be negative; found -0.1 in row 1"),
        (PARTS, [[0.5, 0.5], [0.4, 0.6], [0.5, 0.4]], "weights must sum to 1; row 2 sums to 0.9"),
        (PARTS, [0.5, np.nan], "weights has NaN or infinite values"),
    ],
)
def test_parameters_are_checked(components, weights, message):
    with pytest.raises(InputError, match=message):
        Mixture(components, weights)


def test_targets_are_checked_by_the_components(batch):
    with pytest.raises(InputError, match=r"y_true must be one number per row; got shape \(3, 2\)"):
        batch.as_targets(np.zeros((3, 2)))


def test_what_components_cannot_mixtures_cannot(rng):
    vectors = Mixture([MultivariateNormal.example(rng, 2)] * 2)
    assert vectors.quantile(np.array([0.5])) is NotImplemented
    assert vectors.cdf(np.zeros((2, 3))) is NotImplemented
    with pytest.raises(InputError, match="Ensemble has no log_prob"):
        Mixture([Ensemble([[1.0]])]).log_prob(np.zeros(1))


def test_a_power_of_a_mixture_is_no_mixture(batch):
    """Tempering the components is something else, so none is offered."""
    assert batch.temper(2.0) is NotImplemented
    assert batch.coords is NotImplemented


def test_ranked_score_of_scoringrules():
    """Values of crps_mixnorm, scoringrules 0.10.0."""
    parts = [Normal([0.1, 0.4, -0.2], [0.5, 1.5, 2.0]), Normal([1.0, -1.0, 3.0], [1.0, 0.3, 0.7])]
    batch = Mixture(parts, [[0.3, 0.7], [0.5, 0.5], [0.9, 0.1]])
    theirs = [0.272369303540612, 0.376649491343286, 1.429897007786417]
    assert batch.crps(np.array([0.3, -1.2, 2.5])) == pytest.approx(theirs, rel=1e-12)


def test_ranked_score_of_members_is_that_of_all_of_them(rng):
    """By integration, which is exact there."""
    parts = rng.normal(size=(2, 30, 40))
    y = rng.normal(size=(3, 30))
    everyone = np.concatenate(parts, axis=1)
    far = np.abs(everyone - y[..., None]).mean(axis=-1)
    wanted = far - np.abs(everyone[:, :, None] - everyone[:, None]).mean(axis=(1, 2)) / 2
    assert Mixture([Ensemble(x) for x in parts]).crps(y) == pytest.approx(wanted, abs=1e-12)


def test_moments_from_within_and_between(batch):
    m, s = np.array([[0.0, 4.0], [-3.0, 3.0], [2.0, 9.0]]), np.array([[1.0, 0.1], [0.5, 0.5], [1e-8, 1.0]])
    mean = (WEIGHTS * m).sum(axis=1)
    assert batch.mean == pytest.approx(mean)
    assert batch.std == pytest.approx(np.sqrt((WEIGHTS * (s**2 + m**2)).sum(axis=1) - mean**2), abs=1e-7)


def test_what_components_do_not_know_a_mixture_does_not():
    vectors = Mixture([MultivariateNormal([[0.0, 1.0]], 1.0), MultivariateNormal([[2.0, 1.0]], 1.0)])
    assert vectors.mean == pytest.approx(np.array([[1.0, 1.0]]))
    assert vectors.std == pytest.approx(np.sqrt([[2.0, 1.0]]))
    assert vectors.below(np.zeros((1, 2))) is NotImplemented


class TestDifferentFamilies:
    """A normal, a Laplace and a censored distribution, and two members."""

    @pytest.fixture
    def parts(self):
        loc = np.array([0.0, 1.0, -2.0])
        return [Normal(loc, 1.0), Laplace(loc + 1, 0.5), Censored(Normal(loc, 2.0), -1.0, [0.5, 3.0, 4.0])]

    @pytest.fixture
    def mixed(self, parts):
        return Mixture(parts, [0.5, 0.3, 0.2])

    def test_words(self, mixed):
        assert repr(mixed) == "<Mixture: 3 predictions of Normal and Laplace and Censored components>"

    def test_levels_and_moments_are_weighted(self, mixed, parts):
        y = np.array([[0.3, -2.0, 2.0], [-1.0, 3.0, 4.0]])
        for method in ("cdf", "below"):
            exact = sum(w * getattr(c, method)(y) for w, c in zip((0.5, 0.3, 0.2), parts, strict=True))
            assert getattr(mixed, method)(y) == pytest.approx(exact, rel=1e-13)
        assert mixed.mean == pytest.approx(sum(w * c.mean for w, c in zip((0.5, 0.3, 0.2), parts, strict=True)))
        u = np.array([0.1, 0.6])
        values = mixed.quantile(u).T
        assert np.all(mixed.cdf(values) >= u[:, None])
        assert np.all(mixed.below(values) <= u[:, None] + 1e-12)

    def test_densities_beside_probabilities_count_for_nothing(self, mixed, parts):
        """At -1 the censored component has a probability, elsewhere all have densities."""
        at_end = np.full(3, -1.0)
        assert np.exp(mixed.log_prob(at_end)) == pytest.approx(0.2 * parts[2].cdf(at_end), rel=1e-12)
        inside = np.zeros(3)
        exact = sum(w * np.exp(c.log_prob(inside)) for w, c in zip((0.5, 0.3, 0.2), parts, strict=True))
        assert np.exp(mixed.log_prob(inside)) == pytest.approx(exact, rel=1e-12)

    def test_it_conforms(self, rng):
        class Mixed(Mixture):
            @classmethod
            def example(cls, rng, n):
                parts = (Normal.example(rng, n), Laplace.example(rng, n), Censored.example(rng, n))
                return cls(parts, rng.dirichlet([1, 1, 1], n))

        check_distribution(Mixed, rng)

    def test_scores_are_integrals(self, mixed, rng):
        a, b = (mixed.sample(rng, 200_000) for _ in range(2))
        y = np.array([0.7, 0.2, -2.0])
        terms = np.abs(a - y) - np.abs(a - b) / 2
        assert np.all(np.abs(terms.mean(axis=0) - mixed.crps(y)) < 5 * terms.std(axis=0) / np.sqrt(len(a)))

    def test_points_are_members(self, mixed):
        point = mixed.point(np.zeros(3))
        assert isinstance(point, Ensemble)
        assert point.members.tolist() == [[0.0]] * 3

    def test_targets_may_lie_outside_of_the_range_of_a_component(self, mixed, parts):
        assert mixed.as_targets([9.0, 9.0, 9.0]).tolist() == [9.0, 9.0, 9.0]
        ranges = Mixture([parts[2], Censored(parts[0], 0.0, 9.0)])
        assert ranges.as_targets([9.0, -1.0, 9.0]).tolist() == [9.0, -1.0, 9.0]
        with pytest.raises(InputError, match=r"y_true must be one number per row; got shape \(3, 2\)"):
            mixed.as_targets(np.zeros((3, 2)))

    @pytest.mark.parametrize("kernel", [Gaussian(0.8), Exponential(0.8)], ids=repr)
    def test_members_are_points_of_the_other_family(self, kernel, rng):
        normal, members = Normal.example(rng, 2), rng.normal(size=(3, 4))
        exact = np.zeros((2, 3))
        for j, k in np.ndindex(3, 4):
            exact[:, j] += expectation(kernel, normal, normal.point(members[[j], k]))[:, 0] / 4
        assert expectation(kernel, normal, Ensemble(members)) == pytest.approx(exact, rel=1e-13)
        assert expectation(kernel, Ensemble(members), normal) == pytest.approx(exact.T, rel=1e-13)
        assert expectation(Matern(1.5, 1.0), Ensemble(members), normal) is NotImplemented

    def test_closed_forms_where_all_pairs_have_one(self, rng):
        both = Mixture([Normal.example(rng, 40), Ensemble.example(rng, 40)], [0.3, 0.7])
        y = both.sample(rng, 1)[0]
        closed, waves, nodes = (
            residuals(Gaussian(1.0), y, both, route) for route in (None, Route.SPECTRAL, Route.QUANTILE)
        )
        assert closed.route is Route.CLOSED
        assert waves.inner(waves) == pytest.approx(closed.inner(closed), abs=1e-10)
        assert nodes.inner(nodes) == pytest.approx(closed.inner(closed), abs=2e-2)

    def test_other_routes_where_some_pair_has_none(self, mixed, rng):
        y = mixed.sample(rng, 1)[0]
        assert SKCE()(y, mixed).route == "spectral; plain"
        assert residuals(Matern(1.5, 1.0), y, mixed).route is Route.QUANTILE

    def test_tests_work_out_of_the_box(self, rng):
        loc = rng.normal(size=60)
        mixed = Mixture([Normal(loc, 1.0), Laplace(loc, 1.0), Ensemble(loc[:, None] + rng.normal(size=(60, 5)))])
        honest = mixed.sample(rng, 1)[0]
        assert ExactTest(SKCE(), n_resamples=99)(honest, mixed).pvalue > 0.05
        assert ExactTest(SKCE(), n_resamples=99)(honest + 1.5, mixed).pvalue == 0.01

    def test_every_library(self, xp, parts):
        ours = Mixture(parts[:2], [0.3, 0.7])
        other = Mixture([type(c)(xp.asarray(c.loc), xp.asarray(c.scale)) for c in parts[:2]], [0.3, 0.7])
        assert isinstance(other.as_targets([1.0, 2.0, 3.0]), type(other.components[0].loc))
        assert np.asarray(other.cf(np.array([0.7]))[0]) == pytest.approx(ours.cf(np.array([0.7]))[0], rel=1e-12)


def test_kinds_of_targets_in_words(rng):
    assert kind_of_targets(Ensemble(np.zeros((2, 3, 2)))) == "real vectors of 2 coordinates"
    assert kind_of_targets(Bernoulli([0.1, 0.2])) == "classes"
    assert kind_of_targets(Mixture.example(rng, 2)) == "real numbers"


def test_what_a_component_has_not_the_mixture_has_not():
    class Bare(Normal):
        mean = NotImplemented

        def cf(self, w):
            return NotImplemented

    whole, bare = Normal([0.0], [1.0]), Bare([0.0], [1.0])
    mixture = Mixture([whole, bare], [0.5, 0.5])
    assert mixture.std is NotImplemented
    assert mixture.cf(np.ones(1)) is NotImplemented
    assert Mixture([whole, whole], [0.5, 0.5]).std is not NotImplemented
