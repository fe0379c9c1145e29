import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.special import expit, logit
from scipy.stats import binom

from calibrant import ExactTest
from calibrant._validate import InputError
from calibrant.estimators import CalibrationIntercept, CalibrationSlope
from calibrant.estimators.smooth.weak_calibration import CLIP


@pytest.fixture
def problem(rng):
    p = rng.beta(0.7, 0.7, 400)
    return (rng.random(400) < expit(0.3 + 0.6 * logit(p))).astype(int), p, rng.random(400)


def likelihood(y, p, w):
    def loss(x):
        return w @ np.logaddexp(0, np.where(y == 1, -1, 1) * (x[0] + x[1] * logit(p)))

    return loss


@pytest.mark.parametrize("weighted", [False, True])
def test_slope_against_a_general_optimiser(problem, weighted):
    y, p, w = problem
    w = w if weighted else np.ones(400)
    best = minimize(likelihood(y, p, w), [0, 1], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13})
    found = CalibrationSlope()(y, p, sample_weight=w if weighted else None)
    assert found.value == pytest.approx(best.x[1], rel=1e-6)


def test_slope_against_scikit_learn(problem):
    model = pytest.importorskip("sklearn.linear_model").LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
    y, p, w = problem
    model.fit(logit(p)[:, None], y, sample_weight=w)
    assert CalibrationSlope()(y, p, sample_weight=w).value == pytest.approx(model.coef_[0, 0], rel=1e-5)


def test_the_intercept_makes_the_mean_score_the_observed_frequency(problem):
    """With the slope at 1 that is the whole likelihood equation."""
    y, p, w = problem
    a = CalibrationIntercept()(y, p, sample_weight=w).value
    assert w @ expit(a + logit(p)) == pytest.approx(w @ y, rel=1e-12)


def test_standard_errors_against_the_curvature_of_the_likelihood(problem):
    """Second differences of the log likelihood, inverted."""
    y, p, _ = problem
    loss = likelihood(y, p, np.ones(400))
    x = minimize(loss, [0, 1], method="BFGS", options={"gtol": 1e-8}).x
    e, step = np.eye(2), 1e-3
    curvature = [
        [(loss(x + step * (a + b)) - loss(x + step * (a - b)) - loss(x - step * (a - b)) + loss(x - step * (a + b))) / (4 * step**2) for b in e]
        for a in e
    ]  # fmt: skip
    expected = np.sqrt(np.linalg.inv(curvature)[1, 1])
    assert 0.9999 < CalibrationSlope()(y, p).standard_error / expected < 1.05  # residuals may say more
    only = np.array([CalibrationIntercept()(y, p).value, 1.0])
    second = (loss(only + step * e[0]) - 2 * loss(only) + loss(only - step * e[0])) / step**2
    assert 0.9999 < CalibrationIntercept()(y, p).standard_error * second**0.5 < 1.15


def test_a_weight_is_importance_in_the_standard_error(problem):
    y, p, _ = problem
    for estimator in (CalibrationSlope(), CalibrationIntercept()):
        plain = estimator(y, p).standard_error
        assert estimator(y, p, sample_weight=np.full(400, 7)).standard_error == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("estimator", "truth"), [(CalibrationSlope(), 0.6), (CalibrationIntercept(), 0.5)])
def test_intervals_cover_the_truth(estimator, truth, weighted):
    """Nominal 95 % over 600 data sets, at 99.9 %. Each estimator in a world where it is the truth."""
    rng, inside, sets = np.random.default_rng(4), 0, 600
    for _ in range(sets):
        p = rng.uniform(0.02, 0.98, 300)
        chance = expit(truth * logit(p)) if truth == 0.6 else expit(logit(p) + truth)
        y = (rng.random(300) < chance).astype(int)
        w = rng.exponential(size=300) if weighted else None
        inside += truth in estimator(y, p, sample_weight=w).confidence_interval()
    assert binom.ppf(0.0005, sets, 0.95) <= inside <= 0.985 * sets


@pytest.mark.parametrize(("rate", "n"), [(0.001, 1000), (0.99, 50)])
def test_intercepts_of_rare_and_common_events_are_covered(rate, n):
    """Also where only one kind of outcome was seen, and the intercept is infinite."""
    rng, inside = np.random.default_rng(5), 0
    for _ in range(200):
        p = rng.beta(50 * rate, 50 * (1 - rate), n).clip(1e-9, 1 - 1e-9)
        inside += 0.0 in CalibrationIntercept()((rng.random(n) < p).astype(int), p).confidence_interval()
    assert inside >= binom.ppf(0.0005, 200, 0.95)


def test_the_intercept_of_a_truth_with_another_slope_is_covered():
    """The standard error of the curve alone covered 89 %."""
    rng, inside = np.random.default_rng(6), 0
    p = rng.beta(0.5, 0.5, 400_000).clip(1e-4, 1 - 1e-4)
    chance = expit(0.5 * logit(p) + 0.3)
    truth = brentq(lambda a: np.mean(expit(logit(p) + a)) - chance.mean(), -5, 5)
    for _ in range(400):
        rows = rng.integers(0, 400_000, 300)
        y = (rng.random(300) < chance[rows]).astype(int)
        inside += truth in CalibrationIntercept()(y, p[rows]).confidence_interval()
    assert inside >= binom.ppf(0.0005, 400, 0.95)


class TestEdges:
    @pytest.mark.parametrize(("y", "slope"), [([0, 0, 1, 1], np.inf), ([1, 1, 0, 0], -np.inf), ([0, 1, 1, 1], np.inf)])
    def test_separated_classes_have_an_infinite_slope(self, y, slope):
        result = CalibrationSlope()(y, [0.1, 0.4, 0.6, 0.9])
        assert result.value == slope
        assert result.standard_error is None
        assert result.notes == ("scores separate the classes: the slope is the limit, infinite",)

    def test_a_tie_between_the_classes_does_not_help(self):
        """With one score in common the likelihood still grows with the slope."""
        assert CalibrationSlope()([0, 0, 1, 1], [0.1, 0.5, 0.5, 0.9]).value == np.inf

    def test_one_row_of_overlap_does(self):
        result = CalibrationSlope()([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9])
        best = minimize(
            likelihood(np.array([0, 1, 0, 1]), np.array([0.1, 0.4, 0.6, 0.9]), np.ones(4)), [0, 1], tol=1e-12
        )
        assert result.value == pytest.approx(best.x[1], rel=1e-4)

    @pytest.mark.parametrize(("y", "intercept"), [([1, 1], np.inf), ([0, 0], -np.inf)])
    def test_one_class_only(self, y, intercept):
        assert CalibrationSlope()(y, [0.2, 0.7]).value == 0
        assert CalibrationSlope()(y, [0.2, 0.7]).notes == (
            "only one class occurs: the fitted curve is constant, the slope 0",
        )
        assert CalibrationIntercept()(y, [0.2, 0.7]).value == intercept

    def test_equal_scores_have_no_slope(self):
        with pytest.raises(InputError, match=r"y_pred has the one score 0.3 everywhere: a slope needs two; use"):
            CalibrationSlope()([0, 1], [0.3, 0.3])
        with pytest.raises(InputError, match="y_pred has the one score 0.3 everywhere"):
            CalibrationSlope()([1], [0.3])
        assert CalibrationIntercept()([0, 1, 1], [0.3] * 3).value == pytest.approx(logit(2 / 3) - logit(0.3), rel=1e-10)

    def test_scores_of_zero_and_one_are_moved(self, problem):
        y, p, _ = problem
        p = np.where(p < 0.1, 0, np.where(p > 0.9, 1, p))
        moved = int(np.sum((p == 0) | (p == 1)))
        result = CalibrationSlope()(y, p)
        assert result.notes == (f"{moved} scores were closer to 0 or 1 than 6e-08, and moved there",)
        assert result.value == CalibrationSlope()(y, np.clip(p, CLIP, 1 - CLIP)).value

    @pytest.mark.parametrize("score", [0.0, 1.0])
    def test_certain_scores_that_are_wrong(self, score):
        """The flattest start there is."""
        result = CalibrationIntercept()([0, 1, 0, 1, 1], [score] * 5)
        assert result.value == pytest.approx(logit(0.6) - logit(np.clip(score, CLIP, 1 - CLIP)), rel=1e-9)

    def test_nearly_equal_and_nearly_separated_scores(self):
        """The likelihood equations hold at the solution, however steep."""
        y = np.r_[np.zeros(50, int), 1, 0, np.ones(50, int)]
        p = np.r_[np.linspace(0.4, 0.5, 50), 0.5, 0.5 + 1e-7, np.linspace(0.5 + 1e-6, 0.6, 50)]
        slope = CalibrationSlope()(y, p).value
        z = logit(p)
        centre = minimize(lambda a: np.sum(expit(a[0] + slope * z) - y) ** 2, [-slope * z[51]], method="Nelder-Mead").x[
            0
        ]
        assert slope > 1000
        assert abs((z - z.mean()) @ (y - expit(centre + slope * z))) < 1e-5


def test_the_exact_test_takes_them_even_where_resamples_have_one_class(rng):
    p = rng.uniform(0.05, 0.2, 12)
    y = np.r_[1, 1, np.zeros(10, int)]
    for estimator in (CalibrationSlope(), CalibrationIntercept()):
        result = ExactTest(estimator, 199, "two-sided")(y, p)
        assert 0 < result.pvalue <= 1
        assert np.isin(result.null_distribution, [0, -np.inf]).any()
