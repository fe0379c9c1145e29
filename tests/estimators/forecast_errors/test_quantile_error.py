import numpy as np
import pytest

from calibrant import Ensemble, ExactTest, MultivariateNormal, Normal
from calibrant._validate import InputError
from calibrant.checks import check_estimator
from calibrant.estimators import QuantileError


def test_shares_below_quantiles(rng):
    batch = Normal.example(rng, 80)
    y = 1.7 * batch.sample(rng, 1)[0]
    levels = np.array([0.1, 0.4, 0.9])
    observed = (y[:, None] <= batch.quantile(levels)).mean(axis=0)
    result = QuantileError(levels)(y, batch)
    assert result.table["observed"] == pytest.approx(observed)
    assert result.value == pytest.approx(np.abs(observed - levels).mean())
    assert QuantileError(levels, squared=True)(y, batch).value == pytest.approx(((observed - levels) ** 2).mean())


def test_weights_are_repetitions(rng):
    batch, times = Normal.example(rng, 30), rng.integers(0, 4, 30)
    y = batch.sample(rng, 1)[0]
    repeated = QuantileError()(np.repeat(y, times), batch[np.repeat(np.arange(30), times)]).value
    assert QuantileError()(y, batch, sample_weight=times).value == pytest.approx(repeated, rel=1e-12)


def test_calibrated_counts_have_no_error_in_the_end(counts, rng):
    batch = counts.example(rng, 100_000)
    y = batch.sample(rng, 1)[0]
    assert QuantileError()(y, batch).value < 5 * 0.5 / np.sqrt(100_000)
    steps = [
        abs((y <= q).mean() - u) for u, q in zip((0.25, 0.5), batch.quantile(np.array([0.25, 0.5])).T, strict=True)
    ]
    assert min(steps) > 0.1  # what counting targets up to their quantiles would give


def test_ensembles_that_could_be_exchanged_have_none_either(rng):
    pool = rng.normal(size=(100_000, 5))
    assert QuantileError()(pool[:, 0], Ensemble(pool[:, 1:])).value < 5 * 0.5 / np.sqrt(100_000)


def test_it_conforms_and_finds_errors(rng):
    batch = Normal.example(rng, 200)
    y = batch.sample(rng, 1)[0]
    check_estimator(QuantileError(), y, batch)
    check_estimator(QuantileError(squared=True), y, batch)
    assert ExactTest(QuantileError(), n_resamples=99)(y, batch).pvalue > 0.05
    assert ExactTest(QuantileError(), n_resamples=99)(y, Normal(batch.loc, 2 * batch.scale)).pvalue == 0.01


def test_what_is_refused():
    with pytest.raises(InputError, match="levels must lie strictly between 0 and 1; got 0"):
        QuantileError([0, 0.5])
    with pytest.raises(InputError, match="QuantileError needs a distribution function, which Categorical"):
        QuantileError()([0, 1], [0.2, 0.4])
    with pytest.raises(InputError, match="QuantileError orders numbers and MultivariateNormal predicts vectors"):
        QuantileError()([[0.0, 1.0]], MultivariateNormal([[0.0, 1.0]], 1.0))
