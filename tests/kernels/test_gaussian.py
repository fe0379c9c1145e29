import numpy as np
import pytest

from calibrant.kernels import Gaussian


@pytest.mark.parametrize("span", [0.0, 1.0, 14.0, 200.0])
def test_the_spectrum_is_exact_to_rounding_over_its_span(span):
    kernel = Gaussian(2.0)
    nodes, weights = kernel.spectrum(span)
    d = np.linspace(-span, span, 501)
    assert np.abs(np.cos(d[:, None] * nodes) @ weights - np.exp(-(d**2) / 8)).max() < 1e-14


def test_fourteen_length_scales_need_few_nodes():
    assert len(Gaussian(1.0).spectrum(14.0)[0]) <= 42


def test_gaussian_by_hand():
    assert Gaussian(2.0)(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))[0, 0] == pytest.approx(
        np.exp(-25 / 8), rel=1e-15
    )


@pytest.mark.parametrize("span", [1e12, 1e300, np.inf])
def test_far_too_many_frequencies_are_none(span):
    assert Gaussian(1.0).spectrum(span) is NotImplemented
