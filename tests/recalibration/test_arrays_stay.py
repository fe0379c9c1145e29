"""Tensors stay where they are: nothing with as many numbers as the probabilities comes to the host."""

import numpy as np
import pytest

from calibrant import Categorical
from calibrant.recalibration import MatrixScaling, StructuredMatrix, Temperature, VectorScaling

N, K = 120, 5
ALL = [Temperature(), VectorScaling(), MatrixScaling(), StructuredMatrix(), StructuredMatrix(diagonal=True)]
MOVES = {"numpy", "__array__", "cpu", "tolist", "__dlpack__"}


@pytest.fixture
def problem(rng):
    p = rng.dirichlet(np.ones(K), N)
    y = (p.cumsum(axis=1) > rng.random((N, 1))).argmax(axis=1)
    return y, p**2 / (p**2).sum(axis=1, keepdims=True)


@pytest.fixture
def watched():
    """A mode of torch in which no large tensor of floats may leave for the host."""
    torch = pytest.importorskip("torch")
    from torch.overrides import TorchFunctionMode

    class Watched(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            name = getattr(func, "__name__", "")
            goes = name in MOVES or (name == "to" and any(isinstance(x, str | torch.device) for x in args))
            if goes and args[0].is_floating_point() and args[0].numel() > max(N, K * (K + 1)):
                raise AssertionError(f"{tuple(args[0].shape)} numbers leave by {name}")
            return func(*args, **(kwargs or {}))

    return torch, Watched()


def test_the_watch_sees_what_leaves(watched, problem):
    torch, watch = watched
    p = torch.from_numpy(problem[1])
    with watch, pytest.raises(AssertionError, match="numbers leave by"):
        np.asarray(p)


@pytest.mark.parametrize("recalibrator", ALL, ids=repr)
def test_tensors(recalibrator, problem, watched):
    torch, watch = watched
    y, p = problem
    expected = recalibrator.fit(y, p, folds=3)
    predictions = Categorical(torch.from_numpy(p))
    with watch:
        fitted = recalibrator.fit(y, predictions, folds=3)
        found = fitted.map.apply(predictions)
    assert isinstance(found.probs, torch.Tensor)
    np.testing.assert_allclose(found.probs.numpy(), expected(p), atol=1e-9)
    np.testing.assert_allclose(fitted.scores["change"], expected.scores["change"], atol=1e-9)


@pytest.mark.parametrize("recalibrator", ALL, ids=repr)
def test_arrays_of_the_standard(recalibrator, problem, monkeypatch):
    strict = pytest.importorskip("array_api_strict")
    y, p = problem
    expected = recalibrator.fit(y, p, folds=3)
    predictions = Categorical(strict.asarray(p))
    kind = type(predictions.probs)
    for name in ("__array__", "__buffer__", "__dlpack__"):
        if (move := getattr(kind, name, None)) is None:
            continue

        def watched(x, *args, move=move, name=name, **options):
            assert x.size <= max(N, K * (K + 1)), f"{x.shape} numbers leave by {name}"
            return move(x, *args, **options)

        monkeypatch.setattr(kind, name, watched)
    fitted = recalibrator.fit(y, predictions, folds=3)
    found = fitted.map.apply(predictions)
    monkeypatch.undo()
    np.testing.assert_allclose(np.asarray(found.probs), expected(p), atol=1e-9)
    np.testing.assert_allclose(fitted.scores["change"], expected.scores["change"], atol=1e-9)
