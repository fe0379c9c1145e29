from dataclasses import replace

import numpy as np
import pytest

from calibrant import ECE, Categorical, EqualMass, Normal, PITError, evaluate
from calibrant._validate import InputError
from calibrant.reports.class_report.class_problem import ClassProblem
from calibrant.reports.core.evidence import gather
from calibrant.reports.core.problem import slices, slicings_of
from calibrant.reports.evaluation import planned, report_of, silent


@pytest.fixture
def spoiled(rng):
    """Calibrated, but for one slice and one class."""
    p = rng.dirichlet(np.ones(3), 1500)
    y = (rng.random((1500, 1)) >= np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    site = rng.choice(["north", "south", "west"], 1500)
    y = np.where((site == "west") & (rng.random(1500) < 0.5), 0, y)
    return y, p, site


def test_the_spoiled_slice_stands_out(spoiled):
    y, p, site = spoiled
    section = evaluate(y, p, by={"site": site}, n_resamples=199).sections[1]
    assert section.title == "By site"
    table = section.table
    assert table["group"][0] == "west"
    assert (table["pvalue"] < 0.05).tolist() == [True, False, False]
    assert table["rows"].sum() == 1500
    assert "p-values allow for looking at 3 slices (Westfall and Young)" in section.remark
    assert table["excess"][0] > table["excess"][1:].max()


def test_every_class_has_its_row(spoiled):
    y, p, _ = spoiled
    table = evaluate(y, Categorical(p, labels=["a", "b", "c"]), n_resamples=199).sections[0].table
    order = ["abc".index(name) for name in table["group"]]
    assert order[0] == 0  # the spoiled one
    assert table["rows"].tolist() == np.bincount(y)[order].tolist()
    assert table["claimed"] == pytest.approx(p.mean(axis=0)[order])
    assert table["happened"] == pytest.approx(np.bincount(y)[order] / 1500)


def test_many_classes_show_the_worst_and_pay_for_all(rng):
    p = rng.dirichlet(np.ones(30), 400)
    y = (rng.random((400, 1)) >= np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    section = evaluate(y, p, n_resamples=199).sections[0]
    assert section.table.n_rows == 20
    assert "The 20 with the clearest evidence, of 30" in section.remark
    errors = [float(ECE(EqualMass(15))((y == int(c)) * 1, p[:, int(c)])) for c in section.table["group"]]
    assert section.table["error"] == pytest.approx(errors)
    assert (section.table["pvalue"] >= section.table["pvalue_alone"]).all()
    assert section.table["pvalue"].tolist() == sorted(section.table["pvalue"])


def test_all_columns_share_one_family(spoiled):
    y, p, site = spoiled
    other = np.arange(1500) % 4
    pool, slicings = _gathered(y, p, {"site": site, "other": other})
    scores = [pool.values[slicing.key] for slicing in slicings]
    z = np.concatenate([(s - s.mean(axis=0)) / s.std(axis=0) for s in scores], axis=1)
    plain = [(z.max(axis=1) >= x).mean() for x in z[-1]]
    assert pool.adjusted([slicing.key for slicing in slicings]) == pytest.approx(plain)
    tables = [
        section.table for section in evaluate(y, p, by={"site": site, "other": other}, n_resamples=99).sections[1:]
    ]
    assert sorted(np.concatenate([table["pvalue"] for table in tables])) == pytest.approx(sorted(plain))


def _gathered(y, p, by):
    problem = ClassProblem(y, Categorical(p), None, 99, np.random.SeedSequence(0), None)
    slicings = slicings_of(problem, by)
    return gather(problem, {"error": problem.error}, slicings).pool, slicings


def test_small_slices_are_taken_together(rng):
    p = rng.random(300)
    y = (rng.random(300) < p) * 1
    site = np.array(["a"] * 140 + ["b"] * 140 + ["c"] * 8 + ["d"] * 7 + ["e"] * 5)
    section = evaluate(y, p, by={"site": site}, n_resamples=99).sections[0]
    assert sorted(section.table["group"]) == ["3 others", "a", "b"]
    assert sorted(section.table["rows"]) == [20, 140, 140]
    assert "3 slices with few rows are taken together" in section.remark
    one = evaluate(y, p, by={"site": np.where(site > "c", "a", site)}, n_resamples=99).sections[0]
    assert sorted(one.table["group"]) == ["a", "b", "c"]  # nothing to take it together with


def test_many_slices_show_the_largest(rng):
    p = rng.random(2000)
    site = np.repeat(np.arange(40), 50).astype(str)
    table = evaluate((rng.random(2000) < p) * 1, p, by={"site": site}, n_resamples=99).sections[0].table
    assert table.n_rows == 20
    assert sorted(table["rows"])[-1] == 50 * 21


def test_numeric_columns_are_cut_at_their_quartiles():
    labels, names = slices(np.arange(100.0), "age")
    assert names == ["0 to 24", "25 to 49", "50 to 74", "75 to 99"]
    assert np.bincount(labels).tolist() == [25, 25, 25, 25]
    assert slices([3, 1, 2, 1], "age")[1] == ["1", "2", "3"]
    skewed, names = slices([0.0] * 90 + list(range(1, 14)), "age")
    assert len(names) == 2
    assert np.bincount(skewed).tolist() == [90, 13]


def test_missing_values_are_a_slice_of_their_own():
    labels, names = slices([*range(20), np.nan], "age")
    assert names[-1] == "missing"
    assert np.bincount(labels).tolist() == [5, 5, 5, 5, 1]


def test_large_numbers_keep_their_digits():
    assert slices(10_000_000 + np.arange(20), "id")[1][0] == "10000000 to 10000004"


def test_slices_of_two_classes_show_the_event(rng):
    p = 0.1 + 0.05 * rng.random(400)
    y = (rng.random(400) < p).astype(int)
    table = evaluate(y, p, by={"half": ["a"] * 200 + ["b"] * 200}, n_resamples=99).sections[0].table
    halves = [slice(200) if name == "a" else slice(200, 400) for name in table["group"]]
    assert table["claimed"] == pytest.approx([p[half].mean() for half in halves])
    assert table["happened"] == pytest.approx([y[half].mean() for half in halves])


def test_lengths_are_checked(spoiled):
    y, p, _ = spoiled
    with pytest.raises(InputError, match=r"by\['site'\] has 3 rows and y_true has 1,500"):
        evaluate(y, p, by={"site": ["a", "b", "c"]}, n_resamples=99)


def test_rows_without_weight_are_left_out(spoiled):
    """As if they had not been handed in: numbers, slices and all; whatever they claim."""
    y, p, site = spoiled
    kept = site != "west"
    impossible = np.where(kept[:, None], p, np.eye(p.shape[1])[(y + 1) % p.shape[1]])
    found = evaluate(y, impossible, by={"site": site}, sample_weight=kept * 2.0, n_resamples=99, rng=0)
    plain = evaluate(
        y[kept], p[kept], by={"site": site[kept]}, sample_weight=np.full(kept.sum(), 2.0), n_resamples=99, rng=0
    )
    assert found.verdict == plain.verdict
    assert [(x.key, x.value, x.pvalue) for x in found.numbers] == [(x.key, x.value, x.pvalue) for x in plain.numbers]
    assert [x.table.to_dict() for x in found.sections] == [x.table.to_dict() for x in plain.sections]
    assert f"{(~kept).sum():,} rows without weight are left out." in found.notes


def _without_pictures(y, y_pred, by):
    problem, outline = planned(y, y_pred, by, None, 99, None, None)
    return report_of(problem, replace(outline, pictures=()), "title", silent)


@pytest.mark.parametrize(
    ("name", "n_sites"), [("predicted spread", 2), ("predicted spread", 4), ("predicted mean", 4), ("rows", 2)]
)
def test_columns_that_are_called_like_something_of_the_report_keep_their_own_numbers(name, n_sites):
    rng = np.random.default_rng(n_sites)
    site = np.array(["north", "south", "east", "west"])[np.arange(400) % n_sites]
    mean, scale = rng.normal(size=400), rng.uniform(0.5, 2, 400)
    y = rng.normal(mean, np.where(site == "north", 3 * scale, scale))
    report = _without_pictures(y, Normal(mean, scale), {name: site})
    table = report.sections[-1].table
    for row in table.rows():
        rows = site == row["group"]
        assert row["rows"] == rows.sum()
        assert row["error"] == pytest.approx(PITError("kuiper")(y[rows], Normal(mean[rows], scale[rows])).value)
    assert [section.noun for section in report.sections] == ["predicted spread", "predicted mean", name]
    assert len({section.title for section in report.sections}) == 3
    assert all(f"| {group} |" in report.to_markdown() for group in set(site))
    assert f"where {name} = north" in " ".join(report.verdict.evidence)


@pytest.mark.parametrize("name", ["error", "rate", "Brier score", "slices 0"])
def test_columns_of_classes_may_be_called_anything(name):
    rng = np.random.default_rng(0)
    p, site = rng.random(600), np.repeat(["north", "south"], 300)
    y = (rng.random(600) < np.where(site == "north", p**3, p)) * 1
    report = _without_pictures(y, p, {"site": site, name: site[::-1]})
    for section, column in zip(report.sections, (site, site[::-1]), strict=True):
        for row in section.table.rows():
            rows = column == row["group"]
            assert row["error"] == pytest.approx(ECE(EqualMass(15))(y[rows], p[rows]).value)
            assert row["claimed"] == pytest.approx(p[rows].mean())
    assert "where site = north" in " ".join(report.verdict.evidence)
    assert f"| {name} | rows |" in report.to_markdown()


def test_slices_that_would_look_the_same_are_told_apart(rng):
    p, long = rng.random(200), "x" * 90
    y = (rng.random(200) < p) * 1
    site = np.repeat([f"{long}1", f"{long}2", "2 others", "c", "d"], [80, 80, 20, 10, 10])
    table = _without_pictures(y, p, {"site": site}).sections[0].table

    sizes = dict(zip(table["group"], table["rows"], strict=True))
    assert sizes == {f"(1) {long}1": 80, f"(2) {long}2": 80, "(1) 2 others": 20, "(2) 2 others": 20}


def test_noise_of_rounding_makes_no_slices(rng):
    """Names such as '1.458 to 1.458' would say nothing."""
    noise = 1 + 1e-13 * rng.normal(size=200)
    assert slices(1.458 * noise, "dose")[1] == ["1.458"]
    labels, names = slices(np.repeat([0.1, 30.0], 100) * noise, "dose")
    assert names == ["0.1", "30"]
    assert np.bincount(labels).tolist() == [100, 100]
    assert slices(1.458 + 1e-6 * rng.normal(size=200), "dose")[1][0] != "1.458"
