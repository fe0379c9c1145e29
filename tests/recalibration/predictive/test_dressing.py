import json

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import approx_fprime
from scipy.stats import norm

from calibrant import Ensemble, Normal
from calibrant._validate import InputError
from calibrant.recalibration import Dressing
from calibrant.recalibration.maps import Map
from calibrant.recalibration.predictive.dressing import DressingMap, _Problem


def drawn(rng, n, m=8):
    """Ensembles that are too high, lean too far and are too close together."""
    signal = rng.normal(size=n)
    members = 0.5 + 1.5 * (signal[:, None] + 0.2 * rng.normal(size=(n, m)))
    return signal + 0.8 * rng.normal(size=n), Ensemble(members)


def test_what_was_wrong_is_put_right(rng):
    y, ensemble = drawn(rng, 5000)
    fitted = Dressing().fit(y, ensemble, folds=0)
    assert fitted.is_converged
    better = fitted(ensemble)
    levels = better.cdf(y)
    assert np.histogram(levels, 10, (0, 1))[0] == pytest.approx(np.full(10, 500), abs=110)
    # the best of its kind: regression on the mean, with all that is not known as width
    slope, level = np.polyfit(ensemble.members.mean(axis=1), y, 1)
    best = norm.logpdf(y, level + slope * ensemble.members.mean(axis=1), 0.8).mean()
    assert better.log_prob(y).mean() > best - 0.01


def test_the_gradient_is_gone_and_right(rng):
    y, ensemble = drawn(rng, 200)
    w = rng.random(200)
    problem = _Problem.of(y, ensemble.members, w / w.sum())
    x = np.array([0.1, 0.7, -0.3, -0.2])
    loss, slope = problem.loss(x)
    assert slope == pytest.approx(approx_fprime(x, lambda x: problem.loss(x)[0], 1e-7), abs=1e-5)
    found = DressingMap(0.1, 0.7, np.exp(-0.3), np.exp(-0.2)).apply(ensemble)
    assert loss == pytest.approx(-(w / w.sum()) @ found.log_prob(y), rel=1e-12)
    end = Dressing().find(y, ensemble, w).map
    at = np.array([end.level, end.slope, np.log(end.stretch), np.log(end.width)])
    assert np.abs(problem.loss(at)[1])[[0, 1, 3]].max() < 1e-4


def test_it_is_a_density(rng):
    y, ensemble = drawn(rng, 50)
    better = Dressing().fit(y, ensemble, folds=0)(ensemble[:1])
    total = quad(lambda t: np.exp(better.log_prob(np.array([t]))[0]), -20, 20, points=[0])[0]
    assert total == pytest.approx(1, abs=1e-6)


def test_units_do_not_matter(rng):
    y, ensemble = drawn(rng, 400)
    plain = Dressing().fit(y, ensemble, folds=0).map
    other = Dressing().fit(1000 * y + 3, Ensemble(1000 * ensemble.members + 3), folds=0).map
    assert other.slope == pytest.approx(plain.slope, rel=1e-9)
    assert other.width == pytest.approx(1000 * plain.width, rel=1e-9)


def test_members_that_equal_the_target(rng):
    y = rng.normal(size=100)
    fitted = Dressing().fit(y, Ensemble(np.repeat(y[:, None], 4, axis=1)), folds=0)
    assert "smallest considered" in fitted.notes[0]
    assert fitted.map.width == pytest.approx(1e-3 * y.std(), rel=1e-6)


def test_ensembles_that_all_agree(rng):
    fitted = Dressing().fit(rng.normal(size=100), Ensemble(np.zeros((100, 3))), folds=0)
    assert np.isfinite(fitted(Ensemble([[0.0, 0.0, 0.0]])).log_prob(np.array([0.0]))).all()


def test_it_comes_back_from_json(rng):
    y, ensemble = drawn(rng, 60)
    found = Dressing().fit(y, ensemble, folds=0).map
    assert Map.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_other_predictions_are_refused(rng):
    with pytest.raises(InputError, match="Dressing takes ensembles of numbers; got <Normal"):
        Dressing().fit([0.0, 1.0], Normal([0.0, 1.0], 1.0))
    fitted = Dressing().fit(*drawn(rng, 50), folds=0)
    with pytest.raises(InputError, match="Dressing takes ensembles of numbers"):
        fitted(Ensemble(np.zeros((3, 4, 2))))
    with pytest.raises(InputError, match="finite numbers and a positive width"):
        DressingMap(0.0, 1.0, 1.0, 0.0)
