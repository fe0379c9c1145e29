import pytest

from calibrant.plots.drawings import DRAWINGS


@pytest.mark.parametrize("kind", DRAWINGS)
def test_words_of_a_legend_stand_beside_known_marks(kind):
    for mark, words in DRAWINGS[kind].legend:
        assert mark in ("dot", "diamond", "band", "line", "dashed", "bar")
        assert words
