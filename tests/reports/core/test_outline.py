from calibrant.reports.core.model import Outline, Step


def test_steps_are_named_in_order():
    parts = [(Step("a"), lambda evidence: evidence), (Step("b"), lambda evidence: evidence)]
    outline = Outline("", (Step("redraws"), lambda: 1), parts, parts[:1], parts, lambda *parts: None, list)
    assert outline.steps == ["redraws", "a", "b", "a", "a", "b"]
