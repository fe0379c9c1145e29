import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from calibrant._compiled import cuda_memory as layout  # noqa: E402
from calibrant._compiled.cuda_memory import GPUMemoryError, in_smaller, memory_for  # noqa: E402
from calibrant._validate import InputError  # noqa: E402


@pytest.mark.parametrize("gaussian", [False, True])
def test_scaled_coordinates_make_the_kernel_a_power_of_two(rng, gaussian):
    x = torch.tensor(rng.normal(size=(20, 3)) + 1e6)
    distance = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist")
    points = layout.scaled(x, 0.7, gaussian, torch.float64)
    apart = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
    expected = torch.exp(-((distance / 0.7) ** 2) / 2 if gaussian else -distance / 0.7)
    assert torch.allclose(torch.exp2(-(apart**2) if gaussian else -apart), expected, rtol=1e-9)


def test_tiny_length_scales_stay_finite(rng):
    points = layout.scaled(torch.tensor(rng.normal(size=(9, 2))), 1e-200, False, torch.float32)
    assert torch.isfinite(points).all()
    assert len(layout.scaled(torch.zeros((0, 2)), 1.0, False, torch.float32)) == 0


def test_rows_and_features_are_filled_up_with_zeros():
    x = torch.ones((3, 5))
    assert layout.filled(x, 4).shape == (layout.SPAN, 8)
    assert layout.upright(x, 4).shape == (8, layout.SPAN)
    assert layout.upright(x, 4).is_contiguous()
    assert float(layout.filled(x, 4).sum()) == 15


def test_few_features_are_one_step_and_many_are_several():
    assert [layout.step_of(d) for d in (1, 10, 16, 17, 1000)] == [1, 10, 16, 8, 8]


def test_three_products_of_short_numbers_are_nearly_the_product(rng):
    x = torch.tensor(rng.normal(size=(50, 10)), dtype=torch.float32)
    a, b = layout.in_three(x)
    assert a.shape == (layout.SPAN, 32)
    for part in (a, b):
        assert (part.view(torch.int32) & 0x1FFF == 0).all()  # what tensor cores keep
    whole, size = x.double(), x.double().norm(dim=1)
    error = (a.double() @ b.double().T)[:50, :50] - whole @ whole.T
    # what is left out: low times low, 2^-22 at most, and the rounding of low, 2^-23 at most on either side
    assert float((error.abs() / (size[:, None] * size)).max()) < 2**-21
    rounded = layout._rounded(x).double()
    assert float((rounded @ rounded.T - whole @ whole.T).abs().max()) > 1e-4


def test_rows_sorted_by_label_lie_in_blocks_of_one_label(rng):
    labels = torch.tensor(rng.choice([0, 1, 3], 400))
    sort = layout.by_label(labels, 4)
    laid = sort.laid(labels[:, None], -1.0)[:, 0].reshape(-1, layout.SPAN)
    assert sort.rows == laid.numel()
    for block, label in zip(laid, sort.labels, strict=True):
        assert set(block.tolist()) <= {int(label), -1}
    assert torch.equal(laid.flatten()[sort.place], labels)
    sizes = [-(-int((labels == c).sum()) // layout.SPAN) * layout.SPAN for c in range(4)]
    assert sort.starts.tolist() == [0, *np.cumsum(sizes)]


def test_filling_rows_are_far_from_everything(rng):
    x = torch.tensor(rng.normal(size=(200, 3)), dtype=torch.float32)
    sort = layout.by_label(torch.tensor(rng.integers(0, 3, 200)), 3)
    laid = layout.far_apart(x, sort).double()
    assert torch.equal(laid[sort.place].float(), x)
    distance = torch.cdist(laid, laid) + 1e9 * torch.eye(len(laid))
    empty = torch.ones(len(laid), dtype=torch.bool)
    empty[sort.place] = False
    assert float(distance[empty].min()) > 0.9 * layout.FAR


def fits(most):
    def work(size):
        if size > most:
            raise torch.cuda.OutOfMemoryError("out of memory")
        return size

    return work


def test_what_does_not_fit_is_halved_and_that_is_said():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert in_smaller(fits(30), 100, 1, "tiles of {:,} rows") == 25
    words = [
        "the GPU has no memory for tiles of 100 rows: 50 now",
        "the GPU has no memory for tiles of 50 rows: 25 now",
    ]
    assert [str(warning.message) for warning in said] == words
    assert {warning.category for warning in said} == {RuntimeWarning}


def test_what_fits_is_not_spoken_of():
    assert in_smaller(fits(100), 100, 1, "{}") == 100


def test_below_the_least_there_is_an_error():
    with (
        pytest.warns(RuntimeWarning, match="no memory for tiles of"),
        pytest.raises(torch.cuda.OutOfMemoryError, match="out of memory"),
    ):
        in_smaller(fits(3), 20, 16, "tiles of {:,} rows")


def test_the_error_says_what_to_do():
    with (
        pytest.raises(
            GPUMemoryError, match=r"no memory for pairs of 1,000 rows: free .* fewer rows, or .*y_pred.cpu\(\)"
        ) as found,
        memory_for("pairs", 1000),
    ):
        raise torch.cuda.OutOfMemoryError
    assert isinstance(found.value, InputError)
    with pytest.raises(KeyError), memory_for("pairs"):
        raise KeyError
