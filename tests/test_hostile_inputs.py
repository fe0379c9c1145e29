"""What no measure can use is refused in words, and what is only unusual gives the right answer: a table of cases."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from calibrant import (
    CRPS,
    ECE,
    SKCE,
    Brier,
    ExactTest,
    InputError,
    LogLoss,
    LogNormal,
    NegativeBinomial,
    Normal,
    PITError,
    StudentT,
    evaluate,
    lab,
    plots,
    recalibration,
    reports,
    streams,
)
from calibrant.distributions import Beta, Gamma, Laplace, Logistic, Poisson, Uniform
from calibrant.estimators import CalibrationRatio, CalibrationSlope, MeanWidth, ZVariance
from calibrant.inference import HosmerLemeshow, Jackknife

torch = pytest.importorskip("torch")

N = 60
RNG = np.random.default_rng(3)
P = RNG.random(N).round(2)
Y = (RNG.random(N) < P) * 1
P3 = RNG.dirichlet(np.ones(3), N)
Y3 = (P3.cumsum(axis=1) > RNG.random((N, 1))).argmax(axis=1)

MEASURES = {
    "ECE": ECE(),
    "SKCE": SKCE(),
    "ExactTest": lambda y, p, **w: ExactTest(Brier(), 19)(y, p, rng=1, **w),
    "Platt": lambda y, p, **w: recalibration.Temperature().fit(y, p, folds=0, **w),
    "state": lambda y, p, **w: streams.state(Brier()).update(y, p, **w).finalize(),
    "judge": lambda y, p, **w: reports.judge(y, p, n_resamples=99, rng=1, **w),
    "reliability": lambda y, p, **w: plots.ReliabilityDisplay.from_predictions(y, p, n_resamples=99, rng=1, **w),
}
"""One of each kind of public callable; all convert their input in the same place."""


def twice_named(x):
    return pd.DataFrame(x, columns=["a"] * x.shape[1])


REFUSED = {
    "no columns": (Y, np.zeros((N, 0)), r"y_pred is empty: got shape \(60, 0\), and at least one column is needed"),
    "a frame without columns": (Y, pd.DataFrame(index=range(N)), "at least one column is needed"),
    "a single prediction": (Y, np.array(0.3), "y_pred is a single value: give one value per row"),
    "a single target": (np.array(1), P, "y_true is a single value: give one value per row"),
    "single tensors": (torch.tensor(1), torch.tensor(0.3), "y_true is a single value"),
    "a name twice": (Y3, twice_named(P3), "y_pred has 3 columns called 'a': give each column a name of its own"),
    "a sparse matrix": (Y3, scipy.sparse.csr_matrix(P3), "y_pred is a csr_matrix: give an array"),
    "a sparse matrix of targets": (scipy.sparse.coo_matrix(Y), P, "y_true is a coo_matrix: give an array"),
    "a sparse tensor": (Y3, torch.tensor(P3).to_sparse(), r"y_pred is a sparse tensor: give its to_dense\(\)"),
    "integers beyond 64 bits": (
        [10**400] * N,
        P,
        "y_true holds integers beyond 64 bits: give fractions, or labels as text",
    ),
    "a tensor without values": (Y3, torch.empty(N, 3, device="meta"), "y_pred is a tensor on the device 'meta'"),
    "targets without values": (torch.empty(N, device="meta"), P, "y_true is a tensor on the device 'meta'"),
    "huge labels": (np.full(N, 2**64 - 1, dtype=np.uint64), P, "y_true"),
    "a lazy frame": (
        Y,
        pytest.importorskip("polars").DataFrame({"p": P}).lazy(),
        "y_pred is a LazyFrame: give an array",
    ),
}


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused_in_words(case, measure):
    y, p, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        MEASURES[measure](y, p)


def test_a_nested_tensor_is_refused():
    with pytest.warns(UserWarning, match="prototype"):
        nested = torch.nested.nested_tensor([torch.tensor([0.1]), torch.tensor([0.1, 0.2])])
    with pytest.raises(InputError, match="y_pred is a nested tensor: give one tensor"):
        ECE()([0, 1], nested)


WEIGHTS = {
    "a sparse tensor": (torch.ones(N).to_sparse(), "sample_weight is a sparse tensor"),
    "a tensor without values": (torch.ones(N, device="meta"), "sample_weight is a tensor on the device 'meta'"),
    "beyond doubles": (np.full(N, np.longdouble("1e4000")), "sample_weight has NaN or infinite values"),
    "a column of a table": (np.ones((N, 1)), r"sample_weight must be one number per row; got shape \(60, 1\)"),
    "a single weight": (1.0, "sample_weight"),
}


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("case", WEIGHTS)
def test_weights_that_cannot_be_read_are_refused_in_words(case, measure):
    w, message = WEIGHTS[case]
    with pytest.raises(InputError, match=message):
        MEASURES[measure](Y, P, sample_weight=w)


READ = {
    "bfloat16": (torch.tensor(Y), torch.tensor(P).bfloat16(), 5e-3),
    "a negated view": (torch.tensor(Y), torch._neg_view(torch.tensor(-P)), 1e-12),
    "half": (torch.tensor(Y), torch.tensor(P).half(), 1e-3),
    "float8": (Y, torch.tensor(P).to(torch.float8_e4m3fn), 0.05),
    "with a gradient": (torch.tensor(Y), torch.tensor(P, requires_grad=True), 1e-12),
    "a list of tensors with gradients": (Y, [torch.tensor(x, requires_grad=True) for x in P], 1e-6),
    "a column with a gradient": (torch.tensor(Y), torch.tensor(P[:, None], requires_grad=True), 1e-12),
    "uint64": (Y.astype(np.uint64), P, 0.0),
    "uint64 of torch": (torch.tensor(Y).to(torch.uint64), torch.tensor(P), 1e-12),
    "long floats": (Y, P.astype(np.longdouble), 0.0),
    "other byte order": (Y.astype(">i4"), P.astype(">f8"), 0.0),
    "a repeated index": (pd.Series(Y, index=[0] * N), pd.Series(P, index=[0] * N), 0.0),
}


@pytest.mark.parametrize("measure", [m for m in MEASURES if m in ("ECE", "SKCE", "ExactTest", "state")])
@pytest.mark.parametrize("case", READ)
def test_unusual_arrays_give_the_usual_number(case, measure):
    """Within what their digits tell; bins may part where scores are rounded."""
    y, p, slack = READ[case]
    found, usual = MEASURES[measure](y, p), MEASURES[measure](Y, P)
    value, expected = (float(getattr(x, "statistic", x)) for x in (found, usual))
    assert value == pytest.approx(expected, abs=max(slack, 1e-15) * (20 if measure == "ECE" else 1))


@pytest.mark.parametrize("case", READ)
def test_reports_and_pictures_take_unusual_arrays(case):
    y, p, _ = READ[case]
    assert evaluate(y, p, n_resamples=99, rng=1, advice=case == "half").to_dict()["n"] == N
    assert plots.ClasswiseDisplay.from_predictions(y, p, n_resamples=99, rng=1).tables["curve"].n_rows > 0
    compared = reports.compare(y, {"a": p, "b": p}, n_resamples=99, rng=1)
    assert compared.to_dict()["numbers"]


def test_inputs_stay_as_they_are():
    y, p, w = Y.copy(), P.copy(), np.where(Y, 1e200, 1e-200)
    kept = w.copy()
    evaluate(y, p, sample_weight=w, n_resamples=99, rng=1)
    assert np.array_equal(y, Y)
    assert np.array_equal(p, P)
    assert np.array_equal(w, kept)


def test_a_subnormal_probability_is_a_small_one():
    p, y = P.copy(), Y.copy()
    p[0], y[0] = 1e-320, 1
    least = LogLoss()(y[:1], p[:1]).value
    assert least == pytest.approx(-np.log(1e-320), rel=1e-12)
    assert np.isfinite(recalibration.Temperature().fit(y, p).map.temperature)
    for measure in MEASURES.values():
        measure(y, p)


def test_scores_of_next_to_nothing_expect_no_event():
    with pytest.raises(InputError, match=r"y_pred expects no event at all \(all scores add up to 5.99993e-319\)"):
        CalibrationRatio()(Y, np.full(N, 1e-320))
    with pytest.raises(InputError, match="HosmerLemeshow has no level here"):
        HosmerLemeshow(3)(Y, np.full(N, 1e-320))


def test_the_jackknife_of_infinite_values_says_so():
    y = np.r_[Y[:-1], 1 - Y[-1]]
    found = Jackknife(CalibrationSlope())(y, Y.astype(float))
    assert not found.has_interval
    assert "infinite" in found.withheld


EXTREME = [
    (lambda: Normal([0.0], 1e-320), r"scale must lie between 1e-100 and 1e\+100; found 9.99989e-321 in row 0: drop"),
    (
        lambda: Normal([0.0, 1e120], 1.0),
        r"loc must lie between -1e\+100 and 1e\+100, or squares are no numbers; found 1e\+120",
    ),
    (lambda: Normal([0.0, 0.0], [1.0, 1e300]), r"scale must lie between 1e-100 and 1e\+100; found 1e\+300 in row 1"),
    (lambda: Laplace([0.0], 1e-120), "scale must lie between 1e-100"),
    (lambda: Logistic([0.0], 1e-120), "scale must lie between 1e-100"),
    (lambda: StudentT(3.0, [0.0], 1e-120), "scale must lie between 1e-100"),
    (lambda: Uniform([0.0], 1e-320), "high - low must lie between 1e-100"),
    (lambda: Beta([1e13], 1.0), r"a must lie between 1e-100 and 1e\+12; found 1e\+13 in row 0: cut it off there"),
    (lambda: Beta([1.0, 1.0], [1.0, 1e-320]), "b must lie between 1e-100 .* in row 1"),
    (lambda: Gamma([1e-320], 1.0), "shape must lie between 1e-100"),
    (lambda: Gamma([1.0], 1e-320), "rate must lie between 1e-100"),
    (lambda: LogNormal([2e4], 1.0), "loc must lie between -10000 and 10000, as it is the mean of log Y; found 20000"),
    (
        lambda: LogNormal([0.0, 0.0], [1.0, 140.0]),
        "scale must lie between 1e-100 and 100; found 140 in row 1: scale is",
    ),
    (lambda: NegativeBinomial([2.0], 1e10), r"dispersion must lie between 1e-100 and 1e\+06; found 1e\+10 in row 0"),
    (lambda: Poisson([1e16]), r"rate must be at most 1e\+15"),
    (lambda: CRPS()([1e120], Normal([0.0], 1.0)), r"y_true must lie between -1e\+100 and 1e\+100"),
    (
        lambda: CRPS()([0.0, 1.0], StudentT([3.0, 0.5], 0.0, 1.0)),
        "y_pred has no CRPS in row 1, as where a forecast has no mean",
    ),
    (
        lambda: ZVariance()([1e70], Normal([0.0], 1e-70)),
        r"y_true lies 1e\+140 predicted standard deviations from its mean",
    ),
]


@pytest.mark.parametrize(("call", "message"), EXTREME)
def test_parameters_beyond_computing_are_refused_in_words(call, message):
    with pytest.raises(InputError, match=message):
        call()


ENDS = {
    Normal: [(0.0, 1e-100), (1e100, 1e100), (-1e100, 1e-100)],
    Laplace: [(0.0, 1e-100), (1e100, 1e100)],
    Logistic: [(0.0, 1e-100), (1e100, 1e100)],
    StudentT: [(3.0, 0.0, 1e-100), (1e100, 0.0, 1e100), (1.1, 0.0, 1.0)],
    Uniform: [(0.0, 1e-100), (-1e100, 1e100)],
    Beta: [(1e-100, 1e-100), (1e-100, 1e12), (1e12, 1e12), (1e12, 1e-100), (1.0, 1e12)],
    Gamma: [(1e-100, 1e-100), (1e100, 1e-100), (1e-100, 1e100), (1.0, 1e100)],
    LogNormal: [(-172.0, 1e-100), (172.0, 100.0), (-172.0, 100.0), (172.0, 1e-100)],
    NegativeBinomial: [(1e-100, 1e-100), (1e15, 1e6), (1e15, 100.0), (1e-100, 1e6), (1.0, 1e-100)],
    Poisson: [(1e-100,), (1e15,)],
}
"""The corners of what is allowed."""


@pytest.mark.parametrize(("family", "parameters"), [(f, some) for f, every in ENDS.items() for some in every])
def test_at_the_ends_of_the_range_nothing_is_lost(family, parameters):
    """No warning, no NaN, no loop without end: also of counts that double precision cannot tell apart."""
    batch = family(*(np.full(3, x) for x in parameters))
    drawn = batch.sample(np.random.default_rng(0), 1)[0]
    targets = {Beta: [0.5, 0.1, 0.9], NegativeBinomial: [0.0, 1.0, 5.0], Poisson: [0.0, 1.0, 5.0]}.get(
        family, [0.5, 1.0, 2.0]
    )
    assert np.isfinite(drawn).all()
    for y in (np.array(targets), np.minimum(drawn, 1e100)):
        for values in (
            batch.cdf(y),
            batch.log_prob(y),
            batch.crps(y),
            batch.quantile(np.array([0.1, 0.5, 0.9])),
            batch.mean,
        ):
            assert not np.isnan(np.asarray(values)).any()
    for measure in (LogLoss(), CRPS(), PITError(), MeanWidth(0.5)):
        assert not np.isnan(measure(targets, batch).value)


def test_one_score_of_zero_does_not_ruin_the_fit():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = rng.random(500) < p**1.5
    usual = lab.fit_world(y, p)
    for value in (0.0, 1e-320):
        q, z = np.r_[value, p[1:]], np.r_[False, y[1:]]
        found = lab.fit_world(z, q)
        assert found.scores.alpha == pytest.approx(usual.scores.alpha, rel=0.1)
        assert found.curve.b1 == pytest.approx(usual.curve.b1, rel=0.05)
        assert np.isfinite(lab.fit_curves(y | (q == value), q)["aic"]).all()


@pytest.mark.parametrize("value", [1e-300, 1e-30, 1.0])
def test_extreme_scores_can_be_fitted(value, capfd):
    p = np.r_[value, P[1:].clip(0.01)]
    for first in (0, 1):
        assert np.isfinite(lab.fit_curves(np.r_[first, Y[1:]], p)["aic"]).all()
    assert capfd.readouterr() == ("", "")  # LAPACK writes there


def test_scores_of_nothing_but_zero_have_no_world():
    with pytest.raises(InputError, match="scores must have one of at least"):
        lab.fit_curves(Y, np.full(N, 1e-320))
