"""Settings answer words of other libraries with their own spelling, which works when it is followed."""

import dataclasses
import inspect
import re

import numpy as np
import pytest

import calibrant
from calibrant import ECE, SKCE, Brier, EqualMass, EqualWidth, ExactTest, InputError
from calibrant._deprecation import renamed_argument
from calibrant._names import homes
from calibrant._spellings import Settings
from calibrant.estimators import BaseEstimator, DebiasedECE
from calibrant.kernels import Euclidean, Exponential
from calibrant.recalibration import Platt, Temperature

Y, P = np.array([1, 0, 1]), np.array([0.8, 0.3, 0.6])
WORDS = {c.__name__: c for c in (ECE, SKCE, EqualMass, EqualWidth, DebiasedECE, Exponential, Euclidean)}


@pytest.mark.parametrize(
    ("settings", "options", "meant"),
    [
        (ECE, {"n_bins": 10}, [ECE(EqualWidth(10)), ECE(EqualMass(10))]),
        (ECE, {"strategy": "quantile"}, [ECE(EqualWidth(15)), ECE(EqualMass(15))]),
        (DebiasedECE, {"num_bins": 7}, [DebiasedECE(EqualWidth(7)), DebiasedECE(EqualMass(7))]),
        (EqualMass, {"bins": 10}, [EqualMass(10)]),
        (SKCE, {"bandwidth": 0.3}, [SKCE(Exponential(0.3))]),
        (SKCE, {"kernel": Exponential(0.3)}, [SKCE(Exponential(0.3))]),
    ],
)
def test_the_remedy_is_what_was_meant(settings, options, meant):
    with pytest.raises(TypeError, match=f"{settings.__name__} takes no {next(iter(options))}: write ") as refused:
        settings(**options)
    remedies = re.split(r", or (?=\w+=)", str(refused.value).partition(": write ")[2])
    found = [eval(f"{settings.__name__}({text.partition(' for ')[0]})", WORDS) for text in remedies]
    assert found == meant


@pytest.mark.parametrize("word", ["n_permutations", "n_boot", "B"])
def test_resamples_have_one_name(word):
    with pytest.raises(TypeError, match=f"ExactTest takes no {word}: write n_resamples=99$"):
        ExactTest(ECE(), **{word: 99})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ECE(sample_weight=P), r"belongs to the call, ECE\(\.\.\.\)\(y_true, y_pred, sample_weight=\.\.\.\)"),
        (lambda: ExactTest(ECE(), random_state=0), r"belongs to the call, ExactTest\(\.\.\.\)\(y_true, y_pred, rng=\.\.\.\)"),
        (lambda: Platt(pos_label=1), r"belongs to the call, Platt\(\.\.\.\)\.fit\(y_true, y_pred, pos_label=\.\.\.\)"),
        (lambda: ECE(Y, P), r"data for settings: write ECE\(\)\(y_true, y_pred\)$"),
        (lambda: Temperature(Y, P.tolist()), r"data for settings: write Temperature\(\)\.fit\(y_true, y_pred\)$"),
        (lambda: ECE(lense=None), r"ECE takes no lense \(did you mean 'lens'\?\)"),
        (lambda: Brier(squared=True), "Brier takes no squared: it has no settings"),
    ],
)  # fmt: skip
def test_what_is_no_setting_at_all(make, message):
    with pytest.raises(TypeError, match=message):
        make()


def test_a_number_of_bins_is_no_binning():
    with pytest.raises(InputError, match=r"such as EqualWidth\(10\) or EqualMass\(10\); got 10$"):
        ECE(10)


def test_classes_that_users_write_may_have_arguments_of_their_own():
    class Own(Settings):
        def __init__(self, *data, **options):
            self.data, self.options = data, options

    class Narrow(ECE):
        def __init__(self, n_bins):
            super().__init__(EqualMass(n_bins))

    @dataclasses.dataclass(frozen=True, eq=False)
    class Fixed(BaseEstimator):
        knots: np.ndarray
        heights: np.ndarray

        def estimate(self, targets, predictions, weights): ...

    assert Own(n_bins=10).options == {"n_bins": 10}
    assert Own(Y, P).data == (Y, P)
    assert Fixed(Y, P).heights is P
    assert Narrow(n_bins=10).bins == EqualMass(10)


def test_old_names_of_arguments_go_on_working():
    @renamed_argument("n_bins", "bins", "2.0")
    @dataclasses.dataclass(frozen=True)
    class Old(Settings):
        bins: int = 15

    with pytest.warns(FutureWarning, match=r"write Old\(bins=\)"):
        assert Old(n_bins=3).bins == 3


def test_all_settings_that_take_data_answer():
    """Whoever is added joins them."""
    seen = 0
    for package in ("estimators", "inference", "recalibration"):
        for name in homes(package):
            value = getattr(getattr(calibrant, package), name)
            if not dataclasses.is_dataclass(value) or not isinstance(value, type):
                continue
            methods = {name: method for base in reversed(value.__mro__) for name, method in vars(base).items()}
            call = methods.get("fit", methods.get("__call__", len))
            if "y_true" in inspect.signature(call).parameters:
                assert issubclass(value, Settings), f"{package}.{value}"
                seen += 1
    assert seen > 80
