import pytest

from calibrant import SKCE, Normal, state
from calibrant._validate import InputError
from calibrant.kernels import Exponential, Gaussian
from calibrant.streams.base import check_kernels, check_target_kernel


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (
            SKCE(),
            r"on_predictions=Exponential\(.*\) takes its length scale .* give one, such as Exponential\(0.1\), or",
        ),
        (SKCE(Exponential(1.0), Gaussian()), r"on_targets=Gaussian\(.*such as Gaussian\(0.1\)"),
        (SKCE(Exponential(1.0) + Gaussian()), "on_predictions=Sum"),
    ],
)
def test_open_length_scales_are_refused(estimator, message):
    with pytest.raises(InputError, match=message):
        check_kernels(estimator)


def test_the_default_kernel_on_numbers_is_open():
    with pytest.raises(InputError, match=r"on_targets must be given for a stream of Normal predictions"):
        state(SKCE(Exponential(1.0), block=2)).update([0.0], Normal([0.0], [1.0]))
    check_target_kernel(SKCE(Exponential(1.0), Gaussian(1.0)), Normal([0.0], [1.0]))
