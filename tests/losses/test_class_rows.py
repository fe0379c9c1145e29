import pytest

torch = pytest.importorskip("torch")

from calibrant.losses.class_rows import ClassRows  # noqa: E402


@pytest.fixture
def logits():
    return torch.randn(9, 4, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_rows(logits, dtype):
    y = torch.arange(9) % 4
    rows = ClassRows.of(logits, y.to(dtype))
    assert rows.p.dtype == torch.float64
    assert torch.allclose(rows.p, torch.softmax(logits.double(), 1), rtol=1e-14)
    assert torch.equal(rows.observed.argmax(1), y)
    expected = torch.nn.functional.cross_entropy(logits.double(), y)
    assert rows.cross_entropy().item() == pytest.approx(expected.item(), rel=1e-14)
    assert (len(rows), rows.k) == (9, 4)


def test_log_odds(logits):
    y = torch.arange(9) % 2
    rows = ClassRows.of(logits[:, 0], y.float())
    assert torch.allclose(rows.p[:, 1], torch.sigmoid(logits[:, 0].double()), rtol=1e-14)
    assert torch.equal(rows.observed[:, 1], y.double())


@pytest.mark.parametrize("label", [4, -1, -100])
def test_a_target_that_is_no_class_makes_the_loss_no_number(logits, label):
    y = torch.zeros(9, dtype=torch.int64)
    y[2] = label
    assert torch.isnan(ClassRows.of(logits, y).cross_entropy())


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_a_logit_that_is_not_finite_makes_the_loss_so(logits, number):
    for row in (0, 1):  # whether it is the class that happened or not
        z = logits.clone()
        z[row, 1] = number
        assert not torch.isfinite(ClassRows.of(z, (torch.arange(9) > 0).long()).cross_entropy())


def test_gradients_of_logits(logits):
    z = logits.double().requires_grad_()
    weights = torch.randn(9, 4, generator=torch.Generator().manual_seed(1)).double()
    (expected,) = torch.autograd.grad((weights * torch.log_softmax(z, 1)).sum(), z)
    assert torch.allclose(ClassRows.of(logits, torch.zeros(9).long()).to_logits(weights), expected, rtol=1e-12)
