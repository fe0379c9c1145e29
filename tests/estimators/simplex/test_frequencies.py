"""What estimators of frequencies share; their values are checked where they are defined."""

from dataclasses import dataclass

import numpy as np
import pytest

from calibrant._validate import InputError
from calibrant.checks import check_estimator
from calibrant.estimators.simplex.dirichlet import DirichletRows, weight_panels
from calibrant.estimators.simplex.kde import FrequencyEstimator
from calibrant.inference import Jackknife
from calibrant.lab import Sigmoid


@dataclass(frozen=True)
class MeanCube(FrequencyEstimator):
    """An estimator of one's own: the mean third power of what happens around each row."""

    bandwidth: float = 0.1
    debias: bool = False
    lens: None = None

    name = "mean cube"

    def terms(self, ratios, predicted):
        return ratios.frequency**3

    def slopes(self, frequency, predicted):
        return 3 * frequency**2


def test_an_estimator_of_ones_own(rng):
    y, p = Sigmoid(0.5).draw(200, rng)
    w = np.concatenate([panel for _, panel in weight_panels(DirichletRows.of(p.matrix, 0.1))])
    found = MeanCube()(y, p)
    assert found.value == pytest.approx(np.mean((w @ y) ** 3), rel=1e-12)
    assert found.standard_error == pytest.approx(Jackknife(MeanCube(), groups=200)(y, p).standard_error, rel=0.05)
    check_estimator(MeanCube(), y, p)


def test_bad_settings():
    with pytest.raises(InputError, match="debias must be True, 'partial' or False; got 'some'"):
        MeanCube(debias="some")
