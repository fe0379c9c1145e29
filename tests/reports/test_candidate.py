from calibrant.reports.candidate import Candidate


def test_it_is_a_value():
    assert Candidate(3.0, "too high", "they are too high", "") == Candidate(3.0, "too high", "they are too high", "")
