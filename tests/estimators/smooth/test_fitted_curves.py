import numpy as np
import pytest

from calibrant import ExactTest
from calibrant._validate import InputError
from calibrant.estimators import ICI, IsotonicCurve, KernelSmooth
from calibrant.estimators.smooth.fitted_curves import GridPositions, grids_of, quantiles


def test_rows_are_shared_out_linearly(rng):
    scores, weights, observed = np.append(rng.random(50), [0.0, 1.0]), rng.random(52), rng.random(52) < 0.5
    grid = GridPositions.of(scores, weights, 8)
    hats = np.maximum(1 - np.abs(8 * scores[:, None] - np.arange(9)), 0)
    assert grid.weight == pytest.approx(weights @ hats, abs=1e-13)
    assert grid.event(observed) == pytest.approx((weights * observed) @ hats, abs=1e-13)


def test_grids_are_kept(rng):
    places = grids_of(rng.random(20), np.ones(20))
    assert places(512) is places(512)


def test_all_summaries_by_hand():
    """The isotonic curve of these rows is 0, 1/2, 1/2, 1; the gaps are 0.1, 0.2, 0, 0.1."""
    y, p = [0, 1, 0, 1], [0.1, 0.3, 0.5, 0.9]
    found = {s: ICI(IsotonicCurve(), s)(y, p).value for s in ("mean", "median", "p90", "max")}
    assert found == pytest.approx({"mean": 0.1, "median": 0.1, "p90": 0.2, "max": 0.2}, rel=1e-12)


def test_summaries_have_the_names_of_the_literature():
    names = [ICI(summary=s)([0, 1], [0.2, 0.7]).name for s in ("mean", "median", "p90", "max")]
    assert names == ["ICI", "E50", "E90", "Emax"]


def test_against_the_sum_over_all_pairs(rng):
    p, w, h = rng.random(300), rng.random(300), 0.1
    y = (rng.random(300) < p**2).astype(int)
    shifts = 2 * np.arange(-3, 4)[:, None, None]
    near = np.exp(-((p[:, None] - p + shifts) ** 2) / (2 * h**2)) + np.exp(
        -((p[:, None] + p + shifts) ** 2) / (2 * h**2)
    )
    near = near.sum(axis=0) * w
    gaps = np.abs(near @ y / near.sum(axis=1) - p)
    assert ICI(KernelSmooth(h))(y, p, sample_weight=w).value == pytest.approx(w @ gaps / w.sum(), abs=1e-4)
    assert ICI(KernelSmooth(h), "max")(y, p, sample_weight=w).value == pytest.approx(gaps.max(), abs=1e-4)


def test_a_large_sample_finds_the_truth(rng):
    """``P(y = 1) = 0.3 + 0.4 f`` with uniform f: the mean of |0.3 - 0.6 f| is 0.15, its 90 % quantile 0.27, the largest 0.3."""
    p = rng.random(100_000)
    y = (rng.random(100_000) < 0.3 + 0.4 * p).astype(int)
    for curve in (KernelSmooth(), IsotonicCurve()):
        assert ICI(curve)(y, p).value == pytest.approx(0.15, abs=0.01)
        assert ICI(curve, "median")(y, p).value == pytest.approx(0.15, abs=0.01)
        assert ICI(curve, "p90")(y, p).value == pytest.approx(0.27, abs=0.02)
        assert ICI(curve, "max")(y, p).value == pytest.approx(0.3, abs=0.04)


def test_the_result_says_which_bandwidth_was_chosen(rng):
    p = rng.random(200)
    y = (rng.random(200) < p).astype(int)
    result = ICI()(y, p)
    assert result.estimator.curve.bandwidth == KernelSmooth().fit(p, y).bandwidth
    assert result.estimator(y, p).value == result.value


def test_the_exact_test_takes_it(rng):
    p = rng.random(300)
    honest, boastful = ((rng.random(300) < q).astype(int) for q in (p, 0.3 + 0.4 * p))
    assert ExactTest(ICI(), 199)(honest, p).pvalue > 0.05
    assert ExactTest(ICI(), 199)(boastful, p).pvalue == 0.005


@pytest.mark.parametrize("curve", [IsotonicCurve(), KernelSmooth(), KernelSmooth(0.05)], ids=repr)
@pytest.mark.parametrize("summary", ["mean", "median", "p90", "max"])
class TestEdges:
    def test_one_row(self, curve, summary):
        assert ICI(curve, summary)([1], [0.4]).value == pytest.approx(0.6, abs=1e-12)

    def test_equal_scores(self, curve, summary):
        assert ICI(curve, summary)([1, 0, 0, 0], [0.75] * 4).value == pytest.approx(0.5, abs=1e-6)

    def test_certain_and_right_or_wrong(self, curve, summary):
        p = [0.0, 1.0, 1.0, 0.0]
        assert ICI(curve, summary)([0, 1, 1, 0], p).value == pytest.approx(0, abs=1e-3)
        wrong = ICI(curve, summary)([1, 0, 0, 1], p).value
        assert wrong == pytest.approx(0.5 if isinstance(curve, IsotonicCurve) else 1, abs=1e-3)

    def test_rows_without_weight_do_not_count(self, curve, summary, rng):
        p, y = rng.random(40), rng.integers(0, 2, 40)
        w = np.r_[np.ones(25), np.zeros(15)]
        assert ICI(curve, summary)(y, p, sample_weight=w).value == ICI(curve, summary)(y[:25], p[:25]).value


def test_quantiles_equal_those_of_repeated_values(rng):
    values, times = rng.random(50).round(1), rng.integers(0, 4, 50)
    shares = np.array([0, 0.1, 0.25, 0.5, 0.9, 1])
    expected = np.quantile(np.repeat(values, times), shares, method="averaged_inverted_cdf")
    assert quantiles(values[times > 0], times[times > 0], shares) == pytest.approx(expected, abs=1e-15)
    assert quantiles(values, None, shares) == pytest.approx(
        np.quantile(values, shares, method="averaged_inverted_cdf"), abs=1e-15
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"curve": "isotonic"}, r"curve must be a curve such as KernelSmooth\(\) or IsotonicCurve\(\); got 'isotonic'"),
        ({"summary": "mode"}, "summary must be 'mean', 'median', 'p90' or 'max'; got 'mode'"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        ICI(**settings)
