import json

import pytest

from calibrant import InputError, Monitor
from calibrant.monitoring.saved_state import SavedState


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda s: s.whole("missing"), r"^state has no field 'missing'"),
        (lambda s: s.whole("text"), r"^state\.text must be a whole number from 0 to \d+; got 'abc'"),
        (lambda s: s.whole("long"), "got a number of 1,329 bits"),
        (lambda s: s.number("long"), "must be a number; got a number of 1,329 bits"),
        (lambda s: s.number("true"), "must be a number; got True"),
        (lambda s: s.text("text", "x", "y"), "must be one of x, y; got 'abc'"),
        (lambda s: s.list("text"), "must be a list; got 'abc'"),
        (lambda s: s.rows("rows", 2), "must be rows of 2 numbers"),
        (lambda s: s.part("text"), r"^state\.text must be an object of named fields; got 'abc'"),
        (lambda s: s.part("part").whole("n", most=3), r"^state\.part\.n must be a whole number from 0 to 3; got 7"),
        (lambda s: s.text("ugly", "x"), r"got '.x1b\[31m"),
    ],
)
def test_what_is_refused(read, message):
    data = {"text": "abc", "long": 10**400, "true": True, "rows": [[1, 2], [3]], "part": {"n": 7}, "ugly": "\x1b[31m"}
    with pytest.raises(InputError, match=message):
        read(SavedState(data, "state"))


def test_what_is_read():
    saved = SavedState({"none": None, "rows": [], "inf": "inf", "wholes": [1, 2]}, "state")
    assert saved.part("none") is None
    assert saved.rows("rows", 3).shape == (0, 3)
    assert saved.number("inf") == float("inf")
    assert saved.wholes("wholes", 1, 2).tolist() == [1, 2]


def test_a_history_without_its_evidence_is_refused(rng):
    p = rng.random(200)
    saved = json.loads(json.dumps(Monitor().update((rng.random(200) < p) * 1, p).to_dict()))
    for part in ("windows", "evidence"):
        broken = json.loads(json.dumps(saved))
        broken["history"][part] = None
        with pytest.raises(InputError, match="windows"):
            Monitor.from_dict(broken)
