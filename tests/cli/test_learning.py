from dataclasses import replace

import numpy as np
import pytest

from calibrant import io
from calibrant._validate import InputError
from calibrant.lab import Tempered
from calibrant.recalibration import Temperature, VectorScaling
from calibrant.results import Table

learning = pytest.importorskip("calibrant.cli.recalibrate")


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


@pytest.mark.parametrize(
    ("change", "error", "size"),
    [
        (0.02, 0.03, "0.5 → 0.52 (+0.02 ± 0.03), within its standard error, so it may be chance"),
        (0.02, 0.01, "0.5 → 0.52 (+0.02 ± 0.01), 2.0 standard errors"),
        (0.02, 0.0, "0.5 → 0.52 (+0.02 ± 0), in every row alike"),
        (np.inf, np.nan, "0.5 → ∞, as it calls impossible what happened"),
    ],
)
def test_a_refusal_has_the_numbers_and_the_remedy(change, error, size, data):
    scores = Table(score=["log loss"], before=[0.5], after=[0.5 + change], change=[change], error=[error])
    fit = replace(Temperature().fit(data.y_true, data.y_pred), scores=scores)
    assert learning._Learned([fit], None, "").refusal() == (
        f"not saved: Temperature() makes held-out log loss worse, {size}. Leave the predictions as they are, try another "
        "--method or more rows, or save it with --force"
    )


def test_methods_without_a_score_in_common_cannot_be_ranked(data):
    fits = [Temperature().fit(data.y_true, data.y_pred, folds=folds) for folds in (0, 2)]
    with pytest.raises(InputError, match="these methods have no score in common to choose by"):
        learning._ranked(fits)


def test_fits_without_scores_are_shown_without(data, capsys):
    fit = Temperature().fit(data.y_true, data.y_pred, folds=0)
    learning._Learned([fit], None, "a remark").show()
    shown = capsys.readouterr().out
    assert "a remark" in shown
    assert "Temperature()" in shown
    assert "before" not in shown
