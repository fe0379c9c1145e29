from calibrant.reports.class_report.class_faults import PossibleFault


def test_it_is_a_value():
    assert PossibleFault(3.0, "too high", "they are too high", "") == PossibleFault(
        3.0, "too high", "they are too high", ""
    )
