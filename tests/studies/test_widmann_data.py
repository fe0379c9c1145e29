import numpy as np
import pytest

from studies.widmann.data import DATA, QUANTITIES, SKCES, friedman, least_squares, networks


@pytest.mark.parametrize(("name", "n"), [("train", 100), ("test", 50)])
def test_targets_are_those_of_the_features(name, n):
    """What Friedman's function leaves over is standard normal noise: mean, spread and link to the function are by chance."""
    sample = friedman()[name]
    x1, x2, x3, x4, x5 = sample.x.T[:5]
    signal = 10 * np.sin(np.pi * x1 * x2) + 20 * (x3 - 0.5) ** 2 + 10 * x4 + 5 * x5
    noise = sample.y - signal
    assert abs(noise.mean()) < 3 / np.sqrt(n)
    assert abs(noise.var() - 1) < 3 * np.sqrt(2 / n)
    assert abs(np.corrcoef(noise, signal)[0, 1]) < 3 / np.sqrt(n)
    assert sample.x.min() > 0
    assert sample.x.max() < 1


def test_the_deviations_of_published_networks_are_the_likeliest():
    for (iteration, name), case in networks().items():
        if iteration > 0 and name == "train":
            errors = np.sqrt(np.mean((case.models.means - case.models.targets) ** 2, axis=1))
            assert case.models.sds == pytest.approx(errors, rel=1e-12)


def test_everything_has_its_shape():
    assert QUANTITIES[SKCES] == ("SKCE (unbiased)", "SKCE (biased)")
    assert set(networks()) == {(i, name) for i in (0, 10, 100, 500, 1000, 1500) for name in DATA}
    for (_, name), case in networks().items():
        assert case.models.means.shape == (10, len(friedman()[name].y))
        assert case.of_models.shape == (10, 6)
        assert case.of_ensemble.shape == (6,)
        assert case.all_pairs.shape == (2,)


def test_targets_of_the_line_lie_around_their_curve():
    for name in ("train", "validation"):
        sample = least_squares()[name]
        z = (sample.y - np.sin(np.pi * sample.x)) / (0.15 * np.abs(1 + sample.x))
        assert abs(z.mean()) < 3 / np.sqrt(len(z))
        assert abs(z.var() - 1) < 3 * np.sqrt(2 / len(z))
