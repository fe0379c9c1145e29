import numpy as np
import pytest

from calibrant import Ensemble, ExactTest, MultivariateNormal, Normal
from calibrant._validate import InputError
from calibrant.checks import check_estimator
from calibrant.estimators import ENCE


def test_bins_by_hand(rng):
    """Equal bins of sorted spreads, as the paper has it."""
    scale = rng.uniform(0.5, 2, 60)
    y = rng.normal(0, 1.3 * scale)
    order = np.argsort(scale).reshape(6, 10)
    predicted, observed = np.sqrt((scale[order] ** 2).mean(axis=1)), np.sqrt((y[order] ** 2).mean(axis=1))
    result = ENCE(n_bins=6)(y, Normal(np.zeros(60), scale))
    assert result.value == pytest.approx((np.abs(predicted - observed) / predicted).mean())
    assert result.table["predicted"] == pytest.approx(predicted)
    assert result.table["observed"] == pytest.approx(observed)
    assert result.table["lower"] == pytest.approx(scale[order].min(axis=1))
    assert result.table["upper"] == pytest.approx(scale[order].max(axis=1))
    assert result.table["weight"].tolist() == [10] * 6


def test_weights_are_repetitions(rng):
    scale, times = rng.uniform(0.5, 2, 30).round(1), rng.integers(0, 4, 30)
    y, rows = rng.normal(0, scale), np.repeat(np.arange(30), times)
    weighted = ENCE(4)(y, Normal(np.zeros(30), scale), sample_weight=times)
    assert weighted.value == pytest.approx(ENCE(4)(y[rows], Normal(np.zeros(len(rows)), scale[rows])).value)


def test_equal_spreads_share_a_bin(rng):
    y = rng.normal(size=50)
    result = ENCE()(y, Normal(np.zeros(50), 1.0))
    assert result.table.n_rows == 1
    assert result.value == pytest.approx(abs(1 - np.sqrt((y**2).mean())))
    assert ENCE()([2.0], Normal([0.0], 1.0)).value == pytest.approx(1.0)


def test_vectors_average_their_coordinates(rng):
    batch = MultivariateNormal(np.zeros((40, 2)), rng.uniform(0.5, 2, (40, 2)))
    y = batch.sample(rng, 1)[0]
    result = ENCE(1)(y, batch)
    predicted, observed = np.sqrt((batch.std**2).mean()), np.sqrt((y**2).mean())
    assert result.value == pytest.approx(abs(predicted - observed) / predicted)


@pytest.mark.parametrize("family", [Normal, Ensemble, MultivariateNormal])
def test_it_conforms(family, rng):
    batch = family.example(rng, 50)
    check_estimator(ENCE(5), batch.sample(rng, 1)[0], batch)


def test_it_sees_spreads_that_tell_nothing(rng):
    """Right on average, and the same for all rows: too wide where it says wide."""
    said = rng.uniform(0.3, 2.0, 400)
    y = rng.normal(0, np.sqrt((said**2).mean()), 400)
    assert ExactTest(ENCE(), n_resamples=99)(y, Normal(np.zeros(400), said)).pvalue == 0.01
    honest = rng.normal(0, said)
    assert ExactTest(ENCE(), n_resamples=99)(honest, Normal(np.zeros(400), said)).pvalue > 0.05


def test_what_is_refused():
    with pytest.raises(InputError, match="n_bins must be a whole number of at least 1"):
        ENCE(0)
    with pytest.raises(InputError, match="ENCE divides by the predicted standard deviation, which is 0.0 in row 0"):
        ENCE()([0.0], Ensemble([[1.0, 1.0]]))
    with pytest.raises(InputError, match="ENCE needs a mean, which Categorical"):
        ENCE()([0], [[0.2, 0.3, 0.5]])
