import numpy as np
import pytest

from calibrant import Ensemble, Normal
from calibrant._validate import InputError
from calibrant.estimators import PIT
from calibrant.inference import PITCurve


def outside(table):
    return (table["observed"] < table["low"]) | (table["observed"] > table["high"])


def test_it_is_the_distribution_function_of_the_levels(rng):
    batch = Normal.example(rng, 300)
    y = batch.sample(rng, 1)[0]
    table = PITCurve()(y, batch)
    u = PIT()(y, batch)
    assert table["observed"] == pytest.approx([(u <= level).mean() for level in table["level"]])
    assert table.n_rows == 99
    assert PITCurve()(y[:20], batch[:20]).n_rows == 19


@pytest.mark.parametrize("n", [50, 500])
def test_calibrated_forecasts_stay_inside_together(n, counts):
    """Numbers, counts and ensembles, 400 data sets each: 95 %, within binomial bounds."""
    rng = np.random.default_rng(4)

    def ensemble(rng, n):
        pool = rng.normal(size=(n, 8)).round(1)
        return pool[:, 0], Ensemble(pool[:, 1:])

    def of(family):
        def made(rng, n):
            batch = family.example(rng, n)
            return batch.sample(rng, 1)[0], batch

        return made

    for make in (of(Normal), of(counts), ensemble):
        tables = [PITCurve(seed=int(rng.integers(1 << 30)))(*make(rng, n)) for _ in range(400)]
        inside = np.mean([not outside(table).any() for table in tables])
        assert abs(inside - 0.9515) < 4 * np.sqrt(0.95 * 0.05 / 400)


def test_sides_say_what_is_wrong(rng):
    y = rng.normal(size=500)
    low, high = (PITCurve()(y, Normal(np.full(500, m), 1.0)) for m in (-1.0, 1.0))
    assert np.all(low["observed"] < low["level"])
    assert outside(low).any()
    assert np.all(high["observed"] > high["level"])
    sure = PITCurve()(y, Normal(np.zeros(500), 0.5))
    assert sure["observed"][10] > sure["high"][10]
    assert sure["observed"][-10] < sure["low"][-10]


def test_one_row():
    table = PITCurve()([0.1], Normal([0.0], 1.0))
    assert table["level"].tolist() == [0.5]
    assert not outside(table).any()


def test_what_is_refused():
    with pytest.raises(InputError, match="n_points must be a whole number of at least 2"):
        PITCurve(1)
    with pytest.raises(InputError, match="level must lie strictly between 0 and 1; got 1"):
        PITCurve(level=1)
    with pytest.raises(InputError, match="PITCurve needs a distribution function, which Categorical"):
        PITCurve()([0, 1], [0.2, 0.4])


def test_weights_count(rng):
    batch = Normal.example(rng, 200)
    y = batch.sample(rng, 1)[0]
    weights = rng.integers(0, 3, 200)
    table = PITCurve()(y, batch, sample_weight=weights)
    u = PIT()(y, batch)
    assert table["observed"] == pytest.approx([np.average(u <= level, weights=weights) for level in table["level"]])
    rows = round(weights.sum() ** 2 / (weights**2).sum())
    assert table["high"] == pytest.approx(PITCurve()(y[:rows], batch[:rows])["high"])
