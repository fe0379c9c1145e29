from studies import pictures
from studies.roelofs.pages import sections


def test_every_section_has_rows_and_figures_have_pictures():
    made = sections(3)
    assert [section.name for section in made] == [
        *("figure-1", "figure-6", "figure-7", "figure-8", "figure-15"),
        *("table-1", "table-2", "table-3"),
    ]
    assert [section.figure is not None for section in made] == [False] + [True] * 4 + [False] * 3
    assert [section.table.n_rows for section in made] == [10, 60, 104, 24, 22, 10, 12, 10]
    for section in made:
        if section.figure is not None:
            assert pictures.svg(section.figure).startswith("<?xml")
        assert section.title.startswith(section.name.replace("-", " ").capitalize())
    assert "cannot be reproduced" in made[-1].text
