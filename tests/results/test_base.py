from calibrant.results import Estimate


def test_notebook_display_escapes():
    hostile = Estimate("<script>", 0.5, 1, "<b>")
    assert "<script>" not in hostile._repr_html_()
    assert "&lt;script&gt; = <b>0.5" in hostile._repr_html_()
