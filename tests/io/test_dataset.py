import json
import re

import numpy as np
import pytest

from calibrant import ECE, Bernoulli, Categorical, io
from calibrant._validate import InputError
from calibrant.io.dataset import has_truth
from calibrant.io.quantile_columns import levels_of_names

polars = pytest.importorskip("polars")


@pytest.fixture
def frame(rng):
    p = rng.dirichlet(np.ones(3), 40)
    columns = {"label": rng.integers(0, 3, 40), "site": ["north", "south"] * 20, "w": rng.random(40)}
    return polars.DataFrame({**columns, **{f"p_{c}": p[:, c] for c in range(3)}})


@pytest.fixture(params=["csv", "parquet", "jsonl", "npz"])
def file(request, frame, tmp_path):
    path = tmp_path / f"predictions.{request.param}"
    if request.param == "npz":
        np.savez(
            path, **{name: frame[name].to_numpy().astype(str if name == "site" else None) for name in frame.columns}
        )
    else:
        {"csv": frame.write_csv, "parquet": frame.write_parquet, "jsonl": frame.write_ndjson}[request.param](path)
    return path


def test_every_format_gives_the_same_data(file, frame):
    data = io.read(file, y_true="label", y_pred="p_*", by=["site"], sample_weight="w")
    assert data.y_true.tolist() == frame["label"].to_list()
    assert data.y_pred.probs == pytest.approx(frame.select("^p_.*$").to_numpy(), rel=1e-15)
    assert data.by["site"].tolist() == frame["site"].to_list()
    assert data.sample_weight == pytest.approx(frame["w"].to_numpy())
    assert data.source == "truth: label; predictions: p_0 … p_2 (3 columns)"


def test_usual_names_are_found(file):
    data = io.read(file)
    assert data.y_pred.n_classes == 3


def test_an_npz_of_a_matrix(tmp_path, rng):
    p, y = rng.dirichlet(np.ones(4), 20).astype(np.float32), rng.integers(0, 4, 20)
    np.savez(tmp_path / "x.npz", predictions=p, ground_truth=y)
    data = io.read(tmp_path / "x.npz")
    assert np.array_equal(data.y_pred.probs, p)
    assert data.y_true.tolist() == y.tolist()


def write(path, text):
    path.write_text(text)
    return path


def test_the_star_names_the_classes(tmp_path):
    path = write(tmp_path / "x.csv", "y,p_cat,p_dog\ndog,0.3,0.7\ncat,0.8,0.2\n")
    data = io.read(path)
    assert data.y_pred.labels == ("cat", "dog")
    assert data.y_pred.as_targets(data.y_true).tolist() == [1, 0]


def test_numbered_classes_need_not_start_at_0(tmp_path):
    path = write(tmp_path / "x.csv", "y,p_1,p_2\n1,0.3,0.7\n2,0.8,0.2\n")
    data = io.read(path)
    assert data.y_pred.as_targets(data.y_true).tolist() == [0, 1]


def test_numbered_classes_in_any_order_of_columns(tmp_path):
    path = write(tmp_path / "x.csv", "y,p_1,p_0\n1,0.3,0.7\n0,0.8,0.2\n")
    data = io.read(path)
    assert data.y_pred.as_targets(data.y_true).tolist() == [0, 1]


def test_labels_stored_as_floats_are_integers(tmp_path):
    path = write(tmp_path / "x.csv", "y,p\n1.0,0.3\n0.0,0.8\n")
    assert io.read(path).y_true.tolist() == [1, 0]


def test_text_labels_of_one_probability_need_the_positive_one(tmp_path):
    path = write(tmp_path / "x.csv", "y,p\nyes,0.3\nno,0.8\n")
    with pytest.raises(InputError, match="the truth holds 'no', 'yes': .* pos_label='yes' or pos_label='no'$"):
        io.read(path)
    assert io.read(path, pos_label="yes").y_pred.labels[1] == "yes"
    with pytest.raises(InputError, match=r"pos_label 'yess' never occurs \(did you mean 'yes'\?\)"):
        io.read(path, pos_label="yess")


def test_several_labels_a_row(tmp_path):
    path = write(tmp_path / "x.csv", "y_a,y_b,p_a,p_b\n1,0,0.9,0.3\n0,0,0.2,0.4\n")
    data = io.read(path, y_true="y_*", y_pred="p_*")
    assert isinstance(data.y_pred, Bernoulli)
    assert data.y_pred.labels == ("a", "b")
    assert ECE()(data.y_true, data.y_pred).n == 2


def test_columns_by_list(tmp_path):
    path = write(tmp_path / "x.csv", "y,no,yes\n1,0.3,0.7\n0,0.8,0.2\n")
    assert io.read(path, y_pred="no,yes").y_pred.probs.tolist() == [[0.3, 0.7], [0.8, 0.2]]


def test_a_family_named_with_its_columns(tmp_path):
    path = write(tmp_path / "x.csv", "y,z_0,z_1\n1,0.0,2.0\n0,1.0,0.0\n")
    data = io.read(path, predict="Categorical.from_logits(logits='z_*')")
    assert data.y_pred.probs == pytest.approx(Categorical.from_logits([[0.0, 2.0], [1.0, 0.0]]).probs)
    assert io.read(path, predict="Categorical.from_logits(z_1)").y_pred.probs == pytest.approx(
        data.y_pred.probs * 0 + Categorical.from_logits([2.0, 0.0]).probs
    )


def test_a_family_with_settings(tmp_path):
    path = write(tmp_path / "x.csv", "y,q_10,q_50,q_90\n1.5,0.0,1.0,2.0\n0.5,1.0,1.0,4.0\n")
    fan = io.read(path, predict="Quantiles('q_*', levels=[0.1, 0.5, 0.9], tails=(0, inf))").y_pred
    assert fan.quantile(np.array([0.0, 0.5])).tolist() == [[0.0, 1.0], [0.0, 1.0]]


@pytest.mark.parametrize("names", ["q_10,q_50,q_90", "q_0.1,q_0.5,q_0.9"])
def test_levels_of_quantiles_are_in_the_names_of_their_columns(tmp_path, names):
    path = write(tmp_path / "x.csv", f"y,{names}\n1.5,0.0,1.0,2.0\n0.5,1.0,1.5,4.0\n")
    fan = io.read(path, predict="Quantiles(q_*)").y_pred  # a pattern needs no quotation marks
    assert fan.quantile(np.array([0.1, 0.9])) == pytest.approx(np.array([[0.0, 2.0], [1.0, 4.0]]))


def test_quantiles_that_do_not_say_their_levels(tmp_path):
    path = write(tmp_path / "x.csv", "y,q_low,q_high\n1.5,0.0,1.0\n")
    with pytest.raises(
        InputError, match=r"q_low, q_high do not say their levels as in q_0.05: give them, levels=\(0.333"
    ):
        io.read(path, predict="Quantiles(q_*)")


def test_a_family_of_a_family(tmp_path):
    path = write(tmp_path / "x.csv", "y,mu,sigma,cap\n1.5,0.0,1.0,2.0\n0.5,1.0,1.0,4.0\n")
    batch = io.read(path, predict="Censored(Normal(mu, sigma), low=0, high=cap)").y_pred
    assert batch.high.tolist() == [2.0, 4.0]
    assert batch.base.loc.tolist() == [0.0, 1.0]
    mixed = io.read(path, predict="Mixture([Normal(mu, sigma), Laplace(mu, 2.0)], weights=[0.25, 0.75])").y_pred
    assert repr(mixed) == "<Mixture: 2 predictions of Normal and Laplace components>"


@pytest.mark.parametrize(
    "predict",
    [
        "StudentT(df=4, loc=a, scale=b)",
        "Logistic(loc=a, scale=b)",
        "LogNormal(loc=a, scale=0.5)",
        "Gamma(shape=a, rate=b)",
        "Beta(a=a, b=2.5)",
        "Uniform(low=a, high=9)",
        "Poisson(rate=a)",
        "NegativeBinomial(rate=a, dispersion=b)",
        "NegativeBinomial.from_total_count(total_count=a, prob=0.5)",
    ],
)
def test_families_of_numbers_take_columns_and_numbers(tmp_path, predict):
    path = write(tmp_path / "x.csv", "y,a,b\n1,1.5,2.0\n0,1.0,0.5\n")
    data = io.read(path, predict=predict)
    assert type(data.y_pred).__name__ == predict.partition("(")[0].partition(".")[0]
    assert len(data.y_pred) == 2
    if not predict.startswith("Negative"):
        assert 1.5 in [column[0] for column in data.y_pred.parameters]


@pytest.mark.parametrize(
    ("predict", "message"),
    [
        ("Categoric(probs='z_*')", "there is no 'Categoric' .did you mean 'Categorical'"),
        ("Categorical(probs='q_*')", "predict: x.csv has no column 'q_.'"),
        ("Categorical(probs=None)", "arguments are columns, numbers or families; got None"),
        ("'z_0'", "is not a family; known: Bernoulli, Beta, Categorical"),
    ],
)
def test_bad_families(tmp_path, predict, message):
    path = write(tmp_path / "x.csv", "y,z_0,z_1\n1,0.0,2.0\n0,1.0,0.0\n")
    with pytest.raises(InputError, match=message):
        io.read(path, predict=predict)


def test_predictions_without_the_truth(file, frame, tmp_path):
    found = io.read_predictions(file, y_pred="p_*")
    assert (found.family, found.columns) == ("Categorical", {"probs": ["p_0", "p_1", "p_2"]})
    assert found.prediction.labels == ("0", "1", "2")
    assert np.array_equal(found.prediction.probs, io.read(file).y_pred.probs)
    assert has_truth(file)
    assert not has_truth(write(tmp_path / "x.csv", "p\n0.5\n"))
    assert io.read_predictions(tmp_path / "x.csv").prediction.probs.tolist() == [0.5]


def test_the_columns_of_a_family(tmp_path):
    path = write(tmp_path / "x.csv", "mu,sigma\n1,0.5\n0,1.5\n")
    found = io.read_predictions(path, predict="Normal(mu, scale=2)")
    assert (found.family, found.columns) == ("Normal", {"loc": ["mu"], "scale": []})
    assert found.prediction.scale.tolist() == [2, 2]
    with pytest.raises(InputError, match="leave out pos_label"):
        io.read_predictions(path, predict="Normal(mu, sigma)", pos_label="yes")
    with pytest.raises(InputError, match="Normal takes loc, scale: scale is missing"):
        io.read_predictions(path, predict="Normal(mu)")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y_true": "lable"}, r"y_true: predictions.csv has no column 'lable' \(did you mean 'label'\?\)"),
        ({"y_pred": "q_*"}, r"y_pred: predictions.csv has no column 'q_\*'"),
        ({"by": ["sight"]}, r"by: .* no column 'sight' \(did you mean 'site'\?\)"),
        ({"sample_weight": "ww"}, r"sample_weight: .* no column 'ww' \(did you mean 'w'\?\)"),
        ({"pos_label": "a"}, "pos_label goes with a single column"),
    ],
)
def test_unknown_columns_suggest_the_nearest(frame, tmp_path, options, message):
    frame.write_csv(tmp_path / "predictions.csv")
    with pytest.raises(InputError, match=message):
        io.read(tmp_path / "predictions.csv", **options)


def test_no_usual_name(tmp_path):
    path = write(tmp_path / "x.csv", "a,b\n1,0.3\n")
    with pytest.raises(InputError, match="x.csv has columns a, b: say which with y_true"):
        io.read(path)


def test_missing_values_are_named(tmp_path):
    path = write(tmp_path / "x.csv", "y,p\n1,0.3\n0,\n")
    with pytest.raises(
        InputError,
        match="x.csv: column 'p' has missing values in 1 of 2 rows, first in row 2: leave such rows out with missing='drop'",
    ):
        io.read(path)


def test_files_that_are_not_there(tmp_path):
    write(tmp_path / "digits.csv", "y,p\n")
    with pytest.raises(InputError, match=r"there is no file '.*digit.csv' \(did you mean 'digits.csv'\?\)"):
        io.read(tmp_path / "digit.csv")
    with pytest.raises(InputError, match="there is no file"):
        io.read(tmp_path / "nowhere" / "x.csv")


@pytest.mark.parametrize("kind", ["parquet", "npz", "jsonl", "csv"])
def test_broken_files(kind, frame, tmp_path):
    path = tmp_path / f"x.{kind}"
    if kind == "parquet":
        frame.write_parquet(path)
        path.write_bytes(path.read_bytes()[:200])
    elif kind == "npz":
        np.savez(path, y=np.arange(100))
        path.write_bytes(path.read_bytes()[:200])
    elif kind == "jsonl":
        path.write_text(json.dumps({"y": 1}) + "\n{broken")
    else:
        path.write_bytes(b"")
    message = r"x\.jsonl: line 2 is not JSON: '\{broken'" if kind == "jsonl" else rf"x.{kind} cannot be read as"
    with pytest.raises(InputError, match=message) as caught:
        io.read(path, y_true="y")
    assert "\n" not in str(caught.value)


def test_pickles_are_not_loaded(tmp_path):
    np.savez(tmp_path / "x.npz", y=np.array([{}], dtype=object))
    with pytest.raises(InputError, match="cannot be read as NPZ"):
        io.read(tmp_path / "x.npz")


def test_unknown_endings(tmp_path):
    (tmp_path / "x.bin").write_bytes(b"\1\0\2\0")
    with pytest.raises(
        InputError, match=r"x.bin is of no known format: say which with format='csv', jsonl, json, parquet"
    ):
        io.read(tmp_path / "x.bin")
    assert io.read(write(tmp_path / "x.txt", "y,p\n1,0.5\n")).y_true.tolist() == [1]


def test_the_examples_are_there():
    digits = io.read(io.example("digits"), y_true="digit", by=["ink"])
    assert len(digits.y_true) == 1797
    diabetes = polars.read_csv(io.example("diabetes"))
    assert diabetes.columns == ["progression", "mu", "sigma", "sex"]
    assert len(diabetes) == 442
    assert diabetes["sigma"].min() > 0


@pytest.mark.parametrize(
    ("names", "levels"),
    [
        (["0.1", "0.5", "0.9"], [0.1, 0.5, 0.9]),
        (["q0.1", "q0.9"], [0.1, 0.9]),
        (["q05", "q10", "q95"], [0.05, 0.1, 0.95]),
        (["p2.5", "p50", "p97.5"], [0.025, 0.5, 0.975]),
        (["5%", "9%"], [0.05, 0.09]),
        (["m2_q10", "m2_q90"], [0.1, 0.9]),
        ([f"q{i}" for i in range(1, 100)], [i / 100 for i in range(1, 100)]),
    ],
)
def test_names_say_their_levels(names, levels):
    assert levels_of_names(names) == pytest.approx(levels, rel=1e-15)


def test_levels_are_read_from_whole_names_and_told(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,0.1,0.5,0.9\n1.5,0,1,3\n")
    found = io.read(path, predict="Quantiles('0.*')")  # the stars alone are 1, 5 and 9
    assert found.y_pred.levels.tolist() == [0.1, 0.5, 0.9]
    assert found.notes == ("quantile levels read: 0.1 = 10 %, 0.5 = 50 %, 0.9 = 90 %",)


def test_numbers_that_may_count_the_columns_are_refused_with_what_works(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,q1,q2,q3\n1.5,0,1,3\n")
    with pytest.raises(InputError, match="may be percent, or count the columns: say which, levels=") as caught:
        io.read(path, predict="Quantiles(q*)")
    for setting, levels in zip(
        re.findall(r"levels=\(.*?\)", str(caught.value)), ([25, 50, 75], [1, 2, 3]), strict=True
    ):
        assert io.read(path, predict=f"Quantiles(q*, {setting})").y_pred.levels == pytest.approx(np.array(levels) / 100)


@pytest.mark.parametrize("ending", ["csv", "npz"])
def test_probabilities_are_preferred_to_decisions(tmp_path, ending):
    y, p = np.array([0, 1, 1]), np.array([0.2, 0.9, 0.4])
    path = tmp_path / f"a.{ending}"
    columns = {"y": y, "y_pred": (p > 0.5) * 1, "score": p}
    if ending == "csv":
        polars.DataFrame(columns).write_csv(path)
    else:
        np.savez(path, **columns)
    assert io.read(path).y_pred.probability(1).tolist() == p.tolist()
    assert io.read_predictions(path).columns == {"probs": ["score"]}


def test_a_column_of_decisions_gives_way_and_is_told_where_it_is_alone(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,p,y_prob\n1,1,0.7\n0,0,0.6\n")
    found = io.read(path)
    assert found.y_pred.probability(1).tolist() == [0.7, 0.6]
    assert found.notes == ("column 'p' holds no probabilities: column 'y_prob' is taken instead",)
    path.write_text("y,y_pred,margin\n1,1,3.5\n0,0,-2\n")
    assert "column 'y_pred' holds nothing but 0 and 1: decisions, not probabilities" in io.read(path).notes[0]
    assert io.read(path, y_pred="y_pred").notes == io.read(path).notes


def test_quantiles_that_cross_are_sorted_and_lines_are_meant_on_request(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,q10,q50,q90\n1.5,1,0,3\n")
    with pytest.raises(InputError, match=r"rearrange=True sorts them"):
        io.read(path, predict="Quantiles(q*)")
    assert io.read(path, predict="Quantiles.rearranged(q*)").y_pred.values.tolist() == [[0, 1, 3]]
    path.write_text("y,q10,q50,q90\n1.5,0,1,3\n")
    joined = io.read(path, predict="Quantiles.joined(q*)").y_pred
    assert joined.is_joined
    assert joined.levels.tolist() == [0.1, 0.5, 0.9]
