import json
import re

import numpy as np
import pytest

from calibrant import Bernoulli, Ensemble, Normal, Poisson, compare, evaluate
from calibrant._validate import InputError
from calibrant.lab import Tempered

HOSTILE = "<script>alert(1)</script>\"'&‮"


@pytest.fixture
def data(rng):
    y, p = Tempered(3, 3.0).draw(300, rng)
    calm = p.matrix ** (1 / 3)
    return y, {HOSTILE: p, "calm": calm / calm.sum(axis=1, keepdims=True)}


@pytest.fixture
def compared(data):
    y, models = data
    site = np.resize(["x", "y"], len(y))
    return compare(y, models, by={"site": site}, title=HOSTILE, n_resamples=99, rng=3)


def test_numbers_are_those_of_reports(data, compared):
    y, models = data
    own = evaluate(y, models["calm"], n_resamples=99, rng=3, advice=False)
    assert compared.reports["calm"].numbers == own.numbers
    table = compared.numbers
    rows = [row for row in table.rows() if row["model"] == "calm"]
    values = {x.label: x.value for x in own.numbers}
    assert {row["number"]: row["value"] for row in rows} == values
    assert [row["number"] for row in rows][:2] == ["Log loss", "Brier score"]
    assert rows[2]["null_high"] == own.numbers[0].null_band.high


def test_the_better_model_is_named(compared):
    assert compared.verdict.headline == f"calm is better calibrated than {HOSTILE}, and has the lower log loss."
    assert (compared.kind, compared.n, compared.verdict.tone) == ("multi-class", 300, "good")


def test_slices_have_the_score_of_every_model(data, compared):
    table = compared.sections[0].table
    assert sorted(table["group"]) == ["x", "y"]
    assert table["rows"].sum() == 300
    y, models = data
    rows = np.resize(["x", "y"], 300) == table["group"][0]
    chosen = models["calm"][rows][np.arange(rows.sum()), np.asarray(y)[rows]]
    assert table["Log loss of calm"][0] == pytest.approx(-np.log(chosen).mean())


def test_plain_data(compared, tmp_path):
    saved = json.loads(compared.save(tmp_path / "x.json").read_text(encoding="utf-8"))
    assert saved == json.loads(compared.to_json())
    assert (saved["kind"], saved["schema"]) == ("comparison", "calibrant/1")
    assert list(saved["reports"]) == [HOSTILE, "calm"]
    assert repr(compared).startswith(HOSTILE)
    assert "<script" not in compared.to_markdown()


def test_json_says_in_which_unit_numbers_are(compared):
    saved = json.loads(compared.to_json())
    numbers = {(name, x["label"]): x for name, report in saved["reports"].items() for x in report["numbers"]}
    assert {x["unit"] for x in numbers.values()} == {"fraction", "number"}
    assert all(0 <= x["value"] <= x["interval"]["high"] <= 1 for x in numbers.values() if x["unit"] == "fraction")
    error = numbers["calm", "Calibration error of the confidence"]
    assert compared.reports["calm"].numbers[0].text(error["value"]) == f"{100 * error['value']:.3g} %"
    drawn = {picture["settings"]["unit"][0]: picture["models"] for picture in saved["pictures"] if "models" in picture}
    assert drawn["percent"]["value"][1] == pytest.approx(100 * error["value"])
    assert drawn["number"]["value"][1] == numbers["calm", "Brier score"]["value"]


def test_the_page_is_self_contained_and_hostile_names_are_safe(compared):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    page = compared.to_html()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert not re.search(r"@import|url\((?!#)|src=", page)
    assert page.count("<svg ") >= 4
    for part in ("How far they lie apart", "The numbers of each model", "By site", "How this was computed"):
        assert part in page


def test_a_model_and_itself_cannot_be_told_apart(rng):
    p = rng.random(60)
    y = (rng.random(60) < p) * 1
    verdict = compare(y, {"one": p, "same": p}, n_resamples=99, rng=0).verdict
    assert (verdict.tone, verdict.headline) == ("unsure", "one and same cannot be told apart on these rows.")


def test_different_families_of_one_target(rng):
    rate = rng.uniform(2, 6, 150)
    y = rng.poisson(rate)
    members = Ensemble(rng.poisson(rate[:, None] / 2, (150, 9)).astype(float))
    result = compare(y, {"counts": Poisson(rate), "members": members}, n_resamples=99, rng=0)
    assert result.verdict.headline == "counts is better calibrated than members, and has the lower CRPS."
    assert "members are scored as they are" in result.notes[0]
    assert "the log loss is" in result.notes[1].lower()


def test_labels_and_weights(rng):
    p = rng.random((150, 2))
    y = (rng.random((150, 2)) < p).astype(int)
    w = rng.integers(1, 3, 150)
    result = compare(y, {"a": Bernoulli(p), "b": Bernoulli(p**3)}, sample_weight=w, n_resamples=99, rng=0)
    assert result.verdict.headline.startswith("a is better calibrated than b")
    rows = np.repeat(np.arange(150), w)
    other = compare(y[rows], {"a": Bernoulli(p[rows]), "b": Bernoulli(p[rows] ** 3)}, n_resamples=99, rng=0)
    found, expected = (one.differences["difference"][:2] for one in (result, other))
    assert found == pytest.approx(expected)


def test_progress_names_the_models(data):
    seen = []
    compare(*data, n_resamples=99, progress=lambda *step: seen.append(step))
    assert [step[0] for step in seen] == [HOSTILE, "calm", "Differences", "Done"]
    assert seen[-1][1] == seen[-1][2]


def test_bad_input(data):
    y, models = data
    with pytest.raises(InputError, match="models must be 2 to 12 predictions by name"):
        compare(y, {"a": models["calm"]})
    with pytest.raises(InputError, match="models must be 2 to 12 predictions by name"):
        compare(y, [models["calm"], models["calm"]])
    with pytest.raises(InputError, match="model 'b': y_true has 300 rows and y_pred has 299"):
        compare(y, {"a": models["calm"], "b": models["calm"][1:]})
    with pytest.raises(InputError, match="models must predict the same: 'a' multi-class, 'b' numbers"):
        compare(y, {"a": models["calm"], "b": Normal(np.zeros(300), 1.0)})
    with pytest.raises(InputError, match="by='site' names columns: give them"):
        compare(y, models, by="site")
    with pytest.raises(InputError, match=r"by\['site'\] has 3 rows"):
        compare(y, models, by={"site": [1, 2, 3]}, n_resamples=99)


def test_reports_are_without_what_no_page_shows(compared):
    for report in compared.reports.values():
        assert (report.pictures, report.advice) == ((), None)
        assert [section.title for section in report.sections] == ["Each class"]
    assert len(compared.pictures) == 4
