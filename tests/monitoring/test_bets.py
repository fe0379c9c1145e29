import numpy as np
import pytest

from calibrant.monitoring.bets import EDGES, HEIGHTS, POWERS, LocalTilts, overall, shared, sharpened, signed, tilted

PROBS = np.array([0.0, 1e-9, 0.01, 0.3, 0.5, 0.97, 1 - 1e-9, 1.0])
YES, NO = np.ones(len(PROBS), dtype=bool), np.zeros(len(PROBS), dtype=bool)


def mean_ratio(of):
    """What a calibrated event gives on average."""
    yes, no = np.exp(of(PROBS, YES)), np.exp(of(PROBS, NO))
    p = PROBS.reshape(-1, *[1] * (yes.ndim - 1))
    with np.errstate(invalid="ignore"):  # what is impossible adds nothing, infinite or not
        return np.where(p > 0, p * yes, 0) + np.where(p < 1, (1 - p) * no, 0)


@pytest.mark.parametrize("tilt", [-3.0, -0.1, 0.3, 1.0])
def test_a_tilt_wins_nothing_on_average_from_a_calibrated_event(tilt):
    np.testing.assert_allclose(mean_ratio(lambda p, y: tilted(p, y, tilt)), 1, rtol=1e-12)


@pytest.mark.parametrize("power", POWERS)
def test_nor_does_a_power(power):
    np.testing.assert_allclose(mean_ratio(lambda p, y: sharpened(p, y, power)), 1, rtol=1e-12)


def test_nor_do_local_tilts():
    np.testing.assert_allclose(mean_ratio(LocalTilts(EDGES).log_ratios), 1, rtol=1e-12)


@pytest.mark.parametrize(
    ("of", "infinite"),
    [
        (lambda p, y: tilted(p, y, 1.0), [True, False]),  # what never could happen did: too low
        (lambda p, y: tilted(p, y, -1.0), [False, True]),
        (lambda p, y: sharpened(p, y, 0.5), [True, True]),
        (lambda p, y: sharpened(p, y, 2.0), [False, False]),  # nobody was too timid
    ],
)
def test_what_had_probability_zero_is_evidence_without_end_for_bets_that_say_so(of, infinite):
    found = of(np.array([0.0, 1.0]), np.array([True, False]))
    assert np.isposinf(found).tolist() == infinite
    assert not np.isneginf(found).any()  # what is lost for ever would say nothing of later rows
    assert of(np.array([0.0, 1.0]), np.array([False, True])).tolist() == [0, 0]


def test_a_tilt_is_a_shift_of_the_log_odds():
    p, odds = 0.3, np.log(0.3 / 0.7) + 0.7
    q = 1 / (1 + np.exp(-odds))
    found = tilted(np.array([p, p]), np.array([True, False]), 0.7)
    assert found == pytest.approx([np.log(q / p), np.log((1 - q) / (1 - p))])


def test_a_power_scales_the_log_odds():
    q = 1 / (1 + np.exp(-0.5 * np.log(0.9 / 0.1)))
    found = sharpened(np.array([0.9, 0.9]), np.array([True, False]), 0.5)
    assert found == pytest.approx([np.log(q / 0.9), np.log((1 - q) / 0.1)])


def test_local_tilts_leave_other_rows_alone():
    parts = LocalTilts((0.5,))
    ratios = parts.log_ratios(np.array([0.2, 0.5, 0.7]), np.array([True, True, True]))
    part = np.array([at for at, _ in parts.tilts])
    assert np.all(ratios[:2][:, part == 1] == 0)
    assert np.all(ratios[:2][:, part == 0] != 0)  # the end 0.5 belongs to the part below it
    assert np.all(ratios[2][part == 0] == 0)
    assert [defect.part for defect in parts.defects()] == part.tolist()
    assert parts.place(0) == "between 0 % and 50 %"


def test_words_and_tilts_go_together():
    assert len(HEIGHTS) == len(signed((0.1, 0.3, 1.0)))
    assert HEIGHTS[0] == "too low"  # it happens more often than was said
    assert signed((0.1,))[0] > 0


def test_shares_sum_to_one():
    bets = shared([overall(HEIGHTS[:3]), overall(HEIGHTS[:1]), overall(HEIGHTS * 2)])
    assert sum(bet.share for bet in bets) == pytest.approx(1)
