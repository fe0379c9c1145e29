import numpy as np
import pytest
from scipy.stats import norm

from calibrant import MultivariateNormal, Normal
from calibrant._validate import InputError
from calibrant.plots import FanDisplay, fan


@pytest.fixture
def forecast(rng):
    return rng.normal(size=200), Normal(rng.normal(size=200), rng.uniform(0.5, 2, 200))


def test_intervals_are_quantiles(forecast):
    y, predictions = forecast
    table = FanDisplay.from_predictions(y, predictions, max_rows=200).tables["fan"]
    order = np.argsort(predictions.mean)
    np.testing.assert_array_equal(table["outcome"], y[order])
    np.testing.assert_allclose(table["median"], predictions.mean[order])
    reach = norm.ppf(0.975) * predictions.std[order]
    np.testing.assert_allclose(table["low_0.95"], predictions.mean[order] - reach)
    np.testing.assert_allclose(table["high_0.95"], predictions.mean[order] + reach)


def test_outcomes_outside_the_widest_interval_are_diamonds(forecast):
    display = fan(*forecast, levels=[0.5, 0.8])
    table = display.tables["fan"]
    outside = (table["outcome"] < table["low_0.8"]) | (table["outcome"] > table["high_0.8"])
    np.testing.assert_array_equal(display.ax_.collections[-1].get_offsets()[:, 1], table["outcome"][outside])
    words = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert words == ["outcome", "outside 80 %", "50 and 80 % intervals"]


def test_rows_are_thinned_as_asked(forecast):
    at = np.arange(200)[::-1]
    kept = {
        rows: FanDisplay.from_predictions(*forecast, at=at, rows=rows, max_rows=5).tables["fan"]["at"].tolist()
        for rows in ("even", "first", "last")
    }
    assert kept == {"even": [0, 50, 100, 149, 199], "first": [0, 1, 2, 3, 4], "last": [195, 196, 197, 198, 199]}


def test_times_are_drawn(forecast):
    days = np.datetime64("2024-01-01") + np.arange(200)
    assert "nan" not in fan(*forecast, at=days).to_svg()


def test_a_million_rows_are_a_small_picture():
    display = fan(np.zeros(10**6), Normal(np.zeros(10**6), 1.0))
    assert len(display.to_svg()) < 150_000


def test_one_row_is_drawn():
    assert "nan" not in fan([0.3], Normal([0.0], 1.0)).to_svg()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rows": "some"}, "rows must be 'even', 'first' or 'last'; got 'some'"),
        ({"at": [1.0]}, "at has 1 row and y_true has 200"),
        ({"max_rows": 0}, "max_rows must be a whole number"),
        ({"levels": [1.5]}, "levels must lie strictly between 0 and 1"),
    ],
)
def test_settings_that_are_none_are_refused(options, words, forecast):
    with pytest.raises(InputError, match=words):
        fan(*forecast, **options)


def test_vectors_are_refused():
    with pytest.raises(InputError, match="these predictions are vectors: give one coordinate"):
        fan([[0.0, 1.0]], MultivariateNormal([[0.0, 0.0]], 1.0))
