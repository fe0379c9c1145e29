import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import Bernoulli, Brier, ClassWise, LogLoss, TopLabel
from calibrant._validate import InputError
from calibrant.estimators import decompose

SCORES = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.1, 0.5, 1.0]))
ROWS = st.lists(st.tuples(st.booleans(), SCORES, st.integers(0, 3)), min_size=1, max_size=40)


def test_by_hand():
    """Recalibrated scores are 0, 1/2, 1/2, 1 and the base rate is 1/2."""
    found = decompose([0, 1, 0, 1], [0.1, 0.3, 0.5, 0.9])
    assert found.score == pytest.approx((0.01 + 0.49 + 0.25 + 0.01) / 4, rel=1e-13)
    assert found.miscalibration == pytest.approx(0.19 - 0.125, rel=1e-12)
    assert found.discrimination == pytest.approx(0.25 - 0.125, rel=1e-12)
    assert found.uncertainty == pytest.approx(0.25, rel=1e-14)
    log = decompose([0, 1, 0, 1], [0.1, 0.3, 0.5, 0.9], score="log")
    assert log.score == pytest.approx(-np.log([0.9, 0.3, 0.5, 0.9]).mean(), rel=1e-13)
    assert log.miscalibration == pytest.approx(log.score - np.log(2) / 2, rel=1e-12)
    assert (log.discrimination, log.uncertainty) == pytest.approx((np.log(2) / 2, np.log(2)), rel=1e-12)


@pytest.mark.parametrize(("score", "estimator"), [("brier", Brier()), ("log", LogLoss())])
def test_the_score_is_that_of_the_estimator(score, estimator, rng):
    p, w = rng.dirichlet(np.ones(3), 80), rng.random(80)
    y = rng.integers(0, 3, 80)
    found = decompose(y, p, score=score, lens=TopLabel(), sample_weight=w)
    assert found.score == pytest.approx(estimator(*TopLabel()(y, p), sample_weight=w).value, rel=1e-12)
    assert found.name == estimator.name
    assert found.lens == "top-label"


@pytest.mark.parametrize("score", ["brier", "log"])
@given(rows=ROWS)
@settings(deadline=None)
def test_the_parts_add_up_and_are_never_negative(score, rows):
    y, p, w = (np.array(column) for column in zip(*rows, strict=True))
    w = w + (w.sum() == 0)
    found = decompose(y.astype(int), p, score=score, sample_weight=w)
    assert min(found.miscalibration, found.discrimination, found.uncertainty) >= 0
    together = found.miscalibration - found.discrimination + found.uncertainty
    assert together == pytest.approx(found.score, abs=1e-12)


def test_rounding_makes_nothing_negative():
    """Sums of these weights are rounded: without care the first is -1.1e-16, and the second -2.8e-17."""
    assert decompose([1, 0, 0, 0, 0], [0.2] * 5, score="log", sample_weight=[0.7] * 5).miscalibration == 0
    assert decompose([1, 1, 1, 1, 1, 0], [5 / 6] * 6).discrimination == 0


@pytest.mark.parametrize("score", ["brier", "log"])
def test_calibrated_in_the_sample_means_no_miscalibration(score):
    p = np.repeat([0.25, 0.75], 4)
    y = np.array([1, 0, 0, 0, 1, 1, 1, 0])
    found = decompose(y, p, score=score)
    assert found.miscalibration == pytest.approx(0, abs=1e-15)
    assert found.discrimination > 0


@pytest.mark.parametrize("score", ["brier", "log"])
def test_a_monotone_change_of_the_scores_moves_the_miscalibration_alone(score, rng):
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    one, other = decompose(y, p, score=score), decompose(y, p**3, score=score)
    assert (other.discrimination, other.uncertainty) == pytest.approx((one.discrimination, one.uncertainty), rel=1e-12)
    assert other.miscalibration > one.miscalibration


@pytest.mark.parametrize("score", ["brier", "log"])
def test_weights_equal_repetition_of_rows(score, rng):
    p, y, times = rng.random(60).round(1), rng.integers(0, 2, 60), rng.integers(0, 3, 60)
    p = p.clip(0.05, 0.95)
    weighted = decompose(y, p, score=score, sample_weight=times)
    repeated = decompose(np.repeat(y, times), np.repeat(p, times), score=score)
    for part in ("score", "miscalibration", "discrimination", "uncertainty"):
        assert getattr(weighted, part) == pytest.approx(getattr(repeated, part), rel=1e-11)


def test_the_impossible_is_infinitely_miscalibrated():
    found = decompose([1, 0, 1], [0.0, 0.4, 0.8], score="log")
    assert (found.score, found.miscalibration) == (np.inf, np.inf)
    assert np.isfinite([found.discrimination, found.uncertainty]).all()
    assert json.loads(found.to_json())["miscalibration"] == "inf"
    note = "1 row was predicted to be impossible, and happened: the log loss is infinite. score='brier' is finite"
    assert found.notes == (note,)
    assert note in repr(found)
    assert decompose([1, 0, 1], [0.0, 0.4, 0.8], score="log", sample_weight=[0, 1, 1]).notes == ()
    assert decompose([1, 0, 1], [0.0, 0.4, 0.8], score="brier").notes == ()


@pytest.mark.parametrize("score", ["brier", "log"])
def test_certain_and_right(score):
    found = decompose([0, 1, 1], [0.0, 1.0, 1.0], score=score)
    assert (found.score, found.miscalibration) == (0, 0)
    assert found.discrimination == found.uncertainty > 0


@pytest.mark.parametrize("score", ["brier", "log"])
def test_one_row_and_one_class(score):
    found = decompose([1], [0.4], score=score)
    assert (found.discrimination, found.uncertainty) == (0, 0)
    assert found.miscalibration == found.score


def test_several_events_are_averaged(rng):
    p = rng.dirichlet(np.ones(3), 50)
    y = rng.integers(0, 3, 50)
    found = decompose(y, p, lens=ClassWise())
    single = [decompose((y == c).astype(int), p[:, c]) for c in range(3)]
    assert found.table["event"].tolist() == ["0", "1", "2"]
    assert found.table["discrimination"] == pytest.approx([s.discrimination for s in single], rel=1e-13)
    assert found.miscalibration == pytest.approx(np.mean([s.miscalibration for s in single]), rel=1e-13)
    labels = decompose(np.eye(3, dtype=int)[y], Bernoulli(p))
    assert labels.score == pytest.approx(found.score, rel=1e-13)
    assert json.loads(labels.to_json())["kind"] == "decomposition"


def test_bad_settings():
    with pytest.raises(InputError, match="score must be 'brier' or 'log'; got 'crps'"):
        decompose([1], [0.5], score="crps")
    with pytest.raises(InputError, match="lens must be a lens"):
        decompose([1], [0.5], lens="top")


def test_columns_and_tensors(convert, rng):
    p = rng.dirichlet(np.ones(3), 90).astype(np.float32).astype(np.float64)
    y = rng.integers(0, 3, 90)
    found = decompose(convert(y), convert(p), score="log", lens=ClassWise())
    assert found.miscalibration == pytest.approx(
        decompose(y, p, score="log", lens=ClassWise()).miscalibration, rel=1e-4
    )
