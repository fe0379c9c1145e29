"""The numbers in ``golden/kde.json`` are of the authors' definitions in double precision, on the first 1,000 rows of two
networks: kind of calibration, bandwidth, p, and the p-th power of the error (a sum over classes where it is class-wise)."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import dirichlet

from calibrant import KDE, Bernoulli, Categorical, ClassWise, ExactTest, Normal, TopLabel
from calibrant._validate import InputError
from calibrant.checks import check_estimator
from calibrant.estimators import TangentKDE
from calibrant.estimators.simplex.dirichlet import DirichletRows, weight_panels
from calibrant.estimators.simplex.kde import GRID
from calibrant.inference import Jackknife
from calibrant.lab import Sigmoid, Tempered, TwiceTempered

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "kde.json").read_text())
LENSES = {"canonical": None, "top_label": TopLabel(), "marginal": ClassWise()}


def softmax_weights(points, bandwidth):
    """Weights of every other row, by the density of SciPy."""
    with np.errstate(divide="ignore"):
        logs = np.array([dirichlet(f / bandwidth + 1).logpdf(points.T) for f in points]).T
    np.fill_diagonal(logs, -np.inf)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.fixture
def data(rng):
    return Tempered(4, 2.0).draw(120, rng)


def test_values_of_the_authors(network):
    name, y, p = network
    y, p = y[:1000], p[:1000].astype(float)
    for kind, bandwidth, power, expected in GOLDEN[name]:
        found = KDE(power, bandwidth, debias=False, lens=LENSES[kind], root=False)(y, p).value
        if kind == "marginal":
            found *= p.shape[1]
        assert found == pytest.approx(expected, rel=1e-10), (kind, bandwidth, power)


@pytest.mark.parametrize("power", [1, 2, 3.5])
def test_the_definition(power, data):
    y, p = data[0], data[1].matrix
    gap = softmax_weights(p, 0.1) @ np.eye(4)[y] - p
    expected = (np.abs(gap) ** power).sum(axis=1).mean()
    assert KDE(power, 0.1, debias=False, root=False)(y, p).value == pytest.approx(expected, rel=1e-12)
    assert KDE(power, 0.1, debias=False)(y, p).value == pytest.approx(expected ** (1 / power), rel=1e-12)


@pytest.mark.parametrize("bandwidth", [0.5, 0.1])
@pytest.mark.parametrize("debias", [True, "partial"])
def test_squares_without_their_noise(debias, bandwidth, data):
    """The squared gap as a sum over pairs of different neighbours; and the shift that removes the bias of ratios."""
    y, p = data[0], data[1].matrix
    w, observed, m = softmax_weights(p, bandwidth), np.eye(4)[y], 119
    square = np.einsum("ji,jk,ic,kc->jc", w, w, observed, observed) - np.einsum("ji,ic->jc", w**2, observed)
    square /= 1 - (w**2).sum(axis=1, keepdims=True)
    frequency = w @ observed
    if debias is True:
        enough = m / (m - 1) * ((w**2).sum(axis=1, keepdims=True) - 1 / m) <= 1 / 16
        assert enough.all() == (bandwidth == 0.5)
        assert enough.any()
        shift = enough * m / (m - 1) * np.einsum("ji,jic->jc", w**2, observed[None] - frequency[:, None])
        square, frequency = square + 4 * frequency * shift, frequency + shift
    expected = (square - 2 * p * frequency + p**2).sum(axis=1).mean()
    assert KDE(2, bandwidth, debias, root=False)(y, p).value == pytest.approx(expected, rel=1e-11)


def test_a_negative_square_has_a_negative_root(rng):
    p = Tempered(3).draw(60, rng)[1]
    square = min(KDE(2, 0.2, root=False)(p.sample(rng, 1)[0], p).value for _ in range(20))
    assert square < 0
    assert KDE(2, 0.2).finished(np.array(square)) == pytest.approx(-(abs(square) ** 0.5))


def test_two_classes_ask_for_the_positive_one(rng):
    y, p = Sigmoid(0.4).draw(90, rng)
    points = p.matrix
    gap = (softmax_weights(points, 0.05) @ y) - points[:, 1]
    found = KDE(1, 0.05, debias=False)(y, p)
    assert found.value == pytest.approx(np.abs(gap).mean(), rel=1e-12)
    assert found.lens == "positive class (1)"


def test_several_events_are_averaged(data):
    y, p = data[0], data[1].matrix
    found = KDE(2, 0.1, lens=ClassWise())(y, p)
    each = [KDE(2, 0.1)((y == c) * 1, p[:, c]).value for c in range(4)]
    assert found.value == pytest.approx(np.mean(each), rel=1e-12)
    assert found.table["value"] == pytest.approx(each, rel=1e-12)
    assert found.table["bandwidth"].tolist() == [0.1] * 4


def test_labels_of_several_kinds(rng):
    p = rng.random((50, 3))
    y = (rng.random(p.shape) < p) * 1
    each = [KDE(1, 0.1)(y[:, c], p[:, c]).value for c in range(3)]
    assert KDE(1, 0.1)(y, Bernoulli(p)).value == pytest.approx(np.mean(each), rel=1e-12)


def test_the_bandwidth_that_was_found_is_told(data):
    found = KDE()(*data)
    assert isinstance(found.estimator.bandwidth, float)
    assert found.estimator(*data).value == found.value


@pytest.mark.parametrize(
    "estimator",
    [KDE(), KDE(2), KDE(3, 0.1, "partial"), KDE(2, 0.2, False, TopLabel()), KDE(1, 0.1, lens=ClassWise())],
    ids=repr,
)
def test_conformance(estimator, data):
    check_estimator(estimator, data[0], data[1])


def test_many_rows_go_through_compiled_code(rng, monkeypatch):
    """The same numbers, of values and standard errors, on either side of the limit."""
    y, p = Tempered(5, 2.0).draw(300, rng)
    plain = [KDE(q, 0.05, root=False)(y, p) for q in (1, 2)]
    monkeypatch.setattr("calibrant._compiled.choice.MAX_PLAIN_ROWS", 10)
    fast = [KDE(q, 0.05, root=False)(y, p) for q in (1, 2)]
    assert [e.value for e in fast] == pytest.approx([e.value for e in plain], rel=1e-11)
    assert [e.standard_error for e in fast] == pytest.approx([e.standard_error for e in plain], rel=1e-9)


def test_resamples_whose_weights_are_not_kept(rng, data, monkeypatch):
    kept = KDE(2, 0.1).given(data[1], None)
    monkeypatch.setattr("calibrant.estimators.simplex.kde.KEPT", 0)
    monkeypatch.setattr("calibrant.estimators.simplex.local.INDICATORS", 2000)
    drawn = data[1].sample(rng, 9)
    assert KDE(2, 0.1).given(data[1], None)(drawn) == pytest.approx(kept(drawn), rel=1e-12)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_standard_error_is_that_of_leaving_rows_out(power, weighted, rng):
    """The delete-one jackknife; both are first-order, so they differ by some O(1/n)."""
    y, p = Tempered(3, 3.0).draw(200, rng)
    w = rng.uniform(0.5, 2, 200) if weighted else None
    estimator = KDE(power, 0.2, debias=False)
    found = estimator(y, p, sample_weight=w).standard_error
    slow = Jackknife(estimator, groups=200)(y, p, sample_weight=w).standard_error
    assert found == pytest.approx(slow, rel=0.05)


def test_standard_errors_answer_for_spread(rng):
    """Of 200 data sets, around the mean of the estimates, which is not the truth."""
    found = [KDE(2, 0.2)(*Tempered(3, 3.0).draw(300, rng)) for _ in range(200)]
    values, errors = np.array([(e.value, e.standard_error) for e in found]).T
    inside = (np.abs(values - values.mean()) < 1.96 * errors).sum()
    assert 176 <= inside <= 199  # 99.9 % of a binomial distribution with mean 190


@pytest.mark.parametrize(("k", "seed", "widest"), [(2, 3, 0.157), (3, 3, 0.42), (5, 1, 0.53)])
def test_even_calibrated_predictions_are_not_smoothed_away(k, seed, widest):
    """They are likeliest under the widest kernel, which shows an error of this size; noise alone makes half of it."""
    rng = np.random.default_rng(seed)
    p = Categorical(rng.dirichlet(np.ones(k), 200))
    y = p.sample(rng, 1)[0]
    found = KDE()(y, p)
    assert found.estimator.bandwidth < 0.3
    assert KDE(1, 1.0)(y, p).value == pytest.approx(widest, rel=0.1)
    assert found.value < 0.6 * widest
    assert found.notes == ("the likeliest bandwidth, 1, would make a calibrated model look wrong",)


@pytest.mark.parametrize("estimator", [KDE(), KDE(2), KDE(1, 0.1), KDE(2, 0.1), KDE(lens=TopLabel())], ids=repr)
def test_no_interval_is_claimed(estimator):
    """Around KDE(p=1) it would exclude 0 in all of 100 calibrated data sets."""
    y, p = Tempered(3).draw(200, np.random.default_rng(0))
    found = estimator(y, p)
    assert found.interval is None
    assert (found.standard_error is None) == isinstance(estimator.bandwidth, str) or estimator.p == 2
    with pytest.raises(
        ValueError, match=r"ExactTest\(KDE\(...\)\) shows the band.*Variational\(\) gives a lower bound"
    ):
        found.confidence_interval()


def test_the_level_of_the_exact_test_holds():
    rng, rejected = np.random.default_rng(3), 0
    for seed in range(600):
        y, p = Tempered(3).draw(30, rng)
        rejected += ExactTest(KDE(1, 0.1), n_resamples=99)(y, p, rng=seed).pvalue <= 0.05
    assert 14 <= rejected <= 49  # 99.9 % of a binomial distribution with mean 30


def test_the_exact_test_sees_overconfidence(rng):
    y, p = TwiceTempered(4, 0.6, 0.4).draw(300, rng)
    assert ExactTest(KDE(2), n_resamples=99)(y, p).pvalue == 0.01


def test_weights_count_in_the_mean_and_as_neighbours(data, rng):
    y, p = data[0], data[1].matrix
    w = rng.random(120) * (rng.random(120) < 0.8)
    weights = softmax_weights(p, 0.1) * w
    weights /= weights.sum(axis=1, keepdims=True)
    terms = np.abs(weights @ np.eye(4)[y] - p).sum(axis=1)
    found = KDE(1, 0.1, debias=False)(y, p, sample_weight=w)
    assert found.value == pytest.approx(np.average(terms, weights=w), rel=1e-12)
    some = w > 0
    assert KDE(1, 0.1)(y, p, sample_weight=w).value == pytest.approx(
        KDE(1, 0.1)(y[some], p[some], sample_weight=w[some]).value, rel=1e-12
    )


def test_zeros_see_their_own_face(rng):
    """Rows with a zero have neighbours with the same zeros only; a row alone on its face is left out, and told."""
    inside = rng.dirichlet(np.ones(3), 30)
    edge = np.column_stack([rng.dirichlet(np.ones(2), 20), np.zeros(20)])
    p = np.concatenate([inside, edge, [[0.0, 0.0, 1.0]]])
    y = rng.integers(0, 2, 51)
    found = KDE(1, 0.1, debias=False)(y, p)
    on_edge = softmax_weights(edge[:, :2], 0.1) @ np.eye(3)[y[30:50]] - edge
    logs = np.array([dirichlet(f / 0.1 + 1).logpdf(inside.T) for f in p]).T
    logs[np.arange(30), np.arange(30)] = -np.inf
    w = np.exp(logs)
    in_the_middle = (w / w.sum(axis=1, keepdims=True)) @ np.eye(3)[y] - inside
    gaps = np.abs(np.concatenate([in_the_middle, on_edge])).sum(axis=1)
    assert found.value == pytest.approx(gaps.mean(), rel=1e-12)
    assert found.notes == ("1 row is alone with the zeros of their probabilities and left out",)
    assert np.isfinite(found.standard_error)
    assert KDE(1, 0.1).given(Categorical(p), None)(y[None])[0] == pytest.approx(KDE(1, 0.1)(y, p).value, rel=1e-12)


def test_underflow_of_single_precision_is_no_matter(rng):
    """Densities of e^-100,000 and less: ratios of them are exact in logarithms."""
    p = rng.dirichlet(np.full(10, 0.1), 50)
    y = rng.integers(0, 10, 50)
    found = KDE(1, 1e-5, debias=False)(y, p).value
    gap = softmax_weights(p, 1e-5) @ np.eye(10)[y] - p
    assert found == pytest.approx(np.abs(gap).sum(axis=1).mean(), rel=1e-8)


@pytest.mark.parametrize("power", [1, 2])
def test_every_library_has_the_same_numbers(power, data, xp):
    y, p = data[0], data[1].matrix
    expected = KDE(power, 0.1)(y, p)
    found = KDE(power, 0.1)(xp.asarray(y), xp.asarray(p))
    assert float(found) == pytest.approx(expected.value, rel=1e-11)


@pytest.mark.parametrize("lens", [None, TopLabel(), ClassWise()], ids=repr)
@pytest.mark.parametrize("debias", [True, False])
@pytest.mark.parametrize("power", [1, 2])
def test_gradients(power, debias, lens, rng):
    torch = pytest.importorskip("torch")
    logits = torch.tensor(rng.normal(size=(20, 3)), requires_grad=True)
    y = torch.tensor(rng.integers(0, 3, 20))
    estimator = KDE(power, 0.3, debias, lens)
    assert torch.autograd.gradcheck(lambda z: estimator(y, torch.softmax(z, dim=1)).value, (logits,))


def test_gradients_of_probabilities_that_are_zero():
    torch = pytest.importorskip("torch")
    logits = torch.tensor([[0.0, 0.0, -900.0], [1.0, 0.0, -900.0], [0.0, 1.0, -900.0]], requires_grad=True)
    y = torch.tensor([0, 0, 1])
    KDE(2, 0.1)(y, torch.softmax(logits.double(), dim=1)).value.backward()
    assert torch.isfinite(logits.grad).all()


def test_a_perfect_fit_has_a_flat_root():
    """The derivative of a root is infinite at zero; ours is zero."""
    torch = pytest.importorskip("torch")
    x = torch.zeros((), dtype=torch.float64, requires_grad=True)
    KDE(2).finished(x).backward()
    assert x.grad == 0


def test_tracing_needs_a_bandwidth(data):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    y, p = jax.numpy.asarray(data[0]), jax.numpy.asarray(data[1].matrix)
    assert jax.grad(lambda f: KDE(2, 0.1)(y, f).value)(p).shape == p.shape
    with pytest.raises(InputError, match="give a bandwidth"):
        jax.grad(lambda f: KDE(2)(y, f).value)(p)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KDE(bandwidth=0), "bandwidth must be a positive number, or 'loo' to find one; got 0"),
        (lambda: KDE(bandwidth=-0.1), "got -0.1"),
        (lambda: KDE(bandwidth=np.nan), "got nan"),
        (lambda: KDE(bandwidth=np.inf), "got inf"),
        (lambda: KDE(bandwidth="cv"), "got 'cv'"),
        (lambda: KDE(bandwidth=True), "got True"),
        (lambda: KDE(p=0.5), "p must be a number of at least 1; got 0.5"),
        (lambda: KDE(p=np.inf), "got inf"),
        (lambda: KDE(p="1"), "got '1'"),
        (lambda: KDE(debias="full"), "debias must be True, 'partial' or False; got 'full'"),
        (lambda: KDE(lens="top"), "lens must be a lens"),
        (lambda: KDE()([0], [[0.2, 0.3, 0.5]]), "KDE compares each row with the others: at least two rows are needed"),
        (lambda: KDE()([0.1], Normal([0.0], [1.0])), "at least two rows"),
        (lambda: KDE()([0.1, 0.2], Normal([0.0, 1.0], [1.0, 1.0])), "have no events"),
        (lambda: KDE()([0, 1], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), "no row has a neighbour"),
        (lambda: KDE()([0, 1], [[np.nan, 0.5, 0.5], [0.0, 1.0, 0.0]]), "NaN"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("estimator", [KDE(), KDE(2), KDE(lens=TopLabel()), KDE(2, 0.1)], ids=repr)
def test_awkward_data_has_a_number(estimator):
    """Two rows, one class, constant predictions, certainty."""
    certain = np.eye(3)[[0, 1, 2, 0, 1, 2]]
    for y, p in [
        ([0, 1], [[0.2, 0.3, 0.5], [0.3, 0.3, 0.4]]),
        ([0] * 30, np.random.default_rng(0).dirichlet(np.ones(3), 30)),
        ([0, 1, 2] * 10, np.full((30, 3), 1 / 3)),
        ([0, 1, 2, 0, 1, 1], certain),
    ]:
        found = estimator(y, p)
        assert np.isfinite(found.value)
        assert found.standard_error is None or np.isfinite(found.standard_error)


def weights_of(p, bandwidth, w=None):
    return np.concatenate([panel for _, panel in weight_panels(DirichletRows.of(p, bandwidth, w))])


@pytest.mark.parametrize("power", [1, 1.5, 2])
def test_the_definition_of_tangent(power, data):
    """The tangent of the power at the smoothed residual, at the row's own residual."""
    y, p = data[0], data[1].matrix
    r = np.eye(4)[y] - p
    gap = weights_of(p, 0.1) @ r
    tangent = np.abs(gap) ** power + power * np.abs(gap) ** (power - 1) * np.sign(gap) * (r - gap)
    expected = tangent.sum(axis=1).mean()
    found = TangentKDE(power, 0.1, debias=False, root=False)(y, p)
    assert found.value == pytest.approx(expected, rel=1e-11)


def test_squares_without_their_noise_of_tangent(data):
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
def test_conformance_of_tangent(estimator, data):
    check_estimator(estimator, data[0], data[1])


def test_many_rows_go_through_compiled_code_of_tangent(rng, monkeypatch):
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


def test_the_level_of_the_exact_test_holds_of_tangent():
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


def test_every_library_has_the_same_numbers_of_tangent(data, xp):
    y, p = data[0], data[1].matrix
    for estimator in (TangentKDE(), TangentKDE(2)):
        assert float(estimator(xp.asarray(y), xp.asarray(p))) == pytest.approx(estimator(y, p).value, rel=1e-11)


def test_gradients_of_tangent(rng):
    torch = pytest.importorskip("torch")
    logits = torch.tensor(rng.normal(size=(20, 3)), requires_grad=True)
    y = torch.tensor(rng.integers(0, 3, 20))
    assert torch.autograd.gradcheck(lambda z: TangentKDE(2, 0.3)(y, torch.softmax(z, dim=1)).value, (logits,))


def test_bad_input_of_tangent():
    with pytest.raises(InputError, match="bandwidth must be a positive number, or 'cv' to find one; got 'loo'"):
        TangentKDE(bandwidth="loo")
    with pytest.raises(InputError, match="p must be a number of at least 1"):
        TangentKDE(p=0)
    with pytest.raises(InputError, match="TangentKDE compares each row with the others"):
        TangentKDE()([1], Categorical([0.5]))
    jax = pytest.importorskip("jax")
    with pytest.raises(InputError, match="give a bandwidth"):
        jax.grad(lambda p: TangentKDE(2)(jax.numpy.array([0, 1, 1]), p).value)(jax.numpy.array([0.2, 0.5, 0.9]))
