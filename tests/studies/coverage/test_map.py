from calibrant.results import Table
from studies.coverage.map import drawn


def test_every_kind_of_cell_is_drawn():
    table = Table(
        world=["a", "b", "a"],
        kind=["two classes", "two classes", "numbers"],
        claim=["ECE()", "ECE()", "CRPS()"],
        place=[0, 0, 0],
        statement=["interval"] * 3,
        stated=[400, 400, 0],
        part=[0.5, 1.5, float("nan")],
    )
    figure = drawn(table)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["two classes", "forecasts of numbers"]
    assert [text.get_text() for text in figure.axes[0].texts] == ["×"]
    shown = figure.axes[0].images[0].get_array()
    assert len({tuple(colour) for row in shown for colour in row}) == 2
    assert not figure.axes[1].texts
