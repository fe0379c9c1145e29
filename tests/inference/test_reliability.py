import numpy as np
import pytest
from scipy.stats import binom

from calibrant import Bernoulli, ClassWise, EqualMass, EqualWidth, ReliabilityCurve, Sweep, TopLabel
from calibrant._validate import InputError
from calibrant.estimators import IsotonicCurve, KernelSmooth
from calibrant.inference.proportions import clopper_pearson
from calibrant.inference.reliability_curve import beyond_chance

CURVES = [None, IsotonicCurve(), KernelSmooth(), KernelSmooth(0.1)]
BANDS = ["consistency", "confidence"]


def test_the_band_of_equal_predictions_is_binomial(rng):
    p = np.repeat([0.2, 0.7], 50)
    curve = ReliabilityCurve(EqualWidth(2), n_resamples=20_000)(rng.integers(0, 2, 100), p)
    low, high = binom.interval(0.95, 50, [0.2, 0.7])
    assert curve["low"] * 50 == pytest.approx(low, abs=1)
    assert curve["high"] * 50 == pytest.approx(high, abs=1)


def test_the_band_holds_95_percent_in_each_bin(rng):
    p = rng.random(300)
    inside = []
    for repetition in range(200):
        y = (rng.random(300) < p).astype(int)
        curve = ReliabilityCurve(EqualMass(5), n_resamples=199)(y, p, rng=repetition)
        inside.append((curve["low"] <= curve["observed"]) & (curve["observed"] <= curve["high"]))
    assert 0.94 < np.mean(inside) < 0.99


def test_several_events_and_weights(rng):
    p = rng.dirichlet(np.ones(3), 90)
    y = rng.integers(0, 3, 90)
    curve = ReliabilityCurve(EqualMass(4), ClassWise(), n_resamples=49)(y, p, sample_weight=rng.random(90))
    assert curve.n_rows == 12
    assert sorted(set(curve["event"])) == ["0", "1", "2"]
    assert np.all(curve["low"] <= curve["high"])
    assert ReliabilityCurve(EqualMass(4), TopLabel(), n_resamples=49)(y, p).n_rows == 4


def test_settings_are_checked():
    with pytest.raises(InputError, match="level must lie strictly between 0 and 1; got 1.0"):
        ReliabilityCurve(level=1.0)
    with pytest.raises(InputError, match="n_resamples must be a whole number"):
        ReliabilityCurve(n_resamples=0)
    with pytest.raises(
        InputError, match=r"curve must be None for bins, or a curve such as IsotonicCurve\(\); got 'pav'"
    ):
        ReliabilityCurve(curve="pav")
    with pytest.raises(InputError, match="band must be 'consistency' or 'confidence'; got 'both'"):
        ReliabilityCurve(band="both")


def test_the_band_of_bins_around_what_was_observed(rng):
    p = np.repeat([0.2, 0.7], [50, 30])
    y = rng.integers(0, 2, 80)
    table = ReliabilityCurve(EqualWidth(2), band="confidence")(y, p)
    low, high = clopper_pearson(table["observed"], np.array([50, 30]), 0.025)
    assert table["low"] == pytest.approx(low, abs=1e-12)
    assert table["high"] == pytest.approx(high, abs=1e-12)
    assert list(table) == ["lower", "upper", "weight", "predicted", "observed", "gap", "low", "high"]


@pytest.mark.parametrize("curve", CURVES[1:], ids=repr)
def test_a_curve_is_shown_at_its_scores(curve, rng):
    p = rng.random(80).round(2)
    y = (rng.random(80) < p).astype(int)
    table = ReliabilityCurve(curve=curve, n_resamples=19)(y, p)
    assert list(table) == ["predicted", "observed", "low", "high"]
    few = 0 if isinstance(curve, IsotonicCurve) else 80 // 20  # rows beyond the ends of a smooth curve
    seen = np.unique(np.sort(p)[few : 80 - few])
    assert np.array_equal(table["predicted"], seen)
    assert np.array_equal(table["observed"], curve.fit(p, y)(seen))


@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize("curve", CURVES, ids=repr)
class TestEveryBand:
    def test_several_events(self, curve, band, rng):
        p = rng.dirichlet(np.ones(3), 60)
        y = rng.integers(0, 3, 60)
        how = ReliabilityCurve(EqualMass(4), ClassWise(), n_resamples=19, curve=curve, band=band)
        table = how(y, p, sample_weight=rng.random(60))
        assert sorted(set(table["event"])) == ["0", "1", "2"]
        assert np.all(table["low"] <= table["high"])
        labels = ReliabilityCurve(EqualMass(4), n_resamples=19, curve=curve, band=band)
        assert sorted(set(labels(np.eye(3, dtype=int)[y], Bernoulli(p))["event"])) == ["0", "1", "2"]

    def test_each_event_is_as_if_alone(self, curve, band, rng):
        p = rng.dirichlet(np.ones(3), 60)
        y = rng.integers(0, 3, 60)
        settings = {"n_resamples": 19, "curve": curve, "band": band}
        table = ReliabilityCurve(EqualMass(4), ClassWise(), **settings)(y, p)
        alone = ReliabilityCurve(EqualMass(4), **settings)((y == 1).astype(int), p[:, 1])
        rows = table["event"] == "1"
        for column in ("predicted", "observed", *(("low", "high") if band == "confidence" else ())):
            assert table[column][rows] == pytest.approx(alone[column], abs=1e-12)

    def test_rows_without_weight_do_not_count(self, curve, band, rng):
        p, y = rng.random(60), rng.integers(0, 2, 60)
        how = ReliabilityCurve(EqualMass(4), n_resamples=19, curve=curve, band=band)
        some = how(y, p, sample_weight=np.r_[np.ones(40), np.zeros(20)])
        for column, values in how(y[:40], p[:40]).items():
            assert some[column] == pytest.approx(values, abs=1e-9)

    @pytest.mark.parametrize(
        ("y", "p"), [([1], [0.4]), ([0, 1, 1], [0.3] * 3), ([0, 1, 0, 1], [0.0, 0.0, 1.0, 1.0]), ([1, 1], [0.2, 0.9])]
    )
    def test_degenerate_problems(self, curve, band, y, p):
        table = ReliabilityCurve(EqualMass(4), n_resamples=19, curve=curve, band=band)(y, p)
        assert np.all((table["low"] >= 0) & (table["low"] <= table["high"]) & (table["high"] <= 1))
        if band == "confidence":
            assert np.all((table["low"] <= table["observed"]) & (table["observed"] <= table["high"]))

    def test_a_higher_level_is_wider(self, curve, band, rng):
        p, y = rng.random(200), rng.integers(0, 2, 200)
        narrow, wide = (ReliabilityCurve(EqualMass(4), None, level, 99, curve, band)(y, p) for level in (0.5, 0.99))
        assert np.all(wide["low"] <= narrow["low"])
        assert np.all(wide["high"] >= narrow["high"])
        assert np.sum(wide["high"] - wide["low"]) > np.sum(narrow["high"] - narrow["low"])

    def test_a_miscalibrated_model_is_seen(self, curve, band, rng):
        """Far from the truth: outside of what chance shows, and the diagonal outside of what the truth may be."""
        p = rng.random(3000)
        y = (rng.random(3000) < 0.5).astype(int)
        table = ReliabilityCurve(n_resamples=99, curve=curve, band=band)(y, p)
        ends = (table["predicted"] < 0.2) | (table["predicted"] > 0.8)
        if band == "consistency":
            assert beyond_chance(table)[ends].mean() > 0.95
        else:
            outside = (table["predicted"] < table["low"]) | (table["predicted"] > table["high"])
            assert outside[ends].mean() > 0.8


@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize("curve", CURVES, ids=repr)
def test_columns_and_tensors_give_the_same_table(curve, band, convert, rng):
    p = rng.dirichlet(np.ones(3), 60).astype(np.float32).astype(np.float64)
    y = rng.integers(0, 3, 60)
    how = ReliabilityCurve(EqualMass(4), ClassWise(), n_resamples=19, curve=curve, band=band)
    plain, other = how(y, p), how(convert(y), convert(p))
    for column in ("predicted", "observed", "low", "high"):
        assert other[column] == pytest.approx(plain[column], abs=1e-5)


@pytest.mark.parametrize("curve", [IsotonicCurve(), KernelSmooth()], ids=repr)
def test_the_truth_on_curves_is_held(curve, bounds):
    """Calibrated models: the diagonal in the middle place, over 300 data sets; smoothing costs the kernel nothing there."""
    rng, sets, inside = np.random.default_rng(12), 300, 0
    p = np.linspace(0.01, 0.99, 99)
    for _ in range(sets):
        table = ReliabilityCurve(curve=curve, band="confidence")((rng.random(99) < p).astype(int), p)
        inside += bool(table["low"][49] <= 0.5 <= table["high"][49])
    assert inside >= bounds(sets, 0.95)[0]


@pytest.mark.parametrize("bins", [Sweep(), 15])
def test_bins_must_not_depend_on_what_happened(bins):
    with pytest.raises(InputError, match=r"does not depend on what happened, such as EqualMass\(15\)"):
        ReliabilityCurve(bins)


def test_ties_that_are_dealt_out(rng):
    p = rng.random(60).round(1)
    y = (rng.random(60) < p).astype(int)
    table = ReliabilityCurve(EqualMass(4, "split"), band="confidence")(y, p)
    assert table["weight"].tolist() == [15.0] * 4
    assert np.all((table["low"] <= table["observed"]) & (table["observed"] <= table["high"]))
