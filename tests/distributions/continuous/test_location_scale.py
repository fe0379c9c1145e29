import pickle

import numpy as np
import pytest

from calibrant import Laplace, Normal
from calibrant._validate import InputError

FAMILIES = pytest.mark.parametrize("family", [Normal, Laplace])


@FAMILIES
def test_one_scale_may_serve_all_rows(family):
    for scale in (2, 2.0, np.float32(2), np.int64(2), np.array(2.0), [2.0, 2.0], np.array([[2.0], [2.0]])):
        assert family([0.0, 1.0], scale).scale.tolist() == [2.0, 2.0]


@FAMILIES
def test_columns_are_rows(family):
    batch = family(np.zeros((3, 1)), np.ones((3, 1)))
    assert batch.loc.shape == batch.scale.shape == (3,)
    assert batch.as_targets([[1.0], [2.0], [3.0]]).tolist() == [1.0, 2.0, 3.0]


@FAMILIES
@pytest.mark.parametrize(
    ("loc", "scale", "message"),
    [
        ([0.0, 1.0, 2.0], [1.0, 0.0, 1.0], "scale must be positive; found 0 in row 1"),
        ([0.0, 1.0, 2.0], [1.0, 0.5, -2.0], "scale must be positive; found -2 in row 2"),
        ([0.0, 1.0], -1.0, "scale must be positive; found -1 in row 0"),
        ([0.0, 1.0], [1.0, np.nan], r"scale has NaN or infinite values in 1 place, first in row 1"),
        ([0.0, 1.0], np.nan, "scale has NaN or infinite values in 2 places"),
        ([0.0, np.inf], 1.0, r"loc has NaN or infinite values in 1 place, first in row 1 \(inf\)"),
        ([0.0, 1.0], [1.0, 1.0, 1.0], "scale has 3 rows and loc has 2: they must be equal"),
        ([0.0, 1.0], np.ones((2, 2)), r"scale must be one number per row, or like loc; got shape \(2, 2\)"),
        (np.zeros((2, 2)), 1.0, r"loc must be one number per row; got shape \(2, 2\)"),
        ([], 1.0, r"loc is empty: got shape \(0,\)"),
        ([0.0], [], r"scale is empty: got shape \(0,\)"),
        (["a"], 1.0, "loc must hold real numbers; got values like"),
        ([0.0], "wide", "scale is a str: give an array"),
        ([0.0], None, "scale is a NoneType: give an array"),
    ],
)
def test_parameters_are_checked(family, loc, scale, message):
    with pytest.raises(InputError, match=message):
        family(loc, scale)


@FAMILIES
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros((2, 2)), r"y_true must be one number per row; got shape \(2, 2\)"),
        ([0.0, np.nan], "y_true has NaN or infinite values in 1 place, first in row 1"),
        (["a", "b"], "y_true must hold real numbers"),
        ([], "y_true is empty"),
    ],
)
def test_targets_are_checked(family, y, message):
    with pytest.raises(InputError, match=message):
        family([0.0, 1.0], 1.0).as_targets(y)


@FAMILIES
def test_whole_numbers_become_real_ones(family):
    batch = family([0, 1], [1, 2])
    assert batch.loc.dtype == batch.scale.dtype == batch.as_targets([3, 4]).dtype == np.float64


@FAMILIES
def test_single_precision_stays(family):
    batch = family(np.zeros(2, dtype=np.float32), 1.5)
    assert batch.scale.dtype == batch.coords.dtype == batch.temper(2.0).scale.dtype == np.float32
    assert batch.point(np.zeros(2, dtype=np.float32)).scale.dtype == np.float32


@FAMILIES
def test_half_precision_becomes_single(family):
    torch = pytest.importorskip("torch")
    batch = family(torch.zeros(2, dtype=torch.bfloat16), torch.ones(2, dtype=torch.bfloat16))
    assert batch.loc.dtype == batch.scale.dtype == torch.float32
    assert batch.as_targets(torch.zeros(2, dtype=torch.bfloat16)).dtype == torch.float32


@FAMILIES
def test_lists_and_draws_join_the_library_of_the_locations(family, xp, rng):
    batch = family(xp.asarray([0.0, 1.0]), [1.0, 2.0])
    kind = type(xp.asarray([0.0]))
    assert isinstance(batch.scale, kind)
    assert isinstance(batch.coords, kind)
    assert isinstance(batch.as_targets([0.5, 0.7]), kind)
    assert isinstance(batch.point(batch.sample(rng, 1)[0]).loc, kind)
    assert isinstance(batch.cf(np.array([0.5]))[0], kind)
    assert batch.quantile(xp.asarray([0.5])).tolist() == [[0.0], [1.0]]


@FAMILIES
def test_gradients_of_the_caller_are_kept(family):
    torch = pytest.importorskip("torch")
    scale = torch.tensor(2.0, requires_grad=True)
    family(torch.zeros(3), scale).coords.sum().backward()
    assert scale.grad > 2.9


@FAMILIES
def test_points_have_no_spread(family):
    point = family([0.0, 1.0], 1.0).point(np.array([3.0, 4.0]))
    assert point.loc.tolist() == [3.0, 4.0]
    assert point.scale.tolist() == [0.0, 0.0]


@FAMILIES
def test_rows_words_and_travel(family):
    batch = family(np.arange(2000.0), 1.0)
    assert batch[np.array([3, 1])].loc.tolist() == [3.0, 1.0]
    assert batch[2:4].loc.tolist() == [2.0, 3.0]
    assert repr(batch) == f"<{family.__name__}: 2,000 predictions>"
    assert np.array_equal(pickle.loads(pickle.dumps(batch)).loc, batch.loc)


@FAMILIES
@pytest.mark.parametrize("temperature", [0, -1.0, float("nan")])
def test_temperatures_are_positive(family, temperature):
    with pytest.raises(InputError, match="temperature must be positive; got"):
        family([0.0], 1.0).temper(temperature)
