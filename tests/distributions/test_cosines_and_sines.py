import numpy as np
import pytest

from calibrant.distributions.characteristic_functions import MAX_DIRECT, as_sums, cosines_and_sines


@pytest.mark.parametrize("m", [1, 2, MAX_DIRECT, MAX_DIRECT + 1, 100, 997])
@pytest.mark.parametrize("start", [0.0, 0.3])
def test_evenly_spaced_frequencies_are_sums_of_few(m, start):
    w = start + 0.07 * np.arange(m)
    first, second = as_sums(w)
    sums = (first[:, None] + second).ravel()[:m]
    assert sums == pytest.approx(w, rel=1e-14)
    assert len(first) + len(second) <= (2 * m**0.5 + 3 if m > MAX_DIRECT else m + 1)


def test_other_frequencies_stay_as_they_are(rng):
    for w in (rng.normal(size=100), np.arange(100.0) ** 1.01, np.arange(100.0) + 1e-9 * (np.arange(100) == 50)):
        first, second = as_sums(w)
        assert np.array_equal(first, w)
        assert second.tolist() == [0.0]


@pytest.mark.parametrize("w", [np.arange(500) * 0.013, np.array([0.3, 7.0, -2.0])], ids=len)
def test_characteristic_functions_are_cosines_and_sines(w, xp, rng):
    y = 50 * rng.normal(size=7)
    cosine, sine = cosines_and_sines(xp.asarray(y), w)
    assert isinstance(cosine, type(xp.asarray(y)))
    assert np.asarray(cosine) == pytest.approx(np.cos(y[:, None] * w), abs=5e-13)
    assert np.asarray(sine) == pytest.approx(np.sin(y[:, None] * w), abs=5e-13)
