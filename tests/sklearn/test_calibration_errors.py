import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.calibration import calibration_curve
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import make_scorer
from sklearn.model_selection import cross_val_score, cross_validate

from calibrant import ECE, InputError
from calibrant.sklearn import (
    calibration_error,
    neg_l1_calibration_error,
    neg_l2_calibration_error,
    neg_l2_squared_calibration_error,
    neg_max_calibration_error,
)
from calibrant.sklearn.calibration_errors import CurveBins


def data(kind, n=500):
    rng = np.random.default_rng(3)
    p = {
        "smooth": lambda: rng.random(n),
        "a forest": lambda: rng.binomial(20, rng.beta(0.3, 0.5, n)) / 20,
        "mostly zero": lambda: np.where(rng.random(n) < 0.7, 0.0, rng.random(n)),
        "edges": lambda: rng.integers(0, 11, n) / 10,
    }[kind]()
    return (rng.random(n) < p**1.5) * 1, p


def by_hand(y, p, norm, n_bins, strategy):
    """From the curve of scikit-learn, and its bins counted again."""
    observed, predicted = calibration_curve(y, p, n_bins=n_bins, strategy=strategy)
    edges = (
        np.linspace(0, 1, n_bins + 1) if strategy == "uniform" else np.percentile(p, np.linspace(0, 100, n_bins + 1))
    )
    count = np.bincount(np.searchsorted(edges[1:-1], p), minlength=n_bins)
    share, gap = count[count > 0] / len(p), np.abs(observed - predicted)
    return {"l1": share @ gap, "l2": np.sqrt(share @ gap**2), "max": gap.max()}[norm]


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("kind", ["smooth", "a forest", "mostly zero", "edges"])
def test_the_bins_are_those_of_scikit_learns_curve(kind, strategy):
    y, p = data(kind)
    for n_bins in (1, 5, 10, 49):
        for norm in ("l1", "l2", "max"):
            found = calibration_error(y, p, norm=norm, n_bins=n_bins, strategy=strategy)
            assert found == pytest.approx(by_hand(y, p, norm, n_bins, strategy), rel=1e-12, abs=1e-15)


def test_the_cube_root_rule():
    y, p = data("smooth", 65)
    assert (
        calibration_error(y, p)
        == calibration_error(y, p, n_bins=5)
        == pytest.approx(by_hand(y, p, "l1", 5, "quantile"))
    )
    y, p = y[:64], p[:64]  # whose cube root is 4, but for rounding 3.9999999999999996
    assert calibration_error(y, p, n_bins="cube_root", strategy="uniform") == calibration_error(
        y, p, n_bins=4, strategy="uniform"
    )


def test_the_square_is_a_square():
    y, p = data("smooth")
    assert calibration_error(y, p, norm="l2", squared=True) == calibration_error(y, p, norm="l2") ** 2


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_a_row_of_weight_two_counts_as_two(strategy):
    y, p = data("a forest")
    times = np.random.default_rng(0).integers(0, 4, len(y))
    found = calibration_error(y, p, n_bins=7, strategy=strategy, sample_weight=0.3 * times)
    repeated = calibration_error(np.repeat(y, times), np.repeat(p, times), n_bins=7, strategy=strategy)
    assert found == pytest.approx(repeated, rel=1e-12)


def test_weights_all_alike_and_rows_without_weight_change_nothing():
    y, p = data("smooth", 512)  # whose cube root is 8, and that of one more row is above
    plain = calibration_error(y, p)
    assert calibration_error(y, p, sample_weight=np.full(len(y), 2.5)) == pytest.approx(plain, rel=1e-12)
    more = calibration_error(np.append(y, 1), np.append(p, 0.5), sample_weight=np.append(np.ones(len(y)), 0))
    assert more == pytest.approx(plain, rel=1e-12)
    assert calibration_error(y, p, sample_weight=np.where(y, 1.0, 1e-3)) != plain


def test_the_positive_class_is_the_one_that_is_named():
    y, p = data("smooth")
    names = np.array(["ill", "well"])[y]
    assert calibration_error(names, p, pos_label="well") == calibration_error(y, p)
    assert calibration_error(names, 1 - p, pos_label="ill", strategy="uniform") == pytest.approx(
        calibration_error(1 - y, 1 - p, strategy="uniform")
    )
    with pytest.raises(InputError, match=r"Give pos_label='ill' or pos_label='well'"):
        calibration_error(names, p)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": "L1"}, r"norm must be 'l1', 'l2' or 'max'; got 'L1'"),
        ({"squared": True}, r"squared=True is the square of norm='l2'; got norm='l1'"),
        ({"n_bins": "sqrt"}, r"n_bins, if not a number, must be .*'cube_root'; got 'sqrt'"),
        ({"n_bins": 0}, r"n_bins must be a whole number of at least 1; got 0"),
        ({"strategy": "mass"}, r"strategy must be 'uniform' or 'quantile'; got 'mass'"),
        ({"y_proba": np.full((2, 2), 0.5)}, r"y_proba must be one column, .* y_proba\[:, 1\]; got shape \(2, 2\)"),
        ({"y_proba": [0.5, 1.5]}, r"y_proba must lie in \[0, 1\]"),
    ],
)
def test_what_has_no_meaning_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        calibration_error([0, 1], **{"y_proba": [0.2, 0.7], **options})


def test_scorers_of_a_forest_with_names():
    X, y = make_classification(300, 5, flip_y=0.2, random_state=0)
    names = np.array(["sound", "faulty"])[1 - y]
    forest = RandomForestClassifier(10, random_state=0)
    scorers = {
        "l1": neg_l1_calibration_error,
        "l2": neg_l2_calibration_error,
        "squared": neg_l2_squared_calibration_error,
        "max": neg_max_calibration_error,
    }
    found = cross_validate(forest, X, names, scoring=scorers, cv=3)
    assert (found["test_l1"] >= found["test_l2"] - 1e-12).all()
    assert (found["test_max"] < found["test_l2"]).all()
    assert found["test_squared"] == pytest.approx(-(found["test_l2"] ** 2), rel=1e-12)
    for norm in ("l1", "l2", "max"):
        theirs = make_scorer(
            calibration_error, greater_is_better=False, response_method="predict_proba", norm=norm, pos_label="sound"
        )
        assert cross_val_score(forest, X, names, scoring=theirs, cv=3) == pytest.approx(
            found[f"test_{norm}"], rel=1e-12
        )


def test_scorers_of_several_classes_are_of_the_confidence():
    X, y = make_classification(200, 8, n_informative=4, n_classes=3, random_state=0)
    forest = RandomForestClassifier(10, random_state=0).fit(X[:100], y[:100])
    error = ECE(CurveBins())(y[100:], forest.predict_proba(X[100:]))
    assert neg_l1_calibration_error(forest, X[100:], y[100:]) == pytest.approx(-error.value)
    assert error.lens == "top-label"


def test_a_slip_in_the_number_of_bins_is_answered():
    with pytest.raises(InputError, match="^n_bins, if not a number, must be 'cube_root'; got 'cuberoot'$"):
        calibration_error([0, 1], [0.2, 0.7], n_bins="cuberoot")
