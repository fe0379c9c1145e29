import numpy as np
import pytest
from scipy import stats
from scipy.stats import binom

from calibrant import (
    Brier,
    Categorical,
    DebiasedECE,
    Ensemble,
    EqualMass,
    LogLoss,
    MultivariateNormal,
    Normal,
    PairedDifference,
    PITError,
    TopLabel,
    compare,
)
from calibrant._clusters import as_clusters
from calibrant.estimators import EnergyScore
from calibrant.inference.paired_difference import SMALLEST_PVALUE, likely_difference
from calibrant.reports.model_differences import (
    all_equal,
    differences_of,
    error_of,
    losses_of,
    paired_mean,
    table_of,
)


@pytest.fixture
def models(rng, problem_of):
    p = rng.random(300)
    y = (rng.random(300) < p) * 1
    return y, {
        name: problem_of(y, Categorical(q)) for name, q in (("a", p), ("b", 0.2 + 0.6 * p), ("c", np.full(300, 0.5)))
    }


def test_differences_are_those_of_the_values(models):
    y, problems = models
    table = table_of(differences_of(problems, list(losses_of(list(problems.values())))))
    assert table.n_rows == 9
    assert table["difference"] == pytest.approx(table["value_a"] - table["value_b"])
    for row in table.rows():
        estimator = {
            "Log loss": LogLoss(),
            "Brier score": Brier(),
            "Root mean square calibration error": DebiasedECE(EqualMass(15)),
        }[row["measure"]]
        for side in ("a", "b"):
            value = max(estimator(y, problems[row[side]].predictions).value, 0.0)
            assert row[f"value_{side}"] == pytest.approx(value, rel=1e-12)
    assert np.all(table["pvalue"] >= table["pvalue_alone"])


def test_paired_means_of_many_rows_are_student_s(rng):
    a, b = rng.normal(size=(2, 20_000))
    found, expected = paired_mean(a, b + 0.02, None), stats.ttest_rel(a, b + 0.02)
    assert found.pvalue == pytest.approx(expected.pvalue, rel=0.1)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval()), abs=0.0005)
    assert paired_mean(a, a, None) == (0, 0, 0, 1)
    assert paired_mean(a + 1, a, None).pvalue == SMALLEST_PVALUE
    assert paired_mean(a[:1], b[:1], None).pvalue == 1


@pytest.mark.parametrize("size", [30, 300])
def test_the_interval_leaves_out_zero_exactly_where_the_p_value_is_small(size, rng):
    for shift in np.linspace(0, 0.8, 9):
        a = rng.exponential(size=size) + shift
        found = paired_mean(a, np.ones(size), None)
        assert (found.low <= 0 <= found.high) == (found.pvalue > 0.05)


def test_differences_of_rare_events_are_covered(rng, problem_of):
    """One event in 100 rows or none: Student's interval covered 63 % to 88 %."""
    covered = 0
    for _ in range(200):
        p = rng.beta(0.05, 9.95, 200).clip(1e-9)
        truth = np.mean(p * (np.log(p / 2) - np.log(p)) + (1 - p) * (np.log1p(-p / 2) - np.log1p(-p)))
        y = (rng.random(200) < p).astype(int)
        problems = [problem_of(y, Categorical(q)) for q in (p, p / 2)]
        score = next(iter(losses_of(problems)))
        checked = [(y, one.predictions, None) for one in problems]
        likely = likely_difference(score.score, *checked, score.rows[0] - score.rows[1])
        found = paired_mean(score.rows[0], score.rows[1], None, likely)
        covered += found.low <= truth <= found.high
    assert covered >= binom.ppf(0.0005, 200, 0.95)


def test_weights_equal_to_one_change_nothing(rng):
    a, b = rng.normal(size=(2, 30))
    assert paired_mean(a, b, np.full(30, 7.0)) == pytest.approx(paired_mean(a, b, None))
    assert all_equal(np.stack([a, b]), np.full(30, 7.0)) == pytest.approx(all_equal(np.stack([a, b]), None))
    heavy = np.where(np.arange(30) < 20, 1.0, 0.0)
    assert paired_mean(a, b, heavy) == pytest.approx(paired_mean(a[:20], b[:20], None))


def test_of_two_models_hotelling_s_test_is_student_s(rng):
    a, b = rng.normal(size=(2, 40))
    assert all_equal(np.stack([a, b]), None) == pytest.approx(stats.ttest_rel(a, b).pvalue)


def test_hotelling_s_test_keeps_its_level_and_sees_a_difference():
    rng = np.random.default_rng(5)
    rejected = sum(all_equal(rng.normal(size=(4, 25)) + rng.normal(size=25), None) <= 0.05 for _ in range(400))
    assert stats.binom.ppf(0.0005, 400, 0.05) <= rejected <= stats.binom.ppf(0.9995, 400, 0.05)
    shift = np.array([0.0, 0.0, 1.5, 0.0])[:, None]
    assert all_equal(rng.normal(size=(4, 60)) + shift, None) < 0.001
    same = rng.normal(size=20)
    assert all_equal(np.stack([same, same, same]), None) == 1
    assert all_equal(rng.normal(size=(3, 2)), None) == 1


def test_a_calibrated_model_that_is_less_sharp_is_not_called_worse(problem_of):
    """Bins of vague predictions have more noise; the error that is compared has none of its bias."""
    alarms, sets = 0, 30
    for i in range(sets):
        rng = np.random.default_rng(i)
        f = rng.beta(0.3, 0.3, 400)
        y = (rng.random(400) < f) * 1
        problems = {
            name: problem_of(y, Categorical(q)) for name, q in (("sharp", f), ("vague", 0.5 + 1e-9 * rng.random(400)))
        }
        alarms += differences_of(problems, [])[0].pvalue <= 0.05
    assert alarms <= stats.binom.ppf(0.999, sets, 0.05)


def test_models_that_are_equally_good_cannot_be_told_apart(problem_of):
    """Two calibrated models that know different things, equally much: a claim about them in at most one case of twenty."""
    claims, sets = 0, 30
    for i in range(sets):
        rng = np.random.default_rng(i)
        left, right = rng.normal(size=(2, 120))
        y = left + right + rng.normal(size=120)
        problems = {name: problem_of(y, Normal(x, np.sqrt(2.0))) for name, x in (("left", left), ("right", right))}
        table = table_of(differences_of(problems, list(losses_of(list(problems.values())))))
        claims += bool(np.any(table["pvalue"] <= 0.05))
    assert claims <= stats.binom.ppf(0.999, sets, 0.05)


def test_levels_of_different_families(rng, problem_of):
    y, loc = rng.normal(size=200), rng.normal(size=200)
    members = Ensemble(0.2 * rng.normal(size=(200, 6)))
    problems = {"normal": problem_of(y, Normal(0 * loc, 1.0)), "members": problem_of(y, members)}
    scores = list(losses_of(list(problems.values())))
    assert [score.measure.name for score in scores] == ["CRPS"]  # members have no density
    table = table_of(differences_of(problems, scores))
    assert table["measure"].tolist() == ["CRPS", "Root mean square PIT error"]
    found = PairedDifference(PITError("cramer-von-mises"))(y, members, problems["normal"].predictions)
    assert table["value_b"][1] == float(found.a)
    assert np.all(table["pvalue"] < 0.05)


def test_infinite_scores_are_left_out(problem_of):
    y = np.array([1, 0] * 20)
    problems = [problem_of(y, Categorical(q)) for q in (np.full(40, 0.5), np.where(np.arange(40) == 0, 0.0, 0.5))]
    assert [score.measure.name for score in losses_of(problems)] == ["Brier score"]


def test_the_error_looks_at_the_smallest_problem(rng, problem_of):
    """That of the event alone, with the digits of all classes."""
    p = rng.dirichlet(np.ones(3), 300)
    y = rng.integers(0, 3, 300)
    _, estimator, event = error_of(problem_of(y, Categorical(p)))
    lensed = DebiasedECE(EqualMass(15), lens=TopLabel())
    assert event.predictions.n_classes == 2
    assert estimator(event.targets, event.predictions).value == lensed(y, p).value


def test_few_clusters_tell_models_not_apart(rng):
    losses = np.stack([np.zeros(22), np.ones(22) + 0.01 * rng.random(22)])
    assert all_equal(losses, None, as_clusters(np.arange(22) // 2, 22)) == 1.0
    assert all_equal(losses, None, as_clusters(np.arange(22) % 12, 22)) < 1e-6


def test_vectors_are_compared_by_the_energy_score(rng):
    y, scale = rng.normal(size=(60, 2)), np.ones((60, 2))
    models = {"a": MultivariateNormal(0 * y, scale), "b": MultivariateNormal(0 * y + 1, scale)}
    found = compare(y, models, n_resamples=99).differences
    assert found["measure"].tolist()[:2] == ["Log loss", "Energy score"]
    assert found["value_b"][1] == pytest.approx(float(EnergyScore()(y, models["b"])))
