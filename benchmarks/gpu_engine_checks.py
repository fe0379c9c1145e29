"""Whether what is built of the kernels is right on this device: pairs of two panels, devices as an engine, little memory."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import torch
from gpu_data import HALF, WHOLE, normals, on_device, residuals, simplex, size_of, square_distances
from gpu_record import DEVICE, IS_GPU

from calibrant import SKCE, Categorical, ExactTest
from calibrant._compiled import cuda, cuda_torch
from calibrant._validate import InputError
from calibrant.checks import check_engine
from calibrant.engines import DevicePool, precision
from calibrant.estimators.kernel_errors.kernel_problem import KernelForm, resolve_problem
from calibrant.estimators.kernel_errors.kernel_sums import accelerated_matmul, compiled_corner
from calibrant.kernels import Exponential, Matern

ROWS, FIRST = size_of(3001, 200), size_of(1234, 70)

Check = tuple[str, Callable[[], float], float]


def apart(found: tuple[torch.Tensor, ...], h: torch.Tensor) -> float:
    """The largest error of a sum along a row or down a column relative to the sum of sizes, or of the sum of squares."""
    errors = [
        float(((sums - h.sum(dim=side)).abs() / h.abs().sum(dim=side)).max())
        for side, sums in ((1, found[0]), (0, found[1]))
    ]
    return max(*errors, abs(float(found[2] / (h * h).sum()) - 1))


def two_panels(name: str, d: int) -> float:
    rng = np.random.default_rng(5)
    x, r = on_device(rng.dirichlet(np.ones(d), ROWS), rng.normal(size=(ROWS, d)))
    panels = (x[:FIRST], r[:FIRST]), (x[FIRST:], r[FIRST:])
    with precision(name):
        found = cuda.feature_cross(*panels, 0.4, False)
    distances = square_distances(panels[0][0], panels[1][0]).sqrt()
    return apart(found, torch.exp(-distances / 0.4) * (panels[0][1] @ panels[1][1].T))


def two_panels_of_normals(dtype: torch.dtype) -> float:
    """Next to tiles of torch in double precision; relative to the kernels on predictions."""
    data, settings = normals(ROWS), (0.7, False, 1.3)
    with precision(str(dtype).removeprefix("torch.")):
        found = cuda.normal_cross(
            *(tuple(a[cut] for a in data) for cut in (slice(FIRST), slice(FIRST, None))), *settings
        )
    sums, squares = cuda_torch.normal_moments(*data, *settings, WHOLE, FIRST)
    sizes = torch.exp(-square_distances(data[0][:FIRST], data[0][FIRST:]).sqrt() / 0.7)
    scale = torch.cat([sizes.sum(dim=1), sizes.sum(dim=0)])
    error = float(((torch.cat(found[:2]) - sums).abs() / scale).max())
    return max(error, abs(float(2 * found[2] / squares) - 1))


def pool() -> DevicePool:
    return DevicePool([str(DEVICE)])


def engine_itself() -> float:
    """Zero where tasks, errors and digits are as they must be."""
    with pool() as engine:
        check_engine(engine)
    return 0.0


def panels_of_pool(n: int, host: bool) -> float:
    """The error and its standard error by panels, next to no engine on the device: tensors there, or arrays of NumPy."""
    p, y = simplex(n, 10)
    estimator = SKCE(Exponential(0.5))
    alone = estimator(y, p)
    with pool() as engine:
        found = estimator(y.cpu().numpy(), p.cpu().numpy(), engine=engine) if host else estimator(y, p, engine=engine)
    pairs = (found.value, alone.value), (found.standard_error, alone.standard_error)
    return max(abs(a / b - 1) for a, b in pairs)


def resamples_of_pool(n: int, host: bool) -> float:
    """The largest difference of a resample, relative to the spread of resamples, and that of p-values."""
    p, y = simplex(n, 10)
    test = ExactTest(SKCE(Exponential(0.5)), n_resamples=99)
    alone = test(y, p, rng=7)
    with pool() as engine:
        found = test(*(part.cpu().numpy() if host else part for part in (y, p)), rng=7, engine=engine)
    null = alone.null_distribution
    return max(float(np.abs(found.null_distribution - null).max() / null.std()), abs(found.pvalue - alone.pvalue))


def matrix_product(n: int) -> float:
    """``H @ v`` next to tiles; relative to the product of sizes."""
    p, y = simplex(n, 10)
    kernel, _, rows = resolve_problem(Exponential(0.4), None, None, y, Categorical(p))
    v = torch.as_tensor(np.random.default_rng(9).normal(size=(n, 3)), device=DEVICE)
    found = accelerated_matmul(kernel, rows, v)
    r = residuals(p, y)
    h = torch.exp(-square_distances(p, p).sqrt() / 0.4) * (r @ r.T)
    return float(((found - h @ v).abs() / (h.abs() @ v.abs())).max())


@contextmanager
def little_memory(megabytes: int) -> Iterator[None]:
    """So much is left to this process on the device."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(DEVICE).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + megabytes * 2**20) / total)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()


def in_smaller_tiles(work: Callable[[], torch.Tensor], megabytes: int) -> float:
    """The difference from what it gives with all memory; infinite where smaller tiles were not spoken of."""
    right = work()
    with warnings.catch_warnings(record=True) as said, little_memory(megabytes):
        warnings.simplefilter("always")
        found = work()
    if not any("has no memory for tiles" in str(warning.message) for warning in said):
        return float("inf")
    return float((found - right).abs().max() / right.abs().max())


def tiles_of_torch() -> torch.Tensor:
    p, y = simplex(20_000, 10)
    return cuda_torch.feature_moments(p, residuals(p, y), 0.4, False, WHOLE)[0]


def tiles_of_a_corner() -> torch.Tensor:
    """A kernel that nothing is compiled for."""
    p, y = simplex(10_000, 10)
    kernel, _, rows = resolve_problem(Matern(1.5, 0.4), None, None, y, Categorical(p))
    return compiled_corner(KernelForm(kernel), 512, rows, None).along


def no_memory_for_rows() -> float:
    """Zero where rows that do not fit end in words."""
    p, y = simplex(300_000, 10)
    r = residuals(p, y)
    with little_memory(8):
        try:
            cuda.feature_moments(p, r, 0.5, False)
        except InputError as error:
            return 0.0 if "the GPU has no memory for sums over pairs of 300,000 rows" in str(error) else float("inf")
    return float("inf")


def checks() -> Iterator[Check]:
    """Names, what gives the error, and the bound it must not exceed."""
    for name, bound in (("float32", 2e-6), ("float64", 1e-12), ("tf32x3", 5e-3)):
        yield f"two panels, 10 columns, {name}", partial(two_panels, name, 10), bound
    yield "two panels, 1000 columns, dispatched", partial(two_panels, "float32", size_of(1000, 40)), 2e-6
    for dtype, bound in ((HALF, 2e-6), (WHOLE, 1e-12)):
        yield f"two panels of normals, {dtype}", partial(two_panels_of_normals, dtype), bound
    yield "a pool of devices is an engine", engine_itself, 1e-15
    for host in (False, True):
        word = "arrays of NumPy" if host else "tensors"
        yield f"pool of devices, panels, {word}", partial(panels_of_pool, size_of(200_003, 2100), host), 1e-5
        yield f"pool of devices, resamples, {word}", partial(resamples_of_pool, size_of(10_007, 200), host), 1e-3
    if IS_GPU:  # what is on the CPU has no part in the rest
        yield "product with the matrix of a test", partial(matrix_product, 5001), 2e-6
        yield "little memory, tiles of torch", partial(in_smaller_tiles, tiles_of_torch, 600), 1e-12
        yield (
            "little memory, tiles of a kernel that is not compiled",
            partial(in_smaller_tiles, tiles_of_a_corner, 400),
            1e-12,
        )
        yield "little memory, rows that do not fit", no_memory_for_rows, 1e-15
