import numpy as np
import pytest
from scipy.stats import t as student

from studies.berta import recovery as berta_recovery
from studies.berta.data import SCENARIOS, SIZES
from studies.berta.recovery import BOOSTING, FALSE_ALARM, SOFT, n_statements, published, recovery

AVERAGES = dict(zip(SCENARIOS, (1.43, 1.39, 0.70, 1.90, 2.00, 1.86, 1.99, 1.99, 1.29, 3.93), strict=True))
"""Root mean squared errors of boosting in hundredths, averaged over sizes."""


SWEPT = ("boosting", "isotonic", "bins", "isotonic, in sample")
"""Methods with every size; the others are those of ``berta-methods``, which compares three sizes."""


def test_the_published_table():
    known = published()
    swept = [cell for (_, _, method), cell in known.items() if method in SWEPT]
    assert len(swept) == len(SWEPT) * len(SCENARIOS) * len(SIZES)
    assert sum(cell.runs == 10 for cell in swept) == 565
    compared = [n for _, n, method in known if method not in SWEPT]
    assert {n: compared.count(n) for n in compared} == {200: 36, 612: 36, 1870: 36}
    for name, average in AVERAGES.items():
        assert 100 * np.mean([known[name, n, BOOSTING].rmse for n in SIZES]) == pytest.approx(average, abs=0.005)


@pytest.fixture(scope="module")
def small():
    return recovery(10, ("over-confident, 2 classes", "calibrated, 3 classes"), (200, 264), 0, None, None)


def test_methods_of_the_paper_have_its_digits(small):
    parts = {(row["scenario"], row["method"]): row["part"] for row in small if row["n"] == 264}
    for (name, method), part in parts.items():
        if method.startswith("isotonic") or (method == "bins" and name.endswith(" 2 classes")):
            assert part <= 0.51
        elif method in ("hard sign", BOOSTING):
            assert np.isnan(part)
    assert parts["calibrated, 3 classes", "bins"] < 1


def test_numbers_over_all_sizes(small):
    rows = {row["n"]: row for row in small if row["scenario"] == "over-confident, 2 classes" and row["method"] == SOFT}
    cells = [published()["over-confident, 2 classes", n, BOOSTING] for n in rows]
    ratio = sum(row["rmse"] for row in rows.values()) / sum(cell.rmse for cell in cells)
    above = sum(row["mean"] - row["truth"] for row in rows.values()) / np.hypot(
        *(row["error"] for row in rows.values())
    )
    for row in rows.values():
        assert row["ratio"] == pytest.approx(ratio)
        assert row["above"] == pytest.approx(above)
        here = (row["mean"] - row["truth"]) / row["error"]
        assert row["part"] == pytest.approx(max(ratio / 1.1, above / row["most_above"], here / row["most"]))


def test_other_experiments_are_not_compared_digit_by_digit():
    rows = recovery(3, ("over-confident, 2 classes",), (200,), 5, None, None)
    assert all(np.isnan(row["part"]) for row in rows if row["method"].startswith("isotonic"))


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"scenario": "calibrated, 2 classes", "above": -6.0}, 1.5),  # not below either
        ({"above": -9.0}, 0.5 / 1.1),
        ({"above": 6.0}, 1.5),
        ({"mean": 0.1188}, 1.25),
        ({"ratio": 1.21}, 1.1),
    ],
)
def test_what_soft_signs_use_up(change, part):
    row = {"scenario": "shifted, 2 classes", "method": SOFT, "ratio": 0.5, "above": 0.0}
    row |= {"mean": 0.0188, "truth": 0.0188, "error": 0.01, "most": 8.0, "most_above": 4.0} | change
    assert berta_recovery._part(row, is_same=True) == pytest.approx(part)


def test_chance_alone_seldom_breaks_any_of_the_statements(rng):
    """Ten experiments of an unbiased method, in every scenario and size, 2,000 times.

    Two standard errors at every size, as one might think enough, are broken by chance alone in nearly all studies. The bound
    is broken in one of 1,000: of 2,000 studies, in at most 8 with a probability of 99.9 %.
    """
    studies, scenarios, sizes, runs = 2_000, tuple(SCENARIOS), len(SIZES), 10
    level = FALSE_ALARM / n_statements(scenarios, SIZES)
    single, average = np.zeros(studies, bool), np.zeros(studies, bool)
    naive = np.zeros(studies, bool)
    for name in scenarios:
        mean = rng.normal(size=(studies, sizes)) / runs**0.5
        error = np.sqrt(rng.chisquare(runs - 1, (studies, sizes)) / (runs - 1) / runs)
        naive |= (mean / error > 2).any(axis=1)
        single |= (mean / error > student.isf(level, runs - 1)).any(axis=1)
        z = mean.sum(axis=1) / np.sqrt((error**2).sum(axis=1))
        freedom = np.array([berta_recovery._freedom(e, runs) for e in error])
        average |= (np.abs(z) if SCENARIOS[name].is_calibrated else z) > student.isf(level, freedom)
    assert naive.mean() > 0.95
    assert (single | average).sum() <= 8


def test_finished_experiments_are_kept(tmp_path, monkeypatch):
    options = (2, ("calibrated, 2 classes",), (200,), 0, None, tmp_path / "berta.jsonl")
    first = recovery(*options)
    monkeypatch.setattr(berta_recovery, "_experiment", pytest.fail)
    again = recovery(*options)
    assert [row["mean"] for row in again] == [row["mean"] for row in first]
