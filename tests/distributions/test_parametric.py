"""What families of a few numbers per row have in common, each beside SciPy's own."""

import itertools
import pickle
from dataclasses import fields

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from calibrant import Ensemble, Gamma, Laplace, LogNormal, NegativeBinomial, Normal, Poisson, StudentT
from calibrant._validate import InputError
from calibrant.distributions import Beta, Logistic, Uniform
from calibrant.distributions.base import one_a_row
from calibrant.distributions.parametric import as_columns, is_single, single

CASES = {
    StudentT: ([1.2, 2.5, 7.0, 1e6], [0.3, -2.0, 1e3, 0.0], [1.0, 0.01, 40.0, 2.0]),
    Logistic: ([0.3, -2.0, 1e3], [1.0, 0.01, 40.0]),
    LogNormal: ([0.3, -2.0, 9.0], [1.0, 0.01, 2.5]),
    Gamma: ([0.2, 1.0, 3.5, 4e4], [1.0, 0.01, 40.0, 2.0]),
    Beta: ([0.2, 1.0, 3.5, 4e4], [0.7, 1.0, 60.0, 1e4]),
    Uniform: ([0.3, -2.0, 1e3], [0.4, 5.0, 1e3 + 1e-3]),
    Poisson: ([0.01, 1.0, 7.3, 900.0],),
    NegativeBinomial: ([0.01, 1.0, 7.3, 900.0], [0.5, 1e-3, 3.0, 0.1]),
}

SCIPY = {
    StudentT: stats.t,
    Logistic: stats.logistic,
    LogNormal: lambda loc, scale: stats.lognorm(scale, scale=np.exp(loc)),
    Gamma: lambda shape, rate: stats.gamma(shape, scale=1 / rate),
    Beta: stats.beta,
    Uniform: lambda low, high: stats.uniform(low, high - low),
    Poisson: stats.poisson,
    NegativeBinomial: lambda rate, dispersion: stats.nbinom(1 / dispersion, 1 / (1 + dispersion * rate)),
}

LEVELS = (1e-9, 1e-7, 1e-5, 1e-3, 0.02, 0.3, 0.7, 0.98, 0.999, 1 - 1e-5, 1 - 1e-7)

COUNTS = (Poisson, NegativeBinomial)

FAMILIES = pytest.mark.parametrize("family", CASES)


def both(family):
    parameters = [np.array(column) for column in CASES[family]]
    return family(*parameters), SCIPY[family](*parameters)


def places(theirs):
    """Targets in the middle and in both tails, ``(m, n)``."""
    return np.stack([theirs.ppf(u) for u in (1e-9, 0.02, 0.3, 0.5, 0.9, 1 - 1e-9)])


@FAMILIES
def test_densities_and_levels_are_those_of_scipy(family):
    ours, theirs = both(family)
    y = places(theirs)
    log_prob = theirs.logpmf(y) if family in COUNTS else theirs.logpdf(y)
    assert ours.log_prob(y) == pytest.approx(log_prob, rel=1e-8, abs=1e-8)
    assert ours.cdf(y) == pytest.approx(theirs.cdf(y), rel=1e-8, abs=0)


@pytest.mark.parametrize("family", [*CASES, Normal, Laplace])
def test_levels_of_the_largest_numbers(family, rng):
    batch = family.example(rng, 3)
    assert batch.cdf(np.full(3, 1.7e308)).tolist() == [1.0] * 3
    assert batch.cdf(np.full(3, -1.7e308)).tolist() == [0.0] * 3


@pytest.mark.parametrize("family", [Uniform, Gamma, Beta])
def test_kinks_are_the_ends_that_are_numbers(family, rng):
    batch = family.example(rng, 3)
    ends = batch.quantile(np.array([0.0, 1.0]))
    assert np.array_equal(batch.kinks, ends[:, np.isfinite(ends[0])])


@FAMILIES
def test_quantiles_are_those_of_scipy(family):
    ours, theirs = both(family)
    u = np.array([1e-12, 1e-3, 0.1, 0.5, 0.99, 1 - 1e-9])
    assert ours.quantile(u) == pytest.approx(theirs.ppf(u[:, None]).T, rel=1e-8)


@FAMILIES
def test_levels_of_zero_and_one_are_the_ends(family):
    ours, theirs = both(family)
    low, high = (np.broadcast_to(end, len(ours)) for end in theirs.support())
    low = np.maximum(low, 0) if family in COUNTS else low  # SciPy says -1 for the quantile of zero
    assert ours.quantile(np.array([0.0, 1.0])) == pytest.approx(np.stack([low, high], axis=1))


@FAMILIES
def test_moments_are_those_of_scipy(family):
    ours, theirs = both(family)
    assert ours.mean == pytest.approx(theirs.mean(), rel=1e-12)
    assert ours.std == pytest.approx(theirs.std(), rel=1e-12)


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")  # where all but rounding is found
@FAMILIES
def test_the_ranked_score_is_an_integral(family):
    """``integral (F(x) - [y <= x])^2 dx``, cut where most of it is."""
    ours, _ = both(family)
    for i in range(len(ours)):
        one = ours[i : i + 1]
        cuts = np.unique([SCIPY[family](*(c[i] for c in CASES[family])).ppf(u) for u in LEVELS])
        for y in (cuts[0], cuts[len(cuts) // 2], cuts[-1]):
            assert one.crps(np.array([y]))[0] == pytest.approx(ranked(family, one, y, cuts), rel=2e-7, abs=1e-12)


def ranked(family, one, y, cuts):
    if family in COUNTS:
        k = np.arange(0.0, 40 * cuts[-1] + 100)
        return ((one.cdf(k[:, None])[:, 0] - (k >= y)) ** 2).sum()

    unit = np.diff(one.quantile(np.array([0.3, 0.7])))[0, 0]

    def f(t):
        return (one.cdf(np.array([y + t * unit]))[0] - (t >= 0)) ** 2

    ends = one.quantile(np.array([0.0, 1.0]))[0]
    edges = np.unique([(x - y) / unit for x in (*cuts, y, *ends)])
    options = {"epsabs": 1e-10, "epsrel": 1e-8, "limit": 400}
    return unit * sum(quad(f, a, b, **options)[0] for a, b in itertools.pairwise(edges))


@FAMILIES
def test_beyond_all_values_the_ranked_score_grows_with_the_distance(family):
    ours, theirs = both(family)
    if family is StudentT:
        return  # nothing is beyond all values
    high = np.broadcast_to(theirs.ppf(1 - 1e-15), len(ours))
    far = high + 1000 * theirs.std()
    assert ours.crps(far + 7) - ours.crps(far) == pytest.approx(np.full(len(ours), 7.0), rel=1e-9)


@FAMILIES
def test_characteristic_functions_are_integrals_between_quantiles(family):
    """``E exp(i w Y)``, by many quantiles that are closer together in the tails."""
    ours, _ = both(family)
    t = (np.arange(40_000) + 0.5) / 40_000
    u, weights = t**3 * (10 - 15 * t + 6 * t**2), 30 * (t * (1 - t)) ** 2 / len(t)
    for i in range(len(ours)):
        one = ours[i : i + 1]
        spread = np.diff(one.quantile(np.array([0.05, 0.95])))[0, 0]
        w = np.array([0.0, 0.4, -2.0]) / max(spread, 1.0)
        found = one.cf(w)[0][0] + 1j * one.cf(w)[1][0]
        if family in COUNTS:
            k = np.arange(20 * one.mean[0] + 400)
            wanted = np.exp(one.log_prob(k[:, None])[:, 0]) @ np.exp(1j * k[:, None] * w)
        else:
            wanted = weights @ np.exp(1j * one.quantile(u)[0][:, None] * w)
        assert np.abs(found - wanted).max() < 2e-6  # heavy tails oscillate between the last quantiles


@FAMILIES
def test_draws_follow_the_distribution(family, rng):
    ours, _ = both(family)
    draws = ours.sample(rng, 20_000)
    for y in np.quantile(draws, [0.1, 0.5, 0.9], axis=0):
        level = ours.cdf(y)
        assert np.all(np.abs((draws <= y).mean(axis=0) - level) < 5 * np.sqrt(level * (1 - level) / 20_000) + 1e-9)


@FAMILIES
def test_one_number_may_serve_all_rows(family):
    first, *others = CASES[family]
    singles = [2e3 if family is Uniform else x[-1] for x in others]
    batch, repeated = family(first, *singles), family(first, *([x] * len(first) for x in singles))
    assert all(np.array_equal(a, b) for a, b in zip(batch.parameters, repeated.parameters, strict=True))


@FAMILIES
def test_columns_are_rows(family):
    ours, _ = both(family)
    again = family(*(np.array(column)[:, None] for column in CASES[family]))
    assert all(np.array_equal(a, b) for a, b in zip(again.parameters, ours.parameters, strict=True))
    y = ours.as_targets(ours.quantile(np.array([0.5])))
    assert y.shape == (len(ours),)


@FAMILIES
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_parameters_are_finite(family, bad):
    columns = [list(column) for column in CASES[family]]
    columns[-1][1] = bad
    with pytest.raises(InputError, match=r"has NaN or infinite values in 1 place, first in row 1"):
        family(*columns)


@FAMILIES
def test_parameters_have_as_many_rows(family):
    columns = [list(column) for column in CASES[family]]
    if len(columns) > 1:
        with pytest.raises(InputError, match=r"\w+ has 2 rows and \w+ has \d: they must be equal"):
            family(*columns[:-1], columns[-1][:2])
    with pytest.raises(InputError, match=r"must be one number per row; got shape \(1, \d\)"):
        family(*(np.array(column)[None] for column in columns))
    with pytest.raises(InputError, match=r"is empty: got shape \(0,\)"):
        family(*([] for _ in columns))
    with pytest.raises(InputError, match="must hold real numbers"):
        family(*(["a"] for _ in columns))


@pytest.mark.parametrize("family", [f for f in CASES if f not in (Logistic, LogNormal)])
def test_not_all_parameters_can_be_single_numbers(family):
    with pytest.raises(InputError, match="must be one number per row, as an array or a list; got"):
        family(*(column[0] for column in CASES[family]))


POSITIVE = [
    (StudentT, "df"),
    (StudentT, "scale"),
    (Logistic, "scale"),
    (LogNormal, "scale"),
    (Gamma, "shape"),
    (Gamma, "rate"),
    (Beta, "a"),
    (Beta, "b"),
    (Poisson, "rate"),
    (NegativeBinomial, "rate"),
    (NegativeBinomial, "dispersion"),
]


@pytest.mark.parametrize(("family", "name"), POSITIVE)
@pytest.mark.parametrize("bad", [0.0, -2.0])
def test_what_must_be_positive_is(family, name, bad):
    names = [field.name for field in fields(family)]
    columns = {key: list(column) for key, column in zip(names, CASES[family], strict=True)}
    columns[name][1] = bad
    with pytest.raises(InputError, match=f"{name} must be positive; found {bad:g} in row 1"):
        family(**columns)


@FAMILIES
@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([np.nan] * 4, "y_true has NaN or infinite values"),
        (np.zeros((4, 2)), r"y_true must be one number per row; got shape \(4, 2\)"),
        (["a"] * 4, "y_true must hold real numbers"),
        ([], "y_true is empty"),
    ],
)
def test_targets_are_numbers(family, y, message):
    with pytest.raises(InputError, match=message):
        both(family)[0].as_targets(y)


@FAMILIES
def test_rows_words_and_travel(family):
    ours, _ = both(family)
    picked = ours[np.array([2, 0])]
    assert all(np.array_equal(a, b[[2, 0]]) for a, b in zip(picked.parameters, ours.parameters, strict=True))
    assert len(ours[1:]) == len(ours) - 1
    assert repr(ours) == f"<{family.__name__}: {len(ours)} predictions>"
    again = pickle.loads(pickle.dumps(ours))
    assert all(np.array_equal(a, b) for a, b in zip(again.parameters, ours.parameters, strict=True))


@FAMILIES
def test_single_precision_stays(family):
    columns = [np.array(column[:2], dtype=np.float32) for column in CASES[family]]
    batch = family(*columns)
    assert all(column.dtype == np.float32 for column in batch.parameters)
    assert batch.coords.dtype == (np.float64 if family is StudentT else np.float32)  # SciPy's quantiles are doubles
    assert batch.cdf(batch.quantile(np.array([0.5]))[:, 0]).dtype == np.float64


@FAMILIES
def test_every_library_gives_the_same_numbers(family, xp, rng):
    ours = family.example(rng, 4)
    other = family(*(xp.asarray(column) for column in ours.parameters))
    kind, w = type(xp.asarray([0.0])), np.array([0.0, 0.3, 2.0])
    y = ours.sample(rng, 1)[0]
    for found, wanted in (
        (other.coords, ours.coords),
        (other.mean, ours.mean),
        (other.std, ours.std),
        *zip(other.cf(xp.asarray(w)), ours.cf(w), strict=True),
    ):
        assert isinstance(found, kind)
        assert np.asarray(found) == pytest.approx(wanted, rel=1e-12, abs=1e-15)
    assert isinstance(other.as_targets(y), kind)
    assert isinstance(other.as_targets(y.tolist()), kind)
    for found, wanted in ((other.log_prob, ours.log_prob), (other.cdf, ours.cdf), (other.crps, ours.crps)):
        assert found(y) == pytest.approx(wanted(y), rel=1e-12)
    assert np.array_equal(other.quantile(w[:2]), ours.quantile(w[:2]))
    assert len(other.point(other.as_targets(y))) == 4


@FAMILIES
def test_mixed_input_joins_the_library_that_is_there(family):
    torch = pytest.importorskip("torch")
    first, *others = CASES[family]
    batch = family(torch.tensor(first), *others)
    assert all(isinstance(column, torch.Tensor) for column in batch.parameters)
    if others and family is not Logistic and family is not LogNormal:
        batch = family(np.array(first), *(torch.tensor(x, dtype=torch.float64) for x in others))
        assert all(isinstance(column, torch.Tensor) and column.dtype == torch.float64 for column in batch.parameters)


@pytest.mark.parametrize("family", [StudentT, Gamma, Beta, Uniform, NegativeBinomial])
def test_mixed_precision_becomes_double(family):
    first, *others = (np.array(column[:2]) for column in CASES[family])
    batch = family(first.astype(np.float32), *others)
    assert {column.dtype for column in batch.parameters} == {np.dtype(np.float64)}


@FAMILIES
def test_gradients_of_the_caller_are_kept(family):
    torch = pytest.importorskip("torch")
    columns = [torch.tensor(column, dtype=torch.float64, requires_grad=True) for column in CASES[family]]
    family(*columns).coords.sum().backward()
    known = columns[1:] if family is StudentT else columns  # no derivative of quantiles by degrees of freedom
    assert all(torch.any(column.grad != 0) for column in known)


@pytest.mark.parametrize("family", [Normal, Laplace, Logistic, Uniform])
def test_location_scale_coordinates_have_the_wasserstein_distance(family):
    batch = family([0.3, -1.0], [0.5, 2.0])
    squared = quad(lambda u: np.diff(batch.quantile(np.array([u]))[:, 0])[0] ** 2, 0, 1, points=[0.5], limit=400)[0]
    assert np.linalg.norm(np.diff(batch.coords, axis=0)) ** 2 == pytest.approx(squared, rel=1e-7)


@pytest.mark.parametrize("family", [Gamma, Beta, Poisson, NegativeBinomial])
def test_other_coordinates_stay_below_it_but_not_by_much(family, rng):
    """The first two moments alone, of predictions that are not far apart in shape."""
    batch = family.example(rng, 30)
    u = (np.arange(1_000) + 0.5) / 1_000
    q = batch.quantile(u)
    wasserstein = np.sqrt(((q[:, None] - q[None]) ** 2).mean(axis=-1))
    found = np.linalg.norm(batch.coords[:, None] - batch.coords[None], axis=-1)
    assert np.all(found < wasserstein + 5e-3)
    far = wasserstein > np.median(wasserstein)
    assert np.all(found[far] > 0.9 * wasserstein[far])


TEMPERED = {
    StudentT: StudentT([6.0], 0.4, 0.9),
    LogNormal: LogNormal([0.4], 0.9),
    Gamma: Gamma([2.5], 0.9),
    Beta: Beta([2.5], 4.0),
    Uniform: Uniform([0.4], 0.9),
}


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("plain", TEMPERED.values(), ids=lambda p: type(p).__name__)
def test_tempering_is_a_power_of_the_density(plain, temperature):
    """Normalised over the reference measure, in which densities are taken."""

    def power(y):
        at = np.array([y])
        reference = np.broadcast_to(plain.log_reference(at), 1)[0]
        return np.exp((plain.log_prob(at)[0] - reference) / temperature + reference)

    cuts = [-np.inf, *plain.quantile(np.array([1e-6, 0.1, 0.5, 0.9, 1 - 1e-6]))[0], np.inf]
    ends = plain.quantile(np.array([0.0, 1.0]))[0]
    edges = np.unique(np.clip(cuts, *ends))
    total = sum(quad(power, a, b, limit=400)[0] for a, b in itertools.pairwise(edges))
    tempered = plain.temper(temperature)
    for y in plain.quantile(np.array([0.1, 0.6, 0.95]))[0]:
        assert np.exp(tempered.log_prob(np.array([y]))[0]) == pytest.approx(power(y) / total, rel=1e-6)


@pytest.mark.parametrize("plain", TEMPERED.values(), ids=lambda p: type(p).__name__)
def test_temperatures_are_positive(plain):
    for temperature in (0, -1.0, float("nan")):
        with pytest.raises(InputError, match="temperature must be positive; got"):
            plain.temper(temperature)


def test_what_has_no_temperature():
    for batch in (Logistic([0.0], 1.0), Poisson([1.0]), NegativeBinomial([1.0], 1.0)):
        assert batch.temper(2.0) is NotImplemented


@FAMILIES
def test_points_are_where_they_should_be(family, rng):
    batch = family.example(rng, 3)
    y = batch.as_targets(batch.sample(rng, 1)[0])
    point = batch.point(y)
    if isinstance(point, Ensemble):
        assert np.array_equal(point.members, y[:, None])
        assert point.members.dtype == np.float64
    else:
        assert type(point) is family
        assert point[1:].parameters[-1].shape == (2,)


def test_columns_know_what_is_single():
    assert [is_single(x) for x in (1, 2.0, np.float32(3), np.array(4.0), [1.0], np.ones(1), "a", None)] == [True] * 4 + [False] * 4  # fmt: skip
    assert single(2, np.zeros(1)) == 2.0
    a, b = as_columns({"a": [1, 2], "b": np.float32(3)})
    assert (a.tolist(), b.tolist()) == ([1.0, 2.0], [3.0, 3.0])
    assert one_a_row([[1.0], [2.0]], "x").tolist() == [1.0, 2.0]
