import numpy as np
import pytest

from calibrant.kernels import Energy


def test_energy_in_the_plane(rng):
    x, y = rng.normal(size=(4, 2)), rng.normal(size=(5, 2))
    norm = np.linalg.norm
    expected = [[(norm(a) + norm(b) - norm(a - b)) / 2 for b in y] for a in x]
    assert Energy()(x, y) == pytest.approx(np.array(expected), abs=1e-14)
