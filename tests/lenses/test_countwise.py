import numpy as np
import pytest

from calibrant import (
    ECE,
    ClassWise,
    Ensemble,
    EqualMass,
    ExactTest,
    Mixture,
    NegativeBinomial,
    Normal,
    Poisson,
    TopLabel,
)
from calibrant._validate import InputError
from calibrant.estimators import CanonicalECE, KolmogorovSmirnov
from calibrant.lenses import CountWise


@pytest.mark.parametrize("family", [Poisson, NegativeBinomial])
def test_classes_are_masses_and_a_tail(family, rng):
    batch = family.example(rng, 6)
    p = CountWise(most=5).classes(batch).probs
    k = np.arange(2000.0)
    masses = np.exp(batch.log_prob(k[:, None])).T
    assert p[:, :5] == pytest.approx(masses[:, :5], abs=1e-14)
    assert p[:, 5] == pytest.approx(masses[:, 5:].sum(axis=1), abs=1e-13)


def test_classes_of_ensembles_are_shares_of_members():
    lens = CountWise(most=2)
    assert lens.classes(Ensemble([[0.0, 1.0, 1.0, 7.0], [2.0, 3.0, 2.0, 9.0]])).probs.tolist() == [
        [0.25, 0.5, 0.25],
        [0, 0, 1],
    ]


def test_classes_of_mixtures_are_mixtures_of_classes(rng):
    a, b = Poisson.example(rng, 4), Poisson.example(rng, 4)
    lens = CountWise(most=6)
    mixed = 0.3 * lens.classes(a).probs + 0.7 * lens.classes(b).probs
    assert lens.classes(Mixture([a, b], [0.3, 0.7])).probs == pytest.approx(mixed, abs=1e-14)


def test_counts_at_the_end_and_beyond_are_one_class(rng):
    y, p = CountWise(most=3)([0, 2, 3, 4, 1000], Poisson([1.0] * 5))
    assert y.tolist() == [0, 2, 3, 3, 3]
    assert p.n_classes == 4
    assert p.labels == ("0", "1", "2", "3 or more")


def by_brute_force(y, batch, most, bins, norm):
    """Every count in turn: bins of its probability, and how often it occurred in them."""
    masses = np.exp(batch.log_prob(np.arange(2000.0)[:, None])).T
    errors = []
    for k in range(most + 1):
        p = masses[:, k] if k < most else masses[:, most:].sum(axis=1)
        observed = y == k if k < most else y >= most
        cell = np.clip(np.ceil(p * bins).astype(int) - 1, 0, bins - 1)
        gaps = [(cell == b).mean() * abs(p[cell == b].mean() - observed[cell == b].mean()) ** norm for b in set(cell)]
        errors.append(np.sum(gaps))
    return np.mean(errors) ** (1 / norm)


@pytest.mark.parametrize("norm", [1, 2])
def test_errors_are_those_by_brute_force(norm, rng):
    batch = NegativeBinomial.example(rng, 300)
    y = Poisson(batch.rate).sample(rng, 1)[0]
    found = ECE(norm=norm, lens=CountWise(most=9))(y, batch)
    assert found.value == pytest.approx(by_brute_force(y, batch, 9, 15, norm), rel=1e-10)
    assert found.lens == "count-wise"


def test_the_lens_and_its_problem_have_the_same_errors(rng):
    batch = Poisson.example(rng, 200)
    y = batch.sample(rng, 1)[0]
    problem = CountWise()(y, batch)
    assert ECE(lens=CountWise())(y, batch).value == pytest.approx(ECE(lens=ClassWise())(*problem).value, rel=1e-12)
    for estimator in (ECE(EqualMass(5), lens=TopLabel()), CanonicalECE()):
        assert estimator(*problem).value >= 0


def test_whole_vectors_have_the_error_of_countable_targets(rng):
    """Two forecasts, each for many rows: the sum over counts of the gaps, by hand."""
    rate = np.repeat([1.0, 4.0], 500)
    batch = Poisson(rate)
    y = Poisson(1.5 * rate).sample(rng, 1)[0]
    most = 12
    masses = CountWise(most).classes(Poisson([1.0, 4.0])).probs
    seen = [np.bincount(np.minimum(part, most), minlength=most + 1) / 500 for part in np.split(y, 2)]
    wanted = np.mean([np.abs(a - b).sum() for a, b in zip(seen, masses, strict=True)])
    assert CanonicalECE()(*CountWise(most)(y, batch)).value == pytest.approx(wanted, rel=1e-9)


def test_merging_counts_can_only_lower_the_error(rng):
    rate = np.repeat([1.0, 4.0], 500)
    y = Poisson(1.5 * rate).sample(rng, 1)[0]
    errors = [CanonicalECE()(*CountWise(most)(y, Poisson(rate))).value for most in (1, 2, 4, 8, 16)]
    assert np.all(np.diff(errors) >= -1e-12)


def test_merging_counts_may_raise_an_error_of_squares():
    y = np.zeros(400, dtype=int)  # all larger counts are expected, and never come: gaps of the same sign
    batch = Poisson(np.full(400, 2.0))
    squares = [CanonicalECE(norm=2)(*CountWise(most)(y, batch)).value ** 2 for most in (1, 3)]
    assert squares[0] > squares[1]


def test_without_a_choice_one_target_in_a_hundred_is_expected_beyond(rng):
    batch = NegativeBinomial.example(rng, 50)
    most = CountWise().classes(batch).n_classes - 1
    beyond = [1 - batch.cdf(np.full(50, k)).mean() for k in (most - 1, most)]
    assert beyond[1] <= 0.01 < beyond[0]
    assert CountWise().classes(Poisson([1e-9, 1e-9])).n_classes == 2


def test_exact_tests_see_counts_through_the_lens(rng):
    batch = Poisson.example(rng, 400)
    honest, doubled = batch.sample(rng, 1)[0], Poisson(2 * batch.rate).sample(rng, 1)[0]
    for estimator in (ECE(EqualMass(5), lens=CountWise()), KolmogorovSmirnov(lens=CountWise())):
        test = ExactTest(estimator, n_resamples=99)
        assert test(honest, batch).pvalue > 0.05
        assert test(doubled, batch).pvalue == 0.01


def test_events():
    events = CountWise(most=2).events(Poisson([1.0, 2.0, 3.0]))
    assert [event.name for event in events] == ["0", "1", "2 or more"]
    observed = [event.observed(np.array([[1.0, 2.0, 9.0]])).tolist() for event in events]
    assert observed == [[[False, False, False]], [[True, False, False]], [[False, True, True]]]
    y, p = events[2].problem(np.array([1, 2, 9]))
    assert y.tolist() == [0, 1, 1]
    assert p.probs == pytest.approx(1 - np.exp([-1.0, -2.0, -3.0]) * [2, 3, 4])


@pytest.mark.parametrize(
    "predictions", [Normal([0.0], 1.0), Ensemble([[0.5, 1.0]]), Ensemble([[-1.0, 1.0]]), Ensemble([[[1.0], [2.0]]])]
)
def test_what_is_no_forecast_of_counts(predictions):
    with pytest.raises(InputError, match=r"CountWise\(most=None\) looks at forecasts of counts; got"):
        CountWise().classes(predictions)


def test_settings():
    with pytest.raises(InputError, match="most must be a whole number of at least 1; got 0"):
        CountWise(0)
    with pytest.raises(InputError, match=r"more than 1,000 different counts: say how many, CountWise\(most=\.\.\.\)"):
        CountWise().classes(Poisson([1e6]))
    assert CountWise(3).classes(Poisson([1e6])).probs.tolist() == [[0, 0, 0, 1]]
