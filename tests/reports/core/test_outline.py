from calibrant.reports.core.model import Outline, Step


def test_steps_are_named_in_order():
    parts = [(Step("a"), lambda evidence: evidence), (Step("b"), lambda evidence: evidence)]
    outline = Outline("", (Step("resamples"), lambda: 1), parts, parts[:1], parts, lambda *parts: None, list)
    assert outline.steps == ["resamples", "a", "b", "a", "a", "b"]
