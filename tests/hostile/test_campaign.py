"""Whatever comes: a result, or one line that says why not; nothing is lost, changed or left behind."""

import json
import random
import sys
import time

import pytest

pytest.importorskip("cyclopts")
pytest.importorskip("polars")
pytest.importorskip("matplotlib").use("agg")

from tests.hostile.campaign import CAMPAIGNS, Tally  # noqa: E402  # which need these
from tests.hostile.commands import Ended, TooSlow, limited  # noqa: E402
from tests.hostile.saved import monitors  # noqa: E402
from tests.hostile.values import tampered  # noqa: E402

FEW = {"files": 220, "words": 100, "saved": 700, "saved by commands": 60, "calls": 1000}
"""Cases of the ordinary suite, some half a minute together."""

MANY = {"files": 4000, "words": 1500, "saved": 12_000, "saved by commands": 2000, "calls": 15_000}
"""Cases of each part of the long run, some minutes each."""


def check(found):
    print(f"\n{found}", *found.faults, sep="\n\n", flush=True)
    assert not found.faults, "\n\n".join(found.faults[:20])


@pytest.mark.parametrize("name", FEW)
def test_some(name, tmp_path):
    check(CAMPAIGNS[name](20_240_611, FEW[name], tmp_path))


@pytest.mark.study
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", MANY)
def test_many(name, seed, tmp_path):
    check(CAMPAIGNS[name](seed, MANY[name], tmp_path))


@pytest.mark.parametrize(
    ("ended", "fault"),
    [
        (Ended((), 70, "", "Traceback", 0.0), "code 70"),
        (Ended((), 0, "", "x.py: RuntimeWarning", 0.0), "a traceback or warning"),
        (Ended((), 0, "\x1b[31m", "", 0.0), "control characters"),
        (Ended((), 2, "", "calibrant: a\ncalibrant: b\n", 0.0), "not one line of why"),
        (Ended((), 2, "", "", 0.0), "not one line of why"),
        (Ended((), 0, "", "calibrant: a\n", 0.0), "not one line of why"),
        (Ended((), 2, "", f"calibrant: {'x' * 300}\n", 0.0), "a long word"),
    ],
)
def test_what_is_wrong_is_seen(ended, fault):
    assert fault in ended.faults()


def test_what_is_right_is_no_fault():
    assert not Ended((), 2, "", "Note: y.\ncalibrant: there is no file 'x'\n", 0.0).faults()


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")
def test_work_without_an_end_is_stopped_and_so_is_a_wait():
    with pytest.raises(TooSlow), limited(0.05):
        sum(iter(lambda: 1, 0))  # for ever
    with pytest.raises(TooSlow), limited(20, 0.05):
        time.sleep(5)


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX")
def test_a_processor_that_others_use_is_no_fault():
    with limited(0.05, 20):
        time.sleep(0.2)


def test_every_campaign_has_its_cases():
    assert set(FEW) == set(MANY) == set(CAMPAIGNS)


def test_faults_are_counted_apart():
    tally = Tally()
    tally.add("csv", "refused")
    tally.add("csv", "result", "changed")
    assert tally.counts == {("csv", "refused"): 1, ("csv", "FAULT"): 1}
    assert tally.faults == ["csv: changed"]
    assert "all 2" in str(tally)


def test_tampering_changes_one_place():
    for seed, (_, text) in enumerate(monitors() * 5):
        data = json.loads(text)
        assert tampered(data, random.Random(seed)) != data or seed
        assert data == json.loads(text)
