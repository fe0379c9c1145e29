"""Metrics of the library evaluate, where it is installed."""

import numpy as np
import pytest

from calibrant import ECE, Brier, InputError, TopLabel
from calibrant.integrations import as_metric


@pytest.fixture
def rows(rng):
    p = rng.dirichlet(np.ones(3), 200)
    return np.array([rng.choice(3, p=row) for row in p]), p


def test_one_number(rng):
    pytest.importorskip("evaluate")
    p = rng.random(200)
    y = (rng.random(200) < p) * 1
    metric = as_metric(ECE(), "ece")
    for part in np.array_split(np.arange(200), 3):
        metric.add_batch(references=y[part], predictions=p[part])
    assert metric.compute() == {"ece": ECE()(y, p).value}


def test_classes_weights_and_combinations(rows, rng):
    evaluate = pytest.importorskip("evaluate")
    y, p = rows
    weights = rng.random(200)
    metric = as_metric(ECE(lens=TopLabel()), "top", n_classes=3)
    found = metric.compute(references=y, predictions=p, sample_weight=weights)
    assert found == {"top": ECE(lens=TopLabel())(y, p, sample_weight=weights).value}
    both = evaluate.combine([as_metric(ECE(), "ece", 3), as_metric(Brier(), "brier", 3)])
    assert both.compute(references=y, predictions=p) == {"ece": ECE()(y, p).value, "brier": Brier()(y, p).value}


def test_what_is_no_estimator_is_refused():
    with pytest.raises(InputError, match=r"estimator must be an estimator such as ECE\(\); got 3"):
        as_metric(3)
