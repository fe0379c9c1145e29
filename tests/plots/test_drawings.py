import pytest

from calibrant._validate import InputError
from calibrant.plots.drawings import DRAWINGS, to_svg


def test_unknown_kinds_are_refused():
    with pytest.raises(InputError, match=r"no picture of kind 'reliable' \(did you mean 'reliability'\?\)"):
        to_svg("reliable", {})


@pytest.mark.parametrize("kind", DRAWINGS)
def test_words_of_a_legend_stand_beside_known_marks(kind):
    for mark, words in DRAWINGS[kind].legend:
        assert mark in ("dot", "diamond", "band", "line", "dashed", "bar")
        assert words
