from dataclasses import replace

from calibrant.planning.families import KINDS, Load


def test_numbers_of_a_row():
    assert Load(10, 7).data_bytes == 8 * 10 * 8
    assert Load(10, 2, "binary").data_bytes == 8 * 10 * 2
    assert Load(10, 1, "numbers").data_bytes == 8 * 10 * 3
    assert Load(10, 20, "ensemble").data_bytes == 8 * 10 * 21


def test_the_median_looks_at_2000_rows_at_most():
    assert Load(100, 3).median_pairs == 100**2
    assert Load(10**6, 3).median_pairs == 2000**2


def test_more_rows_are_never_less_work():
    for kind in KINDS:
        one = Load(1, 3, kind)
        more = replace(one, n=2)
        assert 0 < one.sorting < more.sorting
        assert one.data_bytes < more.data_bytes
