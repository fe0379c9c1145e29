import pytest

from calibrant._validate import InputError
from calibrant.cli.gate import Gate


@pytest.mark.parametrize(
    ("text", "value", "fails"),
    [
        ("ECE > 0.05", 0.06, True),
        ("ECE > 0.05", 0.05, False),
        ("ECE>=5e-2", 0.05, True),
        ("ECE<0.05", 0.04, True),
        ("ECE <= 0.05", 0.06, False),
        ("ECE > 0.05", float("inf"), True),
    ],
)
def test_conditions(text, value, fails):
    assert Gate.parse(text).fails({"ECE": value}) is fails


def test_a_whole_repr_may_be_named():
    name = "ECE(bins=EqualMass(n_bins=15), norm=2)"
    assert Gate.parse(f"{name} > 0.1").fails({name: 0.2})


@pytest.mark.parametrize("text", ["", "ECE", "ECE >", "> 0.05", "ECE = 0.05", "ECE > five", "ECE > 1 > 2"])
def test_what_cannot_be_read_is_refused(text):
    with pytest.raises(InputError, match=r"--fail-if .* cannot be read: write it as 'ECE > 0.05'"):
        Gate.parse(text)


def test_an_unknown_or_undefined_number_is_an_error_never_a_pass():
    with pytest.raises(InputError, match=r"there is no 'EEC' \(did you mean 'ECE'\?\)"):
        Gate.parse("EEC > 0.05").fails({"ECE": 0.1})
    with pytest.raises(InputError, match="ECE is not a number"):
        Gate.parse("ECE > 0.05").fails({"ECE": float("nan")})
