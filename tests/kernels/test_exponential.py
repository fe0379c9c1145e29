import numpy as np
import pytest

from calibrant.kernels import Exponential


@pytest.mark.parametrize("power", [0.5, 1.0, 1.5, 2.0])
def test_exponential_by_hand(power):
    kernel = Exponential(2.0, power=power)
    assert kernel(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))[0, 0] == pytest.approx(
        np.exp(-(2.5**power)), rel=1e-14
    )
