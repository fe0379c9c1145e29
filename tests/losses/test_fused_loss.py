import numpy as np
import pytest

from calibrant import ECE, KCE, KDE, SKCE, ClassWise, TopLabel
from calibrant._validate import InputError
from calibrant.estimators import MMCE, UCME, OptimisedLocations, Sharpness
from calibrant.kernels import Cityblock, Exponential, Gaussian, LabelMatrix, Matern
from calibrant.lenses import PositiveClass

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from calibrant.losses import CalibrationLoss, SharpnessRegularised, SoftBinnedECE, class_head  # noqa: E402
from calibrant.losses.fused_loss import _value_and_gradient, fused_error, log_loss  # noqa: E402

ESTIMATORS = {
    "KDE": KDE(bandwidth=0.05),
    "plain KDE": KDE(bandwidth=0.05, debias=False),
    "squared KDE": KDE(p=2, bandwidth=0.05, root=False),
    "partly debiased KDE": KDE(p=2, bandwidth=0.1, root=False, debias="partial"),
    "root KDE": KDE(p=2, bandwidth=0.3),
    "KDE, p of 1.5": KDE(p=1.5, bandwidth=0.1, debias="partial"),
    "KDE of the confidence": KDE(bandwidth=0.05, lens=TopLabel()),
    "squared KDE of a class": KDE(p=2, bandwidth=0.05, lens=PositiveClass(1), root=False),
    "sharpness": Sharpness(bandwidth=0.1),
    "plain sharpness": Sharpness(bandwidth=0.1, debias=False),
    "SKCE": SKCE(Exponential(0.5)),
    "Gaussian SKCE": SKCE(Gaussian(0.3)),
    "biased SKCE": SKCE(Exponential(0.5), unbiased=False),
    "open SKCE": SKCE(),
    "KCE": KCE(Exponential(0.5)),
    "MMCE": MMCE(),
    "narrow MMCE": MMCE(0.05),
    "UCME": UCME(Exponential(0.5)),
    "Gaussian UCME": UCME(Gaussian(0.4)),
    "open UCME": UCME(),
    "soft bins": SoftBinnedECE(),
    "soft bins, L1": SoftBinnedECE(p=1),
    "soft bins of a class": SoftBinnedECE(lens=None),
    "cold bins": SoftBinnedECE(temperature=1e-4),
}

GRAPHS = ("KDE", "root KDE", "KDE, p of 1.5", "KDE of the confidence", "sharpness", "SKCE", "MMCE", "UCME", "soft bins")
"""One of each form: what is compiled takes half a second each."""

KINDS = ("plain", "sure", "very sure", "rows twice", "zeros")

each = pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS.keys())


def batch(kind, n, k, seed):
    """Logits in double precision, and labels."""
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(n, k, generator=generator, dtype=torch.float64)
    if kind == "sure":
        z = z * torch.exp(3 * torch.randn(n, 1, generator=generator, dtype=torch.float64))
    if kind == "very sure":
        z = 30 * z
    if kind == "rows twice":
        z = z[torch.randint(0, n // 3, (n,), generator=generator)]
    if kind == "zeros":
        z[torch.rand(n, k, generator=generator) < 0.3] -= 1000
    return z, torch.multinomial(torch.softmax(z / 2, 1), 1, generator=generator)[:, 0]


def of_estimator(estimator, z, y):
    """Value and gradient by the estimator itself, which records its operations."""
    exact = z.detach().double().requires_grad_()
    rows = class_head(exact, y)
    value = estimator(rows.targets, rows.predictions).value
    return value.item(), torch.autograd.grad(value, exact)[0]


class TestAgainstEstimators:
    """The second route: distributions and estimators, which know nothing of the fused ones."""

    @each
    @pytest.mark.parametrize("k", [2, 10, 100])
    def test_values_and_gradients_are_those_of_the_estimator(self, estimator, k):
        loss = CalibrationLoss(estimator)
        for i in range(20 if k < 100 else 10):
            kind = KINDS[i % len(KINDS)]
            z, y = batch(kind, 8 + 7 * (i % 6), k, i)
            label = (torch.int64, torch.int32, torch.uint8, torch.float32)[i % 4 if k == 2 else i % 3]
            for dtype, precision in ((torch.float64, 1e-8), (torch.float32, 1e-6)):
                logits = z.to(dtype).requires_grad_()
                error = loss.parts(logits, y.to(label))[1]
                (gradient,) = torch.autograd.grad(error, logits)
                value, expected = of_estimator(estimator, logits, y)
                assert error.item() == pytest.approx(value, abs=precision, rel=precision), (kind, dtype)
                # Relative to its own size, but no less than a thousandth of that of a log loss. Unbiased squares of rows
                # that see one other are differences of nearly equal numbers, in both routes.
                steep = isinstance(estimator, KDE | Sharpness) and getattr(estimator, "p", 2) == 2 and estimator.debias
                bound = (1e-3 if steep else 1e-5) * (expected.norm() + 3e-3)
                assert (gradient - expected).norm() <= bound, (kind, dtype)

    @each
    def test_panels_are_added_up(self, estimator, monkeypatch):
        z, y = batch("plain", 67, 4, 0)
        whole = [CalibrationLoss(estimator)(logits := z.clone().requires_grad_(), y), logits]
        monkeypatch.setattr("calibrant.losses.fused_error.CACHED_NUMBERS", 67 * 20)
        parts = [CalibrationLoss(estimator)(logits := z.clone().requires_grad_(), y), logits]
        for value, _ in (whole, parts):
            value.backward()
        assert parts[0].item() == pytest.approx(whole[0].item(), rel=1e-12)
        assert torch.allclose(parts[1].grad, whole[1].grad, rtol=1e-9, atol=1e-14)

    @each
    def test_single_precision_is_within_a_hundred_thousandth(self, estimator):
        z, y = batch("plain", 200, 10, 0)
        single, double = (z.float().to(dtype).requires_grad_() for dtype in (torch.float32, torch.float64))
        for logits in (single, double):
            CalibrationLoss(estimator)(logits, y).backward()
        assert (single.grad - double.grad).norm() < 1e-6 * double.grad.norm()

    def test_without_gradients_the_value_is_the_same(self):
        z, y = batch("plain", 40, 5, 0)
        for estimator in ESTIMATORS.values():
            loss = CalibrationLoss(estimator)
            assert loss(z, y).item() == loss(z.clone().requires_grad_(), y).item()


class TestClosedSet:
    @each
    def test_fused(self, estimator):
        assert fused_error(estimator).fits(30, 10)
        assert CalibrationLoss(estimator)._is_fused(torch.zeros(30, 10))

    @pytest.mark.parametrize(
        "estimator",
        [
            ECE(),
            KDE(),
            SKCE(Exponential(0.5), block=4),
            SKCE(Exponential(0.5, power=1.5)),
            SKCE(Gaussian(0.5, Cityblock())),
            SKCE(Matern(1.5, 0.5)),
            SKCE(Exponential(0.5), LabelMatrix(((1.0, 0.5), (0.5, 1.0)))),
            UCME(Exponential(0.5), locations=OptimisedLocations()),
            MMCE(0.001),
        ],
        ids=repr,
    )
    def test_others_take_the_general_way(self, estimator):
        assert fused_error(estimator) is None
        z, y = batch("plain", 30, 2, 0)
        with torch.no_grad():
            value = CalibrationLoss(estimator).parts(z, y)[1]
        rows = class_head(z, y)
        assert value.item() == pytest.approx(float(estimator(rows.targets, rows.predictions)), rel=1e-12)

    def test_what_derives_from_them_may_be_something_else(self):
        class Twice(MMCE):
            def estimate(self, targets, predictions, weights):
                return super().estimate(targets, predictions, weights)

        assert fused_error(Twice()) is None

    def test_several_events_and_many_rows_without_length_scale_take_the_general_way(self):
        assert not fused_error(KDE(bandwidth=0.1, lens=ClassWise())).fits(30, 3)
        assert not fused_error(SoftBinnedECE(lens=ClassWise())).fits(30, 3)
        assert not fused_error(SKCE()).fits(2001, 3)
        z, y = batch("plain", 30, 3, 0)
        estimator = KDE(bandwidth=0.1, lens=ClassWise())
        expected = of_estimator(estimator, z, y)[0]
        assert CalibrationLoss(estimator).parts(z, y)[1].item() == pytest.approx(expected, rel=1e-12)


class Operations(TorchDispatchMode):
    """The names of what is done."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(str(function))
        return function(*args, **(kwargs or {}))


class TestNoWaiting:
    @each
    def test_nothing_is_asked_of_the_device(self, estimator):
        z, y = batch("plain", 40, 5, 0)
        with Operations() as seen:
            _value_and_gradient(z.float(), y, log_loss, fused_error(estimator), 2.0, True)
        asking = ("_local_scalar_dense", "nonzero", "equal", "masked_select", "unique")
        assert len(seen.names) > 20
        assert not [name for name in seen.names if name.split(".")[1] in asking]

    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize(
        "name", [name if name in GRAPHS else pytest.param(name, marks=pytest.mark.study) for name in ESTIMATORS]
    )
    def test_one_graph(self, name):
        estimator = ESTIMATORS[name]
        z, y = batch("plain", 40, 5, 0)
        plain, compiled = (z.float().clone().requires_grad_() for _ in range(2))
        torch._dynamo.reset()
        CalibrationLoss(estimator, 2.0)(plain, y).backward()
        whole = torch.compile(CalibrationLoss(estimator, 2.0), fullgraph=True, backend="eager")
        whole(compiled, y).backward()
        assert torch.allclose(plain.grad, compiled.grad, rtol=1e-5, atol=1e-9)

    @pytest.mark.filterwarnings("ignore")
    def test_a_compiled_step_keeps_what_was_broken(self):
        z, y = batch("plain", 40, 5, 0)
        torch._dynamo.reset()
        loss = CalibrationLoss(MMCE())
        whole = torch.compile(loss, fullgraph=True, backend="aot_eager")
        whole(z / 0, y)
        whole(z, y)
        with pytest.raises(InputError, match="the loss of an earlier batch was no finite number"):
            loss.check()
        loss.check()


class TestBases:
    @pytest.mark.parametrize("k", [1, 2, 4])
    def test_squared_error_is_fused(self, k):
        z, y = batch("plain", 40, max(k, 2), 0)
        z = (z if k > 1 else z[:, :1]).requires_grad_()
        loss = SharpnessRegularised(0.3, bandwidth=0.1)
        base, error = loss.parts(z, y)
        assert loss(z, y).item() == pytest.approx((base + 0.3 * error).item(), rel=1e-14)
        (gradient,) = torch.autograd.grad(loss(z, y), z)
        (expected,) = torch.autograd.grad(sum(p * w for p, w in zip(loss._in_general(z, y), (1, 0.3), strict=True)), z)
        assert torch.allclose(gradient, expected, rtol=1e-9, atol=1e-12)

    def test_weights_scale_the_gradient(self):
        z, y = batch("plain", 40, 4, 0)
        z.requires_grad_()
        for estimator in (SKCE(Exponential(0.5)), MMCE(), KDE(p=2, bandwidth=0.3)):
            base, error = (torch.autograd.grad(part, z)[0] for part in CalibrationLoss(estimator).parts(z, y))
            (whole,) = torch.autograd.grad(CalibrationLoss(estimator, 2.5)(z, y), z)
            assert torch.allclose(whole, base + 2.5 * error, rtol=1e-12, atol=1e-15)


class TestSecondDerivatives:
    @pytest.mark.parametrize("estimator", [SKCE(Gaussian(0.5)), KDE(p=2, bandwidth=0.3, root=False)], ids=repr)
    def test_they_are_finite_differences(self, estimator):
        z, y = batch("plain", 6, 3, 0)
        assert torch.autograd.gradgradcheck(lambda x: CalibrationLoss(estimator, 2.0)(x, y), (z.requires_grad_(),))

    def test_of_parts(self):
        z, y = batch("plain", 6, 3, 0)
        loss = CalibrationLoss(SKCE(Gaussian(0.5)), 2.0)
        assert torch.autograd.gradgradcheck(lambda x: loss.parts(x, y)[1], (z.requires_grad_(),))


class TestRefuses:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (
                lambda z, y: (z.index_fill(0, torch.tensor(3), np.nan), y),
                "logits has NaN or infinite .* first in row 3",
            ),
            (lambda z, y: (z.index_fill(0, torch.tensor(3), np.inf), y), "first in row 3"),
            (lambda z, y: (torch.where(torch.arange(4) == 2, -np.inf, z), y), "NaN or infinite values in 9 rows"),
            (lambda z, y: (z, y.index_fill(0, torch.tensor(5), 4)), "from 0 to 3; found 4 in row 5"),
            (lambda z, y: (z, y.index_fill(0, torch.tensor(5), -100)), "found -100 in row 5"),
            (lambda z, y: (z, y.float()), "targets must be integer class numbers; got torch.float32"),
            (lambda z, y: (z[:, 0], y * 0 + 0.5), "integer class numbers; got torch.float32 values like 0.5"),
            (lambda z, y: (z, y[:4]), "targets has 4 rows and outputs has 9"),
        ],
    )
    @pytest.mark.parametrize("estimator", [MMCE(), KDE(bandwidth=0.1), SKCE(Exponential(0.5))], ids=repr)
    def test_at_once_on_the_host(self, estimator, change, message):
        z, y = batch("plain", 9, 4, 0)
        for loss in (CalibrationLoss(estimator), CalibrationLoss(estimator, check=True)):
            with pytest.raises(InputError, match=message):
                loss(*change(z.float(), y))

    def test_a_gradient_that_is_not_finite(self):
        z, y = batch("plain", 9, 4, 0)
        loss = CalibrationLoss(MMCE())(z.requires_grad_(), y)
        with pytest.raises(InputError, match="the gradient of the loss has NaN or infinite values"):
            (loss * float("nan")).backward()


@pytest.mark.parametrize("estimator", [KCE(Matern(1.5)), SKCE(Matern(1.5)), KCE(Exponential(1.0, metric=Cityblock()))])
def test_other_kernels_are_left_to_the_estimator(estimator):
    assert fused_error(estimator) is None
