import numpy as np
import pytest
from scipy.stats import binom, norm

from calibrant import Bernoulli, Monitor, Normal, Poisson
from calibrant._validate import InputError
from calibrant.monitoring.control import Limits, strongest_class, strongest_group
from calibrant.monitoring.history import CUTS


def binary(rng, n):
    p = rng.beta(0.5, 0.5, n)
    return (rng.random(n) < p) * 1, p


def rare(rng, n):
    p = 0.05 * rng.random(n)
    return (rng.random(n) < p) * 1, p


def classes(rng, n):
    p = rng.dirichlet([0.5] * 4, n)
    return (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), p


def numbers(rng, n):
    return rng.normal(size=n), Normal(np.zeros(n), 1.0)


def counts(rng, n):
    rate = rng.gamma(3, 1, n)
    return rng.poisson(rate), Poisson(rate)


def windows_of(world, seed, window=50, n=500, limits=Limits(n_resamples=399)):  # noqa: B008
    monitor = Monitor(window=window).update(*world(np.random.default_rng(seed), n))
    return limits.tables(monitor.history)


WORLDS = [binary, rare, classes, numbers, counts]


def held(world, streams):
    """Windows within the pointwise bands by measure, all windows, and streams without a mark."""
    inside, windows, quiet = {}, 0, 0
    for seed in range(streams):
        tables = windows_of(world, seed)
        for name, table in tables.items():
            within = (table["value"] >= table["low"] - 1e-9) & (table["value"] <= table["high"] + 1e-9)
            inside[name] = inside.get(name, 0) + int(within.sum())
        windows += table.n_rows
        quiet += not any(table["beyond"].any() for table in tables.values())
    return inside, windows, quiet


@pytest.mark.parametrize("world", WORLDS)
def test_bands_hold_calibrated_streams_as_often_as_they_say(world):
    inside, windows, quiet = held(world, 100)
    assert min(inside.values()) >= binom.ppf(0.001, windows, 0.95)
    assert quiet >= binom.ppf(0.001, 100, 0.95)


@pytest.mark.study
@pytest.mark.parametrize("world", WORLDS)
def test_a_thousand_streams(world):
    inside, windows, quiet = held(world, 1000)
    shares = ", ".join(f"{name} {100 * count / windows:.2f} %" for name, count in inside.items())
    print(f"{world.__name__}: {shares} of windows within the pointwise band; {quiet} of 1,000 streams without a mark")
    assert min(inside.values()) >= binom.ppf(0.001, windows, 0.95)
    assert quiet >= binom.ppf(0.001, 1000, 0.95)


def test_the_label_that_stands_out_most_has_no_more_marks_than_stated():
    """Windows of the label that the evidence is about: the choice is allowed for."""
    quiet, streams = 0, 100
    for seed in range(streams):
        rng = np.random.default_rng(seed)
        p = rng.random((400, 6))
        monitor = Monitor(window=50).update((rng.random((400, 6)) < p) * 1, Bernoulli(p))
        tables = Limits(n_resamples=399).tables(monitor.history, strongest_group(monitor))
        quiet += not any(table["beyond"].any() for table in tables.values())
    assert quiet >= binom.ppf(0.001, streams, 0.95)


def test_a_single_class_has_its_own_gap():
    rng = np.random.default_rng(0)
    y, p = classes(rng, 300)
    history = Monitor(window=100).update(y, p).history
    tables, plain = Limits().tables(history, 0, 2), Limits().tables(history)
    assert tables["gap"]["claimed"] == pytest.approx(p[:, 2].reshape(3, 100).mean(axis=1))
    assert tables["gap"]["happened"] == pytest.approx((y == 2).reshape(3, 100).mean(axis=1))
    np.testing.assert_array_equal(tables["error"]["value"], plain["error"]["value"])


def test_the_class_that_an_alarm_is_about():
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1, 1, 1], 900)
    truth = p * [1, 4, 1]
    y = ((truth / truth.sum(axis=1, keepdims=True)).cumsum(axis=1) > rng.random((900, 1))).argmax(axis=1)
    assert strongest_class(Monitor().update(y, p)) == 1
    assert strongest_class(Monitor().update(y[:5], p[:5])) is None
    assert strongest_class(Monitor().update([1] * 99, [0.1] * 99)) is None


def test_bands_are_no_wider_than_they_must_be():
    """Of windows of 200 rows, the pointwise bands of events hold no more than 98 %: whole numbers round them outwards."""
    within = [
        (t["value"] >= t["low"] - 1e-9) & (t["value"] <= t["high"] + 1e-9)
        for seed in range(40)
        for t in windows_of(binary, seed, window=200, n=2000).values()
    ]
    assert np.mean(within) < 0.98
    far = [windows_of(numbers, seed)["bias"]["highest"][0] for seed in range(2)]
    assert far[0] == pytest.approx(norm.ppf(0.5 + 0.5 * 0.95**0.05) / np.sqrt(50))


def test_a_defect_is_beyond_them():
    rng = np.random.default_rng(0)
    p = rng.random(1000)
    y = (rng.random(1000) < np.where(np.arange(1000) < 500, p, p**2)) * 1
    tables = Limits().tables(Monitor(window=250).update(y, p).history)
    assert tables["gap"]["beyond"].tolist() == [False, False, True, True]
    assert np.all(tables["gap"]["value"][2:] > 0.1)
    assert tables["gap"]["value"] == pytest.approx((p - y).reshape(4, 250).mean(axis=1))


def test_the_error_is_the_mean_over_parts():
    rng = np.random.default_rng(1)
    p = rng.random(200)
    y = (rng.random(200) < p) * 1
    part = np.searchsorted(CUTS, p)
    table = Limits().tables(Monitor(window=200).update(y, p).history)["error"]
    assert table["value"][0] == pytest.approx(np.abs(np.bincount(part, p - y)).sum() / 200)
    assert table["lowest"][0] == 0


def test_bias_and_spread_are_those_of_normal_scores():
    z = np.random.default_rng(2).normal(0.3, 1.4, 300)
    tables = Limits().tables(Monitor(window=100).update(z, Normal(np.zeros(300), 1.0)).history)
    assert tables["bias"]["value"] == pytest.approx(z.reshape(3, 100).mean(axis=1))
    assert tables["spread"]["value"] == pytest.approx(z.reshape(3, 100).std(axis=1, ddof=1))
    one = Limits().tables(Monitor(window=100).update(z[:1], Normal(np.zeros(1), 1.0)).history)
    assert np.isnan(one["spread"]["value"][0])
    assert not one["spread"]["beyond"][0]


def test_the_label_that_the_evidence_is_about():
    rng = np.random.default_rng(3)
    p = rng.random((800, 3))
    truth = p.copy()
    truth[:, 1] = truth[:, 1] ** 2
    monitor = Monitor().update((rng.random(p.shape) < truth) * 1, Bernoulli(p, ["a", "b", "c"]))
    assert strongest_group(monitor) == 1
    assert strongest_group(Monitor()) == 0


def test_refusals():
    with pytest.raises(InputError, match="level"):
        Limits(level=1.0)
    with pytest.raises(InputError, match="n_resamples"):
        Limits(n_resamples=10)
