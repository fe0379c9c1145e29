"""Kernels by themselves, next to the formulas; sums over all pairs are in test_cuda_moments."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
tl = triton.language

from calibrant._compiled import cuda_moments as pairs  # noqa: E402


@triton.jit
def tile(x_ptr, out_ptr, inner_ptr, n, D: tl.constexpr, STEP: tl.constexpr, GAUSSIAN: tl.constexpr):
    rows, columns = tl.arange(0, 16), 16 + tl.arange(0, 32)
    place = tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :]
    squares = pairs.square_distances(x_ptr, x_ptr, n, rows, columns, D, STEP)
    tl.store(out_ptr + place, pairs.kernel_of(squares, GAUSSIAN))
    tl.store(inner_ptr + place, pairs.inner_products(x_ptr, n, rows, columns, D, STEP))


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize(("d", "step"), [(3, 3), (24, 8)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kernels_and_inner_products_of_a_tile(gpu, rng, d, step, dtype, gaussian):
    x = rng.normal(size=(64, d)).astype(dtype)
    out, inner = (torch.empty((16, 32), dtype=getattr(torch, dtype), device=gpu) for _ in range(2))
    tile[(1,)](torch.tensor(x.T.copy(), device=gpu), out, inner, 64, D=d, STEP=step, GAUSSIAN=gaussian)
    a, b = x[:16].astype(float), x[16:48].astype(float)
    squares = ((a[:, None] - b) ** 2).sum(axis=2)
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    assert np.allclose(out.cpu(), np.exp2(-squares if gaussian else -np.sqrt(squares)), rtol=tolerance, atol=1e-30)
    assert np.allclose(inner.cpu(), a @ b.T, rtol=tolerance, atol=10 * tolerance)


@triton.jit
def ranges(out_ptr, n, least, BLOCK: tl.constexpr, DIAGONAL: tl.constexpr):
    block, chunk = tl.program_id(0), tl.program_id(1)
    low, high = pairs.columns_of(n, least, block, chunk, BLOCK, 128, 256, DIAGONAL)
    place = out_ptr + 2 * (block * tl.num_programs(1) + chunk)
    tl.store(place, low)
    tl.store(place + 1, high)


def test_chunks_and_diagonal_cover_each_pair_of_blocks_once(gpu):
    n, block = 640, 64
    seen = np.zeros((n // block, n), dtype=int)
    for diagonal, chunks in ((False, 3), (True, 1)):
        out = torch.zeros((n // block, chunks, 2), dtype=torch.int32, device=gpu)
        ranges[n // block, chunks](out, n, 0, BLOCK=block, DIAGONAL=diagonal)
        for i, row in enumerate(out.cpu().numpy()):
            for low, high in row:
                seen[i, low : max(low, high)] += 1
    expected = np.arange(n) >= (np.arange(n // block) * block // 128 * 128)[:, None]
    assert np.array_equal(seen, expected)


def test_columns_before_the_least_are_passed_over(gpu):
    n, least, block = 640, 384, 64
    seen = np.zeros((least // block, n), dtype=int)
    out = torch.zeros((least // block, 3, 2), dtype=torch.int32, device=gpu)
    ranges[least // block, 3](out, n, least, BLOCK=block, DIAGONAL=False)
    for i, row in enumerate(out.cpu().numpy()):
        for low, high in row:
            seen[i, low : max(low, high)] += 1
    assert np.array_equal(seen, np.broadcast_to(np.arange(n) >= least, seen.shape))
