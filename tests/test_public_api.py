"""The public surface is a list, and every name on it is documented by an example that runs."""

import doctest
import inspect
import subprocess
import sys
from importlib import import_module

import pytest

import calibrant
from calibrant import _names

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


BASES = {
    *("Kernel", "Radial", "Metric", "Distribution", "LocationScale", "Counts", "Parametric", "Lens", "BaseEstimator"),
    *(
        "EachDraw",
        "EventEstimator",
        "LensedEstimator",
        "MeanOverEvents",
        "OfEvent",
        "Binning",
        "Partition",
        "Locations",
    ),
    *(
        "Score",
        "Curve",
        "Outcome",
        "Found",
        "Recalibrator",
        "ClassMap",
        "Map",
        "State",
        "Bet",
        "Bets",
        "Result",
        "Event",
        "MatrixTest",
    ),
    *("TwoClasses", "Scores", "TrueCurve", "World", "Residuals", "as_positive_targets", "two_classes"),
}
"""What one derives from, and what classes of one's own give and ask: the skeletons in ``docs`` are their examples."""

PARTS = {"Defect", "Recalibration", "BeforeAfter", "Picture", "Section"}
"""Parts of results, shown with the whole."""


@pytest.mark.parametrize("package", _names.PACKAGES)
def test_what_can_be_called_has_an_example(package):
    if package in ("losses", "engines"):
        pytest.importorskip("torch")
    if package == "sklearn":
        pytest.importorskip("sklearn")
    find = doctest.DocTestFinder(exclude_empty=True)
    for name, home in _names.homes(package).items():
        value = getattr(import_module(home), name)
        if (inspect.isclass(value) or inspect.isfunction(value)) and name not in BASES | PARTS:
            assert any(test.examples for test in find.find(value, name)), f"{package}.{name} has no example"
