"""The public surface is a list, and every name on it is documented by an example that runs."""

import doctest
import subprocess
import sys

import pytest

import calibrant

NAMES = [
    "AggregatedTest",
    "Bernoulli",
    "Bootstrap",
    "Brier",
    "CRPS",
    "Categorical",
    "ClassWise",
    "DebiasedECE",
    "ECE",
    "Ensemble",
    "EqualMass",
    "EqualWidth",
    "ExactTest",
    "Gamma",
    "InputError",
    "KCE",
    "KDE",
    "Laplace",
    "LogLoss",
    "LogNormal",
    "Mixture",
    "Monitor",
    "MultiLabel",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "PITError",
    "PairedDifference",
    "Pinball",
    "Poisson",
    "PositiveClass",
    "Quantiles",
    "ReliabilityCurve",
    "SKCE",
    "SmoothECE",
    "StudentT",
    "Sweep",
    "TopLabel",
    "Variational",
    "certify",
    "compare",
    "coverage",
    "evaluate",
    "groups",
    "monitor_report",
    "report",
    "state",
]


def test_the_list_is_what_we_promise():
    assert sorted(calibrant.__all__) == NAMES
    assert dir(calibrant) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_name_has_an_example(name):
    value = getattr(calibrant, name)
    examples = doctest.DocTestParser().get_examples(value.__doc__)
    assert examples, f"{name} has no example in its docstring"


def test_pictures_need_no_import_of_their_own():
    code = "import calibrant, sys; assert calibrant.plots.reliability and 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name_says_so():
    with pytest.raises(AttributeError, match="no attribute 'ECEE'"):
        getattr(calibrant, "ECEE")  # noqa: B009
