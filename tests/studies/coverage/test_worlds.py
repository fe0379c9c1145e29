import numpy as np
import pytest

from calibrant.lab import BetaScores, ScoreWorld
from studies.coverage.worlds import SETTINGS, Dominant, GivenQuantiles, Setting, Softened, TopFails, Votes


def test_there_are_at_least_forty_worlds_and_every_kind():
    assert len({setting.name for setting in SETTINGS}) >= 40
    assert len({setting.label for setting in SETTINGS}) == len(SETTINGS)
    kinds = {setting.kind for setting in SETTINGS}
    assert kinds == {"two classes", "classes", "labels", "numbers", "counts", "ensembles", "quantiles"}
    assert {setting.n_classes for setting in SETTINGS} >= {2, 3, 10, 100}
    assert {setting.n for setting in SETTINGS} >= {20, 100, 1_000, 10_000}


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.label)
def test_every_world_can_be_drawn(setting):
    data = setting.draw(np.random.default_rng(0))
    assert len(data.targets) == len(data.predictions) == setting.n
    assert (data.weights is None) == (setting.weighting == "equal")
    if setting.is_calibrated and setting.n_classes:
        assert np.asarray(data.truth.matrix) == pytest.approx(np.asarray(data.predictions.matrix), abs=1e-12)


def test_a_forest_is_certain_of_some_rows():
    data = Setting("forest", ScoreWorld(Votes(10, BetaScores(0.3, 0.3)), Softened(0.05)), 500).draw(
        np.random.default_rng(0)
    )
    p, q = (np.asarray(x.probability(1)) for x in (data.predictions, data.truth))
    assert set(np.round(10 * p)) == set(range(11))
    assert np.unique(q[p == 0]) == pytest.approx(0.05)


def test_the_top_fails_by_the_share_that_is_said():
    assert TopFails(0.5, 0.7)(np.array([0.5, 0.6])).tolist() == pytest.approx([0.5, 0.42])


def test_a_dominant_class_takes_nearly_all():
    data = Setting("dominant", Dominant(10), 2_000).draw(np.random.default_rng(0))
    assert 0.95 < np.mean(data.targets == 0) < 0.995


def test_quantiles_are_those_of_the_truth():
    data = Setting("quantiles", GivenQuantiles((0.1, 0.5, 0.9)), 4_000).draw(np.random.default_rng(0))
    below = np.mean(data.targets[:, None] <= np.asarray(data.predictions.values), axis=0)
    assert below == pytest.approx([0.1, 0.5, 0.9], abs=3.3 * 0.5 / np.sqrt(4_000))


def test_weights_by_score_grow_with_it():
    setting = Setting("weighted", ScoreWorld(BetaScores()), 4_000, "by score")
    data = setting.draw(np.random.default_rng(0))
    p = np.asarray(data.predictions.probability(1))
    assert np.average(p, weights=data.weights) == pytest.approx((0.2 / 2 + 1 / 3) / 0.7, abs=0.03)
