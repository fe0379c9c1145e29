import numpy as np
import pytest
from scipy.stats import chi2, f

from calibrant import Categorical, Normal
from calibrant._validate import InputError
from calibrant.estimators import UCME, GivenLocations, OptimisedLocations, SampledLocations
from calibrant.inference import CMETest
from calibrant.kernels import Exponential, Gaussian

APART = GivenLocations([0, 1, 2], [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])


@pytest.mark.parametrize(("reference", "pvalue"), [("F", 0.9548158706849142), ("chi2", 0.9542243373788367)])
def test_500_binary_predictions(reference, pvalue):
    rng = np.random.default_rng(1234)
    p = rng.dirichlet((1, 1), 500)
    y = (1 - (rng.random(500) < p[:, 0])).astype(int)
    places = rng.dirichlet((1, 1), 5)
    locations = GivenLocations(rng.integers(1, 3, 5) - 1, places)
    result = CMETest(Exponential(1 / 3), locations=locations, reference=reference)(y, p)
    assert result.statistic == pytest.approx(1.098636019228748, rel=1e-10)
    assert result.pvalue == pytest.approx(pvalue, abs=1e-10)
    assert result.notes == ()


@pytest.mark.parametrize("weighted", [True, False])
def test_from_the_definition(weighted, rng):
    p, y, w = rng.dirichlet(np.ones(3), 80), rng.integers(0, 3, 80), rng.random(80) if weighted else None
    places, labels = np.asarray(APART.y_pred), np.eye(3)
    z = np.exp(-np.linalg.norm(p[:, None] - places[None], axis=2) / 0.5) * (labels[y] - p)  # label j at location j
    z = z if w is None else w[:, None] * z
    centred = z - z.mean(axis=0)
    inverse = np.linalg.inv(centred.T @ centred / 79)
    q = 80 * z.mean(axis=0) @ inverse @ z.mean(axis=0)
    for reference, tail in (("F", f.sf((80 - 3) / (3 * 79) * q, 3, 77)), ("chi2", chi2.sf(q, 3))):
        result = CMETest(Exponential(0.5), locations=APART, reference=reference)(y, p, sample_weight=w)
        assert result.statistic == pytest.approx(q, rel=1e-10)
        assert result.pvalue == pytest.approx(tail, rel=1e-9)


def test_one_location_is_the_t_test(rng):
    from scipy.stats import ttest_1samp

    predictions = Normal.example(rng, 50)
    y = predictions.sample(rng, 1)[0]
    locations = GivenLocations([0.5], Normal([0.0], 1.0))
    measure = UCME(Exponential(1.0), Gaussian(1.0), locations)
    values = measure.values(*locations.choose(measure, y, predictions))[0]
    result = CMETest(Exponential(1.0), Gaussian(1.0), locations, "F")(y, predictions)
    assert result.pvalue == pytest.approx(ttest_1samp(values, 0).pvalue, rel=1e-9)


def test_the_estimate_is_the_embedding(rng):
    p, y, w = rng.dirichlet(np.ones(3), 80), rng.integers(0, 3, 80), rng.random(80)
    result = CMETest(n_resamples=9)(y, p, sample_weight=w)
    assert result.estimate.value == UCME(locations=SampledLocations(5))(y, p, sample_weight=w).value
    assert result.n == 80


def test_rows_without_weight_do_not_count(rng):
    p, y = rng.dirichlet(np.ones(3), 80), rng.integers(0, 3, 80)
    test = CMETest(Exponential(0.5), locations=APART, reference="F")
    w = np.r_[np.full(50, 3.0), np.zeros(30)]
    assert test(y, p, sample_weight=w).pvalue == pytest.approx(test(y[:50], p[:50]).pvalue, rel=1e-10)


def test_the_exact_reference_ranks_resamples(rng):
    """By a second route: the plain formula on targets that are resampled one set at a time."""
    p = Categorical(rng.dirichlet(np.ones(3), 60))
    y = p.sample(rng, 1)[0]
    test = CMETest(Exponential(0.5), locations=APART, n_resamples=39)
    result = test(y, p, rng=4)
    plain = CMETest(Exponential(0.5), locations=APART, reference="chi2")
    seed = np.random.SeedSequence(4).spawn(1)[0]
    null = [plain(drawn, p).statistic for drawn in p.sample(np.random.default_rng(seed), 39)]
    assert result.null_distribution == pytest.approx(np.array(null), rel=1e-9)
    assert result.pvalue == (1 + sum(q >= result.statistic for q in null)) / 40


def test_level_of_locations_apart(rejections, bounds):
    low, high = bounds(600)
    assert low <= rejections(CMETest(Exponential(0.5), locations=APART, reference="F"), "classes", 200, 600) <= high


@pytest.mark.filterwarnings("ignore:class . never occurs")
@pytest.mark.parametrize(("name", "n"), [("classes", 16), ("binary", 30), ("normal-1", 16)])
def test_level_of_resampled_targets(name, n, rejections, bounds):
    """Exact, also at locations that are rows of the data and lie close to each other."""
    test = CMETest(locations=SampledLocations(10), n_resamples=19)
    assert rejections(test, name, n, 150) <= bounds(150)[1]


@pytest.mark.filterwarnings("ignore:class 0 never occurs")
def test_the_published_references_at_sixteen_rows(rejections, bounds):
    """Ten locations, sixteen rows: both laws for large n reject calibrated data sets far too often."""
    settings = {"on_predictions": Exponential(1.0), "on_targets": Gaussian(1.0), "locations": SampledLocations(10)}
    assert rejections(CMETest(**settings, reference="chi2"), "normal-1", 16, 200) > 120
    assert rejections(CMETest(**settings, reference="F"), "normal-1", 16, 200) > bounds(200)[1]


def test_errors_are_found(rng):
    p, y = rng.random(1000), rng.integers(0, 2, 1000)
    assert CMETest(n_resamples=99)(y, p).pvalue == 0.01
    assert CMETest(locations=OptimisedLocations(3), n_resamples=99)(y, p).pvalue == 0.01
    assert CMETest(reference="F")(y, p).pvalue < 1e-3


class TestDegenerateInput:
    def test_the_same_location_twice(self, rng):
        p, y = rng.random(200), rng.integers(0, 2, 200)
        twice, once = GivenLocations([1, 1], [0.3, 0.3]), GivenLocations([1], [0.3])
        alone = CMETest(Exponential(0.5), locations=once, n_resamples=9)(y, p)
        result = CMETest(Exponential(0.5), locations=twice, n_resamples=9)(y, p)
        assert result.statistic == pytest.approx(alone.statistic, rel=1e-9)
        assert result.pvalue == alone.pvalue
        for reference in ("F", "chi2"):
            with pytest.raises(
                InputError, match="covariance at the 2 locations is singular.*reference='exact'.*ridge=0.001"
            ):
                CMETest(Exponential(0.5), locations=twice, reference=reference)(y, p)
            ridged = CMETest(Exponential(0.5), locations=twice, reference=reference, ridge=1e-3)(y, p)
            assert ridged.statistic == pytest.approx(alone.statistic, rel=2e-3)

    @pytest.mark.parametrize("reference", ["F", "chi2"])
    def test_few_rows(self, reference):
        with pytest.raises(InputError, match="at 2 locations needs more than 2 rows.*got 2: use fewer locations, or"):
            CMETest(reference=reference)([0, 1], [0.3, 0.4])

    @pytest.mark.filterwarnings("ignore:class . never occurs")
    @pytest.mark.parametrize("n", [1, 2, 5])
    def test_no_more_rows_than_locations_have_no_power(self, n):
        result = CMETest(n_resamples=19)(np.arange(n) % 2, np.linspace(0.3, 0.6, n))
        assert result.pvalue == 1
        assert "hardly any power; use fewer locations" in result.notes[0]

    def test_constant_predictions(self, rng):
        y = rng.integers(0, 2, 40)
        assert 0.05 < CMETest(n_resamples=99)(y, np.full(40, 0.5)).pvalue <= 1

    @pytest.mark.filterwarnings("ignore:class 0 never occurs")
    def test_constant_predictions_and_targets(self):
        result = CMETest(n_resamples=99)(np.ones(40, int), np.full(40, 0.5))
        assert (result.statistic, result.pvalue) == (np.inf, 0.01)

    @pytest.mark.parametrize("reference", ["exact", "F", "chi2"])
    def test_no_residuals_no_evidence(self, reference):
        certain = np.array([0, 1] * 10)
        result = CMETest(reference=reference)(certain, certain.astype(float))
        assert (result.statistic, result.pvalue) == (0, 1)
        assert result.notes == ("all residuals are zero: there is nothing to test",)

    def test_certain_and_wrong(self):
        certain = np.array([0, 1] * 10)
        assert CMETest(n_resamples=99)(1 - certain, certain.astype(float)).pvalue == 0.01


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reference": "normal"}, "reference must be 'exact', 'F' or 'chi2'; got 'normal'"),
        ({"ridge": -1}, "ridge must be a number of at least 0; got -1"),
        ({"locations": 5}, "locations must be such as SampledLocations"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(InputError, match=message):
        CMETest(**settings)


def test_every_library(xp, rng):
    predictions = Normal.example(rng, 60)
    y = predictions.sample(rng, 1)[0]
    test = CMETest(Exponential(1.0), Gaussian(1.0), n_resamples=19)
    other = test(xp.asarray(y), Normal(xp.asarray(predictions.loc), xp.asarray(predictions.scale)))
    assert other.pvalue == pytest.approx(test(y, predictions).pvalue, rel=1e-8)
