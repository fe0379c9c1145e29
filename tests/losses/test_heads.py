import numpy as np
import pytest

from calibrant import Categorical, Mixture, Normal
from calibrant._validate import InputError

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402

from calibrant.losses import class_head, mixture_head, normal_head  # noqa: E402

NAN, INF = float("nan"), float("inf")


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


class TestClasses:
    @pytest.mark.parametrize("k", [2, 3, 7])
    def test_the_log_loss_is_cross_entropy(self, generator, k):
        logits = torch.randn(9, k, generator=generator, dtype=torch.float64)
        labels = torch.randint(0, k, (9,), generator=generator)
        batch = class_head(logits, labels)
        assert torch.allclose(batch.losses, F.cross_entropy(logits, labels, reduction="none"), rtol=1e-14)
        assert np.allclose(batch.predictions.matrix, torch.softmax(logits, 1), rtol=1e-14)
        assert isinstance(batch.predictions, Categorical)
        assert len(batch) == 9

    @pytest.mark.parametrize("shape", [(9,), (9, 1)])
    @pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float32, torch.uint8])
    def test_log_odds_take_the_targets_of_torch(self, generator, shape, dtype):
        logits = torch.randn(shape, generator=generator, dtype=torch.float64)
        labels = torch.randint(0, 2, shape, generator=generator)
        batch = class_head(logits, labels.to(dtype))
        expected = F.binary_cross_entropy_with_logits(logits, labels.double(), reduction="none").flatten()
        assert torch.allclose(batch.losses, expected, rtol=1e-14)
        assert torch.equal(batch.targets, labels.flatten())
        assert np.allclose(batch.predictions.probability(1), torch.sigmoid(logits).flatten(), rtol=1e-14)

    @pytest.mark.parametrize("k", [1, 2, 5])
    def test_no_probability_is_zero_or_one(self, k):
        batch = class_head(torch.full((2, k), 1e4) * torch.eye(max(k, 2))[:2, -k:], torch.tensor([0, 1]))
        p = batch.predictions.matrix
        assert p.min() > 0
        assert (1 - p).min() > 0

    def test_half_precision_is_lifted_before_anything_is_computed(self, generator):
        logits = torch.randn(9, 3, generator=generator).bfloat16()
        labels = torch.zeros(9, dtype=torch.int64)
        assert torch.equal(class_head(logits, labels).losses, class_head(logits.double(), labels).losses)

    def test_a_class_that_is_missing_from_a_batch_is_no_cause_for_concern(self):
        class_head(torch.zeros(50, 3), torch.ones(50, dtype=torch.int64)).predictions.as_targets(torch.ones(50).long())

    @pytest.mark.parametrize(
        ("logits", "labels", "message"),
        [
            ([[0.0, NAN], [0.0, 0.0]], [0, 1], "logits has NaN or infinite values in 1 row, first in row 0"),
            ([[0.0, 0.0], [INF, 0.0]], [0, 1], r"first in row 1 \(\[inf, 0.0\]\): lower the learning rate"),
            ([[0.0, 0.0]], [2], "targets must be class numbers from 0 to 1; found 2 in row 0: drop rows without"),
            ([[0.0, 0.0]] * 3, [0, 1, -100], "found -100 in row 2"),
            ([[0.0, 0.0]], [0.5], "integer class numbers; got torch.float32 values like 0.5: use targets.long()"),
            ([[0.0, 0.0, 0.0]], [1.0], "integer class numbers"),
            ([[0.0, 0.0]], [[0, 1]], r"one value per row, \(n,\); got shape \(1, 2\): use targets.argmax\(1\)"),
            ([[0.0, 0.0]], [0, 1], "targets has 2 rows and outputs has 1"),
            (
                [[[0.0, 0.0]]],
                [0],
                r"logits must be \(n, k\), or \(n,\) for two classes; got shape \(1, 1, 2\): put the",
            ),
            ([[0, 1]], [0], "logits must be a floating-point tensor; got a tensor of torch.int64"),
            ([], [], r"logits is empty: got shape \(0,\)"),
        ],
    )
    def test_refuses(self, logits, labels, message):
        with pytest.raises(InputError, match=message):
            class_head(torch.tensor(logits), torch.tensor(labels))

    def test_refuses_what_is_no_tensor(self):
        with pytest.raises(InputError, match="targets must be a tensor; got a list: use torch.as_tensor"):
            class_head(torch.zeros(1, 2), [0])
        with pytest.raises(InputError, match="logits must be one tensor; got a ndarray"):
            class_head(np.zeros((1, 2)), torch.tensor([0]))


class TestGradients:
    def test_broken_ones_are_refused_on_the_way_back(self):
        logits = torch.zeros(2, 3, requires_grad=True)
        loss = class_head(logits, torch.tensor([0, 1])).losses.sum() * NAN
        with pytest.raises(InputError, match="the gradient of the loss has NaN or infinite values"):
            loss.backward()

    def test_other_uses_of_the_outputs_are_left_alone(self):
        logits = torch.zeros(2, 3, requires_grad=True, dtype=torch.float64)
        class_head(logits, torch.tensor([0, 1]))
        (logits.sum() * INF).backward()
        assert torch.isinf(logits.grad).all()


class TestNormal:
    def test_the_log_loss(self, generator):
        mean, log_variance, y = torch.randn(3, 9, generator=generator, dtype=torch.float64)
        batch = normal_head((mean, log_variance), y)
        expected = -torch.distributions.Normal(mean, torch.exp(log_variance / 2)).log_prob(y)
        assert torch.allclose(batch.losses, expected, rtol=1e-13)
        assert isinstance(batch.predictions, Normal)
        assert torch.equal(batch.predictions.loc, mean)

    def test_one_tensor_is_as_good_as_two(self, generator):
        outputs = torch.randn(9, 2, generator=generator)
        y = torch.randn(9, generator=generator)
        one, two = normal_head(outputs, y), normal_head((outputs[:, 0], outputs[:, 1]), y)
        columns = normal_head((outputs[:, :1], outputs[:, 1:]), y[:, None])
        assert torch.equal(one.losses, two.losses)
        assert torch.equal(one.losses, columns.losses)

    def test_whole_numbers_are_targets(self):
        assert normal_head(torch.zeros(2, 2), torch.tensor([1, 2])).targets.tolist() == [1.0, 2.0]

    @pytest.mark.parametrize(
        ("outputs", "message"),
        [
            (torch.zeros(2, 3), r"outputs must be \(n, 2\), or 2 tensors mean, log_variance; got shape \(2, 3\)"),
            (torch.zeros(2), r"outputs must be \(n, 2\)"),
            ((torch.zeros(2),), "outputs must be 2 tensors, mean, log_variance; got 1"),
            ((torch.zeros(2), torch.zeros(3)), r"must be one number per row; got shapes \(2,\), \(3,\)"),
            ((torch.zeros(2), torch.tensor([0.0, NAN])), "log_variance has NaN or infinite values in 1 row, first in"),
            ((torch.zeros(2), torch.tensor([0.0, -99.0])), "between -60 and 60; found 99 in size in row 1: lower the"),
        ],
    )
    def test_refuses(self, outputs, message):
        with pytest.raises(InputError, match=message):
            normal_head(outputs, torch.zeros(2))

    def test_refuses_targets_that_are_not_finite(self):
        with pytest.raises(InputError, match="targets has NaN or infinite values"):
            normal_head(torch.zeros(2, 2), torch.tensor([0.0, NAN]))


class TestMixture:
    def test_the_log_loss(self, generator):
        logits, means, log_variances = torch.randn(3, 9, 4, generator=generator, dtype=torch.float64)
        y = torch.randn(9, generator=generator, dtype=torch.float64)
        batch = mixture_head((logits, means, log_variances), y)
        weights = torch.distributions.Categorical(logits=logits)
        components = torch.distributions.Normal(means, torch.exp(log_variances / 2))
        expected = -torch.distributions.MixtureSameFamily(weights, components).log_prob(y)
        assert torch.allclose(batch.losses, expected, rtol=1e-13)
        assert isinstance(batch.predictions, Mixture)
        assert torch.allclose(batch.predictions.weights, torch.softmax(logits, 1))
        assert torch.equal(batch.losses, mixture_head(torch.cat([logits, means, log_variances], 1), y).losses)

    @pytest.mark.parametrize(
        ("outputs", "message"),
        [
            (torch.zeros(2, 4), r"outputs must be \(n, 3 K\), or 3 tensors logits, means, log_variances"),
            ((torch.zeros(2, 2), torch.zeros(2, 3), torch.zeros(2, 2)), r"must be \(n, K\), all alike; got shapes"),
            (torch.full((2, 3), 61.0), "log_variances must lie between"),
        ],
    )
    def test_refuses(self, outputs, message):
        with pytest.raises(InputError, match=message):
            mixture_head(outputs, torch.zeros(2))


def test_complex_targets_are_refused():
    with pytest.raises(InputError, match="targets must be class numbers, or real numbers; got .*: use targets.real"):
        class_head(torch.zeros(8, 3), torch.ones(8, dtype=torch.complex64))
