import pytest

from calibrant import ClassWise, TopLabel
from calibrant.lenses import PositiveClass

torch = pytest.importorskip("torch")

from calibrant.losses.fused_error import ClassRows, EventRows, event_lens, joined, panels, rooted, square_root  # noqa: E402


def test_events():
    rows = ClassRows.of(torch.log(torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])), torch.tensor([0, 1]))
    top = EventRows.of(TopLabel(), rows)
    assert top.predicted.tolist() == pytest.approx([0.7, 0.6], rel=1e-6)
    assert top.hit.tolist() == [1, 0]
    second = EventRows.of(PositiveClass(1), rows)
    assert second.predicted.tolist() == pytest.approx([0.2, 0.3], rel=1e-6)
    assert second.hit.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("lens", "k", "expected"),
    [
        (None, 2, PositiveClass()),
        (None, 3, TopLabel()),
        (TopLabel(), 3, TopLabel()),
        (PositiveClass(), 2, PositiveClass()),
        (PositiveClass(2), 3, PositiveClass(2)),
        (PositiveClass(), 3, None),
        (PositiveClass(3), 3, None),
        (PositiveClass("owl"), 3, None),
        (ClassWise(), 3, None),
    ],
)
def test_which_events_are_fused(lens, k, expected):
    assert event_lens(lens, k) == expected


def test_panels_cover_all_rows(monkeypatch):
    monkeypatch.setattr("calibrant.losses.fused_error.CACHED_NUMBERS", 30)
    cuts = panels(10, torch.device("cpu"))
    assert [row for cut in cuts for row in range(10)[cut]] == list(range(10))
    assert len(cuts) == 4
    columns = torch.arange(20).reshape(2, 10)
    assert torch.equal(joined([columns[:, cut] for cut in cuts]), columns)


@pytest.mark.parametrize("p", [1, 1.5, 2])
def test_roots(p):
    for number in (0.3, -0.2):
        x = torch.tensor(number, dtype=torch.float64, requires_grad=True)
        expected = torch.sign(x) * x.abs() ** (1 / p)
        value, slope = rooted(x.detach(), p)
        assert value.item() == pytest.approx(expected.item())
        assert float(slope) == pytest.approx(torch.autograd.grad(expected, x)[0].item())


def test_no_slope_at_zero():
    for root, slope in (rooted(torch.zeros(()), 2), square_root(torch.zeros(())), square_root(torch.tensor(-1e-9))):
        assert (root.item(), slope.item()) == (0, 0)
    root, slope = square_root(torch.tensor(0.25))
    assert (root.item(), slope.item()) == (0.5, 2)  # twice the derivative
    assert torch.isnan(square_root(torch.tensor(torch.nan))[1])


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
