import numpy as np
import pytest
from scipy.special import gamma, kv

from calibrant.kernels import Matern


@pytest.mark.parametrize("smoothness", [1.5, 2.5])
def test_matern_is_the_bessel_form(smoothness):
    d = np.array([0.1, 1.0, 5.0])
    s = np.sqrt(2 * smoothness) * d / 0.7
    bessel = 2 ** (1 - smoothness) / gamma(smoothness) * s**smoothness * kv(smoothness, s)
    assert Matern(smoothness, 0.7)(np.zeros((1, 1)), d[:, None])[0] == pytest.approx(bessel, rel=1e-13)
