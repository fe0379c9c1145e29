"""All statements of the study, and the worlds they are tried in."""

from functools import partial

import numpy as np

from calibrant import (
    CRPS,
    ECE,
    KCE,
    KDE,
    SKCE,
    AggregatedTest,
    Bootstrap,
    Brier,
    ClassWise,
    DebiasedECE,
    EqualMass,
    EqualWidth,
    ExactTest,
    LogLoss,
    PairedDifference,
    Pinball,
    SmoothECE,
    Sweep,
    TopLabel,
    Variational,
)
from calibrant.estimators import (
    AUC,
    ICI,
    CalibrationIntercept,
    CalibrationRatio,
    CalibrationSlope,
    CanonicalECE,
    IntervalScore,
    KolmogorovSmirnov,
    Kuiper,
    Lp,
    PITError,
    TangentKDE,
    ZMean,
    ZVariance,
)
from calibrant.inference import (
    BlockTest,
    BootstrapTest,
    BoundTest,
    CMETest,
    GammaTest,
    HosmerLemeshow,
    RankTest,
    SpectralTest,
    Spiegelhalter,
    WildBootstrapTest,
)
from calibrant.kernels import Exponential, Gaussian
from calibrant.results import brief
from studies.coverage import reported
from studies.coverage.claims import Claim, Estimated, Judged, Rejected
from studies.coverage.worlds import Setting

N_RESAMPLES = 99
"""Resamples of a test in the study: the level is exact with any number of them."""

KERNEL = Exponential(0.3)
"""Of kernel errors, whose truth is known for given length scales."""


def _two(setting: Setting) -> bool:
    return setting.kind == "two classes"


def _many(setting: Setting) -> bool:
    return setting.kind == "classes"


def _classes(setting: Setting) -> bool:
    return setting.n_classes > 0


def _some(setting: Setting) -> bool:
    """Classes in data sets that are quick to work through pair by pair."""
    return _classes(setting) and setting.n <= 2_000 and setting.n_classes <= 10


def _few_of_many(setting: Setting) -> bool:
    return _many(setting) and setting.n_classes <= 10


def _labels(setting: Setting) -> bool:
    return setting.kind == "labels"


def _forecasts(setting: Setting) -> bool:
    return setting.kind in ("numbers", "counts", "ensembles", "quantiles")


def _small(setting: Setting) -> bool:
    return setting.n <= 2_000


def _short(setting: Setting) -> bool:
    return setting.n <= 300


def _unweighted(setting: Setting) -> bool:
    return _some(setting) and setting.weighting == "equal"


def _shortest(setting: Setting) -> bool:
    return setting.n <= 100


def _two_unweighted(setting: Setting) -> bool:
    return _two(setting) and setting.weighting == "equal" and setting.n <= 2_000


def _eight_blocks(setting: Setting) -> bool:
    return _unweighted(setting) and setting.n >= 80


def _unweighted_short(setting: Setting) -> bool:
    return _unweighted(setting) and _short(setting)


def _two_small(setting: Setting) -> bool:
    return _two(setting) and _small(setting)


def _two_short(setting: Setting) -> bool:
    return _two(setting) and setting.n <= 300


def _two_right(setting: Setting) -> bool:
    return _two_unweighted(setting) and setting.is_calibrated and setting.n <= 300


def _densities(setting: Setting) -> bool:
    return setting.kind in ("numbers", "counts")


def _ensembles(setting: Setting) -> bool:
    return setting.kind == "ensembles"


def _not_ensembles(setting: Setting) -> bool:
    return _forecasts(setting) and not _ensembles(setting)


def _short_forecasts(setting: Setting) -> bool:
    return _forecasts(setting) and setting.n <= 300


def _short_wholes(setting: Setting) -> bool:
    return _short_forecasts(setting) and not _ensembles(setting)


def _short_ensembles(setting: Setting) -> bool:
    return _short_forecasts(setting) and _ensembles(setting)


def _shortest_forecasts(setting: Setting) -> bool:
    return _short_forecasts(setting) and not _ensembles(setting) and (setting.n <= 100 or setting.kind == "quantiles")


def _of_two() -> list[Claim]:
    plain = [
        *(ECE(EqualMass(15)), ECE(EqualWidth(15)), ECE(EqualMass(15), norm=2), ECE(Sweep())),
        *(DebiasedECE(EqualMass(15)), DebiasedECE(EqualMass(15), norm=1)),
        *(ECE(EqualMass(15), norm=np.inf), SmoothECE(), KolmogorovSmirnov(), Kuiper()),
        *(CalibrationSlope(), CalibrationIntercept(), CalibrationRatio(), AUC(), Brier(), LogLoss()),
    ]
    pairs = [SKCE(KERNEL), SKCE(KERNEL, unbiased=False), SKCE(KERNEL, block=10), KCE(KERNEL)]
    held_out = [Variational(), Variational(Brier()), Variational(LogLoss())]
    resampled = [(Bootstrap(Brier(), 199), _two_small), (Bootstrap(CalibrationSlope(), 199), _two_short)]
    return [
        *(Estimated(brief(e), _two, e) for e in plain),
        *(Estimated(brief(e), _two, e, costly=True) for e in (*pairs, *held_out, ICI())),
        *(Estimated(brief(e), _two_short, e, costly=True) for e in [KDE(), KDE(p=2), TangentKDE()]),
        *(Estimated(brief(e), suits, e, costly=True) for e, suits in resampled),
    ]


def _of_many() -> list[Claim]:
    plain = [
        *(ECE(EqualMass(15), lens=TopLabel()), ECE(EqualMass(15), lens=ClassWise())),
        *(ECE(EqualMass(15), norm=np.inf, lens=ClassWise()), DebiasedECE(EqualMass(15), lens=TopLabel())),
        *(Brier(), LogLoss()),
    ]
    costly = [
        *(SKCE(KERNEL), Variational(Lp(2)), Variational(lens=TopLabel()), CanonicalECE()),
        *(KDE(), KDE(p=2), TangentKDE(), TangentKDE(2)),
    ]
    return [
        *(Estimated(f"{brief(e)}, classes", _many, e) for e in plain),
        *(Estimated(f"{brief(e)}, classes", _few_of_many, e, costly=True) for e in costly),
        *(Estimated(f"{brief(e)}, labels", _labels, e) for e in (ECE(EqualMass(15)), Brier(), LogLoss())),
    ]


def _of_forecasts() -> list[Claim]:
    scores = [CRPS(), IntervalScore(), Pinball(), ZMean(), ZVariance(), PITError(), PITError("kuiper")]
    return [
        *(Estimated(brief(e), _forecasts, e) for e in scores),
        Estimated("LogLoss(), forecasts", _densities, LogLoss()),
        Estimated("SKCE(), forecasts", _short_wholes, SKCE(), costly=True),
        Estimated("SKCE(), ensembles", _short_ensembles, SKCE(Exponential(1.0), Gaussian(1.0)), costly=True),
        Estimated("Bootstrap(CRPS())", _shortest_forecasts, Bootstrap(CRPS(), 199), costly=True),
    ]


def _tests() -> list[Claim]:
    exact = [
        ExactTest(ECE(EqualMass(15), lens=TopLabel()), N_RESAMPLES),
        ExactTest(Brier(), N_RESAMPLES, "two-sided"),
        ExactTest(SKCE(), N_RESAMPLES),
        AggregatedTest(n_resamples=N_RESAMPLES),
    ]
    published = [SpectralTest(), GammaTest(), WildBootstrapTest(n_resamples=199), BootstrapTest(n_resamples=199)]
    others = [BoundTest(), CMETest(n_resamples=N_RESAMPLES)]
    of_two = [HosmerLemeshow(), Spiegelhalter()]
    return [
        *(Rejected(brief(t), _some, t, costly=True) for t in exact),
        *(Rejected(brief(t), _unweighted_short, t, costly=True) for t in published),
        *(Rejected(brief(t), _unweighted, t, costly=True) for t in others),
        Rejected("BlockTest(SKCE(block=10))", _eight_blocks, BlockTest(SKCE(block=10)), costly=True),
        *(Rejected(brief(t), _two_unweighted, t) for t in of_two),
        Rejected("ExactTest(CRPS())", _densities, ExactTest(CRPS(), N_RESAMPLES)),
        Rejected(
            "AggregatedTest(), forecasts",
            _shortest_forecasts,
            AggregatedTest(n_resamples=N_RESAMPLES),
            costly=True,
        ),
        Rejected("RankTest()", _ensembles, RankTest()),
    ]


def _pictures() -> list[Claim]:
    differences = [PairedDifference(e, 199) for e in (Brier(), LogLoss(), ECE(EqualMass(15)), SKCE(KERNEL))]
    return [
        Judged("consistency band", _two, ("band",), reported.consistency_band, True),
        Judged("band of bins", _two, ("band",), reported.band_of_bins),
        Judged("band of isotonic curve", _two, ("band",), reported.band_of_isotonic_curve),
        Judged("bands of PIT values", _forecasts, ("band", "band"), reported.pit_bands, True, costly=True),
        Judged("coverage of 80 %", _not_ensembles, ("interval",), reported.share_inside, True),
        *(
            Judged(
                f"PairedDifference({brief(d.estimator)})",
                _two_right,
                ("p-value", "interval"),
                partial(reported.paired, d),
                costly=True,
            )
            for d in differences
        ),
        Judged("report", _shortest, ("verdict", "p-value"), reported.verdict, True, costly=True),
    ]


CLAIMS: tuple[Claim, ...] = (*_of_two(), *_of_many(), *_of_forecasts(), *_tests(), *_pictures())
"""All of them."""
