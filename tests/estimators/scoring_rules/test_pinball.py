import numpy as np
import pytest

from calibrant import CRPS, Ensemble, MultivariateNormal, Normal, Pinball
from calibrant._validate import InputError


def test_losses_of_scoringrules():
    """Values of quantile_score at quantiles 0.1, 0.4 and -0.2, scoringrules 0.10.0."""
    theirs = {0.1: [0.02, 1.44, 0.27], 0.5: [0.1, 0.8, 1.35], 0.9: [0.18, 0.16, 2.43]}
    y, point = np.array([0.3, -1.2, 2.5]), Ensemble([[0.1], [0.4], [-0.2]])
    for level, values in theirs.items():
        assert Pinball(level).losses(y, point) == pytest.approx(values, rel=1e-12)
    assert Pinball(list(theirs)).losses(y, point) == pytest.approx(np.mean(list(theirs.values()), axis=0), rel=1e-12)


def test_many_levels_make_the_ranked_score(rng):
    batch = Normal.example(rng, 50)
    y = batch.sample(rng, 1)[0]
    levels = (np.arange(4000) + 0.5) / 4000
    assert 2 * Pinball(levels)(y, batch).value == pytest.approx(CRPS()(y, batch).value, rel=1e-4)


def test_the_median_has_half_the_absolute_error(rng):
    batch = Normal.example(rng, 50)
    y = batch.sample(rng, 1)[0]
    assert Pinball(0.5)(y, batch).value == pytest.approx(np.abs(y - batch.loc).mean() / 2)


def test_the_table_has_each_level(rng):
    batch = Normal.example(rng, 50)
    y, w = batch.sample(rng, 1)[0], rng.random(50)
    result = Pinball([0.2, 0.7])(y, batch, sample_weight=w)
    singles = [Pinball(level)(y, batch, sample_weight=w).value for level in (0.2, 0.7)]
    assert result.table["value"] == pytest.approx(singles)
    assert result.value == pytest.approx(np.mean(singles))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Pinball([0.5, 1.0]), "levels must lie strictly between 0 and 1; got 1.0"),
        (lambda: Pinball([]), "levels must hold at least one level"),
        (
            lambda: Pinball()([[0.0, 1.0]], MultivariateNormal([[0.0, 1.0]], 1.0)),
            "Pinball needs quantiles, which MultivariateNormal predictions do not have",
        ),
        (lambda: Pinball()([0, 1], [0.2, 0.4]), "Pinball needs quantiles, which Categorical predictions do not have"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
