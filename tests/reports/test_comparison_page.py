import pytest

from calibrant import compare
from calibrant.lab import Tempered
from calibrant.reports.model_comparison import numbers_of, to_html


def test_numbers_are_written_in_their_units(rng):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    y, p = Tempered(2, 2.0).draw(150, rng)
    comparison = compare(y, {"a": p, "b": p}, n_resamples=99, rng=0)
    table = numbers_of(comparison)
    (first,) = [x for x in comparison.reports["a"].numbers if x.key == "log"]
    assert table["number"][0] == first.label
    assert table["value"][0] == first.text(first.value)
    assert table["if calibrated"][0] == first.band()
    page = to_html(comparison)
    assert "a and b cannot be told apart on these rows." in page
    assert 'href="#slices"' not in page
