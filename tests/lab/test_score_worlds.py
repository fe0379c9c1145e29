from itertools import product

import numpy as np
import pytest
from scipy.special import expit, logit

from calibrant._validate import InputError
from calibrant.lab import GLM, Diagonal, LogisticCurve, Power, Shifted
from calibrant.lab.score_worlds import SCALES, from_scale, on_scale

F = np.array([0.01, 0.3, 0.5, 0.77, 0.999])

CURVES = [
    Diagonal(),
    Power(0.3),
    Power(10),
    Shifted(0.02),
    Shifted(-0.5),
    LogisticCurve(),
    *(
        GLM(link, transform, b0, b1)
        for link, transform in product(SCALES, SCALES)
        for b0 in (-0.3, 0.4)
        for b1 in (-1.5, 0, 0.3)
    ),
]


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        (GLM("logit", "logit", -0.88, 0.49), expit(-0.88 + 0.49 * logit(F))),
        (GLM("logit", "logflip", -0.27, -0.35), 1 / (1 + np.exp(0.27) * (1 - F) ** 0.35)),
        (GLM("logflip", "logflip", -0.24, 0.3), 1 - np.exp(-0.24) * (1 - F) ** 0.3),
        (GLM("log", "log", -0.03, 1.27), np.exp(-0.03) * F**1.27),
        (GLM("log", "logflip", -0.1, 0.5), np.exp(-0.1) * (1 - F) ** 0.5),
        (GLM("logflip", "logit", -1.0, -0.2), 1 - np.minimum(np.exp(-1) * (F / (1 - F)) ** -0.2, 1)),
        (Power(2.5), F**2.5),
        (Shifted(0.02), [0.03, 0.32, 0.52, 0.79, 1]),
        (Shifted(-0.1), [0, 0.2, 0.4, 0.67, 0.899]),
        (LogisticCurve(10, -5), 1 / (1 + np.exp(5 - 10 * F))),
        (Diagonal(), F),
    ],
    ids=repr,
)
def test_formulas_by_hand(curve, expected):
    assert curve(F) == pytest.approx(np.asarray(expected), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("scale", SCALES)
def test_scales_are_inverses(scale):
    assert from_scale(scale, on_scale(scale, F, 1 - F)) == pytest.approx(F, rel=1e-12)


@pytest.mark.parametrize("curve", CURVES, ids=repr)
def test_probabilities_at_all_scores_up_to_certainty(curve):
    tiny, eps = np.finfo(float).smallest_subnormal, np.finfo(float).epsneg
    f = np.r_[0.0, tiny, 1e-300, eps, np.linspace(0, 1, 101), 1 - eps, 1.0]
    t = curve(f)
    assert np.all((t >= 0) & (t <= 1))


def test_limits_at_certainty_are_those_of_the_formula():
    one = np.ones(1)
    assert GLM("logflip", "logflip", -0.24, 0.3)(one) == 1
    assert GLM("logit", "logit", -0.88, 0.49)(one) == 1
    assert GLM("logit", "logflip", -0.27, -0.35)(one) == 1
    assert GLM("log", "log", -0.03, 1.27)(one) == pytest.approx(np.exp(-0.03))


def test_what_is_missing_to_one_is_known_where_scores_round_to_one():
    rest = np.array([1e-40])
    t = GLM("logflip", "logflip", -0.24, 0.3).at(1 - rest, rest)
    assert 1 - t == pytest.approx(np.exp(-0.24) * 1e-12, rel=1e-3, abs=0)
    t = GLM("logit", "logflip", -0.27, -0.35).at(1 - rest, rest)
    assert 1 - t == pytest.approx(np.exp(0.27) * 1e-14, rel=1e-1, abs=0)


@pytest.mark.parametrize(
    ("curve", "is_identity"),
    [
        (Diagonal(), True),
        (Power(1), True),
        (Power(1.01), False),
        (Shifted(0), True),
        (Shifted(0.02), False),
        (LogisticCurve(), False),
        *((GLM(scale, scale), True) for scale in SCALES),
        (GLM("log", "log", -0.01), False),
        (GLM("logit", "logit", 0, 0.9), False),
        (GLM("logit", "log"), False),
    ],
    ids=repr,
)
def test_which_curves_are_the_diagonal(curve, is_identity):
    assert curve.is_identity is is_identity
    assert np.allclose(curve(F), F, rtol=1e-12) is is_identity


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GLM("logitt", "log"), r"link must be a scale; got 'logitt' \(did you mean 'logit'\?\)"),
        (lambda: GLM("log", "probit"), "transform must be a scale; got 'probit'"),
        (lambda: GLM("log", "log", np.nan), "b0 must be a finite number; got nan"),
        (lambda: GLM("log", "log", 0, np.inf), "b1 must be a finite number; got inf"),
        (lambda: Power(0), "degree must be a positive number; got 0"),
        (lambda: Shifted(2), "amount must lie between -1 and 1; got 2"),
        (lambda: LogisticCurve(np.inf), "slope must be a finite number; got inf"),
    ],
)
def test_settings_are_checked(make, message):
    with pytest.raises(InputError, match=message):
        make()
