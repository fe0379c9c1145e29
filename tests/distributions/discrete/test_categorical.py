import numpy as np
import pytest
from scipy.special import expit, softmax

from calibrant import (
    ECE,
    Bootstrap,
    Brier,
    Categorical,
    ClassWise,
    EqualMass,
    ExactTest,
    LogLoss,
    TopLabel,
    evaluate,
    groups,
)
from calibrant._validate import InputError
from calibrant.kernels import Identity, LabelMatrix, expectation


def test_scalar_two_columns_and_categorical_agree(rng):
    p = rng.random(200)
    y = (rng.random(200) < p).astype(int)
    two = np.stack([1 - p, p], axis=1)
    for measure in (ECE(), ECE(norm=2), Brier(), LogLoss()):
        values = [measure(y, form).value for form in (p, p[:, None], two, Categorical(p), Categorical(two))]
        assert values == pytest.approx([values[0]] * 5, rel=1e-13)


def test_every_library_gives_the_same_number(convert, rng):
    p = rng.random(50).astype(np.float32).astype(np.float64)  # exact in both precisions
    y = (rng.random(50) < p).astype(np.int64)
    assert ECE()(convert(y), convert(p)).value == pytest.approx(ECE()(y, p).value, rel=1e-6)


def test_every_library_takes_matrices(convert, rng):
    p = rng.dirichlet(np.ones(3), 50)
    y = rng.integers(0, 3, 50)
    assert Brier()(convert(y), convert(p)).value == pytest.approx(Brier()(y, p).value, rel=1e-6)


def test_from_logits_is_the_softmax(rng):
    z = 20 * rng.normal(size=(30, 5))
    assert np.allclose(Categorical.from_logits(z).probs, softmax(z, axis=1), rtol=1e-13, atol=0)
    assert np.allclose(Categorical.from_logits(z[:, 0]).probs[:, 1], expit(z[:, 0]), rtol=1e-13, atol=0)
    assert np.allclose(Categorical.from_logits(z[:, :1]).probs[:, 0], expit(-z[:, 0]), rtol=1e-13, atol=0)


def test_from_logits_does_not_overflow():
    assert Categorical.from_logits([[1e4, 0.0]]).probs.tolist() == [[1.0, 0.0]]
    assert Categorical.from_logits([-1e4, 1e4]).probs.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_from_logits_keeps_the_tail_of_both_classes():
    assert LogLoss()([0], Categorical.from_logits(np.array([20.0], dtype=np.float32))).value == pytest.approx(
        20, rel=1e-5
    )
    assert LogLoss()([0], Categorical.from_logits([40.0])).value == pytest.approx(40, rel=1e-12)


def test_from_logits_in_half_precision():
    torch = pytest.importorskip("torch")
    logits = torch.randn(500, 10, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    assert Categorical.from_logits(logits).probs.dtype == torch.float32


def test_logits_must_be_finite():
    with pytest.raises(InputError, match="logits has NaN or infinite"):
        Categorical.from_logits([[0.0, np.inf]])


def test_names_become_columns():
    batch = Categorical([[0.7, 0.2, 0.1]] * 3, labels=["cat", "dog", "owl"])
    assert batch.as_targets(np.array(["owl", "cat", "dog"])).tolist() == [2, 0, 1]
    with pytest.raises(InputError, match=r"no column for: \['cow'\]; columns: \['cat', 'dog', 'owl'\]"):
        batch.as_targets(["owl", "cow", "dog"])


def test_integer_names_are_looked_up_by_value():
    batch = Categorical([[0.7, 0.2, 0.1]] * 3, labels=[1, 2, 3])
    assert batch.as_targets([1, 2, 3]).tolist() == [0, 1, 2]


@pytest.mark.parametrize("labels", [(1, 0), ("1", "0"), (2, 0, 1), (1, 2, 3), (-1, 1), ("b", "a")])
def test_names_are_looked_up_once_in_every_call(labels, rng):
    """However the columns are ordered and named, all calls give what the plain problem gives."""
    k = len(labels)
    p = rng.dirichlet(np.ones(k), 150)
    column = (rng.random((150, 1)) >= np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    names = np.array([int(x) if str(x).lstrip("-").isdigit() else x for x in labels])
    y, batch = names[column], Categorical(p, labels=labels, pos_label=labels[1] if k == 2 else None)
    ece = ECE(EqualMass(5), lens=ClassWise())
    assert ece(y, batch).value == ece(column, p).value
    assert ExactTest(ece, 49)(y, batch).pvalue == ExactTest(ece, 49)(column, p).pvalue
    assert ExactTest(ECE(lens=TopLabel()), 49)(y, batch).pvalue == ExactTest(ECE(lens=TopLabel()), 49)(column, p).pvalue
    assert Bootstrap(Brier(), 19)(y, batch).interval == Bootstrap(Brier(), 19)(column, p).interval
    by = np.arange(150) % 2
    assert groups(ece, y, batch, by=by)["value"].tolist() == groups(ece, column, p, by=by)["value"].tolist()
    assert ece(y[:50], batch[:50]).value == ece(column[:50], p[:50]).value
    assert evaluate(y, batch, n_resamples=99).numbers == evaluate(column, p, n_resamples=99).numbers


def test_truth_values_are_looked_up_by_name():
    batch = Categorical([[0.9, 0.1], [0.3, 0.7]], labels=["True", "False"])
    assert batch.as_targets([True, False]).tolist() == [0, 1]


def test_frame_columns_are_the_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"cat": [0.9, 0.2], "dog": [0.1, 0.8]})
    assert Categorical(frame).as_targets(pandas.Series(["dog", "cat"])).tolist() == [1, 0]


def test_torch_stays_torch():
    torch = pytest.importorskip("torch")
    batch = Categorical(torch.tensor([[0.5, 0.5], [0.1, 0.9]]))
    assert isinstance(batch.probs, torch.Tensor)
    assert Brier()(torch.tensor([0, 1]), batch).value == pytest.approx((0.25 + 0.01) / 2, rel=1e-6)


def test_sampling_follows_the_probabilities(rng):
    p = np.array([[0.0, 0.5, 0.25, 0.0, 0.25, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]])
    drawn = Categorical(p).sample(rng, 40_000)
    for row in range(3):
        counts = np.bincount(drawn[:, row], minlength=6)
        assert np.all(counts[p[row] == 0] == 0)
        assert np.all(np.abs(counts - 40_000 * p[row]) < 5 * np.sqrt(40_000 * p[row] * (1 - p[row])) + 1e-9)


@pytest.mark.parametrize("k", [2, 3, 4, 5, 8, 9, 100])
def test_sampling_by_bisection_is_inversion(k):
    p = np.random.default_rng(k).dirichlet(np.ones(k), 20)
    drawn = Categorical(p).sample(np.random.default_rng(1), 50)
    u = np.random.default_rng(1).random((50, 20))
    if k == 2:
        assert np.array_equal(drawn, u < p[:, 1] / p.sum(axis=1))
    else:
        cumulative = np.cumsum(p, axis=1)
        cumulative /= cumulative[:, -1:]
        assert np.array_equal(drawn, (u[:, :, None] >= cumulative[None, :, :-1]).sum(axis=2))


@pytest.mark.parametrize("k", [2, 3, 10, 300])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_gpu_draws_the_classes_that_the_host_draws(k, dtype, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr("calibrant.distributions.discrete.categorical.on_gpu", lambda x: isinstance(x, torch.Tensor))
    p = np.random.default_rng(k).dirichlet(np.full(k, 0.3), 200).astype(dtype)
    there, here = (Categorical(x).sample(np.random.default_rng(1), 30) for x in (torch.tensor(p), p))
    assert isinstance(there, np.ndarray)
    assert there.dtype == here.dtype
    assert np.array_equal(there, here)


def test_probabilities_of_single_classes():
    batch = Categorical([0.2, 0.9])
    assert batch.probability(1).tolist() == [0.2, 0.9]
    assert batch.probability(0) == pytest.approx([0.8, 0.1])
    assert np.allclose(batch.matrix, [[0.8, 0.2], [0.1, 0.9]])
    assert batch.class_names == ("0", "1")
    with pytest.raises(InputError, match=r"there is no class 5; the classes are \[0, 1\]"):
        batch.index_of(5)


@pytest.mark.parametrize("temperature", [1e-4, 0.3, 1.0, 5.0])
def test_tempering_is_a_power_of_the_probabilities(temperature):
    p = np.array([[0.5, 0.3, 0.2], [1 / 3, 1 / 3, 1 / 3], [0.4, 0.6, 0.0]])
    with np.errstate(divide="ignore"):
        exact = softmax(np.log(p) / temperature, axis=1)
    assert Categorical(p).temper(temperature).probs == pytest.approx(exact, rel=1e-10, abs=1e-300)


def test_tempering_in_single_precision_does_not_vanish():
    batch = Categorical(np.full((1, 10), 0.1, dtype=np.float32)).temper(0.02)
    assert batch.probs.dtype == np.float32
    assert batch.probs == pytest.approx(np.full((1, 10), 0.1), rel=1e-6)
    assert Categorical([0.2]).temper(0.5).probs == pytest.approx(np.array([[16 / 17, 1 / 17]]), rel=1e-13)
    with pytest.raises(InputError, match="temperature must be positive; got 0"):
        Categorical([0.2]).temper(0)


def test_closed_forms_are_double_sums(xp, rng):
    p, q, y = rng.dirichlet(np.ones(3), 4), rng.dirichlet(np.ones(3), 2), np.array([2, 0, 1, 1], dtype=np.uint8)
    matrix = ((1.0, 0.5, 0.2), (0.5, 1.0, 0.5), (0.2, 0.5, 1.0))
    ours, other = Categorical(xp.asarray(p)), Categorical(xp.asarray(q))
    for kernel, table in ((Identity(), np.eye(3)), (LabelMatrix(matrix), np.array(matrix))):
        exact = sum(table[a, b] * p[:, a][:, None] * q[:, b][None, :] for a, b in np.ndindex(3, 3))
        assert np.asarray(expectation(kernel, ours, other)) == pytest.approx(exact, rel=1e-13)
        points = ours.point(y)  # resampled targets are NumPy arrays, whatever the library of the predictions
        assert np.asarray(expectation(kernel, points, other)) == pytest.approx(table[y] @ q.T, rel=1e-13)


def test_closed_forms_keep_single_precision():
    torch = pytest.importorskip("torch")
    kernel = LabelMatrix(((1.0, 0.5), (0.5, 1.0)))
    for batch in (Categorical(torch.tensor([[0.5, 0.5]])), Categorical(np.array([[0.5, 0.5]], dtype=np.float32))):
        value = expectation(kernel, batch, batch)
        assert "float32" in str(value.dtype)
        assert float(value[0, 0]) == 0.75


def test_two_classes_are_numbers_and_more_are_names(rng):
    p = rng.random(40)
    y = (rng.random(40) < p).astype(int)
    for batch in (Categorical(p), Categorical(np.stack([1 - p, p], axis=1))):
        assert batch.mean == pytest.approx(p)
        assert batch.std**2 == pytest.approx(p * (1 - p))
        assert batch.crps(y) == pytest.approx((p - y) ** 2)
    three = Categorical(rng.dirichlet(np.ones(3), 2))
    assert all(x is NotImplemented for x in (three.mean, three.std, three.crps(np.array([0, 1]))))
