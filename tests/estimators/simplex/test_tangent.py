import numpy as np
import pytest

from calibrant import Categorical, ClassWise, ExactTest, TopLabel
from calibrant._validate import InputError
from calibrant.checks import check_estimator
from calibrant.estimators import TangentKDE
from calibrant.estimators.simplex.dirichlet import DirichletRows, weight_panels
from calibrant.estimators.simplex.tangent import GRID
from calibrant.lab import Tempered, TwiceTempered


@pytest.fixture
def data(rng):
    return Tempered(4, 2.0).draw(120, rng)


def weights_of(p, bandwidth, w=None):
    return np.concatenate([panel for _, panel in weight_panels(DirichletRows.of(p, bandwidth, w))])


@pytest.mark.parametrize("power", [1, 1.5, 2])
def test_the_definition(power, data):
    """The tangent of the power at the smoothed residual, at the row's own residual."""
    y, p = data[0], data[1].matrix
    r = np.eye(4)[y] - p
    gap = weights_of(p, 0.1) @ r
    tangent = np.abs(gap) ** power + power * np.abs(gap) ** (power - 1) * np.sign(gap) * (r - gap)
    expected = tangent.sum(axis=1).mean()
    found = TangentKDE(power, 0.1, debias=False, root=False)(y, p)
    assert found.value == pytest.approx(expected, rel=1e-11)


def test_squares_without_their_noise(data):
    y, p = data[0], data[1].matrix
    r, w = np.eye(4)[y] - p, weights_of(p, 0.1)
    pairs = np.einsum("ji,jk,ic,kc->j", w, w, r, r) - np.einsum("ji,ic->j", w**2, r**2)
    expected = (2 * (w @ r * r).sum(axis=1) - pairs / (1 - (w**2).sum(axis=1))).mean()
    assert TangentKDE(2, 0.1, root=False)(y, p).value == pytest.approx(expected, rel=1e-11)
    root = TangentKDE(2, 0.1)(y, p).value
    assert root == pytest.approx(np.sign(expected) * abs(expected) ** 0.5, rel=1e-11)


def test_the_bandwidth_predicts_residuals_best(data):
    y, p = data[0], data[1].matrix
    r = np.eye(4)[y] - p
    errors = [np.mean((r - weights_of(p, h) @ r) ** 2) for h in GRID]
    best = int(np.argmin(errors))
    assert best > 0
    assert TangentKDE()(y, p).estimator.bandwidth == GRID[best]
    assert TangentKDE(2, debias=False)(y, p).estimator.bandwidth == GRID[best]
    assert TangentKDE(2)(y, p).estimator.bandwidth == GRID[best - 1]


@pytest.mark.parametrize(
    "estimator",
    [TangentKDE(), TangentKDE(2), TangentKDE(1.5, 0.1, lens=ClassWise()), TangentKDE(2, debias=False, lens=TopLabel())],
    ids=repr,
)
def test_conformance(estimator, data):
    check_estimator(estimator, data[0], data[1])


def test_many_rows_go_through_compiled_code(rng, monkeypatch):
    y, p = Tempered(5, 2.0).draw(300, rng)
    w = rng.random(300) * (rng.random(300) < 0.9)
    plain = [TangentKDE(q)(y, p, sample_weight=w).value for q in (1, 2)]
    monkeypatch.setattr("calibrant._compiled.choice.MAX_PLAIN_ROWS", 10)
    assert [TangentKDE(q)(y, p, sample_weight=w).value for q in (1, 2)] == pytest.approx(plain, rel=1e-11)


@pytest.mark.parametrize("power", [1, 2])
def test_it_does_not_claim_more_than_there_is(power):
    """Means of 64 data sets: below the truth, and not far; for a calibrated model near zero."""
    rng, world, calibrated = np.random.default_rng(1), Tempered(3, 3.0), Tempered(3)
    truth = world.truth(TangentKDE(power)) ** power
    estimator = TangentKDE(power, 0.15, root=False)
    values = np.array([estimator(*world.draw(400, rng)).value for _ in range(64)])
    nothing = np.array([estimator(*calibrated.draw(400, rng)).value for _ in range(64)])
    error = values.std() / 8
    assert 0.85 * truth - 3.5 * error < values.mean() < truth + 3.5 * error
    assert nothing.mean() < 3.5 * nothing.std() / 8
    assert abs(nothing.mean()) < 0.1 * truth


def test_many_classes_are_missed_without_an_interval_that_hides_it():
    """30 classes: about .22 of .53 is found. What rows show would be an interval that ends far below the truth."""
    rng, world = np.random.default_rng(0), Tempered(30, 2.0)
    found = TangentKDE()(*world.draw(1000, rng))
    assert found.value < 0.7 * world.truth(TangentKDE())
    assert found.standard_error is found.interval is None
    with pytest.raises(ValueError, match=r"far below it with many classes.*Variational\(\) gives an estimate"):
        found.confidence_interval()


def test_the_level_of_the_exact_test_holds():
    rng, rejected = np.random.default_rng(3), 0
    for seed in range(300):
        y, p = Tempered(3).draw(25, rng)
        rejected += ExactTest(TangentKDE(2), n_resamples=39)(y, p, rng=seed).pvalue <= 0.05
    assert 4 <= rejected <= 29  # 99.9 % of a binomial distribution with mean 15


def test_it_is_near_the_truth_where_others_are_not(rng):
    """The world of the paper, with 4 classes and 3,000 rows; its plain kernel estimate is twice the truth."""
    world = TwiceTempered(4)
    values = [TangentKDE(1, 0.15)(*world.draw(3000, rng)).value for _ in range(5)]
    assert np.mean(values) == pytest.approx(world.truth(TangentKDE(1)), rel=0.1)


def test_a_row_with_one_neighbour(rng):
    """There is no square without noise: it stays in."""
    p = np.array([[0.5, 0.5, 0.0], [0.3, 0.7, 0.0], [0.2, 0.3, 0.5], [0.3, 0.3, 0.4], [0.1, 0.2, 0.7]])
    assert np.isfinite(TangentKDE(2)([0, 1, 2, 1, 0], p).value)


def test_every_library_has_the_same_numbers(data, xp):
    y, p = data[0], data[1].matrix
    for estimator in (TangentKDE(), TangentKDE(2)):
        assert float(estimator(xp.asarray(y), xp.asarray(p))) == pytest.approx(estimator(y, p).value, rel=1e-11)


def test_gradients(rng):
    torch = pytest.importorskip("torch")
    logits = torch.tensor(rng.normal(size=(20, 3)), requires_grad=True)
    y = torch.tensor(rng.integers(0, 3, 20))
    assert torch.autograd.gradcheck(lambda z: TangentKDE(2, 0.3)(y, torch.softmax(z, dim=1)).value, (logits,))


def test_bad_input():
    with pytest.raises(InputError, match="bandwidth must be a positive number, or 'cv' to find one; got 'loo'"):
        TangentKDE(bandwidth="loo")
    with pytest.raises(InputError, match="p must be a number of at least 1"):
        TangentKDE(p=0)
    with pytest.raises(InputError, match="TangentKDE compares each row with the others"):
        TangentKDE()([1], Categorical([0.5]))
    jax = pytest.importorskip("jax")
    with pytest.raises(InputError, match="give a bandwidth"):
        jax.grad(lambda p: TangentKDE(2)(jax.numpy.array([0, 1, 1]), p).value)(jax.numpy.array([0.2, 0.5, 0.9]))
