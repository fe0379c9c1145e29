from calibrant.reports.outline import Outline


def test_steps_are_named_in_order():
    parts = [("a", lambda evidence: evidence), ("b", lambda evidence: evidence)]
    outline = Outline("", ("redraws", lambda: 1), parts, parts[:1], parts, lambda *parts: None, list)
    assert outline.steps == ["redraws", "a", "b", "a", "a", "b"]
