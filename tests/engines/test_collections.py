"""Collections of Dask are what they would be in memory."""

import numpy as np
import pytest

from calibrant import ECE, SKCE, Brier, TopLabel
from calibrant._validate import InputError
from calibrant.engines import connect, stream
from calibrant.kernels import Exponential

dask = pytest.importorskip("dask", reason="Dask is not installed: pip install -r requirements-dev.txt")
da = pytest.importorskip("dask.array")
BLOCKS = SKCE(Exponential(0.5), block=7)


@pytest.fixture
def classes(rng):
    p = rng.dirichlet(np.ones(3), 1000)
    return np.array([rng.choice(3, p=row) for row in p]), p


@pytest.fixture
def frame(classes):
    pandas = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    y, p = classes
    table = pandas.DataFrame({"label": y, "unused": "text", **{f"p_{k}": p[:, k] for k in range(3)}})
    return dd.from_pandas(table, npartitions=5)


@pytest.fixture(params=["here", "cluster"])
def place(request):
    return None if request.param == "here" else request.getfixturevalue("engine")


@pytest.mark.parametrize("estimator", [ECE(lens=TopLabel()), Brier()], ids=["ECE", "Brier"])
def test_arrays(estimator, classes, place):
    y, p = classes
    weights = np.linspace(1, 2, 1000)
    source = da.from_array(y, chunks=300), da.from_array(p, chunks=(170, 2))
    assert stream(source, estimator, engine=place).value == pytest.approx(estimator(y, p).value, rel=1e-14)
    found = stream((*source, da.from_array(weights, chunks=400)), estimator, engine=place)
    assert found.value == pytest.approx(estimator(y, p, sample_weight=weights).value, rel=1e-14)


def test_frames(frame, classes, place):
    found = stream(frame, Brier(), BLOCKS, engine=place)
    assert found[0].value == pytest.approx(Brier()(*classes).value, rel=1e-14)
    assert found[1].value == pytest.approx(BLOCKS(*classes).value, rel=1e-12)


def test_partitions_without_rows(frame, classes):
    y, p = classes
    found = stream(frame[frame["label"] < 1], Brier(), BLOCKS)
    assert found[0].value == pytest.approx(Brier()(y[y < 1], p[y < 1]).value, rel=1e-14)
    few = frame[frame["p_0"] == p[3, 0]]
    assert stream(few, Brier()).value == pytest.approx(Brier()(y[3:4], p[3:4]).value, rel=1e-14)


def test_errors_name_the_remedy(frame, classes):
    y, p = (da.from_array(x, chunks=300) for x in classes)
    with connect("threads:1") as threads, pytest.raises(InputError, match=r"computed by Dask: use engines.connect\(cl"):
        stream(frame, Brier(), engine=threads)
    with pytest.raises(InputError, match="the data frame has no column 'q'"):
        stream(frame, Brier(), y_pred="q")
    with pytest.raises(InputError, match="arrays have no columns: leave y_true out"):
        stream((y, p), Brier(), y_true="y")
    with pytest.raises(InputError, match=r"two arrays, \(y_true, y_pred\), or three, with weights; got 1"):
        stream((y,), Brier())
    with pytest.raises(InputError, match="arrays must have equally many rows"):
        stream((y[:10], p), Brier())
    with pytest.raises(InputError, match="known ones"):
        stream((y[y > 0], p[y > 0]), Brier())
    with pytest.raises(InputError, match="rows is for files"):
        stream(frame, Brier(), rows=10)
