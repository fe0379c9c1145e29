import numpy as np
import pytest

from calibrant._compiled.fourier import cosines_and_sines


@pytest.mark.parametrize("h", [1, 15, 16, 40])
@pytest.mark.parametrize("d", [None, 1, 3])
def test_cosines_and_sines_are_those_of_numpy(h, d, rng):
    points = 20 * rng.normal(size=(5, 7) if d is None else (5, 7, d))
    frequencies, roots = rng.normal(size=h if d is None else (h, d)), rng.random(h)
    angle = points[..., None] * frequencies if d is None else points @ frequencies.T
    expected = np.concatenate([roots * np.cos(angle), roots * np.sin(angle)], axis=-1).transpose(1, 0, 2)
    found = cosines_and_sines(points, frequencies, roots)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=2e-7)


def test_each_quarter_turn():
    angle = np.arange(-9, 10) * np.pi / 4  # every boundary between pieces, and the middle of each
    found = cosines_and_sines(angle[None], np.ones(1), np.ones(1))[:, 0]
    np.testing.assert_allclose(found, np.stack([np.cos(angle), np.sin(angle)], axis=1), atol=2e-7)


def test_no_angle_is_too_large():
    found = cosines_and_sines(np.array([[1e15, 1e17, -1e200, 1e300]]), np.array([1.0, 3.0]), np.ones(2))
    assert np.abs(found).max() <= 1
