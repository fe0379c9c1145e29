import pickle
from concurrent.futures import ProcessPoolExecutor
from functools import reduce
from multiprocessing import get_context

import numpy as np
import pytest

from calibrant import ECE, SKCE, Brier, TopLabel, state
from calibrant._validate import InputError
from calibrant.streams import frame_states, merged


@pytest.fixture
def columns(rng):
    p = rng.random(500)
    return {"y": (rng.random(500) < p) * 1, "p": p, "w": rng.random(500)}


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_parts_of_frames(library, columns):
    DataFrame = pytest.importorskip(library).DataFrame
    frame = DataFrame(columns)
    parts = [[frame[:100], frame[100:130]], [], [frame[130:130]], [frame[130:]]]
    mapper = frame_states(ECE(), Brier(), sample_weight="w")
    found = [row for part in parts for row in mapper(part)]
    assert [(type(row), len(row)) for row in found] == [(DataFrame, 1)] * 2
    error, score = merged([row["state"][0] for row in found]).finalize()
    y, p, w = columns.values()
    assert error.value == ECE()(y, p, sample_weight=w).value
    assert score.value == pytest.approx(Brier()(y, p, sample_weight=w).value, rel=1e-12)


def test_several_classes(rng):
    pandas = pytest.importorskip("pandas")
    p, y = rng.dirichlet(np.ones(3), 50), rng.integers(0, 3, 50)
    frame = pandas.DataFrame({"label": y, **{f"p_{c}": p[:, c] for c in range(3)}})
    ece = ECE(lens=TopLabel())
    (row,) = frame_states(ece, y_true="label", y_pred=["p_0", "p_1", "p_2"])([frame])
    assert merged(row["state"]).finalize().value == pytest.approx(ece(y, p).value, rel=1e-12)


def test_any_executor(columns):
    y, p = columns["y"], columns["p"]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        states = list(pool.map(state(ECE()).update, np.array_split(y, 3), np.array_split(p, 3)))
    assert reduce(lambda a, b: a.merge(b), states).finalize().value == ECE()(y, p).value


@pytest.mark.filterwarnings("default")  # of Spark, about versions of pandas
def test_spark(columns):
    sql = pytest.importorskip(
        "pyspark.sql", reason="pyspark is not installed: the function is tested with pandas alone"
    )
    pandas = pytest.importorskip("pandas")
    spark = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        table = spark.createDataFrame(pandas.DataFrame(columns)).repartition(3)
        rows = table.mapInPandas(frame_states(ECE()), "state string").collect()
    finally:
        spark.stop()
    assert merged([row["state"] for row in rows]).finalize().value == ECE()(columns["y"], columns["p"]).value


def test_mistakes_are_found_before_the_journey():
    with pytest.raises(InputError, match="looks at all pairs of rows"):
        frame_states(SKCE())
    with pytest.raises(InputError, match="there are no states to merge: did every part of the data have no rows"):
        merged([])
    assert pickle.loads(pickle.dumps(frame_states(ECE())))
