import numpy as np
import pytest

from calibrant.results import Table
from studies.berta import compared
from studies.berta.data import SCENARIOS
from studies.berta.recovery import published


def test_local_frequencies_are_the_published_ones():
    """And temperatures, on ten data sets of 200 rows."""
    name = "calibrated, 2 classes"
    values = np.array([compared._experiment((200,), name, seed)[0] for seed in range(10)]).mean(axis=0)
    for j, method in enumerate(compared.COMPARED[:2]):
        assert values[j] == pytest.approx(published()[name, 200, method].mean, abs=1e-6)


def test_structured_matrices_are_the_published_ones():
    name = "under-confident, 3 classes"
    assert SCENARIOS[name].n_classes == 3
    values = [compared._experiment((200,), name, seed)[0, 3] for seed in range(10)]
    assert np.mean(values) == pytest.approx(published()[name, 200, "structured matrix"].mean, abs=compared.SINGLE)


def test_shares_of_the_largest_error():
    rows = [
        compared._row("tasks", task, 10, m, loss, value, np.nan, np.nan, np.nan)
        for task, scale in (("iris, forest", 0.1), ("wine, bayes", 0.001))
        for i, m in enumerate(compared.RECOVERING)
        for loss, value in (("norm", scale * (i - 1)), ("squared", scale), ("seconds", 2.0))
    ]
    table = compared.recovered(Table({key: [row[key] for row in rows] for key in rows[0]}))
    assert table["more classes, norm (1 tasks)"].tolist()[:3] == ["0.0 ± nan", "0.0 ± nan", "25.0 ± nan"]
    assert table["seconds"].tolist() == ["2.00"] * len(compared.RECOVERING)


def test_tasks_are_what_scikit_learn_ships():
    y, p = compared.predictions_of("wine, forest", 0)
    assert p.shape == (178, 3)
    assert (p.argmax(axis=1) == y).mean() > 0.9
    assert len(compared.task_names()) == 24
