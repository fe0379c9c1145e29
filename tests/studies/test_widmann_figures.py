import numpy as np
import pytest

from calibrant.results import Table
from studies import pictures
from studies.widmann.figures import line_and_quantiles, training_curves

pytest.importorskip("matplotlib")


@pytest.fixture
def table():
    rows = [
        {
            "experiment": experiment,
            "data": data,
            "iteration": iteration,
            "model": model,
            "quantity": quantity,
            "value": 0.2 + shift,
            "low": 0.1,
            "high": 0.4,
            "expected": 0.25 if iteration == 100 else np.nan,
        }
        for experiment in ("new networks", "published networks")
        for data in ("train", "test")
        for iteration in (10, 100, 2000)
        for quantity in ("NLL", "p-value", "SKCE (unbiased)", "MSE")
        for shift, model in enumerate(("models", "ensemble", "ensemble, pairs left out"))
    ]
    return Table({key: [row[key] for row in rows] for key in rows[0]})


def test_a_panel_a_quantity_with_bands_lines_and_published_values(table):
    figure = training_curves(table, ("NLL", "p-value"), last=1500, is_log=False)
    first, second = figure.axes
    assert [axes.get_title(loc="left") for axes in (first, second)] == ["NLL", "p-value"]
    assert len(first.collections) == 2  # a band for each sample
    assert first.collections[0].get_paths()[0].get_extents().ymax == pytest.approx(0.4)
    solid = [line for line in first.get_lines() if line.get_linestyle() == "-" and line.get_marker() == "None"]
    assert [list(line.get_xdata()) for line in solid] == [[10, 100]] * 4  # not what comes after the last
    assert sum(line.get_linestyle() == "--" for line in first.get_lines()) == 2
    crosses = [line for line in first.get_lines() if line.get_marker() in ("x", "o")]
    assert len(crosses) == 4
    assert all(np.nansum(line.get_ydata()) == pytest.approx(0.25) for line in crosses)
    assert second.get_ylim() == (0, 1)
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert {"train rows", "test rows", "models: mean and range", "published ensemble"} <= set(named)


def test_later_iterations_on_an_axis_of_logarithms(table):
    figure = training_curves(table, ("SKCE (unbiased)", "MSE"), last=5000, is_log=True)
    assert [axes.get_xscale() for axes in figure.axes] == ["log", "log"]
    assert [axes.get_yscale() for axes in figure.axes] == ["asinh", "log"]
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["10", "100", "1,000", "5,000"]
    assert pictures.svg(figure).startswith("<?xml")


def test_densities_and_the_curve_of_quantiles():
    figure = line_and_quantiles()
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["what is true", "what is predicted", "quantiles", ""]  # and the colours
    image = figure.axes[1].images[0].get_array()
    assert image.max() == pytest.approx(1 / (0.44717 * np.sqrt(2 * np.pi)), rel=1e-3)
    curve = figure.axes[2].get_lines()[1]
    assert len(curve.get_xdata()) == 52
    assert np.all(np.diff(curve.get_ydata()) >= 0)
