import numpy as np
import pytest

from calibrant import SKCE, Normal, state
from calibrant._validate import InputError
from calibrant.estimators import UCME, GivenLocations
from calibrant.kernels import Exponential
from calibrant.streams import block_state as locations
from calibrant.streams.block_state import LocationState


def test_rows_in_small_groups(rng, monkeypatch):
    monkeypatch.setattr(locations, "ROWS", 7)
    p, y = rng.dirichlet(np.ones(3), 50), rng.integers(0, 3, 50)
    ucme = UCME(Exponential(0.5), locations=GivenLocations(y[:4], p[:4]))
    assert LocationState(ucme).update(y, p).finalize().value == pytest.approx(ucme(y, p).value, rel=1e-12)


def test_locations_of_a_first_sample(rng):
    p, y = rng.dirichlet(np.ones(3), 50), rng.integers(0, 3, 50)
    total = state(UCME(), like=(y, p)).update(y[:20], p[:20]).update(y[20:], p[20:])
    assert total.finalize().value == pytest.approx(UCME()(y, p).value, rel=1e-12)


def test_other_locations_cannot_be_merged():
    one, other = (UCME(Exponential(0.5), locations=GivenLocations([0], [p])) for p in (0.25, 0.75))
    with pytest.raises(InputError, match="different estimators cannot be merged"):
        LocationState(one).merge(LocationState(other))
    same = UCME(Exponential(0.5), locations=GivenLocations([0], np.array([0.25])))
    assert LocationState(one).update([0], [0.5]).merge(LocationState(same).update([1], [0.5])).n == 2


def test_what_is_refused():
    with pytest.raises(InputError, match=r"locations=SampledLocations\(.*\) are rows of the data"):
        LocationState(UCME(Exponential(0.5)))
    with pytest.raises(InputError, match="estimator must be a UCME; got SKCE"):
        LocationState(SKCE())
    ucme = UCME(Exponential(0.5), Exponential(1.0), GivenLocations([0], [0.5]))
    with pytest.raises(InputError, match="locations are Categorical predictions; the data are Normal"):
        LocationState(ucme).update([0.0], Normal([0.0], [1.0]))
