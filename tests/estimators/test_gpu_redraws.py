import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from calibrant import SKCE, Categorical, ExactTest, Normal  # noqa: E402
from calibrant.estimators.gpu_redraws import GpuLabelRedraws, redraws_on_gpu  # noqa: E402
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
    assert isinstance(statistic, GpuLabelRedraws)
    assert np.allclose(statistic(targets), estimator.given(Categorical(p), weights)(targets), atol=1e-6)
    assert np.array_equal(pickle.loads(pickle.dumps(statistic))(targets), statistic(targets))


def test_the_exact_test_needs_no_waves_on_a_gpu(problem):
    tensor, p, targets, _ = problem
    test = ExactTest(SKCE(Exponential(0.4)), n_resamples=19, budget=1e5)
    y = targets[0].astype(np.int64)
    on_gpu, on_host = test(torch.tensor(y, device=tensor.device), tensor), test(y, p)
    assert not on_gpu.notes
    assert "random" in on_host.notes[0].lower()
    assert on_gpu.pvalue == ExactTest(SKCE(Exponential(0.4)), n_resamples=19)(y, p).pvalue


def test_what_is_left_to_the_host(problem):
    tensor, p, _, _ = problem
    assert redraws_on_gpu(Exponential(0.4), Identity(), Categorical(tensor))
    assert not redraws_on_gpu(Exponential(0.4), Identity(), Categorical(p))
    assert not redraws_on_gpu(Matern(1.5, 0.4), Identity(), Categorical(tensor))
    assert not redraws_on_gpu(Exponential(0.4), LabelMatrix(np.eye(3)), Categorical(tensor))
    assert not redraws_on_gpu(Exponential(0.4), Identity(), Categorical(tensor[:, 0]))
    assert not redraws_on_gpu(Exponential(0.4), Gaussian(1.0), Normal(tensor[:, 0], 1.0))
