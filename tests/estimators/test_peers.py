"""Values that other packages' own code gives on real softmax outputs, and where and why ours differ.

The numbers in ``golden/peers.json`` were made with netcal 1.4.0, torchmetrics 1.9.0, relplot 1.0.3,
uncertainty-calibration 0.1.4 (``kumar``), spline-calibration (``ks``, ``spline``) and caltrain (Roelofs et al. 2022).
"""

import json
from math import inf
from pathlib import Path

import numpy as np
import pytest

from calibrant import (
    ECE,
    Categorical,
    ClassWise,
    DebiasedECE,
    EqualMass,
    EqualWidth,
    PositiveClass,
    SmoothECE,
    Sweep,
    TopLabel,
)
from calibrant.estimators import KolmogorovSmirnov

PEERS = json.loads((Path(__file__).parents[1] / "golden" / "peers.json").read_text())
TOP, EACH = TopLabel(), ClassWise()
KUMAR = {"method": "variance"}

SAME = {
    "caltrain_ew_ece_bin_10_L1": ECE(EqualWidth(10), 1, TOP),
    "caltrain_ew_ece_bin_15_L1": ECE(EqualWidth(15), 1, TOP),
    "caltrain_ew_ece_bin_10_L2": ECE(EqualWidth(10), 2, TOP),
    "caltrain_ew_ece_bin_15_L2": ECE(EqualWidth(15), 2, TOP),
    "caltrain_label_binned_equal_width_15_L1": ECE(EqualWidth(15), 1, TOP, label_binned=True),
    "caltrain_label_binned_equal_width_15_L2": ECE(EqualWidth(15), 2, TOP, label_binned=True),
    "caltrain_ew_ece_sweep_L1": ECE(Sweep("width"), 1, TOP),
    "caltrain_ew_ece_sweep_L2": ECE(Sweep("width"), 2, TOP),
    "kumar_plugin_get_equal_bins_15_L1": ECE(EqualMass(15), 1, TOP),
    "kumar_plugin_get_equal_bins_15_L2": ECE(EqualMass(15), 2, TOP),
    "kumar_debiased_get_equal_bins_15_L2": DebiasedECE(EqualMass(15), 2, TOP, **KUMAR),
    "kumar_get_calibration_error_default_top": DebiasedECE(EqualMass(15), 2, TOP, **KUMAR),
    "kumar_plugin_get_equal_prob_bins_15_L1": ECE(EqualWidth(15), 1, TOP),
    "kumar_plugin_get_equal_prob_bins_15_L2": ECE(EqualWidth(15), 2, TOP),
    "kumar_debiased_get_equal_prob_bins_15_L2": DebiasedECE(EqualWidth(15), 2, TOP, **KUMAR),
    "relplot_binnedECE_15": ECE(EqualWidth(15), 1, TOP),
    "ks_error_tie_grouped_independent": KolmogorovSmirnov(TOP),
    "spline_ECE_15": ECE(EqualWidth(15), 1, TOP),
    "spline_MCE_15": ECE(EqualWidth(15), inf, TOP),
    "torchmetrics_binary_l1_15_f64": ECE(EqualWidth(15), 1, TOP),
    "torchmetrics_binary_max_15_f64": ECE(EqualWidth(15), inf, TOP),
    "netcal_ECE_15_equal_intervals_True": ECE(EqualWidth(15), 1, TOP),
    "netcal_MCE_15_equal_intervals_True": ECE(EqualWidth(15), inf, TOP),
}

SAME_OF_CLASSES = {
    "caltrain_ew_ece_bin_15_L1_marginal": ECE(EqualWidth(15), 1, EACH),
    "caltrain_ew_ece_bin_15_L2_marginal": ECE(EqualWidth(15), 2, EACH),
    "kumar_plugin_get_equal_bins_15_L1_marginal": ECE(EqualMass(15), 1, EACH),
    "kumar_plugin_get_equal_bins_15_L2_marginal": ECE(EqualMass(15), 2, EACH),
    "kumar_debiased_get_equal_bins_15_L2_marginal": DebiasedECE(EqualMass(15), 2, EACH, **KUMAR),
    "kumar_plugin_get_equal_prob_bins_15_L1_marginal": ECE(EqualWidth(15), 1, EACH),
    "kumar_plugin_get_equal_prob_bins_15_L2_marginal": ECE(EqualWidth(15), 2, EACH),
    "kumar_debiased_get_equal_prob_bins_15_L2_marginal": DebiasedECE(EqualWidth(15), 2, EACH, **KUMAR),
}


@pytest.fixture
def peers(network):
    """Peers' values, and the predictions in double precision."""
    name, y, p = network
    return PEERS[name], y, Categorical(p.astype(np.float64))


def test_what_is_the_same(peers):
    values, y, p = peers
    for key, estimator in SAME.items():
        assert estimator(y, p).value == pytest.approx(values[f"top_label/{key}"], rel=1e-9), key


def test_what_is_the_same_of_every_class(peers):
    values, y, p = peers
    for key, estimator in SAME_OF_CLASSES.items():
        if f"classwise/{key}" in values:
            assert estimator(y, p).value == pytest.approx(values[f"classwise/{key}"], rel=1e-9), key


@pytest.mark.parametrize("norm", [1, 2])
def test_sweeps_of_single_classes(norm, peers):
    values, y, p = peers
    per_class = values.get(f"classwise/caltrain_ew_ece_sweep_L{norm}_per_class", [])
    for label, value in enumerate(per_class):
        assert ECE(Sweep("width"), norm, PositiveClass(label))(y, p).value == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("norm", [1, 2])
def test_equal_mass_of_roelofs_et_al_depends_on_the_order_of_equal_scores(norm, peers):
    """Theirs is the order of NumPy's default sort, which is not stable and differs between processors; ours is that of
    the rows. A quarter of the first network's scores are exactly 1, hardly any of the second's are equal.
    """
    values, y, p = peers
    hits, scores = TOP(y, p)
    scores = scores.probability(1)
    tolerance = 1e-4 if len(np.unique(scores)) < 7_000 else 1e-9
    for key, bins in {
        "bin_15": EqualMass(15, "split"),
        "bin_10": EqualMass(10, "split"),
        "sweep": Sweep(ties="split"),
    }.items():
        value = values[f"top_label/caltrain_em_ece_{key}_L{norm}"]
        assert ECE(bins, norm)(hits, scores).value == pytest.approx(value, rel=tolerance)


def test_a_point_at_one_has_a_bin_of_its_own_in_torchmetrics(peers):
    """Scores of exactly 1 make a phantom bin: the mean square splits them from the rest of the last bin."""
    values, y, p = peers
    hits, scores = TOP(y, p)
    scores = scores.probability(1)
    edges = np.append(np.arange(15) / 15, 1.0)
    bins = np.searchsorted(edges, scores, side="right")  # left-closed; 1.0 alone in the last
    gap = np.bincount(bins, weights=scores - hits) / np.maximum(np.bincount(bins), 1)
    phantom = np.sqrt(np.average(gap[bins] ** 2))
    assert phantom == pytest.approx(values["top_label/torchmetrics_binary_l2_15_f64"], rel=1e-9)
    assert ECE(norm=2)(hits, scores).value < phantom


def test_the_mean_over_bins_of_netcal(peers):
    values, y, p = peers
    table = ECE(lens=TOP)(y, p).table
    assert np.abs(table["gap"]).mean() == pytest.approx(
        values["top_label/netcal_ACE_15_equal_intervals_True"], rel=1e-9
    )


def test_the_debiased_l1_of_kumar_is_a_simulation_of_ours(peers):
    """1,000 normal draws: the error of theirs is their spread / sqrt(1000), below one in ten thousand here."""
    values, y, p = peers
    theirs = values["top_label/kumar_normal_debiased_get_equal_bins_15_L1"]
    assert DebiasedECE(EqualMass(15), 1, TOP)(y, p).value == pytest.approx(theirs, abs=3e-4)


@pytest.mark.parametrize("bandwidth", [0.01, 0.05, 0.1])
def test_smooth_errors_by_quadrature(bandwidth, peers):
    values, y, p = peers
    exact = values[f"exact/smECE_sigma_{bandwidth}_exact"]
    assert SmoothECE(bandwidth, TOP)(y, p).value == pytest.approx(exact, abs=1e-8)


def test_relplot_counts_what_lies_at_the_ends_by_half(peers):
    """Most scores of these networks are next to 1, so that theirs is larger by 18 and 41 %."""
    values, y, p = peers
    assert values["top_label/relplot_smECE"] > 1.15 * SmoothECE(lens=TOP)(y, p).value
    assert SmoothECE(lens=TOP)(y, p).value == pytest.approx(values["exact/smECE_fixed_point_exact"], rel=1e-9)


def test_relplot_agrees_where_nothing_lies_at_the_ends():
    """relplot 1.0.3 on these rows; it rounds scores to a grid, and stops its search for the bandwidth at 0.001."""
    rng = np.random.default_rng(7)
    p = rng.uniform(0.3, 0.7, 500).round(6)
    y = (rng.random(500) < 0.5 + 0.6 * (p - 0.5) + 0.04).astype(int)
    assert SmoothECE(0.02)(y, p).value == pytest.approx(0.10114526563358109, rel=1e-4)
    assert SmoothECE(0.05)(y, p).value == pytest.approx(0.09189405412951676, rel=1e-4)
    assert SmoothECE()(y, p).value == pytest.approx(0.08486151125951837, abs=1e-3)
