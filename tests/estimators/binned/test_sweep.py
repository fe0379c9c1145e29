import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import ECE, Bernoulli, Categorical, EqualMass, EqualWidth, ExactTest, Sweep, TopLabel
from calibrant._validate import InputError
from calibrant.checks import check_estimator

RULES = [Sweep(), Sweep("width"), Sweep(ties="split")]


def fixed(rule, n_bins):
    return EqualWidth(n_bins) if rule.by == "width" else EqualMass(n_bins, rule.ties)


def by_trying(rule, y, p, weights=None):
    """Bin the rows anew for every number of bins."""
    n_bins = 1
    while n_bins < np.count_nonzero(np.ones(len(p)) if weights is None else weights):
        observed = ECE(fixed(rule, n_bins + 1))(y, p, sample_weight=weights).table["observed"]
        if np.any(np.diff(observed) < 0):
            break
        n_bins += 1
    return n_bins


@pytest.mark.parametrize("rule", RULES, ids=repr)
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 12)), min_size=1, max_size=25))
def test_the_sweep_ends_where_trying_every_number_ends(rule, rows):
    y = np.array([int(a) for a, _ in rows])
    p = np.array([b / 12 for _, b in rows])
    swept = ECE(rule, norm=2)(y, p)
    assert swept.value == pytest.approx(ECE(fixed(rule, by_trying(rule, y, p)), norm=2)(y, p).value, rel=1e-12)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_larger_data(rule, rng):
    p = rng.beta(0.5, 0.5, 3_000)
    y = (rng.random(3_000) < p).astype(int)
    n_bins = by_trying(rule, y, p)
    assert 3 < n_bins < 100
    assert ECE(rule)(y, p).value == ECE(fixed(rule, n_bins))(y, p).value


@pytest.mark.parametrize("rule", RULES[:2], ids=repr)
def test_weights(rule, rng):
    p, times = rng.random(80).round(2), rng.integers(0, 3, 80).astype(float)
    y = (rng.random(80) < p).astype(int)
    assert ECE(rule)(y, p, sample_weight=times).value == pytest.approx(
        ECE(rule)(np.repeat(y, times.astype(int)), np.repeat(p, times.astype(int))).value, rel=1e-12
    )
    w = rng.uniform(0.5, 2, 80)
    assert ECE(rule)(y, p, sample_weight=w).value == pytest.approx(
        ECE(fixed(rule, by_trying(rule, y, p, w)))(y, p, sample_weight=w).value, rel=1e-12
    )


def test_order_matters_with_split_ties_alone(rng):
    p = rng.random(400).round(2)
    y = (rng.random(400) < p).astype(int)
    orders = [rng.permutation(400) for _ in range(20)]
    values = {rule: {ECE(rule)(y[o], p[o]).value for o in orders} for rule in RULES}
    assert [len(values[rule]) for rule in RULES[:2]] == [1, 1]
    assert len(values[RULES[2]]) > 1


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_resamples_in_bulk_are_those_one_by_one(rule, rng):
    p = Categorical.example(rng, 60)
    y = p.sample(rng, 1)[0].astype(np.int64)
    if rule.ties == "together":
        check_estimator(ECE(rule, norm=2, lens=TopLabel()), y, p)
        labels = rng.random((30, 3)).round(1)
        check_estimator(ECE(rule), (rng.random((30, 3)) < labels).astype(int), Bernoulli(labels))
    statistic = ECE(rule, lens=TopLabel()).given(p, None)
    resamples = p.sample(rng, 40)
    assert statistic(resamples) == pytest.approx([ECE(rule, lens=TopLabel())(t, p).value for t in resamples], rel=1e-12)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_separated_classes_are_swept_at_once(rule):
    """Every number of bins is in order; trying them all would take n^2 steps."""
    p = np.linspace(0, 1, 50_001)
    result = ECE(rule)((p > 0.5).astype(int), p)
    assert result.table.n_rows > 25_000
    y = (p > 0.5).astype(int)
    y[[24_990, 25_010]] = 1, 0  # hardly any disorder: only a few bins of each number are looked at
    assert ECE(rule)(y, p).table.n_rows > 300


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize(
    ("y", "p"), [([1], [0.3]), ([0, 1, 1], [0.5, 0.5, 0.5]), ([0, 1], [0.0, 1.0]), ([1, 0], [0.1, 0.9])]
)
def test_small_and_constant_data(rule, y, p):
    if rule.ties == "split" and len(set(p)) == 1:
        return  # depends on the order, by request
    gap = abs(np.mean(y) - np.mean(p)) if y != [0, 1] else 0.0
    assert ECE(rule)(y, p).value == pytest.approx(gap)


def test_the_level_of_the_exact_test_holds():
    rng, rejected = np.random.default_rng(1), 0
    for seed in range(600):
        p = rng.beta(0.7, 0.4, 60)
        y = (rng.random(60) < p).astype(int)
        rejected += ExactTest(ECE(Sweep(), norm=2), n_resamples=99)(y, p, rng=seed).pvalue <= 0.05
    assert 14 <= rejected <= 50  # 99.9 % of a binomial distribution with mean 30


def test_the_result_says_where_it_ended(rng):
    p = rng.random(300)
    result = ECE(Sweep())((rng.random(300) < p).astype(int), p)
    assert result.notes == (f"the sweep ended at {result.table.n_rows} bins",)
    assert "the sweep ended at" in repr(result)
    labels = rng.random((40, 3))
    several = ECE(Sweep())((rng.random((40, 3)) < labels).astype(int), Bernoulli(labels)).notes
    assert "to" in several[0] or "bins" in several[0]
    assert ECE()([0, 1], [0.2, 0.8]).notes == ()


def test_bad_settings():
    with pytest.raises(InputError, match="by must be 'mass' or 'width'; got 'rank'"):
        Sweep("rank")
    with pytest.raises(InputError, match="ties must be 'together' or 'split'; got 'no'"):
        Sweep(ties="no")
    with pytest.raises(InputError, match="ties='split' is for bins of equal mass"):
        Sweep("width", ties="split")
    with pytest.raises(InputError, match="leave out sample_weight"):
        ECE(Sweep(ties="split"))([0, 1], [0.2, 0.7], sample_weight=[1.0, 2.0])


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_resamples_do_not_look_at_each_other(rule, rng):
    """In the first ones nothing happens, or everything; the others are in disorder from the first row to the last."""
    p = np.sort(rng.random(40))
    targets = np.stack([*np.zeros((30, 40), int), *np.ones((30, 40), int), *rng.integers(0, 2, (5, 40))])
    together = ECE(rule).given(Categorical(p), None)
    alone = [ECE(rule)(y, p).value for y in targets]
    assert together(targets) == pytest.approx(alone, rel=1e-12)
