import numpy as np
import pytest

from calibrant import io
from calibrant.recalibration import Temperature

applying = pytest.importorskip("calibrant.cli.recalibrate")
polars = pytest.importorskip("polars")
TableFields = pytest.importorskip("calibrant.cli.flags").TableFields


@pytest.fixture
def place(tmp_path, rng):
    p = rng.random(80)
    frame = polars.DataFrame({"y": (rng.random(80) < p) * 1, "p": p, "w": rng.uniform(1, 3, 80)})
    frame.write_csv(tmp_path / "x.csv")
    frame.drop("y").write_csv(tmp_path / "new.csv")
    Temperature().fit(frame["y"], frame["p"]).save(tmp_path / "map.json")
    return tmp_path


def apply(place, name, fields, **options):
    settings = {"levels": (), "seed": 0, "draws_page": False, **options}
    return applying.apply_map(place / name, fields, place / "map.json", place / "out.csv", **settings)


def test_without_the_truth_there_is_nothing_to_score(place):
    applied = apply(place, "new.csv", TableFields())
    assert (applied.n, applied.columns, applied.scores, applied.page) == (80, ["p"], None, None)
    assert applied.to_dict()["error"] is None


def test_scores_are_weighted_like_the_rows(place):
    applied = apply(place, "x.csv", TableFields(sample_weight="w"))
    data = io.read(place / "x.csv", sample_weight="w")
    losses = -data.y_pred.log_prob(data.y_true)
    assert applied.scores["before"][0] == pytest.approx(np.average(losses, weights=data.sample_weight), rel=1e-12)
    assert applied.page.scores is applied.scores
