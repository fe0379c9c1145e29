import json
import sys

import pytest

pytest.importorskip("cyclopts")
pytest.importorskip("polars")


def test_reproducing_a_study(run, monkeypatch, tmp_path):
    from studies.widmann import estimator_error

    few = estimator_error.study.__kwdefaults__ | {"sizes": (4,)}
    monkeypatch.setattr(estimator_error.study, "__kwdefaults__", few)
    code, out, _ = run("estimator-error", "--data-sets", "100")
    assert code == 0
    assert "largest difference: " in out
    assert "are few" not in out
    assert "12 data sets are few: chance alone may exceed the bound" in run("estimator-error", "--data-sets", "12")[1]
    code, out, _ = run("estimator-error", "--data-sets", "100", "--format", "json")
    assert code == 0
    assert len(json.loads(out)["error_z"]) == 16
    folders = ["--out", str(tmp_path / "docs"), "--keep", str(tmp_path)]
    again = run("estimator-error", "--data-sets", "100", "--format", "json", *folders, "--workers", "2")
    assert again[:2] == (0, out)
    page = (tmp_path / "docs" / "estimator-error.md").read_text()
    assert page.startswith("# Errors and variances")
    assert page.count("| uncalibrated |") == 8
    assert (tmp_path / "docs" / "estimator-error.svg").read_text().startswith("<?xml")
    monkeypatch.setattr(estimator_error, "_repeat", pytest.fail)  # all cells were kept
    assert run("estimator-error", "--data-sets", "100", "--format", "json", *folders)[:2] == (0, out)
    monkeypatch.undo()
    monkeypatch.setattr(estimator_error.study, "__kwdefaults__", few)
    monkeypatch.setattr(estimator_error, "BOUND", 0.01)
    assert run("estimator-error", "--data-sets", "100")[0] == 1
    code, _, err = run("estimator-error", "--data-sets", "3")
    assert (code, err) == (2, "studies: --data-sets must be a whole number of at least 10; got 3\n")


def test_the_papers_keep_to_one_contract():
    from studies.berta import bounds as berta_coverage
    from studies.berta import compared
    from studies.berta import variational as berta
    from studies.popordanoska import errors as popordanoska
    from studies.roelofs import bias as roelofs
    from studies.widmann import estimator_error, rejection_rates
    from studies.widmann import regressions as widmann

    for paper in (berta, compared, berta_coverage, estimator_error, popordanoska, rejection_rates, roelofs, widmann):
        assert {"seed", "engine", "folder"} <= set(paper.study.__kwdefaults__)
        assert paper.BOUND > 3 or (paper.BOUND >= 1 and paper.UNIT.startswith("parts"))
        assert callable(paper.summary)
        assert callable(paper.figure)


def test_a_study_with_data_of_its_own_takes_no_number_of_them(run):
    code, _, err = run("widmann", "--data-sets", "500")
    expected = "studies: --data-sets goes with simulations, and widmann has data of its own; leave it out\n"
    assert (code, err) == (2, expected)


def test_without_torch_networks_are_not_trained(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    code, _, err = run("widmann")
    assert (code, err) == (2, "studies: training networks needs torch: pip install 'calibrant[torch]'\n")


@pytest.mark.parametrize("name", ["nobody", "roelof"])
def test_unknown_studies_are_refused(run, name):
    code, out, err = run(name)
    assert (code, out) == (2, "")
    assert err.startswith("studies: ")
    assert err.endswith("(see python -m studies --help)\n")
    assert name != "roelof" or "roelofs" in err
