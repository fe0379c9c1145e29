import numpy as np
import pytest

from calibrant._validate import InputError
from calibrant.io import read
from calibrant.io.class_columns import Scale, labels_among, stars

pytest.importorskip("polars")


@pytest.fixture
def table(tmp_path, rng):
    """A file of three classes a, b, c with columns of any unit."""
    p = rng.dirichlet(np.ones(3), 40)
    names = np.array(list("abc"))[(rng.random((40, 1)) >= p.cumsum(axis=1)[:, :2]).sum(axis=1)]

    def write(values, head, truth=names):
        lines = [
            f"{t},{','.join(map(repr, map(float, row)))}" for t, row in zip(truth, np.atleast_2d(values), strict=True)
        ]
        (tmp_path / "x.csv").write_text("\n".join([f"key,{head}", *lines, ""]))
        return tmp_path / "x.csv"

    return p, names, write


@pytest.mark.parametrize(
    ("unit", "values"),
    [("percent", lambda p: 100 * p), ("log", np.log), ("logit", lambda p: np.log(p) + 3), ("fraction", lambda p: p)],
)
def test_units_of_several_classes(table, unit, values):
    p, _names, write = table
    data = read(write(values(p), "p_a,p_b,p_c"), y_true="key", scale=unit)
    assert data.y_pred.matrix == pytest.approx(p, rel=1e-12)
    assert data.y_pred.labels == ("a", "b", "c")


@pytest.mark.parametrize(
    ("unit", "values"), [("percent", lambda p: 100 * p), ("log", np.log), ("logit", lambda p: np.log(p / (1 - p)))]
)
def test_units_of_one_column(table, unit, values):
    p, _names, write = table
    data = read(write(values(p[:, :1]), "p"), y_true="key", pos_label="a", scale=unit)
    assert data.y_pred.probability(1) == pytest.approx(p[:, 0], rel=1e-12)
    with pytest.raises(InputError, match=f"no probability: .* say scale='{unit}'"):
        read(write(values(p[:, :1]), "p"), y_true="key", y_pred="p", pos_label="a")


def test_classes_are_found_by_their_names(table):
    p, _names, write = table
    for head, options in {
        "a,b,c": {},
        "c,b,a": {"y_pred": "c,b,a"},
        "lp a x,lp b x,lp c x": {"y_pred": "lp a x,lp b x,lp c x"},
        "s1,s2,s3": {"y_pred": "a=s1,b=s2,c=s3"},
        "P_a,P_b,P_c": {},
    }.items():
        data = read(write(p, head), y_true="key", **options)
        assert data.y_pred.labels == (("c", "b", "a") if head == "c,b,a" else ("a", "b", "c"))


def test_classes_without_a_column(table):
    p, names, write = table
    with pytest.raises(
        InputError, match="the truth holds 'a', and no column is called after it: .* y_pred='a=p_x,b=p_y,c=p_z'"
    ):
        read(write(p, "p_x,p_y,p_z"), y_true="key")
    codes = np.unique(names, return_inverse=True)[1] + 1
    with pytest.raises(InputError, match="y_pred='1=p_0,2=p_1,3=p_2'"):
        read(write(p, "p_0,p_1,p_2", codes), y_true="key")
    data = read(write(p, "p_0,p_1,p_2", codes), y_true="key", y_pred="1=p_0,2=p_1,3=p_2")
    assert data.y_pred.as_targets(data.y_true).tolist() == (codes - 1).tolist()


def test_families_know_their_classes_too(table):
    p, _names, write = table
    data = read(write(np.log(p), "lp_a,lp_b,lp_c"), y_true="key", predict="Categorical.from_logits(logits='lp_*')")
    assert data.y_pred.labels == ("a", "b", "c")
    assert data.y_pred.matrix == pytest.approx(p)


def test_rounded_rows(table):
    p, _names, write = table
    path = write((p + 0.004).round(2), "p_a,p_b,p_c")
    with pytest.raises(
        InputError,
        match="columns 'p_a' to 'p_c' sum to 1.0.* in row .*, not to 1: if they were rounded, say normalise=True",
    ):
        read(path, y_true="key")
    data = read(path, y_true="key", normalise=True)
    assert data.y_pred.matrix.sum(axis=1) == pytest.approx(1)
    assert data.notes[0].startswith("rows are divided by their sums, which lie between")
    with pytest.raises(InputError, match="normalise=True needs a column per class"):
        read(path, y_true="key", y_pred="p_a", pos_label="a", normalise=True)
    with pytest.raises(InputError, match="predict names the columns itself: leave out scale and normalise"):
        read(path, y_true="key", predict="Categorical('p_*')", scale="percent", normalise=True)


def test_mistakes_of_few_rows_are_no_unit(table):
    p, _names, write = table
    one = p[:, :1].copy()
    one[7] = 1.3
    with pytest.raises(
        InputError, match=r"column 'p' holds 1.3 in row 8, no probability: repair that row, or leave it out"
    ):
        read(write(one, "p"), y_true="key", pos_label="a", y_pred="p")


def test_words(tmp_path):
    (tmp_path / "x.csv").write_text("y,said\n1,high\n0,low\n1, high\n")
    data = read(tmp_path / "x.csv", y_pred="said", scale="high=90%,low=0.4,never=0")
    assert data.y_pred.probability(1).tolist() == [0.9, 0.4, 0.9]
    with pytest.raises(InputError, match="says 'low', too: say what it means, scale='high=0.9,low=[?]'"):
        read(tmp_path / "x.csv", y_pred="said", scale="high=0.9")


@pytest.mark.parametrize("text", ["percents", "high", "high=2", "=0.5", "high=much", ""])
def test_scales_that_are_none(text):
    with pytest.raises(InputError, match="scale .* cannot be read"):
        Scale.parse(text)


def test_answers_against_a_key(tmp_path):
    (tmp_path / "x.csv").write_text("answer,key,confidence\nA,A,0.9\nB,C,0.4\nC ,C,0.7\n")
    data = read(tmp_path / "x.csv", y_true="answer==key")
    assert data.y_true.tolist() == [1, 0, 1]
    with pytest.raises(InputError, match="of a confidence in 'answer' say y_true='answer==TRUTH'"):
        read(tmp_path / "x.csv", y_true="key")


def test_parts_of_names():
    assert labels_among(["p(A)", "p(B)"], np.array(["A", "B", "A"])) == ("A", "B")
    assert labels_among(["x", "y"], np.array(["A", "B"])) is None
    assert stars(["P_a", "p_b"], ["p_*"]) == ("a", "b")


def test_numbers_far_above_one_may_be_forecasts(tmp_path):
    (tmp_path / "x.csv").write_text("y,p\n" + "1,150\n0,300\n" * 9)
    with pytest.raises(InputError, match=r"holds 150 in row 1, no probability: .* say predict='Normal\(mean, sd\)'"):
        read(tmp_path / "x.csv", y_true="y", y_pred="p")


def test_a_row_of_zeros_cannot_be_made_to_sum_to_one(tmp_path):
    (tmp_path / "x.csv").write_text("y,p_a,p_b\n" + "a,1,1\nb,0,0\n" * 9)
    with pytest.raises(InputError, match="normalise=True: row 2 sums to 0, and cannot be divided by it"):
        read(tmp_path / "x.csv", y_true="y", y_pred="p_*", normalise=True)
