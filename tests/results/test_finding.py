import json

import pytest

from calibrant.results import Finding


def test_findings_are_plain_texts_to_programs():
    assert Finding.TOO_HIGH == "too high"
    assert {"slice": 2.0}[Finding.SLICE] == 2.0
    assert json.dumps(list(Finding)[:3]) == '["none", "too few rows", "over-confident"]'
    assert repr(Finding.CLASS) == "'class'"
    with pytest.raises(ValueError, match="too much"):
        Finding("too much")


def test_what_kind_of_finding_it_is():
    assert [finding for finding in Finding if not finding.is_alarm] == ["none", "too few rows"]
    assert [finding for finding in Finding if finding.is_of_confidence] == ["over-confident", "under-confident"]
    assert [finding for finding in Finding if finding.is_of_height] == ["too high", "too low"]
