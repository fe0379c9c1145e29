import csv
import json
from importlib.resources import files

import numpy as np
import pytest

from studies.roelofs import bias as roelofs
from studies.roelofs import fits as roelofs_fits
from studies.roelofs.batches import Batch
from studies.roelofs.bias import BINS, BOUND, METHODS, SIZES, deviation, figure, published, study, summary


def rows():
    text = files("studies.roelofs").joinpath("bias.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def check(table, cells):
    """Every published number that can be read agrees, and on average as well as chance lets it."""
    is_published = np.isfinite(table["published"])
    assert is_published.sum() == cells
    assert table["deviation"] == pytest.approx(table["bias"] - table["published"], nan_ok=True)
    assert max(table["z"][is_published]) < BOUND
    assert np.nanmax(table["sd_z"]) < BOUND
    assert np.nanmean(table["z"]) < 1.1  # of absolute normal values 0.8; cells of one data set go together


def test_small_sizes_agree_with_the_published_ones():
    table = study(sizes=(200, 400), seed=1)
    assert table.n_rows == 3 * 2 * len(METHODS)
    check(table, 138)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("debiased", lambda self, rule, bins: self.plug_in(rule, bins)),
        ("sweep", lambda self, rule: (self.plug_in(rule, 8), None)),
        ("plug_in", lambda self, rule, bins, norm=2: Batch._original(self, rule, bins, 1.6)),
    ],
)
def test_a_wrong_estimator_would_be_noticed(monkeypatch, name, wrong):
    monkeypatch.setattr(Batch, "_original", Batch.plug_in, raising=False)
    monkeypatch.setattr(Batch, name, wrong)
    assert np.nanmax(study(200, sizes=(200,), seed=1)["z"]) > BOUND


def test_roots_with_a_sign_would_be_noticed(monkeypatch):
    """The published debiased errors are cut at zero."""

    def signed(batch, method, bins):
        return 100 * batch.debiased("mass", bins) if method == "EM debiased" else cut(batch, method, bins)

    cut = roelofs_fits.errors
    monkeypatch.setattr(roelofs, "errors", signed)
    assert np.nanmax(study(1000, sizes=(200,), seed=1)["z"]) > 3.5


def test_the_published_table():
    """Figure 4 repeats a part of figure 9; most biases and standard deviations can be read, all in the grid."""
    some = rows()
    assert len(some) == 972
    key = ("dataset", "metric", "binning", "bins", "n", "value")
    nine = {tuple(row[k] for k in key) for row in some if row["figure"] == "9"}
    assert {tuple(row[k] for k in key) for row in some if row["figure"] == "4"} <= nine
    known = published()
    assert sum(quantity == "bias_percent" for quantity, *_ in known) == 417
    assert sum(quantity == "std_percent" for quantity, *_ in known) == 261
    assert {(method, bins) for _, _, method, bins, _ in known} == set(METHODS)
    assert {n for *_, n in known} == set(SIZES)
    assert known["bias_percent", "resnet110_c10", "EW", 16, 200] == 0.62
    assert known["bias_percent", "resnet152_imgnet", "EM sweep", 0, 6400] == -0.03


def test_deviations_by_hand():
    assert deviation(1.1, 1.0, 2.0, 1000) == pytest.approx(0.095 / (2 * 0.002**0.5))
    assert deviation(0.9, 1.0, 2.0, 250) == pytest.approx(0.095 / (2 * 0.005**0.5))
    assert deviation(1.004, 1.0, 2.0, 1000) == 0  # rounding
    assert np.isnan(deviation(1.0, np.nan, 2.0, 1000))


def test_the_spread_of_a_standard_deviation():
    """For normal values it is ``sd / sqrt(2)`` over the root of their number."""
    values = np.random.default_rng(0).normal(3.0, 2.0, (1, 200_000))
    assert roelofs._moments(values)[0] == pytest.approx([3.0, 2.0, 2**0.5], rel=0.01)


def test_summary_and_figure():
    table = study(20, sizes=(200, 800))
    wide = summary(table)
    assert wide.n_rows == 3 * len(METHODS)
    row = next(row for row in wide.rows() if (row["fit"], row["method"], row["bins"]) == ("resnet110_c10", "EW", "16"))
    assert row["n = 200"].endswith(" (0.62)")
    assert row["n = 800"].endswith(" (-1.12)")
    assert "sweep" in wide["bins"]
    drawn = figure(table)
    maps = drawn.axes[:12]
    assert [a.get_title(loc="left") for a in maps[:4]] == [
        "equal width",
        "equal width, debiased",
        "equal mass",
        "equal mass, debiased",
    ]
    assert [t.get_text() for t in maps[0].get_yticklabels()] == [*map(str, BINS), "sweep"]
    assert len(maps[0].texts) == 14  # seven rows and two sizes
    assert len(maps[1].texts) == 12  # no sweep


def test_a_study_that_was_broken_off_goes_on(tmp_path):
    complete = study(20, sizes=(200,), seed=5)
    assert study(20, sizes=(200,), seed=5, folder=tmp_path)["bias"].tolist() == complete["bias"].tolist()
    path = tmp_path / "roelofs.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    assert [json.loads(line).get("cell") for line in lines] == [None, 0, 1, 2]
    path.write_text("".join([lines[0], lines[2]]))
    again = study(20, sizes=(200,), seed=5, folder=tmp_path)
    assert again["bias"].tolist() == complete["bias"].tolist()
    assert again["fit"].tolist() == complete["fit"].tolist()
    assert len(path.read_text().splitlines()) == 4


@pytest.mark.study
def test_all_sizes():
    table = study()
    print(summary(table))
    check(table, 417)
    known = np.isfinite(table["published"])
    print(
        "mean and largest deviation in points",
        np.abs(table["deviation"][known]).mean(),
        np.abs(table["deviation"][known]).max(),
    )
    print("largest z", max(table["z"][known]), np.nanmax(table["sd_z"]))
    assert np.abs(table["deviation"][known]).mean() < 0.08


@pytest.mark.study
def test_many_data_sets_leave_the_error_of_the_published_ones_alone():
    """With 10,000 sets our own error is small: what is left is that of 1,000."""
    table = study(10_000, seed=1)
    check(table, 417)
    known = np.isfinite(table["published"])
    z, points = table["z"][known], np.abs(table["deviation"][known])
    print("mean and largest z", z.mean(), z.max(), "in points", points.mean(), points.max())
    assert points.mean() < 0.06
