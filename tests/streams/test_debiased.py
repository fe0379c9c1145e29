import pytest

from calibrant import ClassWise, DebiasedECE, EqualWidth
from calibrant._validate import InputError
from calibrant.streams.score_states import DebiasedState


@pytest.mark.parametrize("method", ["pairs", "variance"])
@pytest.mark.parametrize("weighted", [True, False])
def test_more_rows_than_a_block_with_its_table(method, weighted, rng):
    p = rng.random(150_000)
    y = (rng.random(150_000) < p) * 1
    w = rng.random(150_000) if weighted else None
    setting = DebiasedECE(EqualWidth(10), method=method)
    state = DebiasedState(setting)
    for rows in (slice(0, 70_000), slice(70_000, None)):
        state = state.update(y[rows], p[rows], sample_weight=None if w is None else w[rows])
    found, whole = state.finalize(), setting(y, p, sample_weight=w)
    assert found.value == pytest.approx(whole.value, rel=1e-11)
    assert found.estimator == whole.estimator
    for column in whole.table:
        assert found.table[column] == pytest.approx(whole.table[column], rel=1e-9)


@pytest.mark.parametrize("norm", [1, 2])
def test_weighted_rows_have_no_interval_and_others_that_of_all_rows(norm, rng):
    p = rng.random(300)
    y, setting = (rng.random(300) < p) * 1, DebiasedECE(EqualWidth(5), norm=norm)
    state = DebiasedState(setting)
    assert tuple(state.update(y, p).finalize().confidence_interval()) == pytest.approx(
        tuple(setting(y, p).confidence_interval())
    )
    with pytest.raises(ValueError, match="a state does not keep the largest weight; DebiasedECE"):
        state.update(y, p, sample_weight=rng.random(300)).finalize().confidence_interval()


def test_what_is_refused():
    with pytest.raises(InputError, match=r"bins that do not depend on the data: use DebiasedECE\(EqualWidth\(15\)\)"):
        DebiasedState(DebiasedECE())
    state = DebiasedState(DebiasedECE(EqualWidth(3), lens=ClassWise())).update([0], [[0.2, 0.8]])
    with pytest.raises(InputError, match="different predictions cannot be merged"):
        state.update([0], [[0.2, 0.8, 0.0]])
