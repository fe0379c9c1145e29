import json
import re

import numpy as np
import pytest
from scipy.stats import binom

from calibrant import ECE, Categorical, Ensemble, EqualMass, ExactTest, Normal, PITError, Poisson, Quantiles, TopLabel
from calibrant._validate import InputError
from calibrant.lab import Tempered
from calibrant.recalibration import Dressing, QuantileRecalibration, Temperature, VarianceScaling
from calibrant.recalibration.base import in_order
from calibrant.reports import before_and_after
from calibrant.reports.before_after import in_words

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def fitted(rng):
    y, p = Tempered(3, 3.0).draw(400, rng)
    return y, p, Temperature().fit(y, p)


@pytest.fixture
def compared(fitted):
    y, p, fit = fitted
    return before_and_after(
        y, p, in_order(fit.held_out), title=HOSTILE, recalibrator="Temperature()", n_resamples=99, rng=1
    )


def test_scores_are_those_of_the_fit(fitted, compared):
    for name in ("before", "after", "change", "error"):
        assert compared.scores[name] == pytest.approx(fitted[2].scores[name], rel=1e-12)


def test_errors_are_of_held_out_rows(fitted, compared):
    y, p, fit = fitted
    expected = ExactTest(ECE(EqualMass(15), lens=TopLabel()), 99)(y, in_order(fit.held_out), rng=1)
    assert compared.after.error.value == expected.statistic
    assert compared.after.error.null_band == expected.null_band()
    assert compared.before.error.value == ECE(EqualMass(15), lens=TopLabel())(y, p).value
    assert compared.after.error.value != ECE(EqualMass(15), lens=TopLabel())(y, fit(p)).value


def test_both_diagrams_hold_all_rows(compared):
    for side in (compared.before, compared.after):
        assert side.pictures[0].tables["curve"]["weight"].sum() == pytest.approx(400)


def verdict(before, after, y=(1, 0) * 100):
    return before_and_after(np.array(y), np.array(before), np.array(after), n_resamples=99, rng=0).verdict


def test_verdicts():
    """Two hundred coin flips: 1/2 is right."""
    rng = np.random.default_rng(3)
    sure, right = np.full(200, 0.98), np.full(200, 0.5)
    nearly = right + rng.choice([-1e-3, 1e-3], 200)
    helps = verdict(sure, right)
    assert (helps.tone, helps.headline) == ("good", "Recalibration helps: log loss falls from 1.966 to 0.6931.")
    harms = verdict(right, sure)
    assert (harms.tone, harms.headline[:20]) == ("bad", "Do not use this map:")
    changes = {verdict(*pair).headline for pair in ((right, nearly), (nearly, right))}
    assert changes == {
        "Recalibration may help a little: these rows cannot tell it from chance.",
        "Recalibration does not help: leave these predictions as they are.",
    }
    impossible = verdict(right, np.append(right[1:], 1.0))  # the last row is a 0
    assert impossible.tone == "bad"
    assert impossible.evidence[0] == "Log loss: 0.6931 → ∞."


def test_in_words():
    assert in_words({"before": 0.5, "after": 0.45, "change": -0.05, "error": 0.012}) == "0.5 → 0.45 (-0.05 ± 0.01)"


def test_the_page_is_self_contained_and_escaped(compared):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    page = compared.to_html()
    assert page.count("<script") == 2  # its own, and the data
    assert "&lt;script&gt;" in page
    assert not re.search(r"@import|url\((?!#)|src=", page)
    assert page.count("<svg ") == 2
    for part in (">Before: calibration error", ">After: calibration error", "Brier score", "How this was computed"):
        assert part in page
    data = re.search(r'id="data">(.*?)</script>', page)[1]
    assert json.loads(data) == json.loads(compared.to_json())


def test_both_diagrams_have_the_same_axes(rng):
    """Before, everything lies close together; after, all over the place: drawn close up on neither side."""
    pytest.importorskip("matplotlib")
    spread = rng.random(20_000)
    y = (rng.random(20_000) < spread) * 1
    page = before_and_after(y, 0.5 + 0.01 * spread, spread, n_resamples=99).to_html()
    for chart in re.findall(r"<svg .*?</svg>", page, re.DOTALL)[:2]:
        ticks = re.findall(r">(-?\d\.\d+)</text>", chart)
        assert {"0.2", "0.4", "0.6", "0.8"} <= set(ticks) <= {"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"}


def test_saving(compared, tmp_path):
    assert json.loads(compared.save(tmp_path / "x.json").read_text())["kind"] == "before-after"
    assert compared.save(tmp_path / "x.html").read_text(encoding="utf-8") == compared.to_html()
    assert repr(compared).startswith(f"{HOSTILE} = Recalibration helps")


@pytest.mark.parametrize(
    ("make", "recalibrator", "names"),
    [
        (lambda rng: (2 * rng.normal(size=300), Normal(np.zeros(300), 1.0)), VarianceScaling(), ["log loss", "CRPS"]),
        (lambda rng: (rng.normal(size=300), Ensemble(0.3 * rng.normal(size=(300, 6)))), Dressing(), ["CRPS"]),
        (lambda rng: (rng.poisson(4, 300), Poisson(np.full(300, 2.0))), QuantileRecalibration(), ["log loss", "CRPS"]),
    ],
    ids=["numbers", "members", "counts"],
)
def test_forecasts(make, recalibrator, names, rng):
    y, predictions = make(rng)
    fit = recalibrator.fit(y, predictions)
    result = before_and_after(y, predictions, fit.held_out, n_resamples=99)
    assert result.scores["score"].tolist() == names
    assert result.verdict.headline.startswith(f"Recalibration helps: {names[0]} falls from ")
    assert result.after.error.value < result.before.error.value
    assert result.before.error.value == PITError("kuiper")(y, predictions).value
    assert [picture.kind for picture in result.after.pictures] == ["pit_histogram", "coverage"]
    held = [
        picture.tables["coverage"]["observed"][17] for picture in (result.before.pictures[1], result.after.pictures[1])
    ]
    assert abs(held[1] - 0.9) < abs(held[0] - 0.9)
    page = result.to_html()
    assert page.count("<svg ") == 4
    assert "Before: where outcomes lie in their forecasts" in page


def test_folds_and_whole_batches_agree(fitted):
    y, p, fit = fitted
    folds, whole = (
        before_and_after(y, p, better, n_resamples=99, rng=1) for better in (fit.held_out, in_order(fit.held_out))
    )
    assert folds.after.error.value == pytest.approx(whole.after.error.value, rel=1e-12)
    assert folds.scores["change"] == pytest.approx(whole.scores["change"], rel=1e-12)


def test_weights_equal_repetition(rng):
    y, loc = rng.normal(size=100), rng.normal(size=100)
    times = rng.integers(0, 3, 100)
    rows = np.repeat(np.arange(100), times)
    one = before_and_after(y, Normal(loc, 1.0), Normal(loc, 2.0), sample_weight=times, n_resamples=99)
    other = before_and_after(y[rows], Normal(loc[rows], 1.0), Normal(loc[rows], 2.0), n_resamples=99)
    assert one.scores["change"] == pytest.approx(other.scores["change"])
    assert one.after.error.value == pytest.approx(other.after.error.value)


def test_bad_input(fitted):
    y, p, fit = fitted
    with pytest.raises(InputError, match="must hold each of the 400 rows once; they hold 320"):
        before_and_after(y, p, fit.held_out[1:])
    members = Ensemble(np.zeros((3, 2, 2)))
    with pytest.raises(InputError, match="Ensemble predictions have no score in common"):
        before_and_after(np.zeros((3, 2)), members, members)
    with pytest.raises(InputError, match="400 rows and y_pred has 399"):
        before_and_after(y, p, Categorical(p.matrix[1:]))
    with pytest.raises(InputError, match="n_resamples must be a whole number of at least 99"):
        before_and_after(y, p, p, n_resamples=5)


@pytest.mark.parametrize("kind", ["counts", "members"])
def test_calibrated_forecasts_of_few_values_are_rejected_as_often_as_the_level_says(kind):
    """Of 200 data sets at 5 %, within 99.9 % bounds of the binomial; against uniform levels no counts are rejected."""
    rng, found = np.random.default_rng(0), np.zeros(2)
    for _ in range(200):
        if kind == "counts":
            predictions = Poisson(rng.uniform(0.05, 0.3, 100))
            y = predictions.sample(rng, 1)[0]
        else:
            values = rng.integers(0, 3, (100, 4)) * 1.0
            y, predictions = values[:, 0], Ensemble(values[:, 1:])
        page = before_and_after(y, predictions, predictions, n_resamples=99)
        found += [side.error.pvalue <= 0.05 for side in (page.before, page.after)]
    assert (found >= binom.ppf(0.001, 200, 0.05)).all()
    assert (found <= binom.ppf(0.999, 200, 0.05)).all()


def test_quantiles_are_judged_at_the_levels_given(rng):
    q, y, levels = np.sort(rng.normal(size=(300, 3)), axis=1), rng.normal(size=300), [0.1, 0.5, 0.9]
    page = before_and_after(y, Quantiles(q, levels), Quantiles(q + 0.5, levels), n_resamples=99)
    assert page.before.error.label == "Error at the levels given"
    gaps = (y[:, None] <= q).mean(axis=0) - levels
    assert page.before.error.value == pytest.approx(max(0, gaps.max()) + max(0, -gaps.min()))
