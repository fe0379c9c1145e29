import numpy as np
import pytest

from calibrant.monitoring.monitor import Wealth


def by_definition(ratios, shares):
    """Every start of every bet by itself, O(n^2)."""
    values = []
    for t in range(1, len(ratios) + 1):
        stakes = [np.exp(ratios[s - 1 : t].sum(axis=0)) / (s * (s + 1)) for s in range(1, t + 1)]
        values.append(shares @ np.sum(stakes, axis=0) + 1 / (t + 1))
    return np.array(values)


@pytest.fixture
def ratios():
    return np.random.default_rng(0).normal(-0.05, 0.4, (60, 3))


SHARES = np.array([0.5, 0.3, 0.2])


def test_is_the_sum_over_all_starts(ratios):
    steps = Wealth.fresh(SHARES).after(ratios)
    np.testing.assert_allclose(np.exp(steps.log_evalues), by_definition(ratios, SHARES), rtol=1e-12)
    assert steps.upto(59).log_evalue == pytest.approx(steps.log_evalues[-1], abs=1e-14)


@pytest.mark.parametrize("cut", [1, 17, 59])
def test_rows_may_come_in_parts(ratios, cut):
    whole = Wealth.fresh(SHARES).after(ratios).upto(59)
    first = Wealth.fresh(SHARES).after(ratios[:cut]).upto(cut - 1)
    parts = first.after(ratios[cut:]).upto(59 - cut)
    np.testing.assert_allclose(parts.stakes, whole.stakes, rtol=1e-12)
    np.testing.assert_allclose(parts.won, whole.won, atol=1e-12)
    assert parts.n == whole.n == 60
    assert parts.begun.tolist() == whole.begun.tolist()


def test_begun_is_the_row_after_the_lowest_point(ratios):
    wealth = Wealth.fresh(SHARES).after(ratios).upto(40)
    gains = np.concatenate([np.zeros((1, 3)), np.cumsum(ratios[:41], axis=0)])
    assert wealth.begun.tolist() == (np.argmin(gains, axis=0) + 1).tolist()
    np.testing.assert_allclose(wealth.won, gains[-1] - gains.min(axis=0), atol=1e-12)


def test_begins_at_one_and_stays_there_without_bets():
    assert Wealth.fresh(SHARES).log_evalue == pytest.approx(0)
    assert Wealth.fresh(SHARES).after(np.zeros((100, 3))).log_evalues == pytest.approx(np.zeros(100), abs=1e-12)


def test_what_was_impossible_is_never_forgotten():
    ratios = np.zeros((10, 3))
    ratios[4, 1] = np.inf
    wealth = Wealth.fresh(SHARES).after(ratios).upto(9)
    assert wealth.log_evalue == np.inf
    later = wealth.after(np.full((5, 3), -1.0)).upto(4)
    assert later.log_evalue == np.inf
    assert later.best == 1
    assert later.leads.tolist() == [False, True, False]
    assert not np.isnan(later.stakes).any()


def test_long_streams_neither_overflow_nor_underflow():
    down = Wealth.fresh(SHARES).after(np.full((50_000, 3), -1.0)).upto(49_999)
    assert down.log_evalue == pytest.approx(-np.log(50_001), abs=1e-3)
    up = down.after(np.full((2_000, 3), 1.0)).upto(1_999)
    assert up.log_evalue == pytest.approx(2_000 - np.log(50_001 * 50_002), abs=1)
    assert up.begun.tolist() == [50_001] * 3
