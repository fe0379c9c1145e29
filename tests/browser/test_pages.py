"""Pages as a reader meets them: what is there, what can be clicked, and that nothing leaves the page."""

import json

import pytest

KINDS = ["binary", "multi-class", "multi-label", "numbers", "counts", "vectors", "ensembles"]
PARTS = ["verdict", "numbers", "pictures", "slices", "advice", "notes", "methods"]


@pytest.mark.parametrize("kind", KINDS)
def test_all_parts_are_there_in_order(opened, kind):
    with opened(kind) as page:
        tops = [page.locator(f"#{part}").bounding_box()["y"] for part in PARTS]
        # numbers and the first picture may stand side by side
        assert sorted(tops) == tops
        assert page.locator("h1").inner_text()
        assert page.locator("figure svg").count() >= 1
        assert page.locator("nav a").evaluate_all("links => links.map(link => link.hash)") == [
            f"#{p}" for p in PARTS[1:]
        ]
        for i in range(page.locator("figure").count()):
            figure = page.locator("figure").nth(i)
            assert len(figure.locator("[role=img]").get_attribute("aria-label")) > 20
            assert figure.locator("figcaption").inner_text()


def test_recalibration_has_its_parts(opened):
    with opened("before-after") as page:
        tops = [
            page.locator(f"#{part}").bounding_box()["y"]
            for part in ("verdict", "numbers", "pictures", "notes", "methods")
        ]
        assert sorted(tops) == tops
        boxes = [page.locator("figure").nth(i).bounding_box() for i in (0, 1)]
        assert boxes[0]["y"] == boxes[1]["y"]


def test_a_comparison_has_its_parts(opened):
    with opened("comparison") as page:
        parts = ("verdict", "numbers", "differences", "pictures", "slices", "notes", "methods")
        tops = [page.locator(f"#{part}").bounding_box()["y"] for part in parts]
        assert sorted(tops) == tops


@pytest.mark.parametrize("kind", ["stream", "stream-of-forecasts", "hostile-stream"])
def test_a_watched_stream_has_its_parts(opened, kind):
    with opened(kind) as page:
        parts = ("verdict", "pictures", "notes", "methods")
        tops = [page.locator(f"#{part}").bounding_box()["y"] for part in parts]
        assert sorted(tops) == tops
        assert page.locator("figure svg").count() == 2
        assert page.locator("nav a").evaluate_all("links => links.map(link => link.hash)") == [
            f"#{p}" for p in parts[1:]
        ]


def column(page, heading):
    """The texts of the first table's column."""
    table = page.locator("table.sortable").first
    headings = table.locator("th").all_inner_texts()
    place = next(i for i, text in enumerate(headings) if text.strip() == heading)
    return [row.locator("td").nth(place).inner_text() for row in table.locator("tbody tr").all()]


def test_tables_sort_by_number_and_back(opened):
    with opened("multi-class") as page:
        before = column(page, "rows")
        button = page.locator("table.sortable").first.get_by_role("button", name="rows", exact=True)
        head = button.locator("xpath=..")
        orders, seen = [], []
        for press in (button.click, lambda: button.press("Enter"), lambda: button.press("Space")):
            press()
            orders.append(head.get_attribute("aria-sort"))
            seen.append(column(page, "rows"))
        assert orders == ["ascending", "descending", "none"]
        ascending = sorted(before, key=int)
        assert seen == [ascending, ascending[::-1], before]


def test_sorting_knows_numbers_from_names(opened):
    """As texts, 9.5 % comes after 10.2 % and 1,200 before 7; what is not known is last either way."""
    cells = {"9.5 %": "0.095", "10.2 %": "0.102", "∞": "inf", "": "nan", "-1e-05": "-1e-05"}
    with opened("binary") as page:
        table = page.locator("table.sortable").first
        rows = "".join(
            f'<tr><td data-key="row {i}">row {i}</td><td data-key="{k}">{t}</td></tr>'
            for i, (t, k) in enumerate(cells.items(), 8)
        )
        table.evaluate(
            """(table, rows) => {
                table.innerHTML = `<thead><tr><th>name</th><th class="number">x</th></tr></thead><tbody>${rows}</tbody>`;
                makeSortable(table);
            }""",
            rows,
        )
        page.get_by_role("button", name="x", exact=True).click()
        assert column(page, "x") == ["-1e-05", "9.5 %", "10.2 %", "∞", ""]
        page.get_by_role("button", name="x", exact=True).click()
        assert column(page, "x") == ["∞", "10.2 %", "9.5 %", "-1e-05", ""]
        page.get_by_role("button", name="name", exact=True).click()
        assert column(page, "name") == [f"row {i}" for i in range(8, 13)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_is_chosen_and_remembered(opened, scheme):
    paper = "getComputedStyle(document.body).backgroundColor"
    with opened("binary", color_scheme=scheme) as page:
        button = page.locator("#theme")
        assert button.inner_text() == "Theme: auto"
        colours = {"auto": page.evaluate(paper)}
        for theme in ("light", "dark"):
            button.click()
            assert button.inner_text() == f"Theme: {theme}"
            colours[theme] = page.evaluate(paper)
        assert colours["light"] != colours["dark"]
        assert colours["auto"] == colours[scheme]
        page.reload()
        assert button.inner_text() == "Theme: dark"
        assert page.evaluate(paper) == colours["dark"]
        button.click()
        assert page.evaluate(paper) == colours["auto"]


def test_pictures_follow_the_theme(opened):
    stroke = "getComputedStyle(document.querySelector('figure svg text')).fill"
    with opened("binary", color_scheme="light") as page:
        light = page.evaluate(stroke)
        page.emulate_media(color_scheme="dark")
        assert page.evaluate(stroke) != light


def test_the_data_can_be_downloaded(opened, tmp_path):
    with opened("binary") as page:
        with page.expect_download() as download:
            page.locator("#download").click()
        assert download.value.suggested_filename == "calibrant-report.json"
        download.value.save_as(tmp_path / "data.json")
        data = json.loads((tmp_path / "data.json").read_text(encoding="utf-8"))
        assert data["schema"] == "calibrant/1"
        assert data["verdict"]["headline"] == page.locator("#verdict h2").inner_text().replace("\u00a0", " ")


def test_one_click_selects_a_command(opened):
    with opened("binary") as page:
        command = page.locator("pre code").first
        command.click(position={"x": 30, "y": 8})
        assert page.evaluate("getSelection().toString().trim()") == command.inner_text().strip()


def test_meanings_open_by_keyboard(opened):
    with opened("binary") as page:
        meaning = page.locator(".number-card p").first
        assert not meaning.is_visible()
        page.locator(".number-card summary").first.press("Enter")
        assert meaning.is_visible()


def test_the_page_reads_without_scripts(opened):
    with opened("binary", java_script_enabled=False) as page:
        assert page.locator("#verdict h2").is_visible()
        assert page.locator("figure svg").first.is_visible()
        assert not page.locator("#theme").is_visible()
        assert "in its source as JSON" in page.locator("footer").inner_text()
