import numpy as np
import pytest

from calibrant import ECE, Categorical, EqualMass, ExactTest, evaluate
from calibrant._validate import InputError
from calibrant.inference.multiplicity import holm
from calibrant.reports.slices import slices


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
    assert table["group"].tolist() == ["north", "south", "west"]
    assert (table["pvalue"] < 0.05).tolist() == [False, False, True]
    assert table["rows"].sum() == 1500


def test_every_class_has_its_row(spoiled):
    y, p, _ = spoiled
    table = evaluate(y, Categorical(p, labels=["a", "b", "c"]), n_resamples=199).sections[0].table
    assert table["group"].tolist() == ["a", "b", "c"]
    assert table["rows"].tolist() == np.bincount(y).tolist()
    assert table["claimed"] == pytest.approx(p.mean(axis=0))
    assert table["happened"] == pytest.approx(np.bincount(y) / 1500)


def test_many_classes_show_the_worst_and_pay_for_all(rng):
    p = rng.dirichlet(np.ones(30), 400)
    y = (rng.random((400, 1)) >= np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    section = evaluate(y, p, n_resamples=99).sections[0]
    assert section.table.n_rows == 20
    assert "The 20 with the largest error, of 30" in section.remark
    single = ExactTest(ECE(EqualMass(15)), 1199)
    plain = [single((y == int(c)).astype(int), p[:, int(c)]).pvalue for c in section.table["group"]]
    assert section.table["pvalue"] == pytest.approx(holm(plain, hypotheses=30))


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
    assert table["claimed"] == pytest.approx([p[:200].mean(), p[200:].mean()])
    assert table["happened"] == pytest.approx([y[:200].mean(), y[200:].mean()])


def test_lengths_and_weights_are_checked(spoiled):
    y, p, site = spoiled
    with pytest.raises(InputError, match=r"by\['site'\] has 3 rows and y_true has 1,500"):
        evaluate(y, p, by={"site": ["a", "b", "c"]}, n_resamples=99)
    with pytest.raises(InputError, match="slice 'west' of 'site' has no row with weight"):
        evaluate(y, p, by={"site": site}, sample_weight=(site != "west") * 1.0, n_resamples=99)
