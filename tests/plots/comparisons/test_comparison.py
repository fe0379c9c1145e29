import numpy as np
import pytest

from calibrant import ECE, ExactTest, Sweep
from calibrant._validate import InputError
from calibrant.plots import ComparisonDisplay, CurvesDisplay, comparison


@pytest.fixture
def models(rng):
    p = rng.random(300)
    return (rng.random(300) < p).astype(int), {"good": p, "wrong": p**3}


def test_rows_are_the_test_and_the_interval_of_each_model(models):
    y, predictions = models
    display = comparison(ECE(), y, predictions, n_resamples=99, rng=3)
    table = display.tables["models"]
    for i, p in enumerate(predictions.values()):
        test = ExactTest(ECE(), 99)(y, p, rng=3)
        interval = ECE()(y, p).confidence_interval()
        assert table["pvalue"][i] == test.pvalue
        assert table["value"][i] == test.statistic
        assert (table["null_low"][i], table["null_high"][i]) == tuple(test.null_band())
        assert (table["low"][i], table["high"][i]) == tuple(interval)
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["good", "wrong"]
    within, beyond = (marks.get_offsets() for marks in display.ax_.collections if hasattr(marks, "get_sizes"))
    assert within[:, 1].tolist() == [0]
    assert beyond[:, 1].tolist() == [1]


def test_what_has_no_interval_is_drawn_without(models):
    y, predictions = models
    display = comparison(ECE(Sweep()), y, predictions, n_resamples=19)
    assert np.isnan(display.tables["models"]["low"]).all()
    assert display.to_svg()


def test_one_model_with_a_long_name_is_drawn(models):
    y, predictions = models
    svg = comparison(ECE(), y, {"x" * 99: predictions["good"]}, n_resamples=99).to_svg()
    assert "x" * 16 + "…" + "x" * 7 in svg


def test_models_have_names(models):
    with pytest.raises(InputError, match="models must be predictions by name"):
        comparison(ECE(), models[0], [models[1]["good"]])
    with pytest.raises(InputError, match=r"must be of the same models; got \['a'\] and \[\]"):
        ComparisonDisplay.from_results({"a": None}, {})


@pytest.mark.parametrize("models", [{}, [0.2, 0.8]])
def test_models_without_names_are_refused(models):
    with pytest.raises(InputError, match="models must be predictions by name"):
        CurvesDisplay.from_predictions([0, 1], models)
