"""Certificates: their limits are those of the estimates, and they are false as seldom as they say."""

import json
import re
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom

from calibrant import ECE, Brier, DebiasedECE, EqualMass, InputError, Normal, Quantiles, Sweep, certify
from calibrant.estimators import MonotoneECE, PITError
from calibrant.inference import Certificate
from calibrant.inference.certificate import of_estimate, rows_needed
from studies.certificates import SHOWN, scores

ERRORS = (ECE(EqualMass(10)), DebiasedECE(EqualMass(10)), ECE(EqualMass(10), norm=np.inf), MonotoneECE())


@pytest.fixture
def calibrated(rng):
    p = rng.random(6000)
    return (rng.random(6000) < p).astype(int), p


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_limits_are_those_of_the_estimate(calibrated, error):
    found = certify(*calibrated, 0.1, error=error, confidence_level=0.9)
    low, high = error(*calibrated).confidence_interval(0.8)
    assert (found.lower, found.upper) == pytest.approx((low, high), rel=1e-12)
    assert found.certified == (high < 0.1)
    assert found.estimate.value == error(*calibrated).value


@pytest.mark.parametrize("error", [*ERRORS[:2], DebiasedECE(EqualMass(10), norm=1)], ids=repr)
@pytest.mark.parametrize(("heavy", "light", "weight", "truth"), [(20, 2000, 20.0, 0.1), (60, 2940, 50.0, 0.03)])
def test_few_heavy_rows_without_events_certify_nothing(error, heavy, light, weight, truth):
    w, p = np.r_[np.full(heavy, weight), np.ones(light)], np.full(heavy + light, 0.001)
    margin = heavy * weight * (truth - 0.001) / w.sum()  # all of the error is in rows where often nothing happens
    rng = np.random.default_rng(0)
    drawn = rng.random((400, len(p))) < np.where(w > 1, truth, 0.001)
    found = [certify(y * 1, p, margin, error=error, sample_weight=w).certified for y in drawn]
    assert sum(found) <= binom.isf(0.001, 400, 0.05)


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_the_pvalue_is_the_level_at_which_the_limit_is_the_margin(calibrated, error):
    margin = 0.8 * certify(*calibrated, 0.5, error=error).upper
    found = certify(*calibrated, margin, error=error)
    assert 1e-9 < found.pvalue < 0.5
    assert found.estimate.confidence_interval(1 - 2 * found.pvalue).high == pytest.approx(margin, rel=1e-4)
    assert found.certified == (found.pvalue < 0.05)


def exactly_false(error, p, n, margin):
    """The chance of a certificate in one cell of equal predictions, where events are more likely than p by the margin."""
    counts = np.arange(n + 1)
    chance = binom.pmf(counts, n, p + margin)
    likely = counts[chance > 1e-9]
    certified = [certify(np.arange(n) < k, np.full(n, p), margin, error=error).certified for k in likely]
    return float(chance[likely] @ certified)


@pytest.mark.parametrize(
    "error",
    [ECE(EqualMass(1)), ECE(EqualMass(1), norm=2), ECE(EqualMass(1), norm=np.inf), DebiasedECE(EqualMass(1))],
    ids=repr,
)
@pytest.mark.parametrize("p", [1e-6, 0.01, 0.3])
def test_one_cell_keeps_its_level_exactly(error, p):
    """Wilson's limit was false in 6.0 % where nothing was predicted and 4.5 events were due."""
    n = 300
    margins = np.array([3.2, 4.5, 4.75, 6.3, 7.76, 15, 40]) / n
    assert max(exactly_false(error, p, n, float(m)) for m in margins) <= 0.05


def bins_at(p, margin, norm, cells):
    """True probabilities with the error at the margin in so many of ten cells of sorted predictions."""
    gap = np.zeros(10)
    gap[cells] = margin / (1 if np.isinf(norm) else (len(cells) / 10) ** (1 / norm))
    return p + np.repeat(gap, len(p) // 10)


def usual_margin(p, error, rng, **options):
    """Within which two of three calibrated data sets are certified."""
    return float(
        np.quantile([certify(rng.random(len(p)) < p, p, 0.5, error=error, **options).upper for _ in range(60)], 2 / 3)
    )


@pytest.mark.parametrize("cells", [[0], [5], list(range(9))], ids=["first", "middle", "nearly all"])
@pytest.mark.parametrize("error", ERRORS[:3], ids=repr)
@pytest.mark.parametrize("rare", [False, True])
def test_errors_at_the_margin_are_seldom_certified(error, cells, rare, rng):
    n, sets = 2000, 300
    p = (np.arange(n) + 0.5) / n * (0.04 if rare else 0.8)
    margin = usual_margin(p, error, rng)
    truth = bins_at(p, margin, error.norm, cells)
    assert truth.max() <= 1
    count = sum(certify(rng.random(n) < truth, p, margin, error=error).certified for _ in range(sets))
    assert count <= binom.isf(0.001, sets, 0.05)


@pytest.mark.parametrize("error", ERRORS[:2], ids=repr)
def test_weights_keep_the_level(error, rng):
    """Weights that differ tenfold, and an error of the heavy rows."""
    n, sets = 1000, 300
    p, w = np.tile((np.arange(10) + 0.5) / 20, n // 10), np.where(np.arange(n) // 10 % 4 == 0, 5.0, 0.5)
    margin = usual_margin(p, error, rng, sample_weight=w)
    truth = p + np.where(w > 1, margin * w.sum() / w[w > 1].sum(), 0.0)  # the weighted mean in each cell
    assert np.average(truth - p, weights=w) == pytest.approx(margin)
    found = [certify(rng.random(n) < truth, p, margin, error=error, sample_weight=w).certified for _ in range(sets)]
    assert sum(found) <= binom.isf(0.001, sets, 0.05)


@pytest.mark.parametrize("place", ["ends", "middle"])
def test_forecasts_with_the_margin_are_seldom_certified(place, rng):
    n, margin, sets = 600, 0.08, 300
    count = 0
    for _ in range(sets):
        u = rng.random(n)
        hit = u < margin if place == "ends" else np.abs(u - 0.5) < margin / 2
        y = ndtri(np.where(hit, 1e-12 if place == "ends" else 0.5 + margin / 2, u))
        count += certify(y, Normal(np.zeros(n), 1.0), margin).certified
    assert count <= binom.isf(0.001, sets, 0.05)
    fair = [certify(rng.standard_normal(n), Normal(np.zeros(n), 1.0), margin).certified for _ in range(50)]
    assert np.mean(fair) > 0.5


def test_quantile_forecasts_are_judged_at_their_levels(rng):
    fan = Quantiles(np.tile(ndtri([0.1, 0.5, 0.9]), (3000, 1)), [0.1, 0.5, 0.9])
    assert certify(rng.standard_normal(3000), fan, 0.05).certified
    assert not certify(rng.standard_normal(3000) + 0.15, fan, 0.05).certified


def test_rows_that_would_suffice_do(rng):
    """Twice as many rows as were named certify most calibrated models; half as many seldom do."""
    p = rng.random(3000)
    named = [certify((rng.random(3000) < p).astype(int), p, 0.02).rows for _ in range(20)]
    assert all(named)
    n = int(np.median(named))
    for factor, low, high in ((2.0, 0.8, 1.0), (0.5, 0.0, 0.3)):
        p = rng.random(int(factor * n))
        share = np.mean([certify((rng.random(len(p)) < p).astype(int), p, 0.02).certified for _ in range(40)])
        assert low <= share <= high


def test_where_the_error_is_too_large_more_rows_do_not_help(rng):
    p = rng.random(2000)
    found = certify((rng.random(2000) < 0.5 * p).astype(int), p, 0.05)
    assert found.rows is None
    assert not found.certified
    assert found.lower > 0.05
    assert "more would hardly help" in repr(found)


def test_it_prints_and_is_json(calibrated):
    found = certify(*calibrated, 0.03)
    assert isinstance(found, Certificate)
    assert repr(found).startswith("certified within 0.03 = yes: the error is below 0.03")
    plain = json.loads(found.to_json())
    assert plain["kind"] == "certificate"
    assert plain["certified"]
    assert plain["upper"] == found.upper
    assert plain["estimate"]["interval"]["high"] == found.upper  # no two limits
    assert found.to_row()["high"] == found.upper
    assert "about" in repr(certify(*calibrated, 0.01))
    assert "does not fall" in repr(certify(*calibrated, 0.05, error=MonotoneECE()))
    assert "within a cell" in repr(certify(*calibrated, 0.05, error=DebiasedECE()))


@pytest.mark.parametrize("margin", [1e-320, 1e-10])
def test_margins_that_no_data_certify(calibrated, margin):
    with pytest.raises(InputError, match="margin must be at least 1e-09, as no data certify less; got 1e-"):
        certify(*calibrated, margin)


@pytest.mark.parametrize("margin", [0, 1, -0.1, 1.5, np.nan, np.inf, "small"])
def test_margins_lie_between_nothing_and_all(calibrated, margin):
    with pytest.raises(InputError, match="margin must lie strictly between 0 and 1, such as 0.02 for 2 points; got"):
        certify(*calibrated, margin)


def test_bad_input_is_refused(calibrated):
    y, p = calibrated
    with pytest.raises(InputError, match="confidence_level must be above 0.5"):
        certify(y, p, confidence_level=0.4)
    with pytest.raises(InputError, match="error must be one whose upper limit was tried.*Brier"):
        certify(y, p, error=Brier())
    with pytest.raises(InputError, match="the bins depend on what happened"):
        certify(y, p, error=ECE(Sweep()))
    with pytest.raises(
        InputError, match="has no upper limit to certify: the largest gap has one without sample_weight"
    ):
        certify(y, p, error=ECE(norm=np.inf), sample_weight=np.ones(len(y)))
    with pytest.raises(InputError, match="PITError.. without has one"):
        certify(y * 1.0, Normal(p, 1.0), error=PITError("cramer-von-mises"))
    with pytest.raises(InputError, match="NaN"):
        certify(y, np.where(p < 0.5, np.nan, p))


NEEDED = Path(__file__).parents[2] / "docs" / "studies" / "certificates.md"


def published(heading):
    """The columns of the study's table of rows that has this heading."""
    lines = NEEDED.read_text("utf-8").splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(heading))
    names = [cell.strip() for cell in lines[first].strip("|").split("|")]
    rows = takewhile(lambda line: line.startswith("|"), lines[first + 2 :])
    return [dict(zip(names, (c.strip() for c in row.strip("|").split("|")), strict=True)) for row in rows]


@pytest.mark.parametrize("column", ["mean", "root mean square", "largest", "single", "report"])
def test_rows_that_are_named_are_those_of_the_study(column):
    """From few of them; of means, which reports show, within a half, and of others more roughly."""
    n, most = (1000, 1.5) if column in ("mean", "report") else (4000, 2.4)
    error = {**dict(zip(("mean", "root mean square", "largest", "single"), ERRORS, strict=False)), "report": SHOWN}[
        column
    ]
    for row in published("| world | margin"):
        p, margin = scores(row["world"], n), float(row["margin"].split()[0]) / 100
        if row["world"] in ("0.5 % events", "three values"):  # five events, or predictions of equal rows, do not scale
            continue
        level = 0.95 if column == "report" else 0.9
        found = []
        for seed in range(5):
            estimate = error((np.random.default_rng(seed).random(len(p)) < p).astype(int), p)
            found.append(rows_needed(estimate, margin, estimate.confidence_interval(level)))
        told = int(row[column].replace(",", ""))
        assert 1 / most < np.median(found) / told < most, (row, np.median(found))


@pytest.mark.parametrize("distance", ["kolmogorov", "kuiper"])
def test_rows_that_are_named_for_forecasts_are_those_of_the_study(distance, rng):
    name = {"kolmogorov": "largest gap of PIT values", "kuiper": "any interval"}[distance]
    (row,) = [row for row in published("| problem |") if row["problem"].endswith(name)]
    estimate = PITError(distance)(rng.standard_normal(500), Normal(np.zeros(500), 1.0))
    for margin in (0.01, 0.02, 0.05):
        told = int(row["1 point" if margin == 0.01 else f"{100 * margin:g} points"].replace(",", ""))
        found = rows_needed(estimate, margin, estimate.confidence_interval(0.9))
        assert found == pytest.approx(told, rel=0.25)


def test_what_it_says_in_a_sentence(calibrated):
    y, p = calibrated
    assert re.fullmatch(
        r"Certified to within 3 points: it is at most 2\.\d+ % \(upper end of its 90 % interval\)\.",
        certify(y, p, 0.03).sentence("it"),
    )
    found = certify(y, p, 0.01)
    assert found.sentence().endswith(f"about {found.more_rows:,} more rows would suffice for a calibrated model.")
    far = certify(y, p**2, 0.05)
    assert re.search(r"Not certified to within 5 points: the error .*, and it is at least 1\d\.\d %\.", far.sentence())
    near = replace(far, lower=0.04)
    assert near.sentence().endswith("more rows would hardly help, as it seems to be above 5 points.")
    assert "an error as large as it seems" in replace(found, lower=0.004).sentence()


def test_an_estimate_certifies_by_the_interval_that_it_shows(calibrated):
    y, p = calibrated
    estimate = ECE(EqualMass(15))(y, p)
    high = estimate.confidence_interval().high
    assert of_estimate(estimate, 1.001 * high).certified
    assert not of_estimate(estimate, 0.999 * high).certified
    few = of_estimate(ECE(EqualMass(1))(np.zeros(180, dtype=int), np.full(180, 1e-9)), 0.0204)
    assert (few.fewest, few.certified) == (179, few.upper < 0.0204)
    alone = of_estimate(ECE(EqualMass(1), norm=np.inf)(np.arange(8) < 1, np.full(8, 0.2)), 0.3)
    assert alone.upper < 0.35
    assert (alone.fewest, alone.certified) == (11, False)
    assert alone.rows >= 11
    heavy = of_estimate(
        ECE(EqualMass(5))(y, p, sample_weight=np.r_[1e6, np.ones(5999)]), 0.4, weights=np.r_[1e6, np.ones(5999)]
    )
    assert heavy.fewest > 6000
    assert not heavy.certified


def test_rows_that_cannot_certify_anything_are_refused(rng):
    """0.98^148 = 5.03 %, and 0.98^149 = 4.93 %."""
    y, p = np.zeros(149, dtype=int), np.full(149, 1e-4)
    with pytest.raises(InputError, match="no data of 148 rows can certify margin=0.02.*at least 149 rows"):
        certify(y[1:], p[1:], 0.02)
    assert certify(y, p, 0.0203, error=ECE(EqualMass(1), norm=np.inf)).certified
    weights = np.r_[np.full(9, 100.0), np.full(140, 0.01)]
    with pytest.raises(InputError, match="no data of 9 rows"):
        certify(y, p, 0.02, sample_weight=weights)


@pytest.mark.parametrize(
    ("distance", "what"), [("kuiper", "what a prediction interval promises"), ("kolmogorov", "share of targets below")]
)
def test_what_is_certified_is_told(distance, what, rng):
    found = certify(rng.normal(size=400), Normal(np.zeros(400), np.ones(400)), 0.2, error=PITError(distance))
    assert what in found.what


def test_where_rows_look_dependent_no_limit_is_told():
    found = certify([0, 1] * 3000, [0.5] * 6000, 0.05)
    assert found.certified
    withheld = replace(found, look_dependent=True)
    assert not withheld.certified
    assert np.isnan(withheld.pvalue)
    assert withheld.more_rows is None
    assert "withheld" in str(withheld)
    assert "at most" not in str(withheld)
    assert "would suffice" not in str(withheld)


def test_the_error_that_is_meant_where_none_is_given(calibrated):
    y, p = calibrated
    assert certify(y, p, 0.1).estimate.estimator.bins == EqualMass(10)
    assert certify(np.zeros(500), Normal(np.zeros(500), 1.0), 0.1).estimate.estimator == PITError()
