import numpy as np
import pytest
from scipy.special import rel_entr

from calibrant import ECE, KDE, SKCE, Brier, DebiasedECE, EqualMass, LogLoss, TopLabel, Variational
from calibrant.estimators import CalibrationRatio, CalibrationSlope, Lp
from calibrant.kernels import Exponential
from calibrant.lab import GLM, BetaScores, ScoreWorld, Shifted, Tempered, tce
from studies.coverage.truths import population, truth_of
from studies.coverage.worlds import SETTINGS, Constant, Setting

OVER = ScoreWorld(BetaScores(0.5, 0.5), GLM("logit", "logit", b1=0.4))
SETTING = Setting("over", OVER, 100)


def test_truths_of_two_classes_agree_with_quadrature():
    assert truth_of(SETTING, Variational()) == pytest.approx(tce(OVER, 1), rel=1e-4)
    assert truth_of(SETTING, KDE(p=2)) == pytest.approx(tce(OVER, 2), rel=1e-4)
    assert truth_of(SETTING, ECE(EqualMass(2_000))) == pytest.approx(tce(OVER, 1), rel=1e-3)
    assert truth_of(SETTING, SKCE(Exponential(0.3))) == pytest.approx(OVER.truth(SKCE(Exponential(0.3))), rel=1e-4)


def test_bins_have_the_truth_of_their_own():
    shifted = Setting("shifted", ScoreWorld(BetaScores(2, 2), Shifted(0.02)), 100)
    for estimator in (ECE(EqualMass(15)), DebiasedECE(EqualMass(15))):
        assert truth_of(shifted, estimator) == pytest.approx(0.02, rel=2e-3)


def test_logistic_truths_are_the_parameters_of_the_world():
    assert truth_of(SETTING, CalibrationSlope()) == pytest.approx(0.4, rel=1e-3)
    assert truth_of(SETTING, CalibrationRatio()) == pytest.approx(1.0, rel=1e-6)


def test_the_log_loss_removed_is_the_divergence():
    (f, t, w) = population(SETTING, 2**14)
    p, q = (np.asarray(x.probability(1)) for x in (f, t))
    expected = w @ (rel_entr(q, p) + rel_entr(1 - q, 1 - p))
    assert truth_of(SETTING, Variational(LogLoss())) == pytest.approx(expected, rel=1e-3)


def test_scores_of_many_classes_agree_with_a_large_draw():
    setting = Setting("classes", Tempered(3, 2.0, 0.5), 200_000)
    data = setting.draw(np.random.default_rng(0))
    for score in (Brier(), LogLoss()):
        drawn = score(data.targets, data.predictions)
        assert truth_of(setting, score) == pytest.approx(drawn.value, abs=4 * drawn.standard_error)
    confidence = ECE(EqualMass(15), lens=TopLabel())
    assert truth_of(setting, confidence) == pytest.approx(confidence(data.targets, data.predictions).value, abs=0.005)
    assert truth_of(setting, Variational(Lp(2))) > truth_of(setting, Variational(lens=TopLabel())) > 0.05


def test_what_is_not_known_is_none():
    assert truth_of(Setting("constant", ScoreWorld(Constant(0.3)), 10), CalibrationSlope()) is None
    too_narrow = next(setting for setting in SETTINGS if setting.name == "normal, too narrow")
    assert truth_of(too_narrow, SKCE()) is None
