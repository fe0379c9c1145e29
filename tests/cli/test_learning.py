import numpy as np
import pytest

from calibrant import Ensemble, Normal, io
from calibrant.lab.problems import Tempered
from calibrant.recalibration.matrix import VectorScaling
from calibrant.recalibration.scaling import Platt
from calibrant.recalibration.temperature import Temperature

learning = pytest.importorskip("calibrant.cli.learning")


@pytest.fixture
def data(rng):
    y, p = Tempered(3, 2.0).draw(300, rng)
    return io.Dataset(y, p, {}, rng.uniform(0.5, 2, 300), "here")


def test_fits_are_ranked_by_what_they_did_to_held_out_rows(data):
    methods = [VectorScaling(), Temperature()]
    learned = learning.learn(data, methods, folds=3, seed=1, title="Mine")
    after = [fit.scores["after"][0] for fit in learned.fits]
    assert after == sorted(after)
    assert {fit.recalibrator for fit in learned.fits} == set(methods)
    weighted = learned.best.recalibrator.fit(
        data.y_true, data.y_pred, sample_weight=data.sample_weight, folds=3, seed=1
    )
    assert learned.best.scores["after"][0] == weighted.scores["after"][0]
    assert learned.page.scores["after"] == pytest.approx(weighted.scores["after"], rel=1e-12)
    assert learned.page.title == "Mine"


def test_the_ranking_has_the_predictions_as_they_are_in_their_place(data):
    fits = [m.fit(data.y_true, data.y_pred) for m in (Temperature(), VectorScaling())]
    table = learning.ranking(fits)
    assert sorted(table["log loss"].tolist()) == table["log loss"].tolist()
    plain = table["method"].tolist().index("as they are")
    assert table["log loss"][plain] == fits[0].scores["before"][0]
    assert table["change of log loss"][plain] == 0


def test_a_refusal_has_the_numbers_and_the_remedy(rng):
    p = rng.random(100)
    data = io.Dataset((rng.random(100) < p) * 1, io.Categorical(p), {}, None, "here")
    learned = learning.learn(data, [Platt()], folds=5, seed=0, title="")
    row = next(learned.best.scores.rows())
    text = learned.refusal()
    assert f"{row['change']:+.2g} ± {row['error']:.1g}" in text
    assert text.endswith("or save it with --force")


def test_densities():
    assert learning.has_density(Normal([0.0], 1.0))
    assert not learning.has_density(Ensemble(np.zeros((1, 3))))
