import numpy as np
import pytest

from calibrant import ECE, Categorical, ClassWise, EqualWidth, ExactTest, TopLabel
from calibrant._validate import InputError
from calibrant.checks import check_estimator

torch = pytest.importorskip("torch")

from calibrant.losses import SoftBinnedECE  # noqa: E402


@pytest.fixture
def problem(rng):
    p = rng.dirichlet(np.ones(4), 80)
    return rng.integers(0, 4, 80), p


@pytest.mark.parametrize("p", [1, 1.5, 2])
def test_the_definition(problem, p):
    y, probs = problem
    confidence, hit = probs.max(axis=1), probs.argmax(axis=1) == y
    centres = (np.arange(10) + 0.5) / 10
    member = np.exp(-((confidence[:, None] - centres) ** 2) / 0.01)
    member /= member.sum(axis=1, keepdims=True)
    size = member.sum(axis=0)
    gap = np.abs(member.T @ hit / size - member.T @ confidence / size)
    expected = (size / 80 @ gap**p) ** (1 / p)
    result = SoftBinnedECE(10, p=p)(y, probs)
    assert result.value == pytest.approx(expected, rel=1e-12)
    assert result.lens == "top-label"


@pytest.mark.parametrize("p", [1, 2])
def test_cold_bins_are_bins(problem, p):
    cold = SoftBinnedECE(10, temperature=1e-7, p=p)(*problem).value
    assert cold == pytest.approx(ECE(EqualWidth(10), norm=p, lens=TopLabel())(*problem).value, rel=1e-9)


def test_weights_are_repetitions(problem, rng):
    y, p = problem
    times = rng.integers(1, 4, len(y))
    weighted = SoftBinnedECE()(y, p, sample_weight=times).value
    assert weighted == pytest.approx(SoftBinnedECE()(np.repeat(y, times), np.repeat(p, times, axis=0)).value, rel=1e-12)


def test_events_are_averaged(problem):
    y, p = problem
    each = [SoftBinnedECE(lens=None)((y == c) * 1, p[:, c]).value for c in range(4)]
    assert SoftBinnedECE(lens=ClassWise())(y, p).value == pytest.approx(np.mean(each), rel=1e-12)


def test_torch_gives_the_same_number(problem):
    y, p = problem
    result = SoftBinnedECE()(torch.tensor(y), torch.tensor(p)).value
    assert result == pytest.approx(SoftBinnedECE()(y, p).value, rel=1e-12)


def test_it_is_an_estimator(problem):
    y, p = problem
    check_estimator(SoftBinnedECE(), y, Categorical(p))
    assert ExactTest(SoftBinnedECE(), n_resamples=19)(y, p, rng=0).pvalue == 0.05


def test_no_error_has_no_slope():
    p = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
    value = SoftBinnedECE(lens=None)(torch.tensor([0, 1]), p).value
    assert value == 0
    value.backward()
    assert p.grad.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bins": 0}, "bins must be a whole number of at least 1; got 0"),
        ({"temperature": 0}, "temperature must be a positive number; got 0"),
        ({"p": 0.5}, "p must be a number of at least 1; got 0.5"),
        ({"lens": "top"}, "lens must be a lens"),
    ],
)
def test_refuses(settings, message):
    with pytest.raises(InputError, match=message):
        SoftBinnedECE(**settings)
