import itertools
from math import exp

import mpmath as mp
import numpy as np
import pytest
from scipy import special

from calibrant.distributions.continuous import kernel_means as laplace_forms
from calibrant.distributions.continuous.kernel_means import (
    gaussian_laplace,
    gaussian_laplace_laplace,
    laplacian_laplace,
    laplacian_laplace_laplace,
    laplacian_normal,
)

LAPLACIAN = 1e-13
"""Relative error required of the Laplacian forms; half a rounding of an exponent of 700 is 8e-14."""

GAUSSIAN = 1e-12
"""Relative error required of the forms with erfcx, where the value exceeds 1e-280."""

SCALES = [0, 1e-300, 1e-12, 1e-6, 1e-3, 0.03, 0.2, 0.5, 0.9, 1, 1.1, 2, 5, 30, 1e3, 1e6]
NEAR = [1 + s * 10.0**-k for k in range(1, 15) for s in (1, -1)]
PAIRS = [
    *itertools.combinations_with_replacement(SCALES, 2),
    *((1 + 10.0**-k, 1 + 2 * 10.0**-k) for k in range(1, 15)),
    *((1 - 10.0**-k, 1 + 2 * 10.0**-k) for k in range(1, 15)),
    *((b * (1 + 10.0**-k), b) for b in (0.03, 0.3, 50) for k in (1, 2, 3, 6, 10, 14)),
]
SHIFTS = [0, 1e-300, 1e-12, 0.01, 0.7, 3, 40, 400, 700]
GAUSSIAN_SHIFTS = [0, 1e-300, 1e-12, 0.01, 0.7, 3.9, 8, 20, 35.5, 150, 700]


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(130):
        yield


def divided_difference(f, scales):
    """At the squared scales; equal ones are set 1e-40 apart, which costs 80 of the 130 digits."""
    scales = [s * (1 + i * mp.mpf(10) ** -40) for i, s in enumerate(scales)]
    values = [f(s) for s in scales]
    for k in range(1, len(scales)):
        values = [(values[i + 1] - v) / (scales[i + k] ** 2 - scales[i] ** 2) for i, v in enumerate(values[:-1])]
    return values[0]


def present(*scales):
    """The scales that are not zero at 40 digits."""
    return [mp.mpf(s) for s in scales if s > 1e-40]


def laplacian_reference(z, *scales):
    scales = present(1, *scales)
    return divided_difference(lambda s: s ** (2 * len(scales) - 3) * mp.exp(-mp.mpf(z) / s), scales)


def normal_reference(z, s):
    z, s = mp.mpf(z), mp.mpf(s)
    if s < 1e-40:
        return mp.exp(-z)
    sides = (mp.exp(x) * mp.erfc((s + x / s) / mp.sqrt(2)) for x in (z, -z))
    return mp.exp(s**2 / 2) * mp.fsum(sides) / 2


def gaussian_reference(z, *scales):
    z, scales = mp.mpf(z), present(*scales)
    if not scales:
        return mp.exp(-(z**2) / 2)

    def one(b):
        sides = (mp.exp(x / b) * mp.erfc((1 / b + x) / mp.sqrt(2)) for x in (z, -z))
        return mp.sqrt(mp.pi / 8) * mp.exp(1 / b**2 / 2) / b * mp.fsum(sides)

    return divided_difference(lambda s: s ** (2 * len(scales) - 2) * one(s), scales)


FORMS = {
    laplacian_laplace: (laplacian_reference, LAPLACIAN),
    laplacian_laplace_laplace: (laplacian_reference, LAPLACIAN),
    laplacian_normal: (normal_reference, GAUSSIAN),
    gaussian_laplace: (gaussian_reference, GAUSSIAN),
    gaussian_laplace_laplace: (gaussian_reference, GAUSSIAN),
}
DOUBLE = [laplacian_laplace_laplace, gaussian_laplace_laplace]
SINGLE = {laplacian_laplace_laplace: laplacian_laplace, gaussian_laplace_laplace: gaussian_laplace}


def grid(form):
    shifts = GAUSSIAN_SHIFTS if FORMS[form][0] is gaussian_reference else SHIFTS
    scales = PAIRS if form in DOUBLE else [(s,) for s in SCALES + NEAR]
    return np.array([(z, *s) for z in shifts for s in scales], dtype=float)


def log_uniform(rng, low, high, n=300):
    return 10 ** rng.uniform(low, high, n)


def scattered(form, rng):
    """Random points, about the switches of each form: sides of the tail, and the gap of close scales."""
    if form is laplacian_laplace:
        return [log_uniform(rng, -3, 2.8), log_uniform(rng, -4, 4)]
    if form is laplacian_laplace_laplace:
        b = log_uniform(rng, -2, 2)
        return [log_uniform(rng, -3, 2.8), b, b * (1 + log_uniform(rng, -15, 1))]
    b = log_uniform(rng, -1.58, 4)
    if form is laplacian_normal:
        s = log_uniform(rng, -2, 1.6)
        return [s * (s + rng.uniform(0, 20, 300)), s]
    near_tail = np.abs(1 / b + rng.uniform(-8, 10, 300))
    if form is gaussian_laplace:
        return [near_tail, b]
    return [near_tail, b, b * (1 - 2.0**-8 * log_uniform(rng, -2, 2))]


def just_close(rng):
    """Gaussian kernel and two scales as far apart as quadrature is used, where its integrand varies most."""
    b = log_uniform(rng, -1.55, 0.2)
    gap = np.minimum(b / 8, 1 / 16) * rng.uniform(0.8, 1, 300)
    return [1 / b + rng.uniform(2, 4, 300), b, b * (1 - gap)]


def assert_exact(form, points, values):
    reference, tolerance = FORMS[form]
    expected = [reference(*map(float, p)) for p in points]
    kept = [i for i, e in enumerate(expected) if e > mp.mpf(10) ** -280]
    errors = [float(abs(mp.mpf(float(values[i])) / expected[i] - 1)) for i in kept]
    worst = int(np.argmax(errors))
    assert errors[worst] < tolerance, f"{errors[worst]:.1e} at {points[kept[worst]]}"
    lost = np.delete(values, kept)
    assert ((lost >= 0) & (lost < 2e-280)).all()


@pytest.mark.parametrize("form", FORMS)
def test_values_on_a_wide_grid(form):
    points = grid(form)
    assert_exact(form, points, form(*points.T))


@pytest.mark.parametrize("form", FORMS)
def test_values_at_random_points_about_the_switches(form, rng):
    points = np.stack(scattered(form, rng), axis=1)
    assert_exact(form, points, form(*points.T))


def test_values_of_just_close_scales(rng):
    points = np.stack(just_close(rng), axis=1)
    assert_exact(gaussian_laplace_laplace, points, gaussian_laplace_laplace(*points.T))


def expectation(kernel, density, z):
    """Mean of the kernel at z plus noise, by quadrature split at the kinks."""
    return mp.quad(lambda e: kernel(z + e) * density(e), [-mp.inf, -20, -5, -z, 0, 5, 20, mp.inf])


def test_references_are_the_expectations():
    with mp.workdps(25):

        def laplace(e, b):
            return mp.exp(-abs(e) / b) / (2 * b)

        def laplace_laplace(e, b, c):
            return (b**2 * laplace(e, b) - c**2 * laplace(e, c)) / (b**2 - c**2)

        def laplacian(x):
            return mp.exp(-abs(x))

        def gaussian(x):
            return mp.exp(-(x**2) / 2)

        z, b, c = mp.mpf("0.7"), mp.mpf("0.6"), mp.mpf("1.7")
        for kernel, reference in ((laplacian, laplacian_reference), (gaussian, gaussian_reference)):
            one = expectation(kernel, lambda e: laplace(e, b), z)
            two = expectation(kernel, lambda e: laplace_laplace(e, b, c), z)
            with mp.workdps(130):
                assert reference(z, b) == pytest.approx(one, rel=1e-12)
                assert reference(z, b, c) == pytest.approx(two, rel=1e-12)
        normal = expectation(laplacian, lambda e: mp.npdf(e, 0, b), z)
        assert normal_reference(z, b) == pytest.approx(normal, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ((0.7, 1), 0.4220975082226981),
        ((0.7, 2), 0.3042636252153391),
        ((1.3, 0.5), 0.3138600052357942),
        ((0.7, 1, 1), 0.3469889810242474),
        ((0.7, 1, 2), 0.26498566421288616),
        ((0.7, 2, 2), 0.21568843196830803),
        ((0.7, 0.5, 2), 0.2913668160678634),
        ((0, 0.5, 0.5), 5 / 9),
        ((0.7, 1, 0), 1.7 * exp(-0.7) / 2),
        ((0, 1, 1), 3 / 8),
    ],
)
def test_known_values_of_the_laplacian_kernel(arguments, value):
    form = laplacian_laplace if len(arguments) == 2 else laplacian_laplace_laplace
    assert form(*map(np.float64, arguments)) == pytest.approx(value, rel=1e-15)


def test_gaussian_kernel_at_zero_is_a_mills_ratio():
    b = np.array([0.1, 1.0, 7.0])
    assert gaussian_laplace(np.zeros(3), b) == pytest.approx(
        np.sqrt(np.pi / 2) / b * special.erfcx(1 / (b * np.sqrt(2))), rel=GAUSSIAN
    )
    assert laplacian_normal(np.zeros(3), b) == pytest.approx(special.erfcx(b / np.sqrt(2)), rel=GAUSSIAN)


@pytest.mark.parametrize("form", DOUBLE)
def test_the_order_of_scales_does_not_matter(form):
    z, b, c = grid(form).T
    assert np.array_equal(form(z, b, c), form(z, c, b))


@pytest.mark.parametrize("form", FORMS)
def test_only_the_size_of_the_shift_matters(form):
    z, *scales = grid(form).T
    assert np.array_equal(form(z, *scales), form(-z, *scales))


@pytest.mark.parametrize("form", FORMS)
def test_scales_of_zero_leave_the_kernel(form):
    z = np.array([0.0, 0.3, 2.0, 30.0])
    kernel = np.exp(-(z**2) / 2) if FORMS[form][0] is gaussian_reference else np.exp(-z)
    zeros = [np.zeros(4)] * (2 if form in DOUBLE else 1)
    assert form(z, *zeros) == pytest.approx(kernel, rel=1e-15)


@pytest.mark.parametrize("form", DOUBLE)
def test_a_second_scale_of_zero_leaves_the_single_form(form):
    z, b = np.meshgrid([0.0, 0.3, 2.0, 30.0], [1e-9, 0.1, 1.0, 1 + 1e-9, 40.0])
    assert form(z, b, 0 * b) == pytest.approx(SINGLE[form](z, b), rel=FORMS[form][1])


@pytest.mark.parametrize("form", FORMS)
def test_far_shifts_underflow_to_zero(form):
    scales = [np.array([0.0, 0.5, 1.0, 3.0])] * (2 if form in DOUBLE else 1)
    # The square of 1e5 is a number; 1e300 divided by a scale need not be.
    far = 1e300 if FORMS[form][0] is laplacian_reference else 1e5
    assert (form(np.full(4, far), *scales) == 0).all()


@pytest.mark.parametrize("form", FORMS)
def test_arguments_broadcast(form):
    scales = [np.array([0.5, 1.0, 2.0])] * (2 if form in DOUBLE else 1)
    table = form(np.array([[0.1], [0.9]]), *scales)
    assert table.shape == (2, 3)
    assert table[1, 2] == form(np.float64(0.9), *(s[2] for s in scales))


@pytest.fixture(params=["torch", "array_api_strict"])
def library(request):
    """An array library and its erfcx."""
    xp = pytest.importorskip(request.param)
    if request.param == "torch":
        return xp, xp.special.erfcx
    return xp, lambda x: xp.asarray(special.erfcx(np.asarray(x)))


def options(form, erfcx):
    return {} if FORMS[form][0] is laplacian_reference else {"erfcx": erfcx}


@pytest.mark.parametrize("form", FORMS)
def test_libraries_give_the_same_numbers(form, library):
    xp, erfcx = library
    points = grid(form)[::7]
    values = form(*map(xp.asarray, points.T.copy()), **options(form, erfcx))
    assert type(values) is type(xp.asarray(points))
    # Two results, each within its tolerance; below 1e-280 they are only required to vanish.
    assert np.asarray(values) == pytest.approx(form(*points.T), rel=2 * FORMS[form][1], abs=2e-280)


@pytest.mark.parametrize("form", FORMS)
def test_single_precision(form, library):
    xp, erfcx = library
    points = grid(form)
    points = points[points[:, 0] < 4].astype(np.float32)
    expected = form(*points.astype(float).T)
    # Twenty roundings, and those of an exponent of up to 4^2/2.
    for values in (form(*points.T), form(*map(xp.asarray, points.T.copy()), **options(form, erfcx))):
        assert "float32" in str(values.dtype)
        assert np.asarray(values) == pytest.approx(expected, rel=28 * 2.0**-24)


@pytest.mark.parametrize("form", [laplacian_normal, gaussian_laplace, gaussian_laplace_laplace])
def test_other_libraries_must_bring_their_erfcx(form):
    xp = pytest.importorskip("array_api_strict")
    with pytest.raises(TypeError, match="erfcx must be given for Array"):
        form(*[xp.ones(2)] * (3 if form in DOUBLE else 2))


def gradients(form, points, dtype="float64"):
    torch = pytest.importorskip("torch")
    arguments = [torch.tensor(x, dtype=getattr(torch, dtype), requires_grad=True) for x in points.T.tolist()]
    form(*arguments, **options(form, torch.special.erfcx)).sum().backward()
    return np.stack([x.grad.numpy() for x in arguments], axis=1)


def finite_difference(form, point, i):
    """Of the reference: central, so of error 1e-30; one-sided at zero, so of error 1e-15."""
    step = mp.mpf(10) ** -15
    up, down = list(map(mp.mpf, point)), list(map(mp.mpf, point))
    up[i] += step
    down[i] -= step if down[i] > 0 else 0
    reference = FORMS[form][0]
    return float((reference(*up) - reference(*down)) / (up[i] - down[i]))


@pytest.mark.parametrize("form", FORMS)
def test_gradients_are_finite_differences(form):
    scales = [0.001, 0.05, 0.5, 1, 1 + 1e-12, 1 + 1e-6, 1.001, 1.02, 3, 100]
    pairs = [(0.5, 0.5), (0.5, 3), (1, 1), (1, 0.5), (1, 1 + 1e-9), (1.001, 1), (0.02, 0.0201), (100, 99), (1e-5, 1e-6)]
    chosen = pairs if form in DOUBLE else [(s,) for s in scales]
    points = np.array([(z, *s) for z in (0, 0.01, 0.7, 5) for s in chosen])
    expected = [[finite_difference(form, p, i) for i in range(len(p))] for p in points.tolist()]
    # Not close, a gap of 1/16 costs 2/gap^2 = 512 roundings of the value and the scale divides once more: 1e-12 / b.
    assert gradients(form, points) == pytest.approx(np.array(expected), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", FORMS)
def test_gradients_are_finite_everywhere(form, dtype):
    assert np.isfinite(gradients(form, grid(form), dtype)).all()


def test_every_form_is_tested():
    public = {n for n, f in vars(laplace_forms).items() if getattr(f, "__module__", "") == laplace_forms.__name__}
    assert {n for n in public if not n.startswith("_")} == {f.__name__ for f in FORMS} | {"numpy_erfcx"}
