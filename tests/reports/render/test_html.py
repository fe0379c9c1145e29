import json
import sys
import unicodedata

import numpy as np
import pytest

from calibrant import InputError, evaluate
from calibrant.reports.render.html import DRAWINGS, Column, json_for_script, rendered, shortened, visible


def test_every_control_character_becomes_visible():
    for code in [*range(0x20), *range(0x7F, 0xA0), 0x202E, 0x2066, 0xD800, 0xDFFF]:
        shown = visible(chr(code))
        if chr(code) in "\t\n":
            assert shown == chr(code)
        else:
            assert unicodedata.category(shown) == "So"  # symbols: ␀ and the like, or �
    assert visible("\x00\x1f\x7f") == "␀␟␡"


def test_letters_of_all_scripts_stay_as_they_are():
    for text in ("naïve", "שלום", "مرحبا", "日本語", "🙂👩‍👩‍👧", "a\nb\tc"):
        assert visible(text) == text


@pytest.mark.parametrize("most", [1, 2, 80])
def test_shortened_keeps_both_ends_and_counts_the_rest(most):
    text = "".join(chr(0x4E00 + i) for i in range(1000))
    shown = shortened(text, most)
    head, said, tail = shown.split(" … ")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) == most
    assert said == f"{1000 - most:,} more"
    assert shortened(text[:most], most) == text[:most]


def test_json_cannot_leave_its_script_element():
    title = "</script><!--<script> & \u2028 \ud800 🙂"
    report = evaluate([0, 1], [0.4, 0.6], title=title, n_resamples=99, by={title: np.array(["]]>", "a"])})
    text = json_for_script(report)
    assert not set(text) & set("<>&\u2028\u2029")
    text.encode("utf-8")
    assert json.loads(text)["title"] == title


@pytest.mark.parametrize("kind", DRAWINGS)
def test_words_of_a_legend_stand_beside_known_marks(kind):
    for mark, words in DRAWINGS[kind].legend:
        assert mark in ("dot", "diamond", "band", "line", "dashed", "bar")
        assert words


def test_texts_of_numbers_are_not_broken_and_words_are():
    for texts, style in (
        (("-0.0003", "4.97 %", "", "0.0 % to 8.34 %", "-1.3e-05 to 2"), "figures"),
        (("to 3", "logistic"), ""),
    ):
        assert Column("value", is_number=False, texts=texts, keys=texts).style == style


def test_pages_say_what_they_need(monkeypatch):
    monkeypatch.setitem(sys.modules, "markupsafe", None)
    with pytest.raises(InputError, match=r"the page needs markupsafe: pip install 'calibrant\[cli\]'"):
        rendered("page.html.jinja", None)
