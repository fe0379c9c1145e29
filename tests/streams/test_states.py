import contextlib
import json

import numpy as np
import pytest

from calibrant import ECE, SKCE, Brier, DebiasedECE, LogLoss, state
from calibrant._validate import InputError
from calibrant.estimators import UCME, CalibrationRatio, RandomFeatureSKCE
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


def changed(data, path, value):
    """The data with another value in one place; of a function, what it makes of the one that was there."""
    first, *rest = path
    data = dict(data) if isinstance(data, dict) else list(data)
    data[first] = changed(data[first], rest, value) if rest else value(data[first]) if callable(value) else value
    return data


def shorter(sums):
    return sums[:-1]


@pytest.mark.parametrize(
    ("estimator", "path", "value"),
    [
        (ECE(), ("events", 0, "mass"), shorter),
        (ECE(), ("events", 0, "score"), "ff"),
        (ECE(), ("n",), 10**400),
        (ECE(), ("events",), []),
        (DebiasedECE(), ("events",), {}),
        (CalibrationRatio(), ("events",), {}),
        (DebiasedECE(), ("events", "1", 2), shorter),
        (DebiasedECE(), ("events", "1"), shorter),
        (Brier(), ("losses",), shorter),
        (Brier(), ("losses", 0), "1p99999999999"),
        (Brier(), ("shape",), shorter),
        (Brier(), ("shape", 7), 10**400),
        (CalibrationRatio(), ("events", "1"), shorter),
        (CalibrationRatio(), ("events", "1", 2), "-1p900"),
        (RandomFeatureSKCE(), ("others",), shorter),
        (UCME(), ("seen",), shorter),
        (UCME(), ("weight",), []),
        (UCME(), ("weight",), ["0p0"]),
        (SKCE(block=3), ("ranges",), [[0, "x"]]),
        (SKCE(block=3), ("ranges",), [[0]]),
        (SKCE(block=3), ("ranges",), []),
        (SKCE(block=3), ("pieces", 0, "tuple", 0), {"a": 1}),
        (SKCE(block=3), ("pieces", 0, "tuple", 1, "values"), ["a", "b"]),
        (SKCE(block=3), ("pieces", 0, "tuple", 2), "x"),
        (SKCE(block=3), ("means", 2), "-1p0"),
        (SKCE(block=3), ("routes",), [[]]),
    ],
    ids=lambda x: ".".join(map(str, x)) if isinstance(x, tuple) else None,
)
def test_sums_that_no_rows_have_are_refused_as_they_are_read(estimator, path, value, rng):
    p = rng.random(11)
    y = (rng.random(11) < p).astype(int)
    data = json.loads(json.dumps(state(estimator, like=(y, p)).update(y, p).to_dict()))
    assert from_dict(data).n == 11
    with pytest.raises(InputError, match="this is no state that calibrant wrote"):
        from_dict(changed(data, path, value))


def test_features_of_other_predictions_cannot_be_added(rng):
    p = rng.random(11)
    y = (rng.random(11) < p).astype(int)
    whole = state(RandomFeatureSKCE(), like=(y, p)).update(y, p)
    fewer = from_dict(changed(whole.to_dict(), ("features",), shorter))
    with pytest.raises(InputError, match="features cannot be merged"):
        whole.merge(fewer)
