import pytest

from calibrant._validate import InputError
from calibrant.planning.planner import as_bytes, as_count, as_seconds, duration, size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("10min", 600), ("2h", 7200), ("1d", 86_400), ("250ms", 0.25), ("1.5 h", 5400), ("90", 90), (7, 7)],
)
def test_durations(text, seconds):
    assert as_seconds(text, "--budget") == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "10 parsecs", "-3s", "0", "min", "1.2.3s", "nan", "inf", "1e400"])
def test_what_is_no_duration_is_refused_with_examples(text):
    with pytest.raises(InputError, match=r"--budget must be a positive duration such as 30s, 10min or 2h; got '"):
        as_seconds(text, "--budget")


def test_sizes():
    assert as_bytes("16GB", "memory") == 16e9
    assert as_bytes("16GiB", "memory") == 16 * 2**30
    assert as_bytes("500 MB", "memory") == 5e8
    assert as_bytes(123, "memory") == 123
    with pytest.raises(
        InputError, match="memory must be a positive size such as 500MB, 16GB or 8GiB; got '16 gallons'"
    ):
        as_bytes("16 gallons", "memory")


def test_counts():
    assert as_count("1e7", "--n") == as_count("10_000_000", "--n") == as_count(1e7, "--n") == 10**7
    for wrong in ("many", "1.5", "0", "-3", "nan", "inf", None):
        with pytest.raises(InputError, match="--n must be a whole number of at least 1, such as 20000 or 1e7; got"):
            as_count(wrong, "--n")


@pytest.mark.parametrize("seconds", [0.002, 0.3, 0.9994, 1.0, 59.0, 61.0, 3599.0, 7200.0, 4e5])
def test_words_can_be_read_again(seconds):
    assert as_seconds(duration(seconds), "budget") == pytest.approx(seconds, rel=0.05)
    assert as_bytes(size(1e6 * seconds), "memory") == pytest.approx(1e6 * seconds, rel=0.05)
