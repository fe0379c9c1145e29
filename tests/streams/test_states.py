import json

import numpy as np
import pytest

from calibrant import ECE, SKCE, Brier, LogLoss, state
from calibrant._validate import InputError
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
