import numpy as np
import pytest

from calibrant import KCE, SKCE, Categorical, Normal
from calibrant._validate import InputError
from calibrant.estimators import MMCE
from calibrant.kernels import Exponential, Gaussian


def test_the_root_of_the_biased_estimate(rng):
    p, y = rng.dirichlet(np.ones(3), 80), rng.integers(0, 3, 80)
    squared = SKCE(Exponential(0.4), unbiased=False)(y, p)
    result = KCE(Exponential(0.4))(y, p)
    assert result.value == pytest.approx(squared.value**0.5, rel=1e-14)
    assert result.route == "features; plain"


def test_open_settings_are_reported(rng):
    predictions = Normal.example(rng, 50)
    result = KCE()(predictions.sample(rng, 1)[0], predictions)
    assert result.estimator.on_predictions.lengthscale > 0
    assert result.estimator.on_targets.lengthscale > 0


def test_perfect_certainty_gives_zero():
    assert KCE()([0, 1, 1], [0.0, 1.0, 1.0]).value == 0.0


def test_gradients(rng):
    torch = pytest.importorskip("torch")
    predictions = Normal.example(rng, 20)
    y = predictions.sample(rng, 1)[0]
    loc = torch.tensor(predictions.loc, requires_grad=True)
    kce, skce = KCE(Exponential(1.0), Gaussian(1.0)), SKCE(Exponential(1.0), Gaussian(1.0), unbiased=False)
    root = kce(torch.tensor(y), Normal(loc, torch.tensor(predictions.scale))).value
    (slope,) = torch.autograd.grad(root, loc)
    (squared,) = torch.autograd.grad(skce(torch.tensor(y), Normal(loc, torch.tensor(predictions.scale))).value, loc)
    assert slope.numpy() == pytest.approx((squared / (2 * root)).detach().numpy(), rel=1e-12)


def test_gradients_at_zero_are_zero():
    torch = pytest.importorskip("torch")
    p = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
    KCE(Exponential(1.0))([0, 1], p).value.backward()
    assert p.grad.tolist() == [0.0, 0.0]


class TestMMCE:
    def test_the_definition(self, rng):
        p, y, w = rng.dirichlet(np.ones(4), 60), rng.integers(0, 4, 60), rng.random(60)
        confidence, hit = p.max(axis=1), p.argmax(axis=1) == y
        kernel = np.exp(-np.abs(confidence[:, None] - confidence) / 0.4)
        error = hit - confidence
        assert MMCE()(y, p).value == pytest.approx(np.sqrt(error @ kernel @ error) / 60, rel=1e-12)
        e = w * error
        assert MMCE()(y, p, sample_weight=w).value == pytest.approx(np.sqrt(e @ kernel @ e) / w.sum(), rel=1e-12)

    def test_the_length_scale(self, rng):
        p, y = rng.dirichlet(np.ones(4), 60), rng.integers(0, 4, 60)
        confidence, hit = p.max(axis=1), p.argmax(axis=1) == y
        error, kernel = hit - confidence, np.exp(-np.abs(confidence[:, None] - confidence) / 0.1)
        assert MMCE(0.1)(y, p).value == pytest.approx(np.sqrt(error @ kernel @ error) / 60, rel=1e-12)

    def test_many_rows_take_the_sorted_path(self, rng):
        p, y = rng.dirichlet(np.ones(4), 3000), rng.integers(0, 4, 3000)
        confidence, hit = p.max(axis=1), p.argmax(axis=1) == y
        kernel = np.exp(-np.abs(confidence[:, None] - confidence) / 0.4)
        error = hit - confidence
        assert MMCE()(y, p).value == pytest.approx(np.sqrt(error @ kernel @ error) / 3000, rel=1e-10)

    def test_length_scales_must_be_positive(self):
        with pytest.raises(InputError, match="lengthscale must be positive; got 0"):
            MMCE(0)

    def test_regression_is_refused(self):
        with pytest.raises(InputError, match="TopLabel"):
            MMCE()([0.0], Normal([0.0], 1.0))

    def test_it_is_the_kce_of_the_confidence(self, rng):
        from calibrant import TopLabel

        p, y = rng.dirichlet(np.ones(4), 60), rng.integers(0, 4, 60)
        hit, confidence = TopLabel()(y, Categorical(p))
        assert MMCE()(y, p).value == pytest.approx(KCE(Exponential(0.4 * 2**0.5))(hit, confidence).value / 2**0.5)

    def test_gradients_are_finite_differences(self, rng):
        torch = pytest.importorskip("torch")
        logits, y = torch.tensor(rng.normal(size=(8, 3)), requires_grad=True), torch.tensor(rng.integers(0, 3, 8))
        assert torch.autograd.gradcheck(lambda z: MMCE()(y, torch.softmax(z, dim=1)).value, (logits,))

    def test_gradients_are_those_of_the_definition(self, rng):
        torch = pytest.importorskip("torch")
        p, y, w = torch.tensor(rng.dirichlet(np.ones(4), 60)), torch.tensor(rng.integers(0, 4, 60)), rng.random(60)
        p.requires_grad_()
        (found,) = torch.autograd.grad(MMCE()(y, p, sample_weight=w).value, p)
        confidence, favoured = p.max(dim=1)
        error = torch.tensor(w) * ((favoured == y) * 1.0 - confidence)
        kernel = torch.exp(-torch.abs(confidence[:, None] - confidence) / 0.4)
        (expected,) = torch.autograd.grad(torch.sqrt(error @ kernel @ error) / w.sum(), p)
        assert found.numpy() == pytest.approx(expected.numpy(), rel=1e-9, abs=1e-14)

    def test_values_are_the_same_in_every_library(self, xp, rng):
        p, y = rng.dirichlet(np.ones(4), 30), rng.integers(0, 4, 30)
        assert float(MMCE()(y, xp.asarray(p)).value) == pytest.approx(MMCE()(y, p).value, rel=1e-12)
