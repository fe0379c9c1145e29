"""Bytes that are broken as files are: cut, packed, in another alphabet, with bytes too many or too few."""

import bz2
import gzip
import io
import lzma
import random
import zipfile
from collections.abc import Callable


def _zipped(content: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("x.csv", content)
    return out.getvalue()


def _in_utf_16(content: bytes) -> bytes:
    return content.decode("utf-8", "replace").encode("utf-16")


WRAPPINGS: list[Callable[[bytes], bytes]] = [
    *(gzip.compress, bz2.compress, lzma.compress, _zipped, _in_utf_16),
    lambda content: content.decode("utf-8", "replace").encode("utf-16-le"),
    lambda content: content.decode("utf-8", "replace").encode("utf-32"),
    lambda content: b"\xef\xbb\xbf" + content,
    lambda content: b"\xef\xbb\xbf\xef\xbb\xbf" + content,
    lambda content: content.replace(b"\n", b"\r"),
    lambda content: content.replace(b"\n", b"\r\n"),
    lambda content: content.replace(b"\n", b"\n\n"),
    lambda content: content.replace(b",", b";"),
    lambda content: content.replace(b",", b"\t"),
    lambda content: b"",
    lambda content: b"\n" * 5,
    lambda content: b" ",
    lambda content: b"\0" * 100,
    lambda content: b"[" + content,
    lambda content: b"{" + content,
    lambda content: b'"' + content,
    lambda content: content + b'"',
    lambda content: content + content,
    lambda content: content.rstrip(b"\n"),
    lambda content: content[::-1],
]
"""What is done to a whole file."""

PIECES = [
    *(b"\0", b"\xff", b"\xc3", b"\x1b[31m", b'"', b"'", b",", b"\n", b"\r", b"\r\n", b"\xed\xa0\x80", b"{", b"}", b"["),
    *(b"nan", b"\\", b"\\ud800", b"\xef\xbb\xbf", b"#", b"1e999", b"9" * 400, b"\x1a", b":", b"\xe2\x80\xae", b"\t"),
]
"""Bytes that are put in."""


def damaged(content: bytes, chance: random.Random) -> tuple[str, bytes]:
    """Content that is broken in one way, and the name of the way."""
    way, place = chance.randrange(6), chance.randrange(len(content) + 1)
    if way == 0:
        return "wrapped", chance.choice(WRAPPINGS)(content)
    if way == 1:
        return "truncated", content[:place]
    if way == 2:
        return "inserted", content[:place] + chance.choice(PIECES) + content[place:]
    if way == 3:
        return "flipped", content[:place] + bytes([chance.randrange(256)]) + content[place + 1 :]
    other = chance.randrange(len(content) + 1)
    first, last = sorted((place, other))
    if way == 4:
        return "cut out", content[:first] + content[last:]
    return "repeated", content[:last] + content[first:]
