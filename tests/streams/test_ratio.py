import pytest

from calibrant import ClassWise
from calibrant._validate import InputError
from calibrant.estimators import CalibrationRatio
from calibrant.streams.score_states import RatioState


@pytest.mark.parametrize(
    ("y", "p"),
    [([1, 0, 1, 1], [0.6, 0.2, 0.7, 0.3]), ([0, 0, 0], [0.2, 0.1, 0.3]), ([1, 1], [0.5, 0.5])],
    ids=["usual", "nothing happened", "no spread"],
)
def test_with_interval_and_notes(y, p):
    state = RatioState()
    for row in zip(y, p, strict=True):
        state = state.update([row[0]], [row[1]])
    found, whole = state.finalize(), CalibrationRatio()(y, p)
    assert found.value == pytest.approx(whole.value, rel=1e-14)
    assert (found.notes, found.estimator) == (whole.notes, whole.estimator)
    assert (found.interval is None) == (whole.interval is None)
    if whole.interval is not None:
        assert found.interval.low == pytest.approx(whole.interval.low, rel=1e-13)


def test_nothing_expected():
    with pytest.raises(InputError, match="expects no event at all"):
        RatioState().update([0, 1], [0.0, 0.0]).finalize()


def test_other_estimators_and_events():
    with pytest.raises(InputError, match="estimator must be a CalibrationRatio; got 3"):
        RatioState(3)
    state = RatioState(CalibrationRatio(ClassWise())).update([0], [[0.2, 0.8]])
    assert list(state.finalize().table["event"]) == ["0", "1"]
