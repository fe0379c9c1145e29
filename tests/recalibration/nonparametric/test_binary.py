"""What all recalibrators of two classes do."""

import json

import numpy as np
import pytest
from scipy.special import expit, logit

from calibrant import Categorical, Normal
from calibrant._validate import InputError
from calibrant.recalibration import HistogramBinning, Isotonic, ScalingBinning, VennAbers
from calibrant.recalibration.maps import Map
from calibrant.recalibration.nonparametric.isotonic import Pools, as_knots, pools_of, scores_of

ALL = [
    Isotonic(),
    Isotonic(centred=True),
    Isotonic(smoothed=True),
    HistogramBinning(),
    HistogramBinning(6, by="width"),
    ScalingBinning(),
    VennAbers(),
]
"""Every recalibrator of two classes that has no file of formulas of its own to test."""

AT = np.r_[0, np.linspace(0, 1, 57), 1]


@pytest.fixture
def rows(rng):
    """Too sure by a factor of two in log-odds; with ties, and exactly 0 and 1."""
    p = np.r_[rng.beta(0.5, 0.5, 600).round(2), 0, 0, 1, 1]
    return (rng.random(604) < expit(0.5 * logit(np.clip(p, 1e-3, 1 - 1e-3)))).astype(int), p


@pytest.mark.parametrize("recalibrator", ALL, ids=repr)
class TestEveryBinaryRecalibrator:
    def test_it_mends_a_model_that_is_too_sure(self, recalibrator, rng):
        p = rng.beta(0.5, 0.5, 4_000)
        fitted = recalibrator.fit(rng.random(4_000) < expit(0.4 * logit(p) + 0.5), p)
        log_loss, brier = fitted.scores.rows()
        assert brier["change"] < -3 * brier["error"]
        if recalibrator not in (Isotonic(), Isotonic(centred=True)):  # whose log loss may be infinite
            assert log_loss["change"] < -3 * log_loss["error"]

    def test_weights_equal_repetition_where_the_number_of_rows_has_no_say(self, recalibrator, rows, rng):
        if not isinstance(recalibrator, Isotonic) or recalibrator.smoothed:
            return
        y, p = rows
        times = rng.integers(0, 4, len(y))
        weighted = recalibrator.fit(y, p, sample_weight=times, folds=0)
        repeated = recalibrator.fit(np.repeat(y, times), np.repeat(p, times), folds=0)
        assert weighted(AT) == pytest.approx(repeated(AT), abs=1e-9)

    @pytest.mark.parametrize("whole", [True, False])
    def test_the_scale_of_weights_does_not_matter(self, recalibrator, rows, whole, rng):
        y, p = rows
        w = rng.integers(0, 4, len(y)) if whole else rng.random(len(y))
        one, other = (recalibrator.fit(y, p, sample_weight=c * w, folds=0)(AT) for c in (1, 7.3))
        assert one == pytest.approx(other, abs=1e-9)

    def test_the_order_of_rows_does_not_matter(self, recalibrator, rows, rng):
        y, p = rows
        order = rng.permutation(len(y))
        expected = recalibrator.fit(y, p, folds=0)(AT)
        assert recalibrator.fit(y[order], p[order], folds=0)(AT) == pytest.approx(expected, abs=1e-9)

    def test_json_keeps_every_digit(self, recalibrator, rows):
        fitted = recalibrator.fit(*rows, folds=0)
        again = Map.from_dict(json.loads(json.dumps(fitted.map.to_dict())))
        assert type(again) is type(fitted.map)
        np.testing.assert_array_equal(again(AT), fitted(AT))

    def test_corrupted_numbers_are_refused(self, recalibrator, rows):
        data = recalibrator.fit(*rows, folds=0).map.to_dict()
        for name, value in data.items():
            if isinstance(value, list):
                with pytest.raises(InputError, match="cannot be used"):
                    Map.from_dict({**data, name: [2.0, *value[1:]]})
                with pytest.raises(InputError, match="cannot be used"):
                    Map.from_dict({**data, name: [*value, value[-1]]})
        with pytest.raises(InputError, match="n_classes must be 2; got 3"):
            Map.from_dict({**data, "n_classes": 3})

    def test_both_classes_sum_to_one_and_columns_agree(self, recalibrator, rows):
        y, p = rows
        fitted = recalibrator.fit(y, p, folds=0)
        table = fitted(np.stack([1 - AT, AT], axis=1))
        assert table.sum(axis=1) == pytest.approx(1, abs=1e-15)
        assert np.all((table >= 0) & (table <= 1))
        assert table[:, 1] == pytest.approx(fitted(AT), abs=1e-12)

    def test_labels_stay(self, recalibrator, rows):
        y, p = rows
        given = Categorical(p, labels=("no", "yes"))
        assert recalibrator.fit(np.array(["no", "yes"])[y], given, folds=0)(given).labels == ("no", "yes")

    def test_constant_predictions_become_the_frequency(self, recalibrator):
        fitted = recalibrator.fit([0, 1, 1, 0, 1] * 400, np.full(2000, 0.2), folds=0)
        assert fitted([0.2]) == pytest.approx(0.6, abs=1e-3)
        assert np.all(np.isfinite(fitted(AT)))

    @pytest.mark.parametrize("outcome", [0, 1])
    def test_one_class_only(self, recalibrator, outcome, rng):
        found = recalibrator.fit(np.full(100, outcome), rng.random(100), folds=0)(AT)
        assert np.all((found >= 0) & (found <= 1))
        assert np.all(np.abs(found - outcome) <= 0.5)

    @pytest.mark.parametrize("p", [[0.3, 0.3], [0.2, 0.9], [0.0, 1.0], [1.0, 0.0]])
    def test_two_rows(self, recalibrator, p):
        found = recalibrator.fit([0, 1], p, folds=0)(AT)
        assert np.all((found >= 0) & (found <= 1))

    def test_float32_is_as_good(self, recalibrator, rows):
        y, p = rows
        single = recalibrator.fit(y, p.astype(np.float32), folds=0)
        assert single(p.astype(np.float32)) == pytest.approx(recalibrator.fit(y, p, folds=0)(p), abs=1e-5)

    def test_other_problems_are_refused(self, recalibrator, rows, rng):
        name = type(recalibrator).__name__
        with pytest.raises(InputError, match=rf"{name} maps two classes and y_pred has 3: use OneVsRest\({name}\(\)\)"):
            recalibrator.fit([0, 1, 2], rng.dirichlet(np.ones(3), 3))
        with pytest.raises(InputError, match="maps class probabilities; got Normal predictions"):
            recalibrator.fit([0.5, 1.0], Normal([0.0, 1.0], 1.0))
        fitted = recalibrator.fit(*rows, folds=0)
        with pytest.raises(InputError, match="fitted on 2 classes and y_pred has 3"):
            fitted(rng.dirichlet(np.ones(3), 3))
        with pytest.raises(InputError, match="got Normal predictions"):
            fitted(Normal([0.0], 1.0))


@pytest.mark.parametrize("knots", [[0.5, 0.2], [0.2, 1.5], [np.nan, 0.5], [[0.1, 0.2]]])
def test_knots_that_decrease_or_are_no_fractions_are_refused(knots):
    with pytest.raises(InputError, match="knots must"):
        as_knots(knots, "knots")


def test_pools_have_the_mean_of_equal_scores():
    predictions = Categorical(np.array([0.5, 0.2, 0.5, 0.5]))
    found = pools_of(np.array([1, 0, 0, 1]), predictions, np.array([1.0, 2.0, 1.0, 2.0]), "Isotonic")
    expected = Pools(np.array([0.2, 0.5]), np.array([0, 0.75]), np.array([1.2, 2.4]))  # 3.6 effective rows
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-15)


def test_the_score_of_rows_that_miss_one_by_rounding():
    assert scores_of(np.array([[0.5, 0.25], [0.3, 0.7]])) == pytest.approx([1 / 3, 0.7])


def test_the_score_of_a_column_is_the_column(rng):
    p = np.r_[rng.random(10_000), rng.random(1000) * 1e-17, 0, 1]
    np.testing.assert_array_equal(scores_of(Categorical(p).matrix), p)
