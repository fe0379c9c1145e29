import math

import pytest

from calibrant import (
    ECE,
    Bootstrap,
    Brier,
    ClassWise,
    EqualMass,
    EqualWidth,
    ExactTest,
    LogLoss,
    PositiveClass,
    TopLabel,
)
from calibrant._validate import InputError
from calibrant.cli.settings import ESTIMATORS
from calibrant.spec import parse

pytest.importorskip("cyclopts")


@pytest.mark.parametrize(
    "setting",
    [
        ECE(),
        ECE(EqualMass(7), math.inf, PositiveClass("owl"), label_binned=True),
        ECE(EqualWidth(3), 2.5, ClassWise()),
        ExactTest(ECE(lens=TopLabel()), 99, "two-sided"),
        Bootstrap(Brier(), confidence_level=0.9),
        LogLoss(),
    ],
)
def test_the_repr_of_every_setting_is_its_file_format(setting):
    assert parse(repr(setting), ESTIMATORS) == setting


def test_positional_arguments_and_negative_numbers():
    assert parse("ECE(EqualMass(5))", ESTIMATORS) == ECE(EqualMass(5))
    assert parse("ECE(EqualMass, lens=TopLabel)", ESTIMATORS) == ECE(EqualMass(), lens=TopLabel())
    assert parse("complex(-1, 2)", {"complex": complex}) == -1 + 2j


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("EEC()", "there is no 'EEC' .did you mean 'ECE'"),
        ("ECE(", "cannot be read"),
        ("ece", "there is no 'ece' .did you mean 'ECE'"),
        ("ECE(1, 2, 3, 4, 5)", "ECE takes bins, norm, lens, label_binned: 5 values are too many"),
        ("ExactTest", "ExactTest takes estimator, .*: estimator is missing"),
        ("ECE(binz=EqualMass(3))", r"ECE takes no binz \(did you mean 'bins'\?\)"),
        ("ECE(**{'norm': 2})", "is not a known name, number, text or list"),
        ("ECE(norm=1+1)", "'1 . 1' is not a known"),
        ("().__class__", "is not a known"),
        ("[x for x in (1,)]", "is not a known"),
        ("ECE(norm=open('x'))", "there is no 'open'"),
        ("ECE(norm=0.5)", "norm must be a number of at least 1"),
        ("EqualMass(0)", "n_bins must be a whole number of at least 1; got 0"),
    ],
)
def test_text_is_parsed_and_never_evaluated(text, message):
    with pytest.raises(InputError, match=message):
        parse(text, ESTIMATORS)


def test_bare_words_mean_what_the_caller_says():
    assert parse("dict(loc=mu)", {"dict": dict}, word=str.upper) == {"loc": "MU"}
    with pytest.raises(InputError, match="there is no 'mu'"):
        parse("dict(loc=mu)", {"dict": dict})


def test_names_inside_a_call_come_first():
    names = {"Pair": lambda *parts: parts, "One": lambda: 1}
    inside = {"Pair": {"One": lambda: "one", "Two": lambda: 2}}
    assert parse("Pair(One(), Two())", names, inside=inside) == ("one", 2)
    assert parse("One()", names, inside=inside) == 1
    with pytest.raises(InputError, match="there is no 'Two'"):
        parse("Two()", names, inside=inside)


def test_infinity_has_two_signs():
    assert parse("take(inf, -inf)", {"take": lambda *values: values}) == (math.inf, -math.inf)
