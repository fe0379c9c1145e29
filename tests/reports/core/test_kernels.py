import numpy as np
import pytest

from calibrant import SKCE, Bernoulli, Categorical, Normal
from calibrant.estimators import RandomFeatureSKCE
from calibrant.reports.core.evidence import kernel_errors


def test_small_problems_have_all_of_them(rng):
    assert list(kernel_errors(Categorical(rng.dirichlet([1, 1, 1], 50)), SKCE(), 99)) == [
        "kernel",
        "kernel 1",
        "kernel 2",
        "kernel 3",
    ]
    assert len(kernel_errors(Normal(rng.normal(size=50), 1.0), SKCE(), 99)) == 7


def test_scales_go_from_coarse_to_fine_to_between(rng):
    found = kernel_errors(Categorical(rng.random(50)), SKCE(), 99)
    scales = [found[f"kernel {i}"].on_predictions.lengthscale for i in (1, 2, 3)]
    assert scales == pytest.approx([8 * scales[1], scales[1], 2 * scales[1]])


def test_labels_and_blocks_have_none_of_the_first(rng):
    assert kernel_errors(Bernoulli(rng.random((5, 2))), SKCE(), 99) == {}
    assert kernel_errors(Categorical(rng.random(5)), None, 99) == {}
    assert "kernel" not in kernel_errors(Categorical(rng.random(50)), SKCE(block=10), 99)


def test_random_features_stand_for_many_rows(rng):
    found = kernel_errors(Categorical(rng.dirichlet(np.ones(10), 20_000)), SKCE(), 999)
    assert found
    assert all(isinstance(estimator, RandomFeatureSKCE) for estimator in found.values())


def test_too_much_work_is_left(monkeypatch, rng):
    monkeypatch.setattr("calibrant.reports.core.evidence.KERNEL_WORK", 10)
    assert kernel_errors(Categorical(rng.random(50)), SKCE(), 99) == {}
