import json
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from calibrant import ECE, SKCE, Bootstrap, Brier, EqualMass, ExactTest
from calibrant._validate import InputError
from calibrant.kernels import Exponential, Gaussian
from calibrant.lab import Localised, Sharp, Sigmoid, Smooth, Study, SyntheticNormal, Tempered
from calibrant.lab.study import CHUNK, COLUMNS, StudyRecord, resumed
from calibrant.results import Estimate, Interval

WORLDS = [Sigmoid(), Sigmoid(0.3)]
MEASURES = [
    ("score", Brier()),
    ("ECE", ECE(EqualMass(5))),
    ("test", ExactTest(ECE(), n_resamples=19)),
    ("bootstrap", Bootstrap(Brier(), n_resamples=9)),
]
SMALL = Study(WORLDS, [20, 40], MEASURES, n_sets=30, seed=1)

CALLS = []


def counted(y_true, y_pred):
    CALLS.append(len(y_true))
    return float(np.mean(y_true))


def infinite(y_true, y_pred):
    return np.inf


def same(a, b):
    return list(a) == list(b) and all(np.array_equal(a[k], b[k], equal_nan=a[k].dtype.kind == "f") for k in a)


def data_sets(study, cell):
    """All data sets of one cell, drawn again from the documented seeds."""
    world, n = [(world, n) for world in study.worlds for n in study.sizes][cell]
    root = np.random.SeedSequence(study.seed).spawn(len(study.worlds) * len(study.sizes))[cell]
    sizes = [min(CHUNK, study.n_sets - i) for i in range(0, study.n_sets, CHUNK)]
    for chunk, size in zip(root.spawn(len(sizes)), sizes, strict=True):
        for seed in chunk.spawn(size):
            data, resamples = seed.spawn(2)
            yield *world.draw(n, np.random.default_rng(data)), resamples


def test_rows_by_hand():
    """The numbers of one cell from a plain loop over its data sets."""
    table = SMALL()
    assert table.n_rows == 16
    assert table["world"][8:].tolist() == [WORLDS[1].name] * 8
    assert table["n"].tolist() == ([20] * 4 + [40] * 4) * 2
    rows = {row["measure"]: row for row in table.rows() if (row["world"], row["n"]) == (WORLDS[1].name, 40)}
    scores, errors, tests, bootstraps = [], [], [], []
    for y, p, resamples in data_sets(SMALL, 3):
        scores.append(Brier()(y, p))
        errors.append(MEASURES[1][1](y, p))
        tests.append(MEASURES[2][1](y, p, rng=np.random.default_rng(resamples)))
        bootstraps.append(MEASURES[3][1](y, p, rng=np.random.default_rng(resamples)))
    values, truth = np.array([float(s) for s in scores]), WORLDS[1].truth(Brier())
    assert rows["score"]["mean"] == pytest.approx(values.mean(), rel=1e-13)
    assert rows["score"]["bias"] == pytest.approx(values.mean() - truth, rel=1e-10)
    assert rows["score"]["sd"] == pytest.approx(values.std(ddof=1), rel=1e-12)
    assert rows["score"]["rmse"] == pytest.approx(np.mean((values - truth) ** 2) ** 0.5, rel=1e-12)
    assert rows["score"]["coverage"] == np.mean([truth in s.confidence_interval(0.95) for s in scores])
    assert rows["test"]["rejected"] == np.mean([t.pvalue <= 0.05 for t in tests])
    error = WORLDS[1].truth(ECE())
    assert rows["ECE"]["truth"] == error
    assert rows["ECE"]["coverage"] == np.mean([error in e.confidence_interval() for e in errors])
    assert rows["bootstrap"]["truth"] == rows["score"]["truth"] == truth
    assert rows["bootstrap"]["coverage"] == np.mean([truth in b.interval for b in bootstraps])
    assert np.isnan(rows["score"]["rejected"])
    assert all(np.isnan(rows["test"][key]) for key in COLUMNS[3:])


def test_the_interval_of_a_rate_is_scipys():
    row = next(row for row in SMALL().rows() if row["measure"] == "test")
    expected = binomtest(round(row["rejected"] * 30), 30).proportion_ci(method="exact")
    assert (row["rejected_low"], row["rejected_high"]) == pytest.approx(tuple(expected), abs=1e-12)


def test_same_digits_on_every_engine():
    alone = SMALL()
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(2, get_context("spawn")) as processes:
        assert same(alone, SMALL(engine=threads))
        assert same(alone, SMALL(engine=processes))
    assert not same(alone, Study(WORLDS, [20, 40], MEASURES, n_sets=30, seed=2)())


def test_another_measure_leaves_the_data_sets_alone():
    fewer = Study(WORLDS, [20, 40], MEASURES[:1], n_sets=30, seed=1)()
    every = [row for row in SMALL().rows() if row["measure"] == "score"]
    assert fewer["mean"].tolist() == [row["mean"] for row in every]


def test_level_and_power():
    """A calibrated world is rejected as often as promised, by a binomial bound; a wrong one nearly always."""
    low, high = binom.interval(0.999, 200, 0.05)
    table = Study([Tempered(2), Smooth(0.8)], [60], [("test", ExactTest(Brier(), 99))], n_sets=200)()
    assert low <= table["rejected"][0] * 200 <= high
    assert table["rejected"][1] > 0.9


def test_bias_and_coverage():
    """Means of scores are unbiased and covered; the unbiased kernel error is unbiased, the other is not."""
    low, high = binom.interval(0.999, 300, 0.95)
    kernels = Exponential(1.0), Gaussian(1.0)
    scores = Study([Sigmoid(0.4)], [300], [("score", Brier())], n_sets=300)()
    assert low <= scores["coverage"][0] * 300 <= high
    errors = [("U", SKCE(*kernels)), ("V", SKCE(*kernels, unbiased=False))]
    table = Study([SyntheticNormal(False), SyntheticNormal()], [20], errors, n_sets=300)()
    z = table["bias"] / (table["sd"] / 300**0.5)
    assert np.all(np.abs(z[[0, 2]]) < 4)
    assert z[3] > 4  # at 300 data sets the bias shows where values spread little
    assert table["bias"][3] == pytest.approx((1 - 1.02**-0.5) / 20, rel=0.2)
    assert table["rmse"] ** 2 == pytest.approx(table["bias"] ** 2 + table["sd"] ** 2 * 299 / 300, rel=1e-10)


def test_what_is_not_known_is_nan():
    table = Study([Sigmoid(0.4)], [20], [("SKCE", SKCE()), ("mean", counted)], n_sets=5)()
    assert np.all(np.isnan(table["truth"]) & np.isnan(table["bias"]) & np.isnan(table["coverage"]))
    assert np.all(np.isfinite(table["mean"]))


def test_intervals_of_another_level_are_not_counted():
    def narrow(y_true, y_pred):
        return Estimate("x", 0.0, len(y_true), None, interval=Interval(-9, 9, 0.5, "guess"))

    assert np.isnan(Study([Sigmoid()], [5], [("narrow", narrow)], n_sets=2)()["coverage"][0])


def test_progress_counts_tasks():
    seen = []
    Study(WORLDS, [20], MEASURES[:1], n_sets=30)(progress=lambda *step: seen.append(step))
    assert [step[1:] for step in seen] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert seen[-1][0] == f"{WORLDS[1].name}, n = 20"


class Enough(Exception):
    pass


def test_a_study_that_was_broken_off_goes_on(tmp_path):
    path = tmp_path / "study.jsonl"
    study = Study(WORLDS, [20, 40], [("mean", counted), *MEASURES, ("infinite", infinite)], n_sets=30)
    complete = study()

    def stop(cell, done, total):
        if done == 5:
            raise Enough

    with pytest.raises(Enough):
        study(path=path, progress=stop)
    assert [json.loads(line).get("cell") for line in path.read_text().splitlines()] == [None, 0, 1]
    CALLS.clear()
    assert same(study(path=path), complete)
    assert CALLS == [20] * 30 + [40] * 30  # of the second world alone
    CALLS.clear()
    assert same(study(path=path), complete)
    assert CALLS == []
    assert complete["mean"][5] == np.inf


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"seed": 2}, "seed"),
        ({"n_sets": 31}, "n_sets"),
        ({"alpha": 0.1}, "alpha"),
        ({"sizes": [20]}, "sizes"),
        ({"worlds": [Sigmoid(), Sigmoid(0.31)]}, "worlds"),
        ({"measures": [("score", Brier()), ("ECE", ECE(EqualMass(6)))]}, "measures"),
    ],
)
def test_other_settings_do_not_go_on(tmp_path, change, key):
    settings = {"worlds": WORLDS, "sizes": [20, 40], "measures": MEASURES[:2], "n_sets": 30, "seed": 1}
    Study(**settings)(path=tmp_path / "study.jsonl")
    with pytest.raises(InputError, match=f"belongs to another study: {key} is"):
        Study(**settings | change)(path=tmp_path / "study.jsonl")


@pytest.mark.parametrize("measure", [lambda y, p: 0.0, ExactTest(lambda y, p: 0.0)])
def test_nameless_measures_cannot_be_kept_in_a_file(tmp_path, measure):
    with pytest.raises(InputError, match="measure 'x' cannot be told from others in a file: use a named function"):
        Study(WORLDS, [20], [("x", measure)], n_sets=2)(path=tmp_path / "study.jsonl")


def test_errors_say_where():
    with pytest.raises(
        InputError, match=r"measure 'SKCE' on Sigmoid\(.*\) with n = 1: the unbiased SKCE needs at least"
    ):
        Study([Sigmoid()], [1], [("SKCE", SKCE())], n_sets=2)()
    with pytest.raises(
        InputError, match="measure 'none' .*: it must give an Estimate, a TestResult or a number; got None"
    ):
        Study([Sigmoid()], [5], [("none", lambda y, p: None)], n_sets=2)()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"worlds": []}, r"worlds must be different ones, at least one; got \[\]"),
        ({"worlds": [Sigmoid(), Sigmoid()]}, "worlds must be different ones"),
        ({"sizes": [10, 10]}, "sizes must be different ones"),
        ({"sizes": [0]}, "every one of sizes must be a whole number of at least 1; got 0"),
        ({"measures": [("a", Brier()), ("a", ECE())]}, "measures must be different ones"),
        ({"measures": [("a", 3)]}, "measures must be pairs of a name and a callable; 'a' has 3"),
        ({"n_sets": 1}, "n_sets must be a whole number of at least 2; got 1"),
        ({"seed": -1}, "seed must be a whole number of at least 0; got -1"),
        ({"alpha": 5}, "alpha must lie strictly between 0 and 1; got 5"),
    ],
)
def test_settings_are_checked(change, message):
    with pytest.raises(InputError, match=message):
        Study(**{"worlds": WORLDS, "sizes": [10], "measures": MEASURES, **change})


@pytest.mark.study
def test_power_against_three_alternatives():
    """Every test keeps its level, and each alternative is seen by the statistic of its scale."""
    worlds = [Sigmoid(), Smooth(0.3), Sharp(0.8), Localised(0.8)]
    statistics = {"ECE, 10": ECE(EqualMass(10)), "ECE, 40": ECE(EqualMass(40)), "Brier": Brier()}
    statistics |= {f"SKCE, {scale}": SKCE(Exponential(scale)) for scale in (0.02, 0.5)}
    measures = [(name, ExactTest(statistic, 199)) for name, statistic in statistics.items()]
    table = Study(worlds, [500], measures, n_sets=400)()
    for row in table.rows():
        print(f"{row['world']:60} {row['measure']:12} {row['rejected']:.3f}")
    low, high = binom.interval(0.9999, 400, 0.05)
    power = {(row["world"], row["measure"]): row["rejected"] for row in table.rows()}
    assert all(low <= 400 * power[worlds[0].name, name] <= high for name in statistics)
    assert power[worlds[1].name, "SKCE, 0.5"] > power[worlds[1].name, "SKCE, 0.02"] + 0.1
    assert power[worlds[2].name, "SKCE, 0.02"] > power[worlds[2].name, "SKCE, 0.5"] + 0.1


def withheld(y_true, y_pred):
    """An estimate with a standard error, and with a reason to give no interval."""
    return Estimate("error", 0.1, len(y_true), None, "none", standard_error=0.02, withheld="it does not hold")


def test_an_estimate_that_withholds_its_interval_has_no_coverage():
    table = Study([Sigmoid()], [20], [("error", withheld)], n_sets=2)()
    assert table["mean"][0] == 0.1
    assert np.isnan(table["coverage"][0])


@pytest.fixture
def record(tmp_path):
    return StudyRecord(tmp_path / "study.jsonl", {"seed": 3, "sizes": (10, 20)})


def test_what_was_added_is_read_again(record):
    assert record.read() == {}
    record.add(0, [{"mean": 0.1 + 0.2, "sd": np.nan}])
    record.add(2, [{"mean": np.inf, "sd": 1.0}])
    assert record.read() == {0: [{"mean": 0.1 + 0.2, "sd": "nan"}], 2: [{"mean": "inf", "sd": 1.0}]}


def test_every_line_is_standard_json(record):
    record.read()
    record.add(0, {"mean": np.nan})

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    lines = record.path.read_text().splitlines()
    assert [json.loads(line, parse_constant=refuse) for line in lines] == [
        {"settings": {"seed": 3, "sizes": [10, 20]}},
        {"cell": 0, "results": {"mean": "nan"}},
    ]


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_line_that_was_cut_off_is_dropped(record, cut):
    record.read()
    record.add(0, "first")
    record.add(1, "second")
    record.path.write_text(record.path.read_text()[:-cut])
    assert record.read() == {0: "first"}
    record.add(1, "again")
    assert record.read() == {0: "first", 1: "again"}


def test_settings_that_were_cut_off_are_written_again(record):
    record.read()
    record.path.write_text(record.path.read_text()[:-5])
    assert record.read() == {}
    record.add(0, "first")
    assert record.read() == {0: "first"}


def test_other_settings_are_refused_and_the_file_is_left_alone(record):
    record.read()
    text = record.path.read_text()
    other = StudyRecord(record.path, {"seed": 4, "sizes": [10, 20]})
    with pytest.raises(InputError, match="belongs to another study: seed is 3 there and 4 here; give another path"):
        other.read()
    assert record.path.read_text() == text


@pytest.mark.parametrize("text", ["precious", "precious\n", "[1, 2]\n", '{"precious": 1}\nmore', '{"precious": 1}'])
def test_other_files_are_refused_and_left_alone(record, text):
    record.path.write_text(text)
    with pytest.raises(InputError, match="is no record of a study: .*; give another path"):
        record.read()
    assert record.path.read_text() == text


def test_what_the_record_holds_is_not_worked_out_again(record):
    asked = []

    def work(a, b):
        asked.append((a, b))
        return np.array([a + b, np.nan])

    tasks = [(1, 2), (3, 4), (5, 6)]
    first = resumed(work, tasks, record, None)
    assert [values[0] for values in first] == [3, 7, 11]
    lines = record.path.read_text().splitlines(keepends=True)
    record.path.write_text("".join(lines[:2] + lines[3:]))  # the second is lost
    asked.clear()
    again = resumed(work, tasks, record, None)
    assert asked == [(3, 4)]
    assert np.array_equal(again, first, equal_nan=True)
    assert np.array_equal(resumed(pytest.fail, tasks, record, None), first, equal_nan=True)


def test_work_may_be_done_elsewhere(record):
    class Engine:
        def map(self, fn, /, *tasks):
            return [10 * fn(*task) for task in zip(*tasks, strict=True)]

    for _ in range(2):
        assert resumed(lambda a: np.array([a]), [(1,), (2,)], record, Engine()) == [[10], [20]]
