"""Names that try to break out of the page, or to hide in it."""

import json


def test_nothing_runs_and_everything_is_legible(opened):
    with opened("hostile") as page:
        page.locator("details").evaluate_all("all => all.forEach(details => { details.open = true; })")
        assert page.title().startswith("<script>document.title")
        assert page.locator("script").count() == 2
        assert page.locator("img").count() == 0
        names = page.locator("#slices td:first-child bdi").all_inner_texts()
        for shown in ("<script>document.title = 'owned'</script>", "שלום עולם 123", "right � left", "🙂 👩‍👩‍👧 emoji"):
            assert shown in names
        assert any(name.startswith("nul␀, bell␇ and") for name in names)
        assert any(" … 9,920 more … " in name for name in names)
        assert (
            max(
                map(
                    len,
                    page.locator("body *:not(script)").evaluate_all(
                        "all => all.map(x => x.childElementCount ? '' : x.textContent)"
                    ),
                )
            )
            < 5000
        )


def test_the_data_are_those_that_were_given(opened):
    with opened("hostile") as page:
        data = json.loads(page.locator("#data").evaluate("script => script.textContent"))
        assert "nul\x00, bell\x07 and\nline break" in data["sections"][0]["table"]["group"]
        assert max(map(len, data["sections"][0]["table"]["group"])) == 10_000


def test_the_policy_stops_what_would_get_in(opened):
    """Even markup that did get into the page could run nothing and fetch nothing: the browser complains instead."""
    bait = """<img src="https://elsewhere.invalid/x.png"><b id="bait" onclick="document.title = 'owned'">bait</b>
        <link rel="stylesheet" href="https://elsewhere.invalid/x.css">"""
    with opened("binary", is_quiet=False) as page:
        reasons = []
        page.on("requestfailed", lambda request: reasons.append(request.failure))
        page.evaluate("markup => document.body.insertAdjacentHTML('beforeend', markup)", bait)
        page.locator("#bait").click()
        page.evaluate("""() => {
            const script = document.createElement("script");
            script.textContent = "document.title = 'owned'";
            document.body.append(script);
        }""")
        assert page.title() == "Calibration report"
        assert reasons == ["csp", "csp"]
