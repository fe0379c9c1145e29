import tracemalloc

import pytest

from calibrant.planning.bench import problem
from calibrant.planning.families import ESTIMATES, Load, single

NAMES = {family.name: family for family in ESTIMATES}


def test_one_event_a_row():
    assert single(Load(10, 3)).name == "top-label"
    assert single(Load(10, 2, "binary")) is None


@pytest.mark.parametrize(
    ("name", "load"),
    [
        ("binned error", Load(40_000, 10)),
        ("class-wise error", Load(40_000, 10)),
        ("Brier score", Load(40_000, 10)),
        ("log loss", Load(40_000, 10)),
        ("kernel error of blocks", Load(40_000, 10, block=10)),
        ("kernel error on a line", Load(60_000, 2, "binary")),
        ("mean embedding", Load(40_000, 10)),
        ("CRPS", Load(40_000, 20, "ensemble")),
    ],
)
def test_no_more_memory_than_said(name, load):
    """The formula is a bound, within what the median distance and small arrays take, and not a wild one."""
    family, (y_true, y_pred) = NAMES[name], problem(load)
    measure = family.make(load)
    measure(y_true[:3000], y_pred[:3000])
    tracemalloc.start()
    measure(y_true, y_pred)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    said = family.bytes(load) - load.data_bytes
    assert said / 10 < peak < 1.5 * said + 1.5e8
