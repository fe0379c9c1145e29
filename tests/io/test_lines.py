import os
import time
from io import BytesIO
from threading import Thread

import pytest

from calibrant._validate import InputError
from calibrant.io import lines as _lines
from calibrant.io.lines import line_feeds, looks_like_csv, whole_lines


@pytest.mark.parametrize("flush", [None, 1.0])
@pytest.mark.parametrize("block", [1, 2, 7, 100])
@pytest.mark.parametrize("text", [b"", b"a", b"a\n", b"\n\n", b"one\ntwo\nthree", b"one\n\ntwo\n"])
def test_blocks_are_the_text(text, block, flush, monkeypatch):
    monkeypatch.setattr(_lines, "BLOCK", block)
    monkeypatch.setattr(_lines, "READ", block)
    blocks = list(whole_lines(BytesIO(text), rows=2, flush=flush, is_csv=True))
    assert b"".join(blocks) == text
    assert all(blocks)
    assert all(part.endswith(b"\n") for part in blocks[:-1])


@pytest.mark.parametrize("block", [1, 3, 1000])
def test_line_feeds_between_quotes_end_no_line(block, monkeypatch):
    monkeypatch.setattr(_lines, "BLOCK", block)
    text = b'y,p\n1,"a\nb"\n0,"say ""c\n"""\n'
    blocks = list(whole_lines(BytesIO(text), rows=1, flush=None, is_csv=True))
    assert b"".join(blocks) == text
    assert all(part.count(b'"') % 2 == 0 for part in blocks)


def test_quotes_of_json_are_no_matter(monkeypatch):
    monkeypatch.setattr(_lines, "BLOCK", 5)
    text = b'{"p": "\\""}\n{"p": 1}\n'
    assert list(whole_lines(BytesIO(text), rows=1, flush=None, is_csv=None)) == [b'{"p": "\\""}\n', b'{"p": 1}\n']


def test_a_quote_that_never_ends_is_refused(monkeypatch):
    monkeypatch.setattr(_lines, "BLOCK", 10)
    monkeypatch.setattr(_lines, "MAX_LINE_BYTES", 100)
    with pytest.raises(InputError, match="a line has more than 100 bytes: is a quote not closed"):
        list(whole_lines(BytesIO(b'y,p\n1,"' + b"a\n" * 200), rows=10, flush=None, is_csv=True))


@pytest.mark.parametrize(("text", "answer"), [(b"y,p\n", True), (b' \n{"p": 1}', False), (b"\xef\xbb\xbf{}", False)])
def test_what_a_text_is(text, answer):
    assert looks_like_csv(text) == answer


def test_a_slow_pipe_is_not_waited_for():
    reading, writing = os.pipe()

    def write():
        with os.fdopen(writing, "wb", buffering=0) as pipe:
            for line in (b"one\ntw", b"o\n", b"three\n"):
                pipe.write(line)
                time.sleep(0.5)

    with os.fdopen(reading, "rb") as pipe:
        Thread(target=write, daemon=True).start()
        start, blocks = time.monotonic(), whole_lines(pipe, rows=1000, flush=0.1, is_csv=True)
        found = [(block, time.monotonic() - start) for block in blocks]
    assert [block for block, _ in found] == [b"one\n", b"two\n", b"three\n"]
    assert found[0][1] < 0.45  # before the second line was there


def test_errors_of_the_pipe_reach_the_reader():
    class Broken(BytesIO):
        def read1(self, size=-1):
            raise OSError("the pipe broke")

    with pytest.raises(OSError, match="the pipe broke"):
        list(whole_lines(Broken(), rows=1, flush=1.0, is_csv=True))


@pytest.mark.parametrize("text", [b"", b"\n", b"a\n\nb", b"\r\n" * 1000])
def test_line_feeds_are_counted(text):
    assert line_feeds(text) == text.count(b"\n")
