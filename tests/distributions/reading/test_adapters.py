"""Objects of libraries that are not installed are stood in for by others of the same structure."""

import numpy as np
import pytest
from scipy import stats

from calibrant import CRPS, SKCE, Categorical, Ensemble, ExactTest, MultivariateNormal, Normal, Quantiles
from calibrant._validate import InputError
from calibrant.distributions import Foreign, as_distribution, as_problem
from calibrant.distributions.reading.conversion import adapted, is_distribution
from calibrant.distributions.reading.foreign import batch_shape, frozen_parameters, is_frozen, rows_of


def stand_in(name, module, **attributes):
    """A class that looks as if it came from another library."""
    return type(name, (), {"__module__": module, "log_prob": lambda self, y: 0 * y, **attributes})


@pytest.mark.parametrize(
    "numbers",
    [[0.1, 0.9], [[0.1, 0.9]], np.array([0.1, 0.9]), (0.1, 0.9), [], 0.5, "text", None],
    ids=repr,
)
def test_numbers_are_no_distributions(numbers):
    assert adapted(numbers) is None


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_are_no_distributions(library):
    """Though they can be sampled and have quantiles."""
    frame = pytest.importorskip(library).DataFrame({"a": [0.1, 0.7], "b": [0.9, 0.3]})
    assert adapted(frame) is None
    assert isinstance(as_distribution(frame), Categorical)


def test_tensors_are_no_distributions():
    torch = pytest.importorskip("torch")
    assert adapted(torch.tensor([0.1, 0.9])) is None
    assert not is_distribution(torch.tensor([0.1, 0.9]))


def test_our_own_pass_as_they_are():
    batch = Normal([0.0], 1.0)
    assert adapted(batch) is None
    assert as_distribution(batch) is batch


def test_estimators_and_tests_take_other_libraries(rng):
    loc = rng.normal(size=50)
    y, law = loc + rng.normal(size=50), stats.norm(loc, 1.0)
    assert CRPS()(y, law).value == CRPS()(y, Normal(loc, 1.0)).value
    assert SKCE()(y, law).value == SKCE()(y, Normal(loc, 1.0)).value
    assert (
        ExactTest(SKCE(), n_resamples=19)(y, law).pvalue
        == ExactTest(SKCE(), n_resamples=19)(y, Normal(loc, 1.0)).pvalue
    )
    assert SKCE()(y, [stats.norm(m, 1.0) for m in loc]).value == SKCE()(y, law).value


def test_gradients_flow_to_the_parameters(rng):
    torch = pytest.importorskip("torch")
    loc = torch.tensor(rng.normal(size=20), requires_grad=True)
    SKCE()(torch.tensor(rng.normal(size=20)), torch.distributions.Normal(loc, 1.0)).value.backward()
    assert loc.grad.abs().sum() > 0


def test_lengths_must_agree():
    with pytest.raises(InputError, match="y_true has 3 rows and y_pred has 2"):
        as_problem([0.0, 1.0, 2.0], stats.norm([0.0, 1.0], 1.0))
    with pytest.raises(InputError, match="each must be of one row, or give one batch without a list"):
        adapted([stats.norm([0.0, 1.0], 1.0), stats.norm(0.0, 1.0)])


@pytest.mark.parametrize("shape", [(3, 2), (2, 3, 1)])
def test_batches_of_other_shapes_are_refused(shape):
    with pytest.raises(
        InputError, match=r"y_pred is a rv_continuous_frozen of shape \(.*\): give one distribution per row"
    ):
        adapted(stats.norm(np.zeros(shape), 1.0))


def test_one_column_is_one_a_row():
    assert len(adapted(stats.norm(np.zeros((3, 1)), 1.0))) == 3
    assert adapted(stats.gumbel_r(np.zeros((3, 1)), 1.0)).cdf(np.zeros(3)) == pytest.approx(np.full(3, np.exp(-1)))
    assert rows_of((), "x") == 1


def test_shapes_and_parameters_of_frozen_distributions():
    law = stats.t(4.0, [0.0, 1.0], scale=2.0)
    assert batch_shape(law) == (2,)
    assert frozen_parameters(law) == {"df": 4.0, "loc": [0.0, 1.0], "scale": 2.0}
    assert frozen_parameters(stats.poisson(3.0)) == {"mu": 3.0, "loc": 0.0}
    assert is_frozen(law)
    assert not is_frozen(stats.Normal(mu=0.0, sigma=1.0))


class TestOtherLibraries:
    def test_pytrees_of_numpyro(self):
        """Parameters that are not spread over the batch; classes named after how they were given."""
        normal = stand_in(
            "Normal", "numpyro.distributions.continuous", batch_shape=(3,), loc=np.arange(3.0), scale=np.ones(1)
        )()
        assert adapted(normal).scale.tolist() == [1, 1, 1]
        classes = stand_in(
            "CategoricalLogits",
            "numpyro.distributions.discrete",
            batch_shape=(2,),
            probs=np.array([[0.2, 0.8], [0.5, 0.5]]),
        )()
        assert isinstance(adapted(classes), Categorical)
        mixture = stand_in("MixtureSameFamily", "numpyro.distributions.mixtures", batch_shape=(2,), mixing_distribution=classes,
                           component_distribution=stand_in("Normal", "numpyro", batch_shape=(2, 2), loc=np.eye(2), scale=1.0)())()  # fmt: skip
        assert adapted(mixture).weights.tolist() == [[0.2, 0.8], [0.5, 0.5]]

    def test_methods_of_tensorflow_probability(self):
        classes = stand_in("Categorical", "tensorflow_probability", batch_shape=[2], probs=None,
                           probs_parameter=lambda self: np.array([[0.2, 0.8], [0.5, 0.5]]))()  # fmt: skip
        assert adapted(classes).probs.tolist() == [[0.2, 0.8], [0.5, 0.5]]
        vectors = stand_in("MultivariateNormalDiag", "tensorflow_probability", batch_shape=[2], event_shape=[2], loc=np.zeros((2, 2)),
                           covariance=lambda self: np.stack([np.eye(2)] * 2))()  # fmt: skip
        assert isinstance(adapted(vectors), MultivariateNormal)
        normal = stand_in("Independent", "tensorflow_probability", batch_shape=[2], event_shape=[3],
                          distribution=stand_in("Normal", "tfp", batch_shape=(2, 3), loc=np.zeros((2, 3)), scale=1.0)())()  # fmt: skip
        assert adapted(normal).loc.shape == (2, 3)

    def test_tables_of_skpro(self):
        """An attribute ``loc`` that takes rows out; methods that take one column alone."""
        normal = stand_in(
            "Normal",
            "skpro.distributions.normal",
            shape=(3, 1),
            mu=np.arange(3.0)[:, None],
            sigma=2.0,
            loc=lambda self: None,
        )()
        assert adapted(normal).loc.tolist() == [0, 1, 2]

        def ppf(self, u):
            assert u.shape == (3, 1)
            return stats.norm.ppf(u)

        other = stand_in(
            "Weird",
            "skpro.distributions.weird",
            shape=(3, 1),
            ppf=ppf,
            cdf=lambda self, y: stats.norm.cdf(y),
            get_tag=lambda self, *_: "continuous",
        )()
        batch = adapted(other)
        assert isinstance(batch, Foreign)
        assert batch.quantile(np.array([0.1, 0.9])) == pytest.approx(np.tile(stats.norm.ppf([0.1, 0.9]), (3, 1)))
        assert batch.std == pytest.approx(np.ones(3), rel=1e-9)

    def test_processes_of_gpytorch_are_seen_point_by_point(self):
        process = stand_in(
            "MultivariateNormal", "gpytorch.distributions", batch_shape=(), mean=np.zeros(5), stddev=np.ones(5)
        )()
        assert isinstance(adapted(process), Normal)
        tasks = stand_in(
            "MultitaskMultivariateNormal",
            "gpytorch.distributions",
            batch_shape=(),
            mean=np.zeros((5, 2)),
            stddev=np.ones((5, 2)),
        )()
        assert isinstance(adapted(tasks), MultivariateNormal)

    def test_unknown_components_stay_with_their_object(self):
        mixture = stand_in("MixtureSameFamily", "numpyro", batch_shape=(2,), sample=lambda self, shape, seed: np.zeros((*shape, 2)),
                           component_distribution=stand_in("Odd", "numpyro", batch_shape=(2, 2))())()  # fmt: skip
        assert isinstance(adapted(mixture), Foreign)

    def test_several_axes_a_row_are_refused(self):
        images = stand_in(
            "Independent",
            "torch",
            batch_shape=(2,),
            event_shape=(3, 3),
            base_dist=stand_in("Normal", "torch", batch_shape=(2, 3, 3))(),
        )()
        with pytest.raises(
            InputError, match="y_pred is Independent over 2 axes: targets are numbers or vectors, one per row"
        ):
            adapted(images)


class DataArray:
    """What is used of xarray."""

    def __init__(self, values, dims, coords=None):
        self.values, self.dims, self.coords = np.asarray(values), dims, coords or {}

    def transpose(self, *dims):
        return DataArray(self.values.transpose([self.dims.index(d) for d in dims]), dims)

    def __getitem__(self, name):
        return DataArray(self.coords[name], (name,))


DataArray.__module__ = "xarray.core.dataarray"


class TestLabelledArrays:
    def test_members(self, rng):
        values = rng.normal(size=(5, 3))
        batch = adapted(DataArray(values, ("number", "time")))
        assert isinstance(batch, Ensemble)
        assert np.array_equal(batch.members, values.T)
        assert adapted(DataArray(rng.normal(size=(3, 5, 2)), ("time", "member", "place"))).members.shape == (3, 5, 2)

    def test_quantiles(self):
        fan = adapted(
            DataArray([[0.0, 1.0], [2.0, 2.0], [3.0, 5.0]], ("quantile", "time"), {"quantile": [0.1, 0.5, 0.9]})
        )
        assert isinstance(fan, Quantiles)
        assert fan.levels.tolist() == [0.1, 0.5, 0.9]
        assert fan.values.tolist() == [[0, 2, 3], [1, 2, 5]]

    @pytest.mark.parametrize("dims", [("time", "place"), ("member", "draw"), ("member",), ("member", "a", "b", "c")])
    def test_other_dimensions_are_refused(self, dims):
        with pytest.raises(InputError, match="y_pred is a DataArray with dimensions .*: one must be of members"):
            adapted(DataArray(np.zeros((2,) * len(dims)), dims))

    def test_real_ones(self, rng):
        xarray = pytest.importorskip("xarray")
        batch = adapted(xarray.DataArray(rng.normal(size=(5, 3)), dims=("member", "time")))
        assert len(batch) == 3
