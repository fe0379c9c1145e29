"""Pages on paper: light, with all that can be unfolded, and with nothing cut in two."""

import re
from collections import defaultdict

WHOLE = "figure, .number-card, #verdict, tbody tr, pre"
"""What must not be cut."""

MARKS = """(all) => all.forEach((part, i) => {
    const [first, last] = part.tagName === "TR" ? [part.cells[0], part.cells[part.cells.length - 1]] : [part, part];
    [[first, "prepend", "top"], [last, "append", "bottom"]].forEach(([place, put, end]) => {
        const link = document.createElement("a");
        link.href = `https://${end}.invalid/${i}`;
        link.textContent = "x";
        link.style = "font-size: 1px; line-height: 1px; display: block";
        place[put](link);
    });
})"""
"""Links at both ends of every such part: a PDF says on which sheet a link is."""


def sheets_of_links(pdf):
    """On which sheets each address is linked."""
    text = pdf.decode("latin-1")
    objects = dict(re.findall(r"(?:^|\n)(\d+) 0 obj\n?(.*?)\nendobj", text, re.DOTALL))
    pages = [body for body in objects.values() if re.search(r"/Type /Page\b(?!s)", body)]
    found = defaultdict(set)
    for sheet, page in enumerate(pages):
        annotations = re.search(r"/Annots \[([^\]]*)\]", page)
        for number in re.findall(r"(\d+) 0 R", annotations[1]) if annotations else []:
            address = re.search(r"/URI \((https://[^)]*)\)", objects[number])
            if address:
                found[address[1]].add(sheet)
    return found, len(pages)


def test_nothing_is_cut_in_two(opened, kind):
    with opened(kind) as page:
        parts = page.locator(WHOLE)
        parts.evaluate_all(MARKS)
        links, sheets = sheets_of_links(page.pdf(prefer_css_page_size=True))
        assert sheets >= 2
        assert len(links) == 2 * parts.count()
        for i in range(parts.count()):
            ends = links[f"https://top.invalid/{i}"] | links[f"https://bottom.invalid/{i}"]
            assert len(ends) == 1, parts.nth(i).evaluate("part => part.outerHTML.slice(0, 200)")


def test_a_chart_that_may_be_cut_is_found(opened):
    """The test above sees cuts: without the rule, and pushed to the foot of a sheet, there is one."""
    with opened("numbers") as page:
        page.add_style_tag(content="* { break-inside: auto !important } figure { margin-top: 400px !important }")
        parts = page.locator(WHOLE)
        parts.evaluate_all(MARKS)
        links, _ = sheets_of_links(page.pdf(prefer_css_page_size=True))
        assert any(
            links[f"https://top.invalid/{i}"] != links[f"https://bottom.invalid/{i}"] for i in range(parts.count())
        )


def test_paper_is_light_and_unfolded(opened):
    with opened("multi-class", color_scheme="dark") as page:
        page.locator("#theme").click(click_count=2)
        assert page.locator("html").get_attribute("data-theme") == "dark"
        dark = page.evaluate("getComputedStyle(document.body).color")
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate("getComputedStyle(document.body).color") != dark
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.locator(".number-card p").first.is_visible()
        assert page.locator("#methods .settings").is_visible()
        assert not page.locator("nav").is_visible()
        assert not page.locator("#theme").is_visible()
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("details[open]").count() == 0
