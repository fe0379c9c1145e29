import pytest

from calibrant import ECE, SKCE, EqualMass
from calibrant._validate import InputError
from calibrant.engines import stream

polars = pytest.importorskip("polars")


@pytest.fixture
def file(tmp_path, rng):
    y_pred = rng.random(300)
    polars.DataFrame({"y": (rng.random(300) < y_pred) * 1, "p": y_pred}).write_parquet(tmp_path / "some.parquet")
    return tmp_path / "some.parquet"


def test_what_needs_all_rows_is_refused_with_what_does_not(file):
    with pytest.raises(InputError, match=r"no small state can hold: use SKCE\(block=100\)"):
        stream(file, SKCE())
    with pytest.raises(InputError, match="state takes at least one estimator"):
        stream(file)


def test_a_sample_decides_what_would_depend_on_the_data(file):
    table = polars.read_parquet(file)
    sample = table["y"][:100], table["p"][:100]
    assert len(stream(file, ECE(EqualMass(4)), like=sample, rows=50).table["upper"]) == 4


def test_names_are_checked(file):
    with pytest.raises(InputError, match="'y_prob' names no column: stream takes y_true, y_pred, predict"):
        stream(file, ECE(), y_prob="p")
    with pytest.raises(InputError, match="rows must be"):
        stream(file, ECE(), rows=0)
