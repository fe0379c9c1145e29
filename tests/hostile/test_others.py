"""What is refused of points, distributions, models, statistics and tensors, and that good ones are taken."""

import importlib.util
import warnings

import numpy as np
import pytest

pytest.importorskip("polars")
pytest.importorskip("matplotlib").use("agg")

from calibrant import ECE, Brier, MultivariateNormal, Normal, Variational, groups  # noqa: E402  # which need these
from calibrant._validate import InputError, as_column  # noqa: E402
from calibrant.distributions import Foreign, Truncated, coordinate, dimensions  # noqa: E402
from calibrant.inference import differences, interval_of_share, westfall_young  # noqa: E402
from calibrant.kernels import Cityblock, Energy, Euclidean, Exponential, Gaussian, Matern  # noqa: E402
from calibrant.recalibration import Recalibrated  # noqa: E402
from calibrant.streams import from_bins, merged  # noqa: E402
from tests.hostile.calls import called  # noqa: E402
from tests.hostile.others import of_tensors, others  # noqa: E402
from tests.hostile.tools import tools  # noqa: E402

P = np.array([0.2, 0.7])
EVERY = [*others(), *tools(), *(of_tensors() if importlib.util.find_spec("torch") else ())]


@pytest.mark.parametrize("subject", EVERY, ids=lambda s: s.name.partition(" at 0x")[0][:40])
def test_good_arguments_are_taken(subject):
    assert called(lambda: subject.call(**subject.good)).word == "result"


REFUSED = {
    "dimensions": (lambda: dimensions(P), "predictions must be a distribution .*; got a ndarray"),
    "coordinate": (lambda: coordinate(P, 0), "predictions must be a distribution"),
    "index": (lambda: coordinate(MultivariateNormal([[0.0, 1.0]], 1.0), 2), "index must be .* from 0 to 1; got 2"),
    "Recalibrated": (lambda: Recalibrated(P, [-1, 1], [-1, 1]), "base must be a distribution"),
    "scores": (lambda: Recalibrated(Normal(P, 1.0), ["a"], [1.0]), "scores must be finite numbers that increase"),
    "Foreign": (lambda: Foreign(P), "source must be a distribution with one of cdf"),
    "low": (lambda: Truncated(Normal(P, 1.0), [[1], [1, 2]]), "low has rows of different lengths"),
    "measure": (lambda: groups(P, [1, 0], P, by=[1, 2]), "measure must be an estimator or a test .*; got a ndarray"),
    "class": (lambda: groups(ECE, [1, 0], P, by=[1, 2]), "got the class ECE: call it"),
    "one": (lambda: Variational()(np.array([0.3, 0.4]), np.float64(0.5)), "y_pred is a single value"),
    "parts": (lambda: as_column(np.array([[1], [1, 2]], dtype=object), "by"), r"by must be one .* got \[1\] in row 0"),
    "points": (lambda: Gaussian(1.0)(P, P), r"x must be an array of points, \(n, d\); got shape \(2,\)"),
    "list": (lambda: Energy()([[1.0]], P[:, None]), "x must be an array of points, .*; got a list"),
    "apart": (lambda: Exponential(1.0)(np.ones((2, 1)), np.ones((2, 2))), "x has 1 coordinates and y has 2"),
    "texts": (lambda: Cityblock()(np.array([["a"]]), np.ones((1, 1))), "x must hold real numbers"),
    "median": (lambda: Gaussian().resolve(P), "must be an array of points"),
    "classes": (
        lambda: differences(Brier(), [0, 1], {"a": P, "b": np.full((2, 3), 1 / 3)}),
        "models must predict the same classes; got 3 and 2",
    ),
    "statistics": (lambda: westfall_young("x", [1.0]), "statistics is a str"),
    "trials": (lambda: interval_of_share(3, 2), "successes must be at most the 2 trials; got 3"),
    "states": (lambda: merged(["{"]), "texts must be states in JSON"),
    "rows": (lambda: from_bins(ECE(), [(0, 1, "a", 1)]), "rows must hold bin, weight"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_belongs_elsewhere_is_refused_in_words(case):
    call, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("kernel", [Exponential(1e-50), Exponential(1.0, power=1.5), Gaussian(1.0), Matern(2.5, 1.0)])
def test_points_farther_apart_than_numbers_are_alike_in_nothing(kernel):
    """And equal ones are equal, in any number of dimensions."""
    for d in (1, 3):
        x = np.full((2, d), 1e300) * [[1.0], [-1.0]]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert kernel(x, x) == pytest.approx(np.eye(2))


def test_distances_on_a_line_have_no_squares():
    x = np.array([[1e300], [-1e300], [5e-200]])
    assert Euclidean()(x, x)[0].tolist() == [0.0, 2e300, 1e300]
    assert Euclidean()(x, 0 * x[:1])[2, 0] == 5e-200
    assert Energy()(x, x)[0].tolist() == [1e300, 0.0, 0.0]


def test_whole_numbers_without_a_sign_are_points():
    assert Cityblock()(np.array([[1]], dtype=np.uint8), np.array([[3]], dtype=np.uint8)) == 2
