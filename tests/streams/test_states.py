import contextlib
import json

import numpy as np
import pytest

from calibrant import ECE, SKCE, Brier, LogLoss, state
from calibrant._validate import InputError
from calibrant.estimators import CalibrationRatio
from calibrant.kernels import Exponential
from calibrant.streams import from_dict


def test_one_pass_for_all(rng):
    p = rng.random(100)
    y = (rng.random(100) < p) * 1
    estimators = ECE(), Brier(), SKCE(Exponential(0.2), block=9)
    total = state(*estimators)
    for start in (50, 0, 75, 25):
        rows = slice(start, start + 25)
        total = total.update(y[rows], p[rows], start=start)
    total = from_dict(json.loads(json.dumps(total.to_dict())))
    assert total.n == 100
    for found, estimator in zip(total.finalize(), estimators, strict=True):
        assert found.value == pytest.approx(estimator(y, p).value, rel=1e-12)


def test_nothing_and_merging():
    both = state(Brier(), LogLoss())
    assert both.update([], []) is both
    merged = both.update([1], [0.5]).merge(both.update([0], [0.5], sample_weight=[2.0]))
    assert merged.n == 2
    with pytest.raises(InputError, match="their numbers differ"):
        both.merge(state(Brier(), LogLoss(), ECE()))
    assert np.isclose(merged.finalize()[0].value, 0.25)


@pytest.mark.parametrize("kind", [ECE(), Brier(), CalibrationRatio()], ids=lambda kind: type(kind).__name__)
def test_states_that_no_state_wrote_are_refused(kind):
    data = state(kind).update([1, 0], [0.8, 0.4]).to_dict()
    assert from_dict(data).n == 2
    for name in data:
        for value in (None, [], {}, "odd", -1):
            with contextlib.suppress(InputError):  # some fields hold texts, or nothing
                assert from_dict({**data, name: value}).n == 2
        with pytest.raises(InputError):
            from_dict({key: value for key, value in data.items() if key != name} | {"n": -1})
    with pytest.raises(InputError, match="this is no state that calibrant wrote"):
        from_dict({**data, "n": 10.5})
    with pytest.raises(InputError, match="this is no state that calibrant wrote"):
        from_dict({"state": "several", "states": 3})
