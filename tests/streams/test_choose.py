import numpy as np
import pytest

from calibrant import CRPS, ECE, KDE, SKCE, ClassWise, DebiasedECE, EqualMass, Normal, SmoothECE, Sweep, state
from calibrant._validate import InputError
from calibrant.estimators import UCME, BinnedState, CalibrationRatio, RandomFeatureSKCE
from calibrant.streams import from_dict
from calibrant.streams.block_state import BlockState, LocationState, RandomFeatureState
from calibrant.streams.score_states import DebiasedState, RatioState, ScoreState
from calibrant.streams.states import SeveralStates


@pytest.fixture
def sample(rng):
    p = rng.random(300)
    return (rng.random(300) < p) * 1, p


@pytest.mark.parametrize(
    ("estimators", "kind"),
    [
        ([ECE()], BinnedState),
        ([ECE(EqualMass(7))], BinnedState),
        ([ECE(Sweep())], BinnedState),
        ([DebiasedECE()], DebiasedState),
        ([CRPS()], ScoreState),
        ([CalibrationRatio()], RatioState),
        ([SKCE(block=3)], BlockState),
        ([RandomFeatureSKCE()], RandomFeatureState),
        ([UCME()], LocationState),
        ([ECE(), CRPS()], SeveralStates),
    ],
    ids=repr,
)
def test_every_kind(estimators, kind, sample):
    assert type(state(*estimators, like=sample)) is kind


@pytest.mark.parametrize(
    "estimator", [ECE(EqualMass(7)), ECE(Sweep()), DebiasedECE(), SKCE(block=3), RandomFeatureSKCE(), UCME()], ids=repr
)
def test_a_sample_that_is_all_there_is_gives_the_estimator_itself(estimator, sample):
    y, p = sample
    found = state(estimator, like=sample).update(y[:99], p[:99]).update(y[99:], p[99:]).finalize()
    assert found.value == pytest.approx(estimator(y, p).value, rel=1e-12, abs=1e-15)


def test_a_sample_of_numbers(rng):
    predictions = Normal(rng.normal(size=60), rng.uniform(0.5, 2, 60))
    y = rng.normal(size=60)
    total = state(SKCE(block=10), like=(y, predictions))
    assert total.update(y, predictions).finalize().value == pytest.approx(
        SKCE(block=10)(y, predictions).value, rel=1e-12
    )


@pytest.mark.parametrize(
    ("estimators", "message"),
    [
        ([], r"at least one estimator, such as state\(ECE\(\)\)"),
        (
            [ECE(EqualMass(15))],
            r"bins that do not depend on the data: .* first sample, state\(..., like=\(y_true, y_pred\)\)",
        ),
        ([SKCE()], r"looks at all pairs of rows, .*: use SKCE\(block=100\) or RandomFeatureSKCE\(\)"),
        ([SKCE(block=10)], "takes its length scale from the data"),
        ([KDE()], "has no state, as it needs all rows at once; these have: ECE and DebiasedECE with fixed bins"),
        ([SmoothECE()], "has no state"),
        (["ECE"], "'ECE' has no state"),
    ],
)
def test_what_has_no_state(estimators, message):
    with pytest.raises(InputError, match=message):
        state(*estimators)


def test_bins_of_a_sample_are_those_of_one_event(rng):
    p = rng.dirichlet(np.ones(3), 50)
    with pytest.raises(InputError, match=r"ClassWise\(\) has 3: give Edges\(...\)"):
        state(ECE(EqualMass(5), lens=ClassWise()), like=(rng.integers(0, 3, 50), p))


@pytest.mark.parametrize("data", [{}, {"state": "other"}, [1]])
def test_what_is_no_state(data):
    with pytest.raises(InputError, match="this is no state: the field 'state' is .*; known: binned, several, debiased"):
        from_dict(data)
