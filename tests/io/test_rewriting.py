import numpy as np
import pytest

from calibrant import Ensemble, Laplace, MultivariateNormal, Normal, io
from calibrant._validate import InputError
from calibrant.io.rewriting import LEVELS, rewrite
from calibrant.recalibration import QuantileRecalibration, Temperature, VarianceScaling

polars = pytest.importorskip("polars")


@pytest.fixture
def write(tmp_path):
    def call(**columns):
        path = tmp_path / "x.csv"
        polars.DataFrame({"id": [f"{i:03}" for i in range(len(next(iter(columns.values()))))], **columns}).write_csv(
            path
        )
        return path

    return call


@pytest.fixture
def numbers(rng):
    return {"mu": rng.normal(size=60), "sigma": rng.uniform(1, 2, 60), "y": rng.normal(size=60)}


def test_classes_go_where_they_were(write, rng, tmp_path):
    p, y = rng.dirichlet(np.ones(3), 60), rng.integers(3, size=60)
    path = write(p_b=p[:, 0], p_a=p[:, 1], p_c=p[:, 2], y=y)
    old = io.read_predictions(path, y_pred="p_*")
    better = Temperature().fit(y, p)(old.prediction)
    assert rewrite(old, better, tmp_path / "out.csv") == ["p_b", "p_a", "p_c"]
    again = io.read_predictions(tmp_path / "out.csv", y_pred="p_*")
    assert np.array_equal(again.prediction.matrix, better.matrix)
    assert again.file.names == ["id", "p_b", "p_a", "p_c", "y"]
    assert (tmp_path / "out.csv").read_text().splitlines()[1].startswith("000,")


def test_one_column_stays_one_column(write, rng, tmp_path):
    p, y = rng.random(60), rng.integers(2, size=60)
    old = io.read_predictions(write(p=p), y_pred="p")
    better = Temperature().fit(y, p)
    assert rewrite(old, better(old.prediction), tmp_path / "out.parquet") == ["p"]
    again = io.read_predictions(tmp_path / "out.parquet", y_pred="p")
    assert np.array_equal(again.prediction.probs, better(p))


@pytest.mark.parametrize("predict", ["Categorical.from_logits(logits='z_*')", "Categorical.from_logits(z_1)"])
def test_logits_are_logits_again(predict, write, rng, tmp_path):
    z = rng.normal(size=(60, 2)) * 5
    old = io.read_predictions(write(z_0=z[:, 0], z_1=z[:, 1]), predict=predict)
    better = old.prediction.temper(0.01)  # so sure that some probabilities are 0
    assert better.matrix.min() == 0
    rewrite(old, better, tmp_path / "out.csv")
    again = io.read_predictions(tmp_path / "out.csv", predict=predict)
    assert again.prediction.matrix == pytest.approx(better.matrix, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("family", [Normal, Laplace])
def test_parameters_of_the_same_family(family, write, numbers, tmp_path):
    old = io.read_predictions(write(**numbers), predict=f"{family.__name__}(mu, scale=sigma)")
    better = VarianceScaling(bias=True).fit(numbers["y"], old.prediction)(old.prediction)
    assert rewrite(old, better, tmp_path / "out.csv") == ["mu", "sigma"]
    again = io.read_predictions(tmp_path / "out.csv", predict=f"{family.__name__}(mu, sigma)").prediction
    assert np.array_equal(again.loc, better.loc)
    assert np.array_equal(again.scale, better.scale)


def test_a_parameter_that_was_a_number_gets_a_column(write, numbers, tmp_path):
    old = io.read_predictions(write(**numbers), predict="Normal(mu, 3.0)")
    better = Temperature().fit(numbers["y"], old.prediction)(old.prediction)
    assert rewrite(old, better, tmp_path / "out.csv") == ["mu", "scale"]
    again = io.read_predictions(tmp_path / "out.csv", predict="Normal(mu, scale)")
    assert np.array_equal(again.prediction.scale, better.scale)
    assert rewrite(old, old.prediction, tmp_path / "same.csv") == ["mu"]  # the number did not change
    crowded = io.read_predictions(write(scale=numbers["y"], **numbers), predict="Normal(mu, 3.0)")
    with pytest.raises(InputError, match="x.csv has a column 'scale' already: rename it"):
        rewrite(crowded, better, tmp_path / "out.csv")


def test_one_scale_for_several_coordinates(write, rng, tmp_path):
    m, s, y = rng.normal(size=(60, 2)), rng.uniform(1, 2, 60), rng.normal(size=(60, 2))
    predict = "MultivariateNormal(loc='m_*', scale=s)"
    old = io.read_predictions(write(m_0=m[:, 0], m_1=m[:, 1], s=s), predict=predict)
    assert isinstance(old.prediction, MultivariateNormal)
    better = VarianceScaling().fit(y, old.prediction)(old.prediction)
    assert rewrite(old, better, tmp_path / "out.csv") == ["m_0", "m_1", "s"]
    again = io.read_predictions(tmp_path / "out.csv", predict=predict)
    assert np.array_equal(again.prediction.scale, better.scale)


def test_an_ensemble_stays_one(write, rng, tmp_path):
    members, y = rng.normal(size=(60, 5)), 2 * rng.normal(size=60)
    old = io.read_predictions(write(**{f"m_{i}": members[:, i] for i in range(5)}), predict="Ensemble(members='m_*')")
    better = QuantileRecalibration().fit(y, old.prediction, folds=0)(old.prediction)
    rewrite(old, better, tmp_path / "out.csv")
    again = io.read_predictions(tmp_path / "out.csv", predict="Ensemble('m_*')").prediction
    assert np.array_equal(again.members, better.ensemble(5).members)


def test_other_predictions_have_quantiles_that_are_an_ensemble(write, numbers, tmp_path):
    old = io.read_predictions(write(**numbers), predict="Normal(mu, sigma)")
    better = QuantileRecalibration().fit(numbers["y"], old.prediction)(old.prediction)
    names = rewrite(old, better, tmp_path / "out.csv")
    assert names == [f"q_{level:g}" for level in LEVELS]
    assert names[::19] == ["q_0.025", "q_0.975"]
    again = io.read_predictions(tmp_path / "out.csv", predict="Ensemble(members='q_*')").prediction
    assert isinstance(again, Ensemble)
    assert again.members == pytest.approx(better.ensemble(20).members, rel=1e-12)
    kept = io.read_predictions(tmp_path / "out.csv", predict="Normal(mu, sigma)").prediction
    assert np.array_equal(kept.loc, numbers["mu"])


def test_quantiles_stay_those_of_their_levels(write, rng, tmp_path):
    mu, y = rng.normal(size=60), 2 * rng.normal(size=60)
    path = write(**{f"q_{level}": mu + shift for level, shift in ((0.1, -1.28), (0.5, 0.0), (0.9, 1.28))})
    old = io.read_predictions(path, predict="Quantiles(values='q_*')")
    better = QuantileRecalibration().fit(y, old.prediction)(old.prediction)
    assert rewrite(old, better, tmp_path / "out.csv") == ["q_0.1", "q_0.5", "q_0.9"]
    again = io.read_predictions(tmp_path / "out.csv", predict="Quantiles(values='q_*')").prediction
    assert np.array_equal(again.values, better.quantile(np.array([0.1, 0.5, 0.9])))


def test_quantiles_on_request(write, numbers, tmp_path):
    old = io.read_predictions(write(**numbers), predict="Normal(mu, sigma)")
    assert rewrite(old, old.prediction, tmp_path / "out.csv", [0.5]) == ["mu", "sigma", "q_0.5"]
    median = polars.read_csv(tmp_path / "out.csv")["q_0.5"].to_numpy()
    assert median == pytest.approx(numbers["mu"], abs=1e-12)
    with pytest.raises(InputError, match=r"--level must lie strictly between 0 and 1; got 1.5"):
        rewrite(old, old.prediction, tmp_path / "out.csv", [1.5])
    classes = io.read_predictions(write(p=np.array([0.1, 0.2])), y_pred="p")
    with pytest.raises(InputError, match="--level: Categorical predictions have no quantiles; leave it out"):
        rewrite(classes, classes.prediction, tmp_path / "out.csv", [0.5])
