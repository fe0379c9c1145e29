from math import inf, sqrt

import numpy as np
import pytest

from calibrant import ECE, Bernoulli, Categorical, ClassWise, EqualMass, EqualWidth, TopLabel
from calibrant._validate import InputError
from calibrant.estimators.binned import ece
from calibrant.estimators.binned.binning import lp_norm


class TestEdgeTable:
    def test_probability_one_belongs_to_the_last_bin(self):
        assert ECE(EqualWidth(10))([1, 0], [0.95, 1.0]).value == pytest.approx(0.475, abs=1e-15)

    @pytest.mark.parametrize("binning", [EqualWidth(15), EqualMass(15)])
    @pytest.mark.parametrize("norm", [1, 2, 3.5, inf])
    def test_certain_and_always_wrong_is_one(self, binning, norm):
        assert ECE(binning, norm)([1, 0, 0, 1], [0.0, 1.0, 1.0, 0.0]).value == 1

    @pytest.mark.parametrize("binning", [EqualWidth(15), EqualMass(15)])
    @pytest.mark.parametrize("norm", [1, 2, 3.5, inf])
    def test_certain_and_always_right_is_zero(self, binning, norm):
        assert ECE(binning, norm)([0, 1, 1, 0], [0.0, 1.0, 1.0, 0.0]).value == 0

    @pytest.mark.parametrize("binning", [EqualWidth(15), EqualMass(15), EqualMass(1)])
    def test_constant_predictions(self, binning):
        assert ECE(binning)([1, 0, 0, 0], [0.7] * 4).value == pytest.approx(0.45, abs=1e-15)

    def test_one_class_only(self):
        assert ECE()([1, 1, 1], [0.8, 0.8, 0.8]).value == pytest.approx(0.2, abs=1e-15)

    def test_ties_share_a_bin_whatever_their_order(self):
        p = np.array([0.2, 0.5, 0.5, 0.5, 0.5, 0.9])
        values = {ECE(EqualMass(2))(y, p).value for y in ([0, 0, 0, 1, 1, 1], [0, 1, 1, 0, 0, 1], [0, 1, 0, 1, 0, 1])}
        assert len(values) == 1


def by_hand(y, p, n_bins, norm):
    """The definition, one bin after the other, from exact fractions j / B."""
    total = 0.0
    gaps = []
    for j in range(n_bins):
        inside = (p > j / n_bins) & (p <= (j + 1) / n_bins) if j else (p <= 1 / n_bins)
        if inside.any():
            gap = abs(p[inside].mean() - y[inside].mean())
            gaps.append(gap)
            total += inside.mean() * gap**norm if norm != inf else 0
    return max(gaps) if norm == inf else total ** (1 / norm)


@pytest.mark.parametrize("norm", [1, 2, 3, inf])
@pytest.mark.parametrize("n_bins", [1, 4, 15])
def test_against_the_definition(norm, n_bins, rng):
    p = rng.beta(0.5, 0.5, 300).round(2)
    y = (rng.random(300) < p**2).astype(int)
    assert ECE(EqualWidth(n_bins), norm)(y, p).value == pytest.approx(by_hand(y, p, n_bins, norm), rel=1e-12)


@pytest.mark.parametrize("norm", [1, 2, inf])
def test_class_wise_is_the_mean_over_classes_in_the_same_norm(norm, rng):
    p = rng.dirichlet(np.ones(4), 200)
    y = rng.integers(0, 4, 200)
    single = np.array([ECE(norm=norm)((y == c).astype(int), p[:, c]).value for c in range(4)])
    expected = single.max() if norm == inf else np.mean(single**norm) ** (1 / norm)
    assert ECE(norm=norm, lens=ClassWise())(y, p).value == pytest.approx(expected, rel=1e-12)
    assert ECE(norm=norm)(np.eye(4, dtype=int)[y], Bernoulli(p)).value == pytest.approx(expected, rel=1e-12)


def test_label_binned_compares_each_row_with_its_bin(rng):
    p = np.array([0.1, 0.3, 0.6, 0.9])
    y = [0, 1, 1, 1]  # two bins, frequencies 1/2 and 1
    estimator = ECE(EqualWidth(2), label_binned=True)
    assert estimator(y, p).value == pytest.approx((0.4 + 0.2 + 0.4 + 0.1) / 4, abs=1e-15)
    squares = ECE(EqualWidth(2), norm=2, label_binned=True)
    assert squares(y, p).value == pytest.approx(sqrt((0.16 + 0.04 + 0.16 + 0.01) / 4), rel=1e-13)
    assert ECE(EqualWidth(2), inf, label_binned=True)(y, p).value == pytest.approx(0.4, abs=1e-15)
    assert estimator(y, p).value >= ECE(EqualWidth(2))(y, p).value


def test_the_bin_table_adds_up(rng):
    p = rng.random(500)
    y = (rng.random(500) < p).astype(int)
    result = ECE(EqualMass(10))(y, p)
    table = result.table
    assert table["weight"].tolist() == [50] * 10
    assert table["weight"] @ table["predicted"] == pytest.approx(p.sum(), rel=1e-13)
    assert table["weight"] @ table["observed"] == pytest.approx(y.sum(), rel=1e-13)
    assert table["weight"] @ np.abs(table["gap"]) / 500 == pytest.approx(result.value, rel=1e-13)
    assert np.array_equal(table["lower"][1:], table["upper"][:-1])
    assert np.all((table["lower"] < table["predicted"]) & (table["predicted"] <= table["upper"]))


def test_empty_bins_are_left_out_of_the_table():
    assert ECE(EqualWidth(10))([1, 0], [0.95, 0.05]).table["lower"].tolist() == [0.0, 0.9]


def test_the_table_names_the_event_where_there_are_several():
    table = ECE(EqualWidth(2), lens=ClassWise())([0, 1], [[0.9, 0.1], [0.2, 0.8]]).table
    assert table["event"].tolist() == ["0", "0", "1", "1"]


def test_more_rows_than_a_block(rng):
    n = 100_000
    p = rng.random(n)
    y = (rng.random(n) < p).astype(np.int8)
    assert ECE(EqualWidth(15), 2)(y, p).value == pytest.approx(by_hand(y, p, 15, 2), rel=1e-10)


def test_reduction_is_said():
    assert ECE()([1], [0.5]).lens == "positive class (1)"
    assert ECE(lens=TopLabel())([1], [0.5]).lens == "top-label"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"norm": 0.5}, "norm must be a number of at least 1, or inf; got 0.5"),
        ({"norm": "L1"}, "norm must be a number of at least 1, or inf; got 'L1'"),
        ({"norm": float("nan")}, "norm must be a number"),
        ({"bins": 15}, r"bins must be a binning such as EqualWidth\(15\) or EqualMass\(15\); got 15"),
        ({"lens": "top"}, r"lens must be a lens such as TopLabel\(\); got 'top'"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        ECE(**settings)


def test_order_of_rows_on_real_networks(network, rng):
    _, y, p = network
    order = rng.permutation(len(y))
    for estimator in (ECE(lens=TopLabel()), ECE(EqualMass(15), norm=2, lens=ClassWise())):
        assert estimator(y[order], p[order]).value == pytest.approx(estimator(y, p).value, rel=1e-12)


@pytest.mark.parametrize("norm", [1, 2, 3.0, inf])
@pytest.mark.parametrize("together", [1, 40, 1 << 16])
def test_norms_of_classes_have_the_digits_of_one_by_one(norm, together, rng, monkeypatch):
    monkeypatch.setattr(ece, "TOGETHER", together)
    predictions = Categorical(rng.dirichlet(np.ones(7) / 2, 90))
    statistic = ECE(EqualMass(5), lens=ClassWise(), norm=norm).given(predictions, None)
    drawn = predictions.sample(rng, 6)
    (counts,) = statistic.counts
    gap = (counts.predicted - counts.observed(drawn)) / np.where(counts.weight > 0, counts.weight, 1)
    alone = [lp_norm(gap[:, i], w, norm) for i, w in enumerate(counts.weight)]
    expected = np.stack(alone, axis=1)
    assert (statistic.each(drawn) == expected).all()
    assert (statistic(drawn) == lp_norm(expected, np.ones(7), norm)).all()
