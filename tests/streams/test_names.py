import pytest

from calibrant.estimators import Score
from calibrant.streams.base import NAMES


def concrete(kind):
    for sub in kind.__subclasses__():
        yield from concrete(sub)
        if not getattr(sub, "__abstractmethods__", None) and sub.__module__.startswith("calibrant."):
            yield sub


@pytest.mark.parametrize("kind", sorted(concrete(Score), key=repr))
def test_every_score_can_be_read_back(kind):
    assert NAMES[kind.__name__] is kind
