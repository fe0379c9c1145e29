import re

import numpy as np
import pytest

from calibrant import ECE, Categorical, EqualWidth, TopLabel
from calibrant.recalibration import Temperature
from studies.roelofs import networks
from studies.roelofs.networks import (
    ALL,
    ESTIMATORS,
    RECALIBRATIONS,
    Network,
    claims,
    differences,
    errors,
    figure,
    main,
    measured,
    preferred,
)

KEPT = sorted(networks.KEPT.glob("*.npz"))


def drawn(rng, n):
    """Over-confident probabilities of four classes, and labels."""
    p = rng.dirichlet(np.full(4, 0.5), n)
    truth = p**0.4 / (p**0.4).sum(axis=1, keepdims=True)
    return p, (rng.random((n, 1)) > np.cumsum(truth, axis=1)).sum(axis=1).clip(0, 3)


@pytest.fixture
def file(tmp_path, rng):
    p, y = drawn(rng, 800)
    np.savez(tmp_path / "net.npz", predictions=p, ground_truth=y)
    return tmp_path / "net.npz"


@pytest.fixture
def shipped(tmp_path, rng, monkeypatch):
    """A folder with one small file of logits, in place of those that are part of the project."""
    (p, y), folder = drawn(rng, 900), tmp_path / "kept"
    folder.mkdir()
    logits = np.log(p + 1e-6).astype(np.float16)
    arrays = {"logits_validation": logits[:300], "logits_test": logits[300:]}
    np.savez(folder / "small.npz", **arrays, labels_validation=y[:300], labels_test=y[300:])
    monkeypatch.setattr(networks, "KEPT", folder)
    return folder / "small.npz"


def test_the_page(shipped, file, tmp_path, capsys):
    assert main([str(file), "--splits", "2"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("# Which recalibration do estimators prefer")
    for name in ("net", "small"):
        assert shown.count(f"| {name} |") == 3 + len(RECALIBRATIONS)
    assert main([str(file), "--splits", "2", "--out", str(tmp_path / "docs")]) == 0
    assert (tmp_path / "docs" / "roelofs-networks.md").read_text() == shown
    assert "temperature" in (tmp_path / "docs" / "roelofs-networks.svg").read_text()


def test_options(file, capsys):
    for arguments, message in (
        ([str(file), "--splits", "1"], "--splits must be at least 2; got 1"),
        (["nowhere.npz"], "there is no file nowhere.npz: give files of predictions"),
    ):
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert left.value.code == 2
        assert message in capsys.readouterr().err


def test_both_parts_of_a_kept_network_are_read_and_a_third_fits(shipped):
    network = Network.kept(shipped)
    logits = np.concatenate([np.load(shipped)[f"logits_{part}"] for part in ("validation", "test")]).astype(float)
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(network.predictions.probs, expected, rtol=1e-12)
    rows = np.arange(900)
    found = errors(network, rows)
    cooler = Temperature().fit(network.y[:300], network.predictions[:300], folds=0)
    after = cooler.map.apply(network.predictions[300:])
    assert found[1, 0] == 100 * float(ECE(EqualWidth(15), lens=TopLabel())(network.y[300:], after))
    right = 100 * np.mean(expected.argmax(axis=1) == network.y)
    assert network.described()["confidence - accuracy"] == f"{100 * expected.max(axis=1).mean() - right:+.1f}"


VALUES = np.array([[[5.0, 4.0], [2.0, 1.0], [1.0, 3.0], [3.0, 3.0]], [[5.0, 4.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]])
FOUND = {"net": {ALL: VALUES, "10 %": VALUES}, "other": {ALL: VALUES[1:] * [2, 1], "10 %": VALUES[1:]}}


def test_the_best_is_named_and_gaps_are_those_of_means():
    row = next(preferred(FOUND).rows())
    assert [row[name] for name in ESTIMATORS] == ["temperature 1, isotonic 1", "temperature 2"]
    assert row["disagree"] == "1 of 2"
    first, second, *_ = differences({"net": FOUND["net"], "other": {ALL: VALUES * [2, 1]}}).rows()
    assert (first["x - y"], first["of x"]) == ("+1.00", "+20.0 %")
    assert [row["15 bins, equal width"][-3:] for row in (first, second)] == ["(0)", "(1)"]


def test_what_came_out_stands_beside_the_claims():
    rows = {row["what"].partition(":")[0]: row for row in claims(FOUND).rows()}
    assert rows[ALL]["here"] == "in 1 of 3 splits, 33 %"
    assert rows["as they are"]["here"] == "20.0 to 60.0 % more"  # (5 - 4) / 5 and (10 - 4) / 10
    assert rows["histogram binning"]["here"] == "0.0 to 50.0 % more"
    small = {"small": {ALL: VALUES / [2, 1], "10 %": VALUES}}  # 2.5 points, and -60 %
    (large,) = [row for row in claims(small | FOUND).rows() if "points or more" in row["what"]]
    assert large["here"] == "20.0 to 60.0 % more"
    assert not any("points or more" in row["what"] for row in claims(small).rows())


def test_a_bar_has_the_shares_of_the_splits():
    bars = [bar for axes in figure(FOUND).axes for bar in axes.patches]
    assert len(bars) == 2 * 2 * 2 * 3  # samples, networks, estimators, recalibrations
    assert [bar.get_width() for bar in bars[:3]] == [0.5, 0.5, 0.0]


def test_networks_agree_before_recalibration_and_not_after(network):
    """What tables 4 and 5 of the paper say, on other networks."""
    name, y, p = network
    values = measured(Network(name, Categorical(p.astype(np.float64)), y), 2)[ALL].mean(axis=0)
    assert abs(values[0, 0] - values[0, 1]) < 0.02 * values[0, 0]
    assert values[1, 1] < values[1, 0] < values[0, 0] / 3


def test_the_networks_of_the_project_are_over_and_under_confident_and_told_apart():
    assert len(KEPT) >= 6
    gaps = [float(re.sub(",", "", str(Network.kept(path).described()["confidence - accuracy"]))) for path in KEPT]
    assert min(gaps) < -2 < 2 < max(gaps)
    assert sum(path.stat().st_size for path in KEPT) < 2_500_000


def test_rows_are_the_same_in_all_files():
    labels = [np.load(path)["labels_test"] for path in KEPT]
    assert all(np.array_equal(labels[0], other) for other in labels)
    assert np.bincount(labels[0]).tolist() == [1000] * 10
