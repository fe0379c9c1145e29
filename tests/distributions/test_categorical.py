import numpy as np
import pytest
from scipy.special import expit, softmax

from calibrant import ECE, Brier, Categorical, LogLoss
from calibrant._validate import InputError


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
    assert np.allclose(Categorical.from_logits(z[:, 0]).probs, expit(z[:, 0]), rtol=1e-13, atol=0)
    assert Categorical.from_logits(z[:, :1]).probs.shape == (30,)


def test_from_logits_does_not_overflow():
    assert Categorical.from_logits([[1e4, 0.0]]).probs.tolist() == [[1.0, 0.0]]
    assert Categorical.from_logits([-1e4, 1e4]).probs == pytest.approx([0, 1], abs=1e-300)


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


def test_probabilities_of_single_classes():
    batch = Categorical([0.2, 0.9])
    assert batch.probability(1).tolist() == [0.2, 0.9]
    assert batch.probability(0) == pytest.approx([0.8, 0.1])
    assert np.allclose(batch.matrix, [[0.8, 0.2], [0.1, 0.9]])
    assert batch.class_names == ("0", "1")
    with pytest.raises(InputError, match=r"there is no class 5; the classes are \[0, 1\]"):
        batch.index_of(5)
