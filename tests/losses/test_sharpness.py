import numpy as np
import pytest

from calibrant import KDE, Brier
from calibrant._validate import InputError
from calibrant.estimators import Sharpness

torch = pytest.importorskip("torch")

from calibrant.losses import SharpnessRegularised, squared_error  # noqa: E402


def problem(n, k):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(n, k, generator=generator, dtype=torch.float64)
    both = logits if k > 1 else torch.cat([0 * logits, logits], 1)
    return logits.requires_grad_(), torch.multinomial(torch.softmax(both / 2, 1), 1, generator=generator)[:, 0]


def probabilities(logits):
    z = logits.detach()
    return (torch.sigmoid(z[:, 0]) if z.shape[1] == 1 else torch.softmax(z, 1)).numpy()


@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_squared_error_is_the_brier_score(k):
    logits, labels = problem(30, k)
    expected = Brier()(labels.numpy(), probabilities(logits)).value
    assert squared_error(logits, labels).item() == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("debias", [True, "partial", False])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_squared_error_plus_weighted_sharpness(k, debias):
    logits, labels = problem(60, k)
    p = probabilities(logits)
    expected = Brier()(labels.numpy(), p).value
    expected += 0.3 * Sharpness(bandwidth=0.2, debias=debias)(labels.numpy(), p).value
    loss = SharpnessRegularised(0.3, bandwidth=0.2, debias=debias)
    assert loss(logits, labels).item() == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("k", [1, 3])
def test_it_is_the_squared_calibration_error_up_to_a_factor(k):
    logits, labels = problem(3000, k)
    weight = 2.0
    p, y = probabilities(logits), labels.numpy()
    square = np.mean(y) if k == 1 else 1.0  # E ||y||^2
    direct = Brier()(y, p).value + weight * KDE(p=2, bandwidth=0.02, root=False)(y, p).value
    loss = SharpnessRegularised.of_weight(weight, bandwidth=0.02)(logits, labels).item()
    assert (1 + weight) * loss - weight * square == pytest.approx(direct, abs=0.01)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_gradients(k):
    logits, labels = problem(7, k)
    loss = SharpnessRegularised(0.5, bandwidth=0.2)
    assert torch.autograd.gradcheck(lambda z: loss(z, labels), (logits,))
    assert torch.autograd.gradcheck(lambda z: squared_error(z, labels), (logits,))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_gradients_of_awkward_batches_are_finite(k):
    corners = torch.eye(k) if k > 1 else torch.tensor([[1.0], [-1.0]])
    for size in (0, 1, 37, 700, 6e4):
        logits = (size * corners).requires_grad_()
        SharpnessRegularised(0.5)(logits, torch.arange(len(corners))).backward()
        assert torch.isfinite(logits.grad).all()


def test_the_precision_of_half_logits():
    assert squared_error(torch.zeros(3, 2).bfloat16(), torch.zeros(3).long()).dtype == torch.float32


def test_weights():
    assert SharpnessRegularised.of_weight(3, bandwidth=0.3, debias="partial").gamma == 0.75
    assert SharpnessRegularised.of_weight(3, bandwidth=0.3).estimator == Sharpness(bandwidth=0.3)
    with pytest.raises(InputError, match="gamma must be at least 0 and below 1, as .* is; got 1"):
        SharpnessRegularised(1)
    with pytest.raises(InputError, match="weight must be a number of at least 0; got -1"):
        SharpnessRegularised.of_weight(-1)
    with pytest.raises(InputError, match="bandwidth must be a positive number"):
        SharpnessRegularised(0.5, bandwidth=0)
