from calibrant.reports.outline import Outline


def test_steps_are_counted():
    parts = [("a", lambda evidence: evidence), ("b", lambda evidence: evidence)]
    outline = Outline("", ("redraws", lambda: 1), parts, parts[:1], parts, lambda *parts: None, list)
    assert outline.n_steps == 6
