import csv
import json
from io import StringIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import InputError
from calibrant.io.records import (
    NO_TEXT,
    BadLines,
    CsvLines,
    JsonLines,
    Needed,
    _outside_quotes,
    check_text,
    deep_line,
    fault_of,
    split_header,
)

NEEDED = Needed(("y", "p"), frozenset({"p"}))

FAULTS = {
    b"what?": "not JSON: 'what?'",
    b'{"p": 0.3, "y": 1': "not JSON",
    b'{"p": 0.3, "y": 1}{': "not JSON",
    b"123": "not a JSON object: '123'",
    b"[1, 2]": "not a JSON object",
    b"null": "not a JSON object",
    b"\xff\xfe": "not JSON",
    b'{"p": 0.3}': "without 'y'",
    b'{"y": 1, "p": null}': "without 'p'",
    b'{"y": NaN, "p": 0.3}': "without 'y'",
    b'{"y": 1, "p": NaN}': "without 'p'",
    b'{"y": 1, "p": "high"}': "without a number 'p': 'high'",
    b'{"y": 1, "p": true}': "without a number 'p': True",
    b'{"y": 1, "p": [0.2]}': "without a number 'p'",
    b'{"y": [1], "p": 0.2}': "without one value 'y'",
    b'{"y": {"a": 1}, "p": 0.2}': "without 'y'",
    b"[" * 100_000: "not JSON",
}


@pytest.mark.parametrize("line", FAULTS, ids=lambda line: line[:20])
def test_faults_of_json(line):
    bad = BadLines()
    good = b'{"y": 1, "p": 0.25, "id": NaN}'
    text, lines = JsonLines().sift(b"\n".join([good, b"", line, good]), NEEDED, 10, bad)
    assert lines == [10, 13]
    assert [json.loads(part) for part in text.splitlines()] == [{"y": 1, "p": 0.25}] * 2
    assert bad.count == 1
    assert bad.first[0][0] == 12
    assert bad.first[0][1].startswith(FAULTS[line])


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"1", "not a row of 3 values, but of 1: '1'"),
        (b"1,0.5,a,b", "not a row of 3 values, but of 4"),
        (b"1,,a", "without 'p'"),
        (b"nan,0.5,a", "without 'y'"),
        (b"1,high,a", "without a number 'p': 'high'"),
    ],
)
def test_faults_of_csv(line, fault):
    bad = BadLines()
    good = b'0,0.5,"two\nlines"'
    text, lines = CsvLines(("y", "p", "note")).sift(b"\n".join([good, b"", line, good]), NEEDED, 2, bad)
    assert (text, lines) == (b"y,p\n0,0.5\n0,0.5\n", [2, 6])
    assert bad.first[0][0] == 5
    assert bad.first[0][1].startswith(fault)


def test_a_quote_that_is_not_closed_takes_no_lines_in_silence():
    bad = BadLines()
    text, lines = CsvLines(("y", "p", "note")).sift(b'1,0.5,"x\n0,0.5,y\n1,0.7,z\n', NEEDED, 2, bad)
    assert (text, lines, bad.count) == (b"", [], 1)
    assert bad.first[0][1].startswith("not CSV, unexpected end of data")


def test_records_without_fault():
    assert fault_of({"y": 0, "p": "0.5"}, NEEDED) == ""
    assert fault_of({"y": False, "p": 0}, NEEDED) == ""


def test_truth_and_falsehood_are_numbers():
    assert json.loads(JsonLines().written([{"y": True, "p": "1e-3", "x": 1}], NEEDED)) == {"y": 1, "p": 1e-3}


def test_names_of_json_are_those_of_all_first_records():
    assert JsonLines().names(b'?\n{"y": 1}\n{"p": 2, "y": 0}\n') == ["y", "p"]


def test_only_the_first_bad_lines_are_remembered():
    bad = BadLines()
    for line in range(1000):
        bad.add(line, "not JSON")
    assert str(bad).startswith("1,000 lines could not be used: line 0 is not JSON; line 1")
    assert str(bad).endswith("line 4 is not JSON; …")


def test_a_header_may_have_quotes_and_a_mark():
    assert split_header(b'\xef\xbb\xbfy,"p\nq"\n1,2\n', "x") == (["y", "p\nq"], b"1,2\n")
    assert split_header(b"y,p", "x") == (["y", "p"], b"")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"y,p\r1,0.5\r", "a carriage return within a line"),
        (b'y,"%s"\n' % (b"x" * 200_000), "field larger than field limit"),
        (b"y,\xff\n", "not UTF-8, '.udcff'"),
    ],
)
def test_headers_that_are_none(text, message):
    with pytest.raises(InputError, match=message):
        split_header(text, "x.csv")


@pytest.mark.parametrize(
    "text",
    [
        b"1,0.5,7\n0\n",
        b"1,0.5\r0,0.3\r\n",
        b'1,"0.5\n0,0.3\n',
        b'1,a"b\n0,c"d\n',
        b'1,"a"b\n0,0.3\n',
        b'1,"a" \n0,"b"\n',
        b"1,0.5\n\n0,0.5\n",
        b"1,0.5,\n",
    ],
)
def test_rows_that_a_fast_reader_would_not_read_as_written(text):
    assert not CsvLines(("y", "p")).is_plain(text)


@pytest.mark.parametrize(
    "text", [b"1,0.5\n0,0.3", b"1,0.5\r\n", b'"1","0,5"\r\n"a""b","c\nd"\n', b'"",""\n""""," "\n', b",\n,\n"]
)
def test_rows_that_it_would(text):
    assert CsvLines(("y", "p")).is_plain(text)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet='a,"\n\r', max_size=24))
def test_it_is_never_wrong(text):
    """Where the quick look finds a table, so does the reader of the standard library."""
    if CsvLines(("y", "p")).is_plain(text.encode()) and text:
        assert {len(row) for row in csv.reader(StringIO(text, newline=""))} == {2}


@pytest.mark.parametrize("value", [2**63, -(2**64), 10**400, "9223372036854775808", "-1" + "0" * 5000])
def test_integers_beyond_64_bits(value):
    assert "beyond 64 bits" in fault_of({"y": value, "p": 0.5}, NEEDED)


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63) + 1, "9223372036854775807", "0" * 30 + "7", "1e30"])
def test_integers_of_64_bits(value):
    assert fault_of({"y": value, "p": 0.5}, NEEDED) == ""


def test_half_a_character_is_no_text():
    line = b'{"y": "\\ud83d", "p": 0.5}'
    assert not JsonLines().is_plain(line, ["y", "p"])
    assert "without text that UTF-8 has, 'y'" in fault_of(json.loads(line), NEEDED)
    assert fault_of(json.loads(b'{"y": "\\ud83d\\ude00", "p": 0.5}'), NEEDED) == ""


@pytest.mark.parametrize("head", [*NO_TEXT, b"y,p\n1,0\0"])
def test_what_is_no_text(head):
    with pytest.raises(InputError, match=r"^x\.csv (is|holds)"):
        check_text(head + b"...", "x.csv")


@settings(max_examples=300, deadline=None)
@given(st.text('"",\na', max_size=14))
def test_marks_outside_of_quotes_are_those_that_csv_sees(text):
    outside = _outside_quotes(text.encode()) if '"' in text else None
    if outside is None:
        return  # where it is not sure, the rows are looked at one by one
    rows = list(csv.reader(StringIO(text, newline=""), strict=True))
    ends = outside.decode() + ("" if text.endswith("\n") else "\n")
    assert [max(len(row), 1) for row in rows] == [line.count(",") + 1 for line in ends.split("\n")[:-1]]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b"[" * 101, 0),
        (b"\n" * 500 + b"[" * 101 + b"]" * 101, 500),
        (b'{"p": ' * 101 + b"1" + b"}" * 101 + b"\n{}", 0),
        (b"{}\n" + b"[[], " * 101, 1),
        (b"[" * 100 + b"]" * 100, None),
        (b"[[1], [2]], " * 1000, None),
        (b'{"text": "' + rb"\"[{" * 1000 + b'"}', None),
        (b'{"\\\\": ' + b"[" * 200, 0),
        (b"", None),
    ],
)
def test_lines_that_nest_deeper_than_fast_readers_stand(text, place):
    assert deep_line(text) == place
    assert JsonLines().is_plain(text, []) is (place is None)


def test_long_integers_are_told_where_a_fast_reader_says_nothing():
    text = b'{"y": 9223372036854775808, "p": 0.5}\n{"y": 1, "p": 0.5}\n'
    JsonLines().check(text, ["y"], 1, "x")
    JsonLines().check(text, ["p"], 1, "x", is_doubted=True)
    for names in (["y"], None):
        with pytest.raises(
            InputError, match="x: line 1 is one with an integer beyond 64 bits, 'y': 9223372036854775808"
        ):
            JsonLines().check(text, names, 1, "x", is_doubted=True)
