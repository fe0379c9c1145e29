import numpy as np
import pytest

from calibrant import Ensemble, MultivariateNormal, Normal
from calibrant._validate import InputError
from calibrant.estimators.scoring_rules.forecast_scores import check_fair, even_members, members_of, shares_of


def test_members_or_draws(rng):
    batch = Ensemble(rng.normal(size=(3, 4)).astype(np.float32))
    assert np.array_equal(members_of(batch, 7, 0), batch.members)
    assert members_of(Normal.example(rng, 3), 7, 0).shape == (3, 7)
    vectors = MultivariateNormal.example(rng, 3)
    assert members_of(vectors, 7, 0).shape == (3, 7, 3)
    assert np.array_equal(members_of(vectors, 7, 0), members_of(vectors, 7, 0))


def test_fair_needs_an_ensemble_of_two():
    with pytest.raises(InputError, match="corrects for the number of members of an Ensemble; got Normal predictions"):
        check_fair(Normal([0.0], 1.0))
    with pytest.raises(InputError, match="needs at least 2 members per row; got 1"):
        check_fair(Ensemble([[0.0]]))
    with pytest.raises(InputError, match="needs at least 2 members per row; got 1 in row 1"):
        check_fair(Ensemble.from_ragged([[0.0, 1.0], [2.0]]))


def test_members_with_weights_are_drawn_where_all_must_be_alike(rng):
    batch = Ensemble([[0.0, 1.0]], [[0.25, 0.75]])
    assert shares_of(batch).tolist() == [[0.25, 0.75]]
    assert shares_of(Ensemble([[0.0, 1.0]])) is None
    assert shares_of(Normal([0.0], 1.0)) is None
    assert even_members(batch, 10_000, 0).mean() == pytest.approx(0.75, abs=0.02)
    assert even_members(Ensemble([[0.0, 1.0]]), 7, 0).tolist() == [[0.0, 1.0]]
