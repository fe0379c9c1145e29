import numpy as np
import pytest

from studies.roelofs.networks import ESTIMATORS, RECALIBRATIONS, differences, main, measured, preferred


@pytest.fixture
def file(tmp_path, rng):
    p = rng.dirichlet(np.full(4, 0.5), 800)
    truth = p**0.4 / (p**0.4).sum(axis=1, keepdims=True)
    y = (rng.random((800, 1)) > np.cumsum(truth, axis=1)).sum(axis=1).clip(0, 3)
    np.savez(tmp_path / "net.npz", predictions=p, ground_truth=y)
    return tmp_path / "net.npz"


def test_the_page(file, tmp_path, capsys):
    assert main([str(file), "--splits", "2"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("# Which recalibration do estimators prefer")
    assert shown.count("| net |") == 2 + len(RECALIBRATIONS)
    assert main([str(file), "--splits", "2", "--out", str(tmp_path / "docs")]) == 0
    assert (tmp_path / "docs" / "roelofs-networks.md").read_text() == shown


def test_options(file, capsys):
    for arguments, message in (
        ([str(file), "--splits", "1"], "--splits must be at least 2; got 1"),
        (["nowhere.npz"], "there is no file nowhere.npz: give files of predictions"),
    ):
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert left.value.code == 2
        assert message in capsys.readouterr().err


def test_the_best_is_named_and_gaps_are_those_of_means(rng):
    values = np.array(
        [[[5.0, 4.0], [2.0, 1.0], [1.0, 3.0], [3.0, 3.0]], [[5.0, 4.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]]
    )
    found = {"net": {"all rows": values, "10 %": values}}
    row = next(preferred(found).rows())
    assert [row[name] for name in ESTIMATORS] == ["temperature 1, isotonic 1", "temperature 2"]
    assert row["disagree"] == "1 of 2"
    first = next(differences(found).rows())
    assert (first["x - y"], first["of x"]) == ("+1.00", "+20.0 %")


def test_networks_agree_before_recalibration_and_not_after(network):
    """What tables 4 and 5 of the paper say, on other networks."""
    from calibrant import Categorical

    _, y, p = network
    values = measured(Categorical(p.astype(np.float64)), y, 2)["all rows"].mean(axis=0)
    assert abs(values[0, 0] - values[0, 1]) < 0.02 * values[0, 0]
    assert values[1, 1] < values[1, 0] < values[0, 0] / 3
