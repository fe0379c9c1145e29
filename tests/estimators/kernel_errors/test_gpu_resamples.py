import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from calibrant import SKCE, Categorical, ExactTest, Normal  # noqa: E402
from calibrant._compiled.cuda_resamples import LabelSums  # noqa: E402
from calibrant._validate import InputError  # noqa: E402
from calibrant.estimators.kernel_errors.kernel_resamples import GpuLabelResamples, resamples_on_gpu  # noqa: E402
from calibrant.kernels import Exponential, Gaussian, Identity, LabelMatrix, Matern  # noqa: E402


@pytest.fixture
def problem(rng, gpu):
    p = rng.dirichlet(np.ones(3), 150)
    return torch.tensor(p, device=gpu), p, rng.integers(0, 3, (4, 150)).astype(np.uint8), rng.uniform(size=150)


@pytest.mark.parametrize("kernel", [Exponential(0.4), Gaussian(0.4)])
@pytest.mark.parametrize("unbiased", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_statistics_are_those_of_the_host(problem, kernel, unbiased, weighted):
    tensor, p, targets, w = problem
    estimator, weights = SKCE(kernel, unbiased=unbiased), w if weighted else None
    statistic = estimator.given(Categorical(tensor), weights)
    assert isinstance(statistic, GpuLabelResamples)
    assert np.allclose(statistic(targets), estimator.given(Categorical(p), weights)(targets), atol=1e-6)
    assert np.array_equal(pickle.loads(pickle.dumps(statistic))(targets), statistic(targets))


def test_the_exact_test_needs_no_features_on_a_gpu(problem):
    tensor, p, targets, _ = problem
    test = ExactTest(SKCE(Exponential(0.4)), n_resamples=19, budget=1e5)
    y = targets[0].astype(np.int64)
    on_gpu, on_host = test(torch.tensor(y, device=tensor.device), tensor), test(y, p)
    assert not on_gpu.notes
    assert "random" in on_host.notes[0].lower()
    assert on_gpu.pvalue == ExactTest(SKCE(Exponential(0.4)), n_resamples=19)(y, p).pvalue


def test_what_is_left_to_the_host(problem):
    tensor, p, _, _ = problem
    assert resamples_on_gpu(Exponential(0.4), Identity(), Categorical(tensor))
    assert not resamples_on_gpu(Exponential(0.4), Identity(), Categorical(p))
    assert not resamples_on_gpu(Matern(1.5, 0.4), Identity(), Categorical(tensor))
    assert not resamples_on_gpu(Exponential(0.4), LabelMatrix(np.eye(3)), Categorical(tensor))
    assert not resamples_on_gpu(Exponential(0.4), Identity(), Categorical(tensor[:, 0]))
    assert not resamples_on_gpu(Exponential(0.4), Gaussian(1.0), Normal(tensor[:, 0], 1.0))


def test_resamples_that_do_not_fit_are_made_in_smaller_batches(problem, monkeypatch):
    tensor, _, targets, _ = problem
    statistic = SKCE(Exponential(0.4), unbiased=False).given(Categorical(tensor), None)
    right, plain = statistic(targets), LabelSums.__call__

    def sums(self, labels):
        if len(labels) > 1:
            raise torch.cuda.OutOfMemoryError
        return plain(self, labels)

    monkeypatch.setattr(LabelSums, "__call__", sums)
    with pytest.warns(RuntimeWarning, match="the GPU has no memory for [42] resamples at once: [21] now") as said:
        assert statistic(targets) == pytest.approx(right, rel=1e-12)
    assert len(said) == 2
    monkeypatch.setattr(LabelSums, "__call__", lambda self, labels: sums(self, torch.cat([labels, labels])))
    with pytest.raises(InputError, match="no memory for resamples of 150 rows"):
        statistic(targets[:1])
