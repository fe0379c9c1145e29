import math
import pickle

import pytest

from calibrant._validate import InputError

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402

from calibrant.losses import FL53, FocalLoss, LabelSmoothing, Stepwise  # noqa: E402


@pytest.fixture
def problem():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(12, 4, generator=generator, dtype=torch.float64)
    return logits.requires_grad_(), torch.randint(0, 4, (12,), generator=generator)


class TestFocal:
    def test_by_hand(self):
        logits = torch.tensor([[math.log(0.1), math.log(0.9)], [math.log(0.6), math.log(0.4)]], dtype=torch.float64)
        expected = (-math.log(0.1) * 0.9**5 - math.log(0.6) * 0.4**3) / 2
        assert FocalLoss()(logits, torch.tensor([0, 0])).item() == pytest.approx(expected, rel=1e-13)
        assert FocalLoss(2)(logits[:, 1] - logits[:, 0], torch.tensor([1, 1])).item() == pytest.approx(
            (-math.log(0.9) * 0.1**2 - math.log(0.4) * 0.6**2) / 2, rel=1e-12
        )

    def test_the_exponent_zero_is_cross_entropy(self, problem):
        assert FocalLoss(0)(*problem).item() == pytest.approx(F.cross_entropy(*problem).item(), rel=1e-14)

    def test_the_schedule(self):
        assert FL53(torch.tensor([0.0, 0.19999, 0.2, 1.0], dtype=torch.float64)).tolist() == [5, 5, 3, 3]
        three = Stepwise((0.2, 0.5), (5.0, 3.0, 1.0))
        assert three(torch.tensor([0.1, 0.3, 0.5])).tolist() == [5, 3, 1]

    @pytest.mark.parametrize("gamma", [0, 0.5, 1, 3, FL53], ids=str)
    def test_gradients(self, problem, gamma):
        logits, labels = problem
        assert torch.autograd.gradcheck(lambda z: FocalLoss(gamma)(z, labels), (logits,))

    @pytest.mark.parametrize("gamma", [0, 0.5, 1, 3, FL53], ids=str)
    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
    def test_certainty_has_a_finite_gradient(self, gamma, dtype):
        logits = (6e4 * torch.eye(3)).to(dtype).requires_grad_()
        for labels in ([0, 1, 2], [1, 2, 0]):
            (gradient,) = torch.autograd.grad(FocalLoss(gamma)(logits, torch.tensor(labels)), logits)
            assert torch.isfinite(gradient).all()

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: FocalLoss(-1), "gamma must be a number of at least 0, or a schedule such as FL53; got -1"),
            (lambda: Stepwise((0.2,), (5.0,)), "values must be 2 exponents of at least 0"),
            (lambda: Stepwise((0.2,), (5.0, -1.0)), "values must be 2 exponents"),
            (lambda: Stepwise((0.5, 0.2), (5.0, 3.0, 1.0)), r"edges must rise; got \(0.5, 0.2\)"),
        ],
    )
    def test_refuses(self, make, message):
        with pytest.raises(InputError, match=message):
            make()


class TestLabelSmoothing:
    def test_it_is_that_of_torch(self, problem):
        expected = F.cross_entropy(*problem, label_smoothing=0.2)
        assert LabelSmoothing(0.2)(*problem).item() == pytest.approx(expected.item(), rel=1e-14)

    def test_of_log_odds(self):
        z = torch.tensor([1.5, -0.3], dtype=torch.float64)
        expected = F.binary_cross_entropy_with_logits(z, torch.tensor([0.95, 0.05], dtype=torch.float64))
        assert LabelSmoothing(0.1)(z, torch.tensor([1.0, 0.0])).item() == pytest.approx(expected.item(), rel=1e-14)

    def test_gradients(self, problem):
        logits, labels = problem
        assert torch.autograd.gradcheck(lambda z: LabelSmoothing(0.2)(z, labels), (logits,))

    def test_refuses(self):
        with pytest.raises(InputError, match="epsilon must lie strictly between 0 and 1; got 1"):
            LabelSmoothing(1)


@pytest.mark.parametrize("loss", [FocalLoss(), LabelSmoothing()], ids=repr)
class TestBoth:
    def test_precision_is_at_least_single(self, loss, problem):
        logits, labels = problem
        assert loss(logits.bfloat16(), labels).dtype == torch.float32
        assert loss(logits, labels).dtype == torch.float64
        with torch.autocast("cpu", torch.bfloat16):
            assert loss(logits.float(), labels).item() == pytest.approx(loss(logits, labels).item(), rel=1e-6)

    def test_input_is_checked(self, loss, problem):
        logits, labels = problem
        with pytest.raises(InputError, match="found 4 in row 0"):
            loss(logits, labels * 0 + 4)
        with pytest.raises(InputError, match="NaN or infinite"):
            loss(logits / 0, labels)

    def test_no_state(self, loss, problem):
        assert not loss.state_dict()
        assert pickle.loads(pickle.dumps(loss))(*problem) == loss(*problem)
