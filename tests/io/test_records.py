import json

import pytest

from calibrant.io.records import BadLines, CsvLines, JsonLines, Needed, fault_of, split_header

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
    b'{"y": {"a": 1}, "p": 0.2}': "without one value 'y'",
    b"[" * 100_000: "not JSON",
}


@pytest.mark.parametrize("line", FAULTS, ids=lambda line: line[:20])
def test_faults_of_json(line):
    bad = BadLines()
    good = b'{"y": 1, "p": 0.25, "id": NaN}'
    text = JsonLines().sift(b"\n".join([good, b"", line, good]), NEEDED, 10, bad)
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
    text = CsvLines(("y", "p", "note")).sift(b"\n".join([good, b"", line, good]), NEEDED, 2, bad)
    assert text == b"\n".join([good, good, b""])
    assert bad.first[0][0] == 5
    assert bad.first[0][1].startswith(fault)


def test_records_without_fault():
    assert fault_of({"y": 0, "p": "0.5"}, NEEDED) == ""
    assert fault_of({"y": False, "p": 0}, NEEDED) == ""


def test_truth_and_falsehood_are_numbers():
    assert json.loads(JsonLines().kept(b"", {"y": True, "p": "1e-3", "x": 1}, NEEDED)) == {"y": 1, "p": 1e-3}


def test_names_of_json_are_those_of_all_first_records():
    assert JsonLines().names(b'?\n{"y": 1}\n{"p": 2, "y": 0}\n') == ["y", "p"]


def test_only_the_first_bad_lines_are_remembered():
    bad = BadLines()
    for line in range(1000):
        bad.add(line, "not JSON")
    assert str(bad).startswith("1,000 lines could not be used: line 0 is not JSON; line 1")
    assert str(bad).endswith("line 4 is not JSON; …")


def test_a_header_may_have_quotes_and_a_mark():
    names, header, rest = split_header(b'\xef\xbb\xbfy,"p\nq"\n1,2\n')
    assert (names, rest) == (["y", "p\nq"], b"1,2\n")
    assert header.endswith(b'q"\n')
