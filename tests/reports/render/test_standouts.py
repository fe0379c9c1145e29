import numpy as np

from calibrant import evaluate
from calibrant.reports import Section
from calibrant.reports.render.markdown import LEVEL, as_text, cells, standouts
from calibrant.results import Table


def test_flagged_rows_come_strongest_first(rng):
    p = rng.random(900)
    site = np.repeat(["honest", "low", "high"], 300)
    shift = np.select([site == "low", site == "high"], [0.25, 0.15], 0.0)
    y = (rng.random(900) < np.clip(p + shift, 0, 1)) * 1
    report = evaluate(y, p, by={"site": site}, n_resamples=199)
    found = standouts(report)
    assert {x.group for x in found} == {"low", "high"}
    assert all(x.section == "By site" and x.pvalue <= LEVEL for x in found)
    assert [x.pvalue for x in found] == sorted(x.pvalue for x in found)
    assert found[0].cells["rows"] == "300"


def test_nothing_stands_out_without_slices():
    assert standouts(evaluate([1, 0, 1] * 20, [0.7, 0.2, 0.9] * 20, n_resamples=99)) == []


def test_tables_of_other_columns_show_what_they_have():
    row = {"group": "a", "rows": 3, "error": 0.05, "colour": "red"}
    assert cells(row) == {"rows": "3", "error": "5 %"}
    empty = Section("By site", "site", "", Table(group=[], rows=[], pvalue=[]))
    assert as_text(empty).headings == ("site", "rows", "p")
    assert standouts(evaluate([1, 0] * 9, [0.5] * 18, n_resamples=99)) == []
