from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.special import expit, logit, ndtri

from calibrant import Bernoulli, Brier, Categorical, ClassWise, ExactTest, LogLoss, Normal, TopLabel, Variational
from calibrant._validate import InputError
from calibrant.estimators import ConvexDistance, Lp
from calibrant.lab import Sigmoid, Tempered
from calibrant.recalibration import Default, Found, Isotonic, Recalibrator, SplineScaling, Temperature
from calibrant.recalibration.base import folds_of_rows
from calibrant.recalibration.maps import ClassMap


@dataclass(frozen=True)
class Truth(ClassMap):
    """The map that knows."""

    n_classes: int
    slope: float
    shift: float = 0.0

    def probabilities(self, p):
        if self.n_classes == 2:
            q = expit(self.slope * logit(p[:, 1]) + self.shift)
            return np.stack([1 - q, q], axis=1)
        q = p**self.slope
        return q / q.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Oracle(Recalibrator):
    slope: float
    shift: float = 0.0

    def find(self, targets, predictions, weights):
        return Found(Truth(predictions.n_classes, self.slope, self.shift))


ORACLE = Oracle(0.4, 0.3)
WORLD = Sigmoid(0.4, 0.3, concentration=0.5)


def population(loss, f, q):
    """The error of an event where f is predicted and q is true, by its definition."""
    if isinstance(loss, Lp):
        return np.mean(np.abs(q - f))
    if isinstance(loss, Brier):
        return np.mean((q - f) ** 2)
    return np.mean(q * np.log(q / f) + (1 - q) * np.log((1 - q) / (1 - f)))


@pytest.mark.parametrize("loss", [Lp(1), Lp(2), Lp(np.inf), Brier(), LogLoss()], ids=repr)
def test_the_best_map_finds_the_whole_error_of_an_event(loss):
    """400,000 rows, to 1 %; as one column and as two columns."""
    rng = np.random.default_rng(0)
    f = np.clip(rng.beta(0.5, 0.5, 400_000), 1e-9, 1 - 1e-9)
    q = WORLD.observed(f)
    y = (rng.random(400_000) < q) * 1
    truth = population(loss, f, q)
    assert Variational(loss, ORACLE)(y, f).value == pytest.approx(truth, rel=0.01)
    columns = np.stack([1 - f, f], axis=1)
    assert Variational(loss, ORACLE)(y, columns).value == pytest.approx(truth, rel=0.01)


@pytest.mark.parametrize("loss", [Lp(1), Lp(2), Lp(3), Lp(np.inf), Brier(), LogLoss()], ids=repr)
def test_the_best_map_finds_the_whole_error_of_vectors(loss):
    rng = np.random.default_rng(6)
    f = np.clip(rng.dirichlet(np.full(3, 0.5), 400_000), 1e-9, 1)
    f /= f.sum(axis=1, keepdims=True)
    q = Truth(3, 0.3).probabilities(f)
    y = (rng.random((400_000, 1)) > np.cumsum(q, axis=1)).sum(axis=1)
    if isinstance(loss, Lp):
        truth = np.linalg.norm(q - f, ord=loss.p, axis=1).mean()
    elif isinstance(loss, Brier):
        truth = ((q - f) ** 2).sum(axis=1).mean()
    else:
        truth = (q * np.log(q / f)).sum(axis=1).mean()
    assert Variational(loss, Oracle(0.3))(y, f).value == pytest.approx(truth, rel=0.01)


@pytest.mark.parametrize(("slope", "over", "under"), [(0.4, 1, 0), (4.0, 0, 1)])
@pytest.mark.parametrize("loss", [Lp(1), Brier()], ids=repr)
def test_over_and_under_confidence(loss, slope, over, under):
    rng = np.random.default_rng(2)
    f = np.clip(rng.beta(0.5, 0.5, 400_000), 1e-9, 1 - 1e-9)
    q = expit(slope * logit(f))
    y = (rng.random(400_000) < q) * 1
    table = Variational(loss, Oracle(slope)).confidence(y, f)
    truth = population(loss, f, q)
    assert table["value"] == pytest.approx(truth * np.array([1, over, under]), abs=0.01 * truth)


@pytest.mark.parametrize("loss", [Lp(1), Brier()], ids=repr)
def test_over_and_under_confidence_add_up(loss, rng):
    f = rng.random(300)
    f[:10] = 0.5
    y = (rng.random(300) < expit(logit(f) + 0.5)) * 1
    value = Variational(loss, Temperature(), sign="hard").confidence(y, f)["value"]
    assert value[1] + value[2] == pytest.approx(value[0], abs=1e-13)


def test_rows_are_judged_by_maps_that_have_not_seen_them(rng):
    y, p = Tempered(3, 2.0).draw(90, rng)
    fold, g = folds_of_rows(90, 3, 7), np.empty((90, 3))
    for k in range(3):
        learn = np.flatnonzero(fold != k)
        g[fold == k] = Temperature().find(y[learn], p[learn], None).map.apply(p[np.flatnonzero(fold == k)]).matrix
    observed = np.eye(3)[y]
    expected = ((observed - p.matrix) ** 2).sum(axis=1) - ((observed - g) ** 2).sum(axis=1)
    found = Variational(Brier(), Temperature(), folds=3, seed=7)(y, p)
    assert found.value == pytest.approx(expected.mean(), rel=1e-12)
    # a temperature knows nothing of its own variance: twice the variance, of rows or of a calibrated model
    slope = 2 * (g - p.matrix)
    calibrated = (p.matrix * slope**2).sum(axis=1) - (p.matrix * slope).sum(axis=1) ** 2
    variance = max(expected.var(), calibrated.mean())
    assert found.standard_error == pytest.approx((2 * variance / 89) ** 0.5, rel=1e-12)
    low, high = found.interval
    assert (low, high) == (pytest.approx(found.value - 1.6448536 * found.standard_error, rel=1e-6), np.inf)


def test_repeats_are_averaged_row_by_row(rng):
    y, p = Tempered(3, 2.0).draw(90, rng)
    each = [Variational(Brier(), Temperature(), seed=s)(y, p).value for s in (4, 5, 6)]
    assert Variational(Brier(), Temperature(), repeats=3, seed=4)(y, p).value == pytest.approx(np.mean(each), rel=1e-12)


def test_top_label_sees_the_confidence_or_the_whole_vector(rng):
    y, p = Tempered(4, 2.0).draw(400, rng)
    narrow = Variational(Lp(1), Temperature(), lens=TopLabel())(y, p)
    hits, confidence = TopLabel()(y, p)
    assert narrow.value == Variational(Lp(1), Temperature())(hits, confidence).value
    wide = Variational(Lp(1), Temperature(), lens=TopLabel(), sees="vector")(y, p)
    assert wide.value != narrow.value
    assert narrow.lens == wide.lens == "top-label"


def test_several_events_are_averaged(rng):
    y, p = Tempered(3, 2.0).draw(120, rng)
    each = [Variational(Brier(), Temperature())((y == c) * 1, p.matrix[:, c]).value for c in range(3)]
    assert Variational(Brier(), Temperature(), lens=ClassWise())(y, p).value == pytest.approx(np.mean(each), rel=1e-12)
    labels = (rng.random((120, 3)) < p.matrix) * 1
    each = [Variational(Brier(), Temperature())(labels[:, c], p.matrix[:, c]).value for c in range(3)]
    assert Variational(Brier(), Temperature())(labels, Bernoulli(p.matrix)).value == pytest.approx(
        np.mean(each), rel=1e-12
    )


def test_calibrated_models_have_no_error_on_average():
    """The mean is exactly 0, whatever the recalibrator."""
    rng = np.random.default_rng(3)
    values = np.array([Variational(Lp(1), Temperature())(*Sigmoid().draw(300, rng)).value for _ in range(600)])
    assert abs(values.mean()) < 3.3 * values.std() / np.sqrt(600)
    assert values.min() < 0


def test_the_lower_bound_covers():
    """Of 200 data sets of 300 rows; 95 % is nominal, more is allowed."""
    rng, world, covered = np.random.default_rng(4), Sigmoid(0.4, concentration=0.5), 0
    u = (np.arange(100_000) + 0.5) / 100_000
    p, q = world.given(u[:, None])
    truth = np.mean(np.abs(q.probability(1) - p.probability(1)))
    for _ in range(200):
        covered += Variational(Lp(1), Temperature())(*world.draw(300, rng)).interval.low <= truth
    assert covered >= 178  # 99.9 % of a binomial distribution with mean 190 lie above


@pytest.mark.parametrize("sign", ["soft", "hard"])
def test_the_lower_bound_holds_next_to_calibration(sign):
    """Of 300 data sets. Without map variance it would hold in 277 and in 269."""
    rng, world = np.random.default_rng(5), Sigmoid(concentration=0.5)
    covered = sum(Variational(Lp(1), sign=sign)(*world.draw(300, rng)).interval.low <= 0 for _ in range(300))
    assert covered >= 273  # 99.9 % of a binomial distribution with mean 285 lie above 272


SCARCE = {
    "rare": lambda rng: rng.beta(0.5, 50, 100),
    "nearly sure": lambda rng: rng.beta(2.8, 0.05, 100),
    "one in a thousand": lambda rng: np.full(100, 0.001),
}


@pytest.mark.parametrize("draw", SCARCE.values(), ids=SCARCE.keys())
@pytest.mark.parametrize("recalibrator", [None, Temperature()], ids=["default", "temperature"])
def test_the_lower_bound_holds_with_few_events(draw, recalibrator):
    """Of 120 calibrated data sets. Without an event all rows tell the same: their spread alone held in 10 to 85 %."""
    rng, held = np.random.default_rng(10), np.zeros(3)
    losses = [(Lp(1), "hard"), (Brier(), "soft"), (LogLoss(), "soft")]
    for _ in range(120):
        f = draw(rng)
        judged = Variational(recalibrator=recalibrator)._judged((rng.random(100) < f) * 1, Categorical(f), None)[1]
        for i, (loss, sign) in enumerate(losses):
            value, error = Variational(loss, sign=sign)._error(judged, None)
            held[i] += value - 1.645 * error <= 0
    assert (held >= 106).all()  # 99.9 % of a binomial distribution with mean 114 lie above


def test_without_events_the_spread_is_that_of_a_calibrated_model():
    """30 rows of 1/10, of which none happened: all rows tell the same, which is no certainty."""
    found = Variational(Lp(1), Oracle(2.0), sign="hard")(np.zeros(30, dtype=int), np.full(30, 0.1))
    assert found.value == pytest.approx(0.1)
    assert found.standard_error == pytest.approx(2**0.5 * np.sqrt(0.09 / 29))
    assert found.interval.low < 0


@pytest.mark.parametrize("lens", [None, TopLabel(), ClassWise()], ids=repr)
def test_an_infinite_log_loss_says_how_many_rows_are_the_cause(lens, rng):
    y, p = Tempered(3).draw(60, rng)
    f = p.matrix.copy()
    f[:4] = np.eye(3)[(y[:4] + np.array([1, 1, 0, 0])) % 3]
    found = Variational(LogLoss(), Temperature(), lens=lens)(y, f)
    assert found.value == np.inf
    assert found.standard_error is found.interval is None
    assert found.withheld.startswith("2 rows were predicted to be impossible, and happened")
    with pytest.raises(ValueError, match=r"the log loss is infinite. Variational\(Brier\(\)\) is finite"):
        found.confidence_interval()
    assert np.isfinite(Variational(Brier(), Temperature(), lens=lens)(y, f).interval.low)


def test_a_map_that_calls_things_impossible_has_no_bound_of_log_loss():
    y, f = np.tile([0, 1], 20), np.linspace(0.2, 0.8, 40)
    found = Variational(LogLoss(), Isotonic())(y, f)
    assert found.value == -np.inf
    assert found.standard_error is found.interval is None
    assert "calls rows impossible that the model does not" in found.withheld
    assert np.isfinite(Variational(Brier(), Isotonic())(y, f).interval.low)


@dataclass(frozen=True)
class Hellinger(ConvexDistance):
    def between(self, q, f):
        return ((np.sqrt(q) - np.sqrt(f)) ** 2).sum(axis=1)

    def gradient(self, q, f):
        return 1 - np.sqrt(f / q)


@pytest.mark.parametrize("k", [2, 3])
def test_distances_of_ones_own(k):
    """With the true map, to 1 %; an event is two classes."""
    rng = np.random.default_rng(8)
    f = np.clip(rng.dirichlet(np.full(k, 0.5), 400_000), 1e-9, 1)
    f /= f.sum(axis=1, keepdims=True)
    q = Truth(k, 0.3).probabilities(f)
    y = (rng.random((400_000, 1)) > np.cumsum(q, axis=1)).sum(axis=1)
    found = Variational(Hellinger(), Oracle(0.3))(y, f)
    assert found.value == pytest.approx(Hellinger().between(q, f).mean(), rel=0.01)
    assert found.name == "variational Hellinger"


@pytest.mark.parametrize("loss", [Brier(), LogLoss()], ids=repr)
@pytest.mark.parametrize("k", [2, 3])
def test_a_proper_loss_is_calibration_error_and_refinement(loss, k, rng):
    y, p = Tempered(k, 2.0).draw(500, rng)
    p = p.probability(1) if k == 2 else p.matrix
    table = Variational(loss, Temperature()).refinement(y, p)
    error = Variational(loss, Temperature())(y, p)
    assert table["value"][1] == pytest.approx(error.value, rel=1e-12)
    assert table["standard_error"][1] == error.standard_error
    assert table["value"][1] + table["value"][2] == pytest.approx(table["value"][0], rel=1e-12)
    score = loss(y, p)  # of one column and of several
    assert table["value"][0] == pytest.approx(score.value, rel=1e-12)


def test_in_sample_errors_say_so_and_are_larger(rng):
    y, p = Tempered(3).draw(200, rng)
    honest, flattering = (Variational(Brier(), in_sample=s)(y, p) for s in (False, True))
    assert flattering.value > max(honest.value, 0)
    assert flattering.standard_error is flattering.interval is None
    assert "in-sample" in flattering.notes[0]
    g = Temperature().find(y, p, None).map.apply(p).matrix
    observed = np.eye(3)[y]
    expected = ((observed - p.matrix) ** 2 - (observed - g) ** 2).sum(axis=1).mean()
    assert Variational(Brier(), Temperature(), in_sample=True)(y, p).value == pytest.approx(expected, rel=1e-12)


def test_folds_that_follow_what_happened_would_find_errors_where_there_are_none(monkeypatch):
    """Over 200 calibrated data sets of 200 rows, of which 100 are drawn; dealt evenly by class the mean is .0033, and -.0004 dealt at random."""

    def by_class(n, n_folds, seed, clusters):
        shuffled = np.random.default_rng(seed).permutation(n)
        shuffled = shuffled[np.argsort(y[shuffled], kind="stable")]
        fold = np.empty(n, dtype=np.int64)
        fold[shuffled] = np.arange(n) % n_folds
        return fold

    world, rng = Sigmoid(concentration=0.5), np.random.default_rng(11)
    values = []
    for _ in range(100):
        y, p = world.draw(200, rng)
        honest = Variational(Lp(1))(y, p).value
        with monkeypatch.context() as patch:
            patch.setattr("calibrant.estimators.variational.folds_of_rows", by_class)
            values.append((honest, Variational(Lp(1))(y, p).value))
    honest, flattered = np.array(values).T
    error = np.sqrt(100)
    assert abs(honest.mean()) < 3 * honest.std() / error
    assert (flattered - honest).mean() > 4 * (flattered - honest).std() / error


def test_the_exact_test_takes_it(rng):
    y, p = Sigmoid(0.2).draw(150, rng)
    assert ExactTest(Variational(Lp(1), Temperature(), folds=2), n_resamples=19)(y, p).pvalue == 0.05


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Variational("L1"), r"loss must be Lp\(p\), Brier\(\), LogLoss\(\) or a ConvexDistance; got 'L1'"),
        (lambda: Variational().refinement([0, 1] * 5, [0.5] * 10), "refinement is what is left of a proper loss"),
        (lambda: Variational(recalibrator="temperature"), "recalibrator must be a recalibrator"),
        (lambda: Variational(folds=1), "folds must be a whole number of at least 2"),
        (lambda: Variational(repeats=0), "repeats must be"),
        (lambda: Variational(sees="all"), "sees must be 'event' or 'vector'"),
        (lambda: Variational(sign="maybe"), "sign must be 'soft' or 'hard'"),
        (lambda: Variational()([0, 1, 1], [0.1, 0.6, 0.7]), "folds must not exceed the number of rows"),
        (lambda: Variational()([0.0], Normal([0.0], [1.0])), "looks at class probabilities; got Normal"),
        (
            lambda: Variational().confidence([0, 1, 2, 1, 0], Categorical(np.full((5, 3), 1 / 3))),
            "over- and under-confidence are those of events",
        ),
        (
            lambda: Variational(sees="vector")([[0, 1]] * 6, Bernoulli([[0.2, 0.7]] * 6)),
            "labels have no common vector",
        ),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("k", [2, 3])
def test_soft_directions_are_those_of_the_map(k, rng):
    """Shorter than hard ones, and quieter on calibrated data."""
    world = Tempered(k)
    soft = np.array([Variational(Lp(1))(*world.draw(100, rng)).value for _ in range(20)])
    hard = np.array([Variational(Lp(1), sign="hard")(*world.draw(100, rng)).value for _ in range(20)])
    assert soft.std() < 0.7 * hard.std()


@pytest.mark.parametrize("k", [2, 4])
def test_the_default_finds_most_of_the_error(k, rng):
    world = Tempered(k, 3.0)
    p, q = world.given(rng.random((100_000, world.features)))
    gap = np.abs(q.matrix - p.matrix)
    truth = (gap[:, 1] if k == 2 else gap.sum(axis=1)).mean()
    found = Variational(Lp(1))(*world.draw(3000, rng))
    assert 0.85 * truth < found.value < truth + 3 * found.standard_error


@pytest.mark.parametrize(
    "estimator",
    [
        Variational(Lp(1)),
        Variational(Brier(), Temperature(), repeats=2),
        Variational(Lp(1), Temperature(), lens=TopLabel(), sees="vector"),
        Variational(LogLoss(), Temperature(), in_sample=True),
    ],
    ids=["default", "repeats", "vector", "in sample"],
)
def test_folds_by_an_engine_have_the_same_digits(estimator, rng, travelling):
    y, p = Tempered(3, 2.0).draw(300, rng)
    there, alone = estimator(y, p, engine=travelling), estimator(y, p)
    assert (there.value, there.standard_error, there.interval) == (alone.value, alone.standard_error, alone.interval)
    assert len(travelling.sizes) == (1 if estimator.in_sample else 5 * estimator.repeats)


def test_at_every_level_there_is_a_lower_bound_and_no_upper_one(rng):
    p = rng.random(300)
    found = Variational(Lp(1), Temperature())((rng.random(300) < p) * 1, p)
    for level in (0.5, 0.9, 0.95):
        low, high = found.confidence_interval(level)
        assert high == np.inf
        assert low == pytest.approx(found.value - ndtri(level) * found.standard_error)


def test_standard_errors_of_shared_maps_are_not_too_small():
    """Of 100 over-confident rows they were 83 % of the spread of the estimates."""
    rng, found = np.random.default_rng(8), []
    for _ in range(100):
        z = rng.normal(0, 1.5, 100)
        found.append(Variational()((rng.random(100) < expit(z)) * 1, expit(2 * z)))
    spread = np.std([float(one) for one in found], ddof=1)
    predicted = np.sqrt(np.mean([one.standard_error**2 for one in found]))
    assert spread < 1.15 * predicted


def test_errors_of_events_are_looked_for_with_splines_and_those_of_vectors_with_the_default(rng):
    p = rng.dirichlet(np.ones(3), 60)
    y = (p.cumsum(axis=1) < rng.random((60, 1))).sum(axis=1)
    both = {"splines": SplineScaling(), "default": Default()}
    cases = (
        ("splines", Variational(), (y > 0) * 1, p[:, 1:].sum(axis=1)),
        ("splines", Variational(lens=TopLabel()), y, p),
        ("default", Variational(Lp(2)), y, p),
        ("default", Variational(lens=TopLabel(), sees="vector"), y, p),
    )
    for name, estimator, targets, predictions in cases:
        found = estimator(targets, predictions)
        assert found.estimator.recalibrator == both[name]
        assert found.value == replace(estimator, recalibrator=both[name])(targets, predictions).value
