import numpy as np
import pytest

from calibrant import Bernoulli, Categorical
from calibrant.monitoring.bets import ClassBets, EventBets, LabelBets


def test_bets_on_an_event_win_nothing_on_average():
    p = np.array([0.0005, 0.2, 0.5, 0.93, 1.0])
    yes, no = (np.exp(EventBets().log_ratios(np.full(5, y), Categorical(p), 0)[: 5 - (y == 0)]) for y in (1, 0))
    mean = p[:, None] * yes
    mean[:4] += (1 - p[:4, None]) * no
    np.testing.assert_allclose(mean, 1, rtol=1e-12)


def test_bets_on_classes_win_nothing_on_average():
    probs = np.random.default_rng(0).dirichlet([0.4] * 4, 6)
    bets = ClassBets(("a", "b", "c", "d"))
    mean = sum(probs[:, [c]] * np.exp(bets.log_ratios(np.full(6, c), Categorical(probs), 0)) for c in range(4))
    np.testing.assert_allclose(mean, 1, rtol=1e-12)


def test_bets_on_labels_win_nothing_on_average_whatever_their_dependence():
    probs = np.array([[0.3, 0.3], [0.8, 0.8]])
    bets = LabelBets(("rain", "wind"))
    both, none = (np.exp(bets.log_ratios(np.full((2, 2), y), Bernoulli(probs), 0)) for y in (1, 0))
    np.testing.assert_allclose(probs[:, :1] * both + (1 - probs[:, :1]) * none, 1, rtol=1e-12)


@pytest.mark.parametrize(
    ("bets", "width"),
    [(EventBets(), 66), (ClassBets(tuple("abc")), 6 + 4 + 6 + 32), (LabelBets(("x", "y")), 20)],
)
def test_each_bet_has_words_and_a_share(bets, width):
    assert len(bets.bets()) == width
    assert bets.shares.sum() == pytest.approx(1)
    assert all(bets.words(bet.defect) for bet in bets.bets())


def test_columns_and_words_are_in_one_order():
    probs = np.array([[0.2, 0.5, 0.3]])
    bets = ClassBets(("a", "b", "c"))
    ratios = bets.log_ratios(np.array([2]), Categorical(probs), 0)[0]
    found = dict(zip((bets.words(bet.defect) for bet in bets.bets()), ratios, strict=True))
    assert found["probabilities of c are too low"] > 0 > found["probabilities of c are too high"]
    assert found["probabilities of a are too low"] < 0 < found["probabilities of a are too high"]


def test_a_class_that_was_impossible():
    ratios = ClassBets(("a", "b", "c")).log_ratios(np.array([2]), Categorical([[0.5, 0.5, 0.0]]), 0)
    assert np.isposinf(ratios).any()
    assert not np.isnan(ratios).any()
