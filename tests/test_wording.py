import pytest

from calibrant._wording import SPEAKS_OPTIONS, said


@pytest.mark.parametrize(
    ("argument", "value", "python", "option"),
    [
        ("y_true", None, "y_true", "--y-true"),
        ("missing", "drop", "missing='drop'", "--missing drop"),
        ("sep", ";", "sep=';'", "--sep ';'"),
        ("normalise", "", "normalise=True", "--normalise"),
        ("format", "csv", "format='csv'", "--input-format csv"),
    ],
)
def test_arguments_and_options(argument, value, python, option):
    assert said(argument, value) == python
    token = SPEAKS_OPTIONS.set(True)
    try:
        assert said(argument, value) == option
    finally:
        SPEAKS_OPTIONS.reset(token)
