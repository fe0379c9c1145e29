import json

import numpy as np
import pytest

from calibrant._validate import InputError
from calibrant.lab.record import StudyRecord, resumed


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
