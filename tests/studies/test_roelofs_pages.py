from studies import pictures
from studies.roelofs.pages import sections


def test_every_section_has_rows_and_figures_have_pictures():
    made = sections(3)
    assert [section.name for section in made] == ["figure-6", "figure-7", "figure-8", "table-1", "table-2", "table-3"]
    assert [section.figure is not None for section in made] == [True] * 3 + [False] * 3
    assert [section.table.n_rows for section in made] == [50, 104, 24, 10, 12, 10]
    for section in made[:3]:
        assert pictures.svg(section.figure).startswith("<?xml")
        assert section.title.startswith(f"Figure {section.name[-1]}")
