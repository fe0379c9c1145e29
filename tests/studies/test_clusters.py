"""The worlds of the study of clusters are calibrated, and as dependent as they say."""

import numpy as np
import pytest
from scipy.stats import binom

from calibrant import AggregatedTest, ExactTest
from calibrant.estimators import PITError, TailScan
from studies.clusters import FAMILIES, SURER, ClusterWorld, changed, main, rejections, worlds


@pytest.mark.parametrize("family", FAMILIES)
def test_worlds_are_calibrated(family):
    """Rows of different clusters, one of each, by the exact test."""
    y, p, clusters = ClusterWorld(family, 400 if family == "ensemble" else 1500, correlation=0.9).draw(
        np.random.default_rng(1)
    )
    first = np.unique(clusters, return_index=True)[1]
    error = PITError() if family == "normal" else AggregatedTest(n_resamples=99) if family == "ensemble" else TailScan()
    test = error if isinstance(error, AggregatedTest) else ExactTest(error, 99)
    assert test(y[first], p[first]).pvalue > 0.01


def test_rows_of_a_cluster_are_alike():
    """Latent variables are correlated by .9: so are the z-scores of normal predictions."""
    y, p, clusters = ClusterWorld("normal", 2000, correlation=0.9).draw(np.random.default_rng(0))
    z = ((y - p.loc) / p.scale).reshape(2000, 10)
    assert np.corrcoef(z[:, 0], z[:, 1])[0, 1] == pytest.approx(0.9, abs=0.02)
    assert np.corrcoef(z[:-1, 0], z[1:, 1])[0, 1] == pytest.approx(0, abs=0.1)
    assert (np.bincount(clusters) == 10).all()


def test_sizes_and_predictions():
    _, p, clusters = ClusterWorld("binary", 500, alike=True, unequal=True).draw(np.random.default_rng(0))
    sizes = np.bincount(clusters)
    assert (sizes.min(), sizes.max()) == (1, 50)
    assert all(np.ptp(p[clusters == c]) == 0 for c in range(20))
    assert len(list(worlds())) == 180


@pytest.mark.parametrize("family", ["binary", "confident", "ten classes", "normal"])
@pytest.mark.parametrize("alike", [False, True])
def test_a_fast_share_of_the_levels(family, alike):
    """Sixty data sets of twenty clusters each; refusals never reject."""
    world = ClusterWorld(family, 20, 0.9, alike)
    rejected, refused = rejections(AggregatedTest(n_resamples=99), world, 60)
    assert rejected <= binom.ppf(0.9999, 60, 0.05)
    assert refused <= (60 if family == "confident" else 3)


def test_rare_events_of_few_clusters_are_all_refused():
    assert rejections(AggregatedTest(n_resamples=99), ClusterWorld("rare", 50, 0.9), 20) == (0, 20)


def test_the_command(capsys):
    assert main(["--data-sets", "3", "--family", "rare", "--clusters", "20"]) == 0
    assert "refused" in capsys.readouterr().out


@pytest.mark.parametrize("family", SURER)
def test_predictions_that_are_made_wrong(family):
    """Too sure ones are farther from what is likely on the whole, or narrower."""
    _, p, _ = ClusterWorld(family, 20).draw(np.random.default_rng(0))
    sure, same = changed(p, SURER[family]), changed(p, 1.0)
    if family in ("normal", "ensemble"):
        assert sure.std * SURER[family] == pytest.approx(p.std)
        assert sure.mean == pytest.approx(p.mean)
        return
    of = (lambda x: x.probs.max(axis=1)) if family == "ten classes" else (lambda x: np.maximum(x, 1 - x))
    assert of(same) == pytest.approx(of(p))
    assert (of(sure) >= of(p)).all()


def test_power_is_kept_and_shown(tmp_path, capsys):
    words = ["--keep", str(tmp_path), "--data-sets", "2", "--family", "binary", "--clusters", "20", "--power", "2"]
    assert main(words) == 0
    first = capsys.readouterr().out
    assert "| binary | too timid | 2 |" in first
    assert main(words) == 0
    assert capsys.readouterr().out == first
