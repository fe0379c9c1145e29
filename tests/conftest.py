"""Fixtures: one generator a test, array libraries, real predictions where they are at hand."""

import os
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import bdtr

from calibrant.distributions import Distribution

if not Path("/dev/nvidia0").exists():  # kernels of Triton run on the CPU then, if it is told before they are imported
    os.environ.setdefault("TRITON_INTERPRET", "1")

SHARED = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture
def rng():
    return np.random.default_rng(20240611)


@pytest.fixture(params=["wideresnet-16-4-cifar-10", "densenet-bc-100-cifar-100"])
def network(request):
    """Softmax outputs and labels of a real network; skipped where the files are not present."""
    path = SHARED / f"{request.param}.npz"
    if not path.exists():
        pytest.skip(f"{path.name} is not present: real predictions are optional")
    with np.load(path) as archive:
        return request.param, archive["ground_truth"], archive["predictions"]


@pytest.fixture(params=["list", "numpy", "float32", "torch", "pandas", "polars", "strict"])
def convert(request):
    """Turns a NumPy array into what a user of another library would pass."""
    if request.param == "list":
        return lambda x: x.tolist()
    if request.param == "numpy":
        return lambda x: x
    if request.param == "float32":
        return lambda x: x.astype(np.float32) if x.dtype == np.float64 else x
    if request.param == "strict":
        return pytest.importorskip("array_api_strict").asarray
    library = pytest.importorskip(request.param)
    if request.param == "torch":
        return library.from_numpy
    if request.param == "pandas":
        return lambda x: library.Series(x) if x.ndim == 1 else library.DataFrame(x)
    return lambda x: library.Series(x) if x.ndim == 1 else library.DataFrame(x, orient="row")


@pytest.fixture(params=["numpy", "torch", "array_api_strict", "jax.numpy"])
def xp(request):
    """Every array library at hand, in double precision."""
    library = pytest.importorskip(request.param)
    if request.param == "jax.numpy":
        import jax

        jax.config.update("jax_enable_x64", True)
    return library


@pytest.fixture
def gpu(monkeypatch):
    """Where kernels of Triton run: on a GPU, or by its interpreter on the CPU, whose tensors are then taken for those of a GPU."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    if torch.cuda.is_available():
        return torch.device("cuda")

    def on_gpu(*arrays):
        return all(isinstance(x, torch.Tensor) and not x.requires_grad for x in arrays)

    parts = "kernel_errors.kernel_sums", "simplex.dirichlet", "kernel_errors.kernel_resamples"
    for name in ("_compiled.choice", "distributions.discrete.categorical", *(f"estimators.{part}" for part in parts)):
        monkeypatch.setattr(f"calibrant.{name}.on_gpu", on_gpu)
    from calibrant._compiled.cuda_launch import SHAPES

    for kind, (first, *_) in SHAPES.items():  # the interpreter takes as long for a small block as for a large one
        monkeypatch.setitem(SHAPES, kind, (replace(first, rows=max(64, first.rows), columns=max(64, first.columns)),))
    return torch.device("cpu")


class Travelling:
    """An engine whose tasks and results travel as those of other processes do, and are counted with their bytes."""

    def __init__(self):
        self.sizes, self.maps = [], 0

    def map(self, fn, *columns):
        self.maps += 1
        tasks = [pickle.dumps((fn, task)) for task in zip(*columns, strict=True)]
        self.sizes += map(len, tasks)
        return [pickle.loads(pickle.dumps(self._done(*pickle.loads(task)))) for task in tasks]

    def _done(self, fn, task):
        return fn(*task)


@pytest.fixture
def travelling():
    return Travelling()


class Counts(Distribution):
    """Successes in five trials with the given chances, ``(n,)``: a family of whole numbers, for tests."""

    def __init__(self, chance):
        self.chance = np.asarray(chance, dtype=float)

    def __len__(self):
        return len(self.chance)

    def __getitem__(self, rows):
        return type(self)(self.chance[rows])

    def as_targets(self, y_true):
        return np.asarray(y_true)

    def sample(self, rng, size):
        return rng.binomial(5, self.chance, (size, len(self)))

    def cdf(self, y):
        y = np.floor(y)
        return np.where(y < 0, 0.0, np.where(y >= 5, 1.0, bdtr(np.clip(y, 0, 4), 5, self.chance)))

    def below(self, y):
        return self.cdf(np.ceil(y) - 1)

    def quantile(self, u):
        steps = self.cdf(np.arange(5.0)[:, None])
        return (steps.T[:, None, :] < np.asarray(u)[None, :, None]).sum(axis=2).astype(float)

    @property
    def mean(self):
        return 5 * self.chance

    @property
    def std(self):
        return np.sqrt(5 * self.chance * (1 - self.chance))

    @classmethod
    def example(cls, rng, n):
        return cls(rng.uniform(0.1, 0.9, n))


@pytest.fixture
def counts():
    """A family of whole numbers."""
    return Counts
