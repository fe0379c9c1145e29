import numpy as np
import pytest

from calibrant import ECE, DebiasedECE, EqualMass, EqualWidth, Sweep
from studies.roelofs.batches import Batch
from studies.roelofs.fits import FITS, REFINED, errors


def test_refined_parameters_round_to_the_printed_ones():
    for name, pair in REFINED.items():
        assert tuple(round(b, 2) for b in pair) == (FITS[name].b0, FITS[name].b1)
        assert FITS[name].world() != FITS[name].world(printed=True)
        assert (FITS[name].world().curve.b0, FITS[name].world().curve.b1) == pair
    others = set(FITS) - set(REFINED)
    assert len(others) == 7
    assert all(FITS[name].world() == FITS[name].world(printed=True) for name in others)


@pytest.mark.parametrize(
    ("method", "bins", "estimator"),
    [
        ("EW", 16, ECE(EqualWidth(16), norm=2)),
        ("EM", 16, ECE(EqualMass(16, ties="split"), norm=2)),
        ("EW debiased", 64, DebiasedECE(EqualWidth(64), method="variance", singletons="keep")),
        ("EM debiased", 16, DebiasedECE(EqualMass(16, ties="split"), method="variance", singletons="keep")),
        ("EW sweep", 0, ECE(Sweep("width"), norm=2)),
        ("EM sweep", 0, ECE(Sweep("mass", ties="split"), norm=2)),
    ],
)
@pytest.mark.parametrize("name", REFINED)
def test_methods_are_the_estimators_in_points_cut_at_zero(name, method, bins, estimator):
    world, rng = FITS[name].world(), np.random.default_rng(1)
    scores = world.scores.draw(rng, (30, 150))
    observed = rng.random((30, 150)) < world.curve(scores)
    expected = [max(estimator(y, f).value, 0) for y, f in zip(observed, scores, strict=True)]
    found = errors(Batch.of(observed, scores), method, bins)
    assert found**2 == pytest.approx(np.array(expected) ** 2 * 1e4, abs=1e-8)
