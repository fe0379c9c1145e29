import json
import subprocess
import sys
import time
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import numpy as np
import pytest

from calibrant import ECE, Bernoulli, io
from calibrant._validate import InputError
from calibrant.estimators import BinnedState
from calibrant.io import Batches

polars = pytest.importorskip("polars")


@pytest.fixture
def frame(rng):
    p = rng.random(1000)
    y = (rng.random(1000) < p).astype(int)
    return polars.DataFrame({"id": np.arange(1000), "y": y, "p": p, "w": rng.random(1000), "site": ["a", "b"] * 500})


@pytest.fixture(params=["csv", "jsonl", "parquet"])
def path(request, frame, tmp_path):
    path = tmp_path / f"x.{request.param}"
    {"csv": frame.write_csv, "jsonl": frame.write_ndjson, "parquet": frame.write_parquet}[request.param](path)
    return path


@pytest.mark.parametrize("rows", [1, 333, 1000, 5000])
def test_batches_are_the_file(path, rows):
    names = {"y_true": "y", "y_pred": "p", "by": ["site"], "sample_weight": "w"}
    whole, parts = io.read(path, **names), list(Batches(path, rows=rows, **names))
    assert [part.start for part in parts] == np.cumsum([0, *(len(part.y_true) for part in parts[:-1])]).tolist()
    assert max(len(part.y_true) for part in parts) <= rows
    assert np.concatenate([part.y_true for part in parts]).tolist() == whole.y_true.tolist()
    assert (
        np.concatenate([part.y_pred.probability(1) for part in parts]).tolist() == whole.y_pred.probability(1).tolist()
    )
    assert np.concatenate([part.sample_weight for part in parts]).tolist() == whole.sample_weight.tolist()
    assert np.concatenate([part.by["site"] for part in parts]).tolist() == whole.by["site"].tolist()
    assert parts[0].source == whole.source


def test_a_state_takes_them(path):
    state = BinnedState()
    for batch in Batches(path, rows=100):
        state = state.update(batch.y_true, batch.y_pred)
    whole = io.read(path)
    assert state.finalize().value == ECE()(whole.y_true, whole.y_pred).value


def test_families_and_classes(tmp_path):
    (tmp_path / "x.csv").write_text("y,mu,s,p_a,p_b\n1.5,1,2,0.2,0.8\n2,1,2.5,0.3,0.7\n")
    (batch,) = Batches(tmp_path / "x.csv", predict="Normal(mu, scale=s)")
    assert batch.y_pred.scale.tolist() == [2, 2.5]
    (tmp_path / "z.csv").write_text("y_a,y_b,p_a,p_b\n1,0,0.2,0.8\n0,0,0.3,0.7\n")
    (batch,) = Batches(tmp_path / "z.csv", y_true="y_*", y_pred="p_*")
    assert isinstance(batch.y_pred, Bernoulli)


def lines(*records):
    return BytesIO(b"".join((r if isinstance(r, bytes) else json.dumps(r).encode()) + b"\n" for r in records))


def test_a_line_that_is_not_json_is_counted_and_named():
    source = [{"y": 1, "p": 0.5}, b"what?", {"y": 0}, {"y": 0, "p": 0.2}, b"", b"[1]"]
    batches = Batches(lines(*source))
    (batch,) = batches
    assert batch.y_true.tolist() == [1, 0]
    assert batches.bad.count == 3
    assert str(batches.bad) == (
        "3 lines could not be used: line 2 is not JSON: 'what?'; line 3 is without 'p'; line 6 is not a JSON object: '[1]'"
    )


def test_strict_fails_at_the_line():
    with pytest.raises(InputError, match=r"the stream: 1 line could not be used: line 2 is not JSON: 'what\?'"):
        list(Batches(lines({"y": 1, "p": 0.5}, b"what?"), strict=True))


def test_a_stream_that_begins_with_garbage():
    batches = Batches(lines(b"hello", {"y": 1, "p": 0.5}), kind="jsonl")
    assert [len(batch.y_true) for batch in batches] == [1]
    assert batches.bad.first == [(1, "not JSON: 'hello'")]


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (lines(), {}, "the stream has no rows"),
        (lines(b"?", b"!"), {"kind": "jsonl"}, r"the stream has no rows of use: 2 lines could not be used: line 1 is"),
        (lines(b"y,p"), {}, "the stream has no rows"),
        (lines(b"y,q", b"1,0.5"), {}, "say which with y_pred"),
        (lines(b"y,p", b"1,1.5"), {}, r"the stream, rows from 0: y_pred must lie in \[0, 1\]; found 1.5"),
        (lines(b"y,p", b"no,0.5"), {"pos_label": "yes"}, "pos_label 'yes' never occurs in 1 row"),
        (lines(b"y,p", b"no,0.5"), {}, "say which one the probability is of, pos_label='no'"),
        ("nowhere.csv", {}, "there is no file 'nowhere.csv'"),
        (Path(__file__), {}, r"batches are read from \.csv, .*; io.read takes more kinds"),
        (StringIO("y,p"), {}, "source gives text: open it in binary mode"),
        (lines(), {"rows": 0}, "rows must be a whole number of at least 1; got 0"),
        (lines(), {"flush": 0}, "flush must be a positive number of seconds; got 0"),
    ],
)
def test_what_is_refused(source, options, message):
    with pytest.raises(InputError, match=message):
        list(Batches(source, **options))


def test_the_positive_label_may_be_missing_in_a_batch():
    text = lines(b"y,p", *[b"no,0.5"] * 5, b"yes,0.9")
    assert [batch.y_true.tolist() for batch in Batches(text, rows=2, pos_label="yes")] == [[0, 0], [0, 0], [0, 1]]


WRITER = """
import sys, time
for i in range(4):
    print('{"y": 1, "p": 0.%d}' % i, flush=True)
    time.sleep(0.4)
"""


def test_a_slow_pipe_gives_what_it_has():
    with subprocess.Popen([sys.executable, "-c", WRITER], stdout=subprocess.PIPE) as process:
        batches = Batches(process.stdout, rows=1000, flush=0.05)
        found = [(batch.y_pred.probability(1), time.monotonic()) for batch in batches]
    assert np.concatenate([values for values, _ in found]).tolist() == [0.0, 0.1, 0.2, 0.3]
    assert len(found) >= 3
    assert found[0][1] < found[-1][1] - 0.6


def test_a_fast_pipe_gives_batches_of_at_most_so_many_rows():
    source = lines(*({"y": i % 2, "p": i / 1000} for i in range(1000)))
    sizes = [len(batch.y_true) for batch in Batches(source, rows=64)]
    assert sum(sizes) == 1000
    assert max(sizes) <= 64


def test_text_that_wraps_bytes_is_unwrapped():
    assert [len(batch.y_true) for batch in Batches(TextIOWrapper(lines(b"y,p", b"1,0.5")))] == [1]


def test_a_broken_parquet_file_is_refused_in_our_words(tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(InputError, match=r"x\.parquet cannot be read"):
        list(Batches(tmp_path / "x.parquet"))


def test_missing_values_of_parquet_are_refused(tmp_path):
    polars.DataFrame({"y": [1, None], "p": [0.5, 0.5]}).write_parquet(tmp_path / "x.parquet")
    with pytest.raises(InputError, match=r"column 'y' has missing values"):
        list(Batches(tmp_path / "x.parquet", strict=True))
    batches = Batches(tmp_path / "x.parquet")
    assert [batch.y_true.tolist() for batch in batches] == [[1]]
    assert str(batches.bad).startswith("1 row could not be used: row 2 is refused: ")


def test_a_pipe_that_ends_in_the_middle_of_a_line():
    batches = Batches(BytesIO(b'{"y": 1, "p": 0.5}\n{"y": 0, "p": 0.'))
    assert [batch.y_true.tolist() for batch in batches] == [[1]]
    assert batches.bad.first == [(2, 'not JSON: \'{"y": 0, "p": 0.\'')]


PEAK = """
import sys
from pathlib import Path
from calibrant.io import Batches
n = sum(len(batch.y_true) for batch in Batches(sys.argv[1]))
print(n, *(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks of memory are read where Linux has them")
def test_memory_does_not_grow_with_the_file(tmp_path):
    peaks = []
    for n in (2_000_000, 8_000_000):
        path = tmp_path / "x.csv"
        path.write_bytes(b"y,p\n" + b"1,0.123456\n0,0.654321\n" * (n // 2))
        output = subprocess.run([sys.executable, "-c", PEAK, path], capture_output=True, check=True).stdout
        rows, peak = map(int, output.split())
        assert rows == n
        peaks.append(peak)
    assert peaks[1] < peaks[0] + 50_000  # kilobytes; the rows themselves take 96,000 more, and their text 66,000


def test_some_rows_of_a_parquet_file(frame, tmp_path):
    frame.write_parquet(tmp_path / "x.parquet", row_group_size=64)
    batches = Batches(tmp_path / "x.parquet", y_true="y", y_pred="p", rows=100)
    found = list(batches.between(130, 351))
    assert [batch.start for batch in found] == [130, 230, 330]
    assert np.concatenate([batch.y_true for batch in found]).tolist() == frame["y"][130:351].to_list()
    assert list(batches.between(1000, 1010)) == []


def test_fields_that_a_record_has_twice_are_told():
    lines = b'{"y": 1, "p": 0.8}\n{"y": 0, "p": 0.3, "p": 0.9}\n'
    batches = Batches(BytesIO(lines))
    assert [batch.y_true.tolist() for batch in batches] == [[1]]
    assert "line 2 is a record with 'p' twice" in str(batches.bad)
    with pytest.raises(InputError, match="line 2 is a record with 'p' twice"):
        list(Batches(BytesIO(lines), strict=True))
    with pytest.raises(InputError, match="has 2 columns called 'p': give each column a name of its own"):
        list(Batches(BytesIO(b"y,p,p\n1,0.2,0.9\n")))


def test_a_number_is_no_source():
    with pytest.raises(InputError, match="source must be a path or an open file; got a int"):
        Batches(5)


def test_strict_takes_nothing_where_the_first_row_is_refused(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("y,p\n" + "1,0.5\n" * 4 + "1,7\n" + "0,0.5\n" * 3)
    batches = iter(Batches(path, rows=4, strict=True))
    assert next(batches).y_true.tolist() == [1, 1, 1, 1]
    with pytest.raises(InputError, match="refused"):
        next(batches)


def test_a_part_of_a_table_that_cannot_be_used_says_where(tmp_path):
    polars.DataFrame({"y": [1, 0, 1, 0], "p": [0.5, 0.5, 7.0, 0.5]}).write_parquet(tmp_path / "x.parquet")
    batches = Batches(tmp_path / "x.parquet", rows=2).between(0, 4)
    assert next(batches).y_true.tolist() == [1, 0]
    with pytest.raises(InputError, match=r"x.parquet, rows from 2: .*7"):
        next(batches)
