import copy
import pickle

import numpy as np
import pytest

from calibrant import ECE, KCE, KDE, SKCE, Normal, TopLabel
from calibrant._validate import InputError
from calibrant.estimators import MMCE, UCME
from calibrant.kernels import Exponential, Gaussian

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from calibrant.losses import CalibrationLoss, FocalLoss, SoftBinnedECE, mixture_head, normal_head  # noqa: E402

ESTIMATORS = {
    "KDE": KDE(bandwidth=0.1),
    "plain KDE": KDE(bandwidth=0.1, debias=False),
    "squared KDE": KDE(p=2, bandwidth=0.1, root=False),
    "root KDE": KDE(p=2, bandwidth=0.1),
    "KDE of the confidence": KDE(bandwidth=0.1, lens=TopLabel()),
    "SKCE": SKCE(Exponential(0.5)),
    "biased SKCE": SKCE(Gaussian(0.3), unbiased=False),
    "KCE": KCE(Exponential(0.5)),
    "MMCE": MMCE(),
    "UCME": UCME(Exponential(0.5)),
    "soft bins": SoftBinnedECE(),
    "soft bins, L1": SoftBinnedECE(p=1),
}

REAL = SKCE(Exponential(1.0), Gaussian(1.0))

estimators = pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS.keys())


def problem(n, k, seed=0, dtype=torch.float64):
    """Logits and labels that they are too sure of."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, k, generator=generator, dtype=dtype)
    both = logits if k > 1 else torch.cat([torch.zeros(n, 1, dtype=dtype), logits], 1)
    below = torch.softmax(both, 1).cumsum(1)[:, :-1]  # torch.multinomial draws others in other releases
    labels = (torch.rand(len(both), 1, generator=generator) > below).sum(1)
    return (2 * logits).requires_grad_(), labels


def nothing(outputs, targets):
    return 0 * (outputs if isinstance(outputs, torch.Tensor) else outputs[0]).sum()


class TestValues:
    @estimators
    @pytest.mark.parametrize("k", [1, 2, 4])
    def test_cross_entropy_plus_the_weighted_error(self, estimator, k):
        logits, labels = problem(40, k)
        p = torch.sigmoid(logits[:, 0]) if k == 1 else torch.softmax(logits, 1)
        both = logits if k > 1 else torch.cat([0 * logits, logits], 1)
        expected = nn.functional.cross_entropy(both, labels).item()
        expected += 1.7 * estimator(labels.numpy(), p.detach().numpy()).value
        assert CalibrationLoss(estimator, 1.7)(logits, labels).item() == pytest.approx(expected, rel=1e-9)

    def test_any_loss_is_a_base(self):
        logits, labels = problem(40, 4)
        base, error = CalibrationLoss(MMCE(), 3.0, base=FocalLoss()).parts(logits, labels)
        assert base == FocalLoss()(logits, labels)
        assert error == CalibrationLoss(MMCE()).parts(logits, labels)[1]
        assert CalibrationLoss(MMCE(), 3.0, base=FocalLoss())(logits, labels) == base + 3 * error

    def test_regression(self):
        outputs, _ = problem(40, 2)
        y = torch.linspace(-2, 2, 40, dtype=torch.float64)
        mean, scale = outputs[:, 0].detach(), torch.exp(outputs[:, 1].detach() / 2)
        expected = -torch.distributions.Normal(mean, scale).log_prob(y).mean().item()
        expected += 0.5 * REAL(y.numpy(), Normal(mean.numpy(), scale.numpy())).value
        loss = CalibrationLoss(REAL, 0.5, head=normal_head)
        assert loss(outputs, y).item() == pytest.approx(expected, rel=1e-10)
        assert loss((outputs[:, 0], outputs[:, 1]), y) == loss(outputs, y)

    def test_without_weight_the_estimator_is_not_asked(self):
        logits, labels = problem(5, 3)

        def fails(y_true, y_pred):
            raise AssertionError

        assert CalibrationLoss(fails, 0)(logits, labels) == nn.functional.cross_entropy(logits, labels)


class TestGradients:
    @estimators
    @pytest.mark.parametrize("k", [1, 2, 3])
    def test_they_are_finite_differences(self, estimator, k):
        logits, labels = problem(7, k)
        assert torch.autograd.gradcheck(lambda z: CalibrationLoss(estimator, 1.3)(z, labels), (logits,))

    @pytest.mark.parametrize("estimator", [REAL, UCME(Exponential(1.0), Gaussian(1.0))], ids=["SKCE", "UCME"])
    def test_of_normal_heads(self, estimator):
        outputs, _ = problem(7, 2)
        y = torch.linspace(-2, 2, 7, dtype=torch.float64)
        loss = CalibrationLoss(estimator, 1.3, head=normal_head)
        assert torch.autograd.gradcheck(lambda z: loss(z, y), (outputs,))
        mean, log_variance = (part.detach().requires_grad_() for part in outputs.T)
        assert torch.autograd.gradcheck(lambda m, v: loss((m, v), y), (mean, log_variance))

    def test_of_mixture_heads(self):
        outputs, _ = problem(7, 6)
        y = torch.linspace(-2, 2, 7, dtype=torch.float64)
        loss = CalibrationLoss(REAL, 1.3, head=mixture_head)
        assert torch.autograd.gradcheck(lambda z: loss(z, y), (outputs,))

    @estimators
    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
    @pytest.mark.parametrize("k", [1, 2, 3])
    def test_they_are_finite_on_awkward_batches(self, estimator, dtype, k):
        corners = torch.eye(k) if k > 1 else torch.tensor([[1.0], [-1.0]])
        classes = max(k, 2)
        batches = {
            "equal rows": (torch.zeros(6, k), torch.arange(6) % classes),
            "one class": (problem(9, k)[0].detach(), torch.ones(9, dtype=torch.int64)),
            "two rows": (problem(2, k)[0].detach(), torch.tensor([0, 1])),
            "certain and right": (6e4 * corners, torch.arange(classes)),
            "certain and wrong": (6e4 * corners, (torch.arange(classes) + 1) % classes),
            "all magnitudes": (
                torch.cat([size * corners for size in (0, 1e-8, 1, 17, 36.5, 80, 120, 460, 740, 6e4)]),
                torch.arange(10 * len(corners)) % classes,
            ),
        }
        for name, (logits, labels) in batches.items():
            z = logits.to(dtype).requires_grad_()
            loss = CalibrationLoss(estimator)(z, labels)
            loss.backward()
            assert torch.isfinite(loss), name
            assert torch.isfinite(z.grad).all(), name

    def test_an_estimator_without_one_is_refused(self):
        logits, labels = problem(20, 2)
        with pytest.raises(InputError, match=r"ECE\(.* has no gradient and cannot be trained on: use KDE, SKCE"):
            CalibrationLoss(ECE())(logits, labels)
        with torch.no_grad():
            _, error = CalibrationLoss(ECE()).parts(logits, labels)
        assert error.item() == pytest.approx(ECE()(labels, torch.softmax(logits, 1).detach()).value, rel=1e-12)

    def test_a_value_that_is_not_finite_is_refused(self):
        logits, labels = problem(20, 2)
        with pytest.raises(InputError, match="is nan on this batch"):
            CalibrationLoss(lambda y, p: p.matrix.sum() * float("nan"))(logits, labels)


class TestOneRow:
    def test_the_base_loss_alone_and_a_warning_once(self):
        logits, labels = problem(1, 3)
        loss = CalibrationLoss(KDE(bandwidth=0.1))
        with pytest.warns(UserWarning, match="a batch of one row has no other to compare with") as caught:
            value = loss(logits, labels)
        assert caught[0].filename == __file__
        assert value == nn.functional.cross_entropy(logits, labels)
        value.backward()
        assert torch.isfinite(logits.grad).all()
        assert loss(logits, labels) == value

    def test_of_a_regression(self):
        loss = CalibrationLoss(REAL, head=normal_head)
        with pytest.warns(UserWarning, match="a batch of one row"):
            assert loss(torch.zeros(1, 2), torch.zeros(1)).item() == pytest.approx(0.5 * np.log(2 * np.pi))


class TestPrecision:
    @estimators
    def test_autocast_does_not_reach_the_loss(self, estimator):
        logits, labels = problem(40, 3, dtype=torch.float32)
        loss = CalibrationLoss(estimator)
        (plain,) = torch.autograd.grad(loss(logits, labels), logits)
        with torch.autocast("cpu", torch.bfloat16):
            value = loss(logits, labels)
            (cast,) = torch.autograd.grad(value, logits)
        assert value == loss(logits, labels)
        assert torch.equal(plain, cast)

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64], ids=str)
    def test_the_loss_is_at_least_single(self, dtype):
        logits, labels = problem(40, 3)
        z = logits.detach().to(dtype).requires_grad_()
        loss = CalibrationLoss(KDE(bandwidth=0.1))(z, labels)
        loss.backward()
        assert loss.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
        assert z.grad.dtype == dtype

    def test_a_network_under_autocast(self):
        torch.manual_seed(0)
        network = nn.Linear(5, 3)
        with torch.autocast("cpu", torch.bfloat16):
            logits = network(torch.randn(30, 5))
            loss = CalibrationLoss(KDE(bandwidth=0.1))(logits, torch.arange(30) % 3)
        assert logits.dtype == torch.bfloat16
        loss.backward()
        assert torch.isfinite(network.weight.grad).all()


class TestModule:
    def test_it_has_no_state_and_can_be_copied(self):
        logits, labels = problem(20, 3)
        loss = CalibrationLoss(KDE(bandwidth=0.1), 0.5, base=FocalLoss())
        assert not loss.state_dict()
        assert not list(loss.parameters())
        for copied in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
            assert copied(logits, labels) == loss(logits, labels)

    def test_it_says_what_it_is(self):
        text = repr(CalibrationLoss(MMCE(), 0.5))
        assert text == "CalibrationLoss(estimator=MMCE(lengthscale=0.4), weight=0.5)"

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"estimator": MMCE(), "weight": -1}, "weight must be a number of at least 0; got -1"),
            ({"estimator": MMCE(), "weight": float("nan")}, "weight must be a number"),
            ({"estimator": MMCE(), "weight": "1"}, "weight must be a number"),
            ({"estimator": "MMCE"}, r"estimator must be an estimator such as KDE\(bandwidth=0.1\); got 'MMCE'"),
            ({"estimator": MMCE}, "estimator must be an estimator"),
            ({"estimator": MMCE(), "base": "xe"}, "base must be a loss of outputs and targets"),
            ({"estimator": MMCE(), "head": "normal"}, "head must be a function such as class_head"),
        ],
    )
    def test_refuses(self, settings, message):
        with pytest.raises(InputError, match=message):
            CalibrationLoss(**settings)

    def test_a_base_of_many_numbers_is_refused(self):
        logits, labels = problem(20, 3)
        with pytest.raises(InputError, match="base must give a scalar tensor, as with reduction='mean'"):
            CalibrationLoss(MMCE(), base=nn.CrossEntropyLoss(reduction="none"))(logits, labels)


class TestTraining:
    """Each error by itself finds what has to be undone."""

    @pytest.mark.parametrize(
        "estimator",
        [KDE(p=2, bandwidth=0.02, root=False), SKCE(Exponential(0.5)), MMCE(), UCME(Exponential(0.5)), SoftBinnedECE()],
        ids=lambda e: type(e).__name__,
    )
    def test_a_temperature_is_found(self, estimator):
        logits, labels = (x.detach() for x in problem(300, 3, dtype=torch.float32))
        log_scale = torch.tensor(0.7, requires_grad=True)
        loss = CalibrationLoss(estimator, base=nothing)
        optimiser = torch.optim.Adam([log_scale], lr=0.1)
        first = loss(logits * torch.exp(log_scale), labels).item()
        for _ in range(25):
            optimiser.zero_grad()
            value = loss(logits * torch.exp(log_scale), labels)
            value.backward()
            optimiser.step()
        assert value.item() < 0.3 * first
        assert torch.exp(log_scale).item() == pytest.approx(0.5, abs=0.2)  # the logits are twice too large

    def test_a_variance_is_found(self):
        generator = torch.Generator().manual_seed(0)
        mean = torch.randn(300, generator=generator)
        y = mean + 2 * torch.randn(300, generator=generator)
        log_variance = torch.zeros(1, requires_grad=True)
        loss = CalibrationLoss(REAL, base=nothing, head=normal_head)
        optimiser = torch.optim.Adam([log_variance], lr=0.2)
        for _ in range(40):
            optimiser.zero_grad()
            loss((mean, log_variance.expand(300)), y).backward()
            optimiser.step()
        assert torch.exp(log_variance / 2).item() == pytest.approx(2, abs=0.4)

    def test_a_network_that_learns_by_heart_is_less_mistaken_about_itself(self):
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(700, 10, generator=generator)
        y = torch.multinomial(torch.softmax(1.5 * x[:, :3], 1), 1, generator=generator)[:, 0]

        def error(weight):
            torch.manual_seed(0)
            network = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 3))
            optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
            loss = CalibrationLoss(KDE(bandwidth=0.05, debias=False), weight)
            for _ in range(100):
                optimiser.zero_grad()
                loss(network(x[:200]), y[:200]).backward()
                optimiser.step()
            p = torch.softmax(network(x[200:]).detach(), 1).numpy()
            return KDE(bandwidth=0.05)(y[200:].numpy(), p).value

        assert error(0.8) < 0.85 * error(0)
