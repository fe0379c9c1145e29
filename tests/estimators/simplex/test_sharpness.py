import numpy as np
import pytest

from calibrant import ClassWise
from calibrant.checks import check_estimator
from calibrant.estimators import Sharpness
from calibrant.estimators.simplex.dirichlet import DirichletRows, weight_panels
from calibrant.inference import Jackknife
from calibrant.lab import Sigmoid, Tempered


@pytest.mark.parametrize("debias", [False, "partial"])
def test_the_definition(debias, rng):
    y, p = Tempered(3, 2.0).draw(80, rng)
    w = np.concatenate([panel for _, panel in weight_panels(DirichletRows.of(p.matrix, 0.1))])
    observed = np.eye(3)[y]
    square = (w @ observed) ** 2
    if debias:
        square = (square - w**2 @ observed) / (1 - (w**2).sum(axis=1, keepdims=True))
    assert Sharpness(0.1, debias)(y, p).value == pytest.approx(square.sum(axis=1).mean(), rel=1e-12)


@pytest.mark.parametrize("debias", [True, "partial"])
def test_it_is_unbiased_where_the_plain_square_is_not(debias):
    """Of 200 calibrated data sets with narrow kernels: E p^2 = 1/3."""
    rng = np.random.default_rng(5)
    sets = [Sigmoid().draw(150, rng) for _ in range(200)]
    values = np.array([Sharpness(0.01, debias)(*data).value for data in sets])
    plain = np.mean([Sharpness(0.01, False)(*data).value for data in sets])
    assert values.mean() == pytest.approx(1 / 3, abs=3.5 * values.std() / np.sqrt(200) + 0.002)
    assert plain > values.mean() + 0.005


def test_standard_error(rng):
    y, p = Sigmoid(0.5).draw(250, rng)
    estimator = Sharpness(0.1)
    slow = Jackknife(estimator, groups=250)(y, p).standard_error
    assert estimator(y, p).standard_error == pytest.approx(slow, rel=0.1)


@pytest.mark.parametrize("estimator", [Sharpness(), Sharpness(0.1, "partial", ClassWise())], ids=repr)
def test_conformance(estimator, rng):
    check_estimator(estimator, *Tempered(3).draw(70, rng))


def test_gradients(rng):
    torch = pytest.importorskip("torch")
    logits = torch.tensor(rng.normal(size=(20, 3)), requires_grad=True)
    y = torch.tensor(rng.integers(0, 3, 20))
    assert torch.autograd.gradcheck(lambda z: Sharpness(0.3)(y, torch.softmax(z, dim=1)).value, (logits,))
