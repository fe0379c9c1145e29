"""Pages for everybody: audited by axe-core in light and dark, and read on a phone."""

import pytest


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_audit_finds_nothing_serious(opened, axe, kind, scheme):
    with opened(kind, color_scheme=scheme) as page:
        page.locator("details").evaluate_all("all => all.forEach(details => { details.open = true; })")
        page.evaluate(axe)
        found = page.evaluate("axe.run({ resultTypes: ['violations'] }).then(result => result.violations)")
        serious = [v for v in found if v["impact"] in ("serious", "critical")]
        assert [(v["id"], v["help"], v["nodes"][0]["html"][:200]) for v in serious] == []


SIZES = """all => all.map(text => {
    const to = text.getScreenCTM();
    return parseFloat(getComputedStyle(text).fontSize) * Math.sqrt(Math.abs(to.a * to.d - to.b * to.c));
})"""
"""Heights of the letters of pictures, in pixels."""


def test_a_phone_needs_no_sideways_scrolling_and_shows_letters(opened, kind):
    with opened(kind, width=390, device_scale_factor=2, is_mobile=True, has_touch=True) as page:
        page.locator("details").evaluate_all("all => all.forEach(details => { details.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        outside = """all => all.filter(x => {
            const box = x.getBoundingClientRect();
            return box.width && (box.left < 0 || box.right > 390.5);
        }).map(x => x.outerHTML.slice(0, 120))"""
        assert page.locator(".card, header *, footer *, p, li, h2, h3, pre, dd").evaluate_all(outside) == []
        assert min(page.locator("figure svg text").evaluate_all(SIZES)) >= 8


def test_the_audit_sees_what_is_wrong(opened, axe):
    with opened("binary") as page:
        page.evaluate("document.documentElement.style.setProperty('--muted', '#ccc')")
        page.locator("#theme").evaluate("button => button.replaceChildren()")
        page.evaluate(axe)
        found = page.evaluate("axe.run().then(result => result.violations.map(violation => violation.id))")
        assert {"color-contrast", "button-name"} <= set(found)
