"""What the boundary refuses, each with its words. Every message names the argument, the value and the remedy."""

import warnings
from decimal import Decimal

import numpy as np
import pytest

from calibrant import (
    ECE,
    KDE,
    SKCE,
    Bernoulli,
    Brier,
    Categorical,
    ClassWise,
    ExactTest,
    TopLabel,
    Variational,
)
from calibrant._validate import (
    InputError,
    as_array,
    as_levels,
    as_real,
    check_count,
    check_norm,
    did_you_mean,
    named_columns,
)

BAD = {
    "NaN": ([0, 1], [0.5, np.nan], r"y_pred has NaN or infinite values in 1 place, first in row 1 \(nan\)"),
    "infinity": ([0, 1], [np.inf, 0.5], r"y_pred has NaN or infinite values in 1 place, first in row 0 \(inf\)"),
    "negative": ([0, 1], [-0.1, 0.5], r"y_pred must lie in \[0, 1\]; found -0.1: these look like logits"),
    "above one": ([0, 1], [0.5, 1.2], r"y_pred must lie in \[0, 1\]; found 1.2: divide percentages by 100"),
    "labels as predictions": (
        [0, 1],
        [0, 3],
        r"y_pred must lie in \[0, 1\]; found 3: divide percentages by 100; class labels are no prob",
    ),
    "rows not summing to one": (
        [0, 1],
        [[0.5, 0.5], [0.5, 0.498]],
        r"y_pred rows must sum to 1 \(within 0.001\); row 1 sums to 0.998: normalise the rows, or use Bernoulli",
    ),
    "label too large": (
        [0, 2],
        [0.5, 0.6],
        r"y_true must be labels from 0 to 1; found 2: .* Give pos_label=0 or pos_label=2$",
    ),
    "label negative": (
        [0, -1],
        [0.5, 0.6],
        r"y_true must be labels from 0 to 1; found -1: .* Give pos_label=-1 or pos_label=0$",
    ),
    "label beyond": ([0, 5], [[0.5, 0.3, 0.2]] * 2, r"y_true must be labels from 0 to 2; found 5: give labels=\[...\]"),
    "labels from 1 to k": (
        [1, 2, 3],
        [[0.2, 0.3, 0.5]] * 3,
        r"y_true must be labels from 0 to 2; found 3: they seem to start at 1; subtract 1",
    ),
    "fractions as labels": (
        [0.0, 0.5],
        Categorical([0.5, 0.6]),
        r"y_true must be class labels; got fractions like 0\.5: give what happened",
    ),
    "NaN as label": ([0.0, np.nan], [0.5, 0.6], r"y_true has NaN or infinite values in 1 place, first in row 1"),
    "text labels, one column": (
        ["a", "b"],
        [0.5, 0.6],
        r"y_true holds names like 'a': one column .* Give pos_label='a' or pos_label='b'",
    ),
    "text labels without names": (
        ["a", "b"],
        [[0.5, 0.5]] * 2,
        r"y_true holds names like 'a': .*labels=model.classes_",
    ),
    "length": ([0, 1, 1], [0.5, 0.6], r"y_true has 3 rows and y_pred has 2: they must be equal"),
    "empty": ([], [], r"y_true is empty: at least one row is needed"),
    "empty predictions": ([1], [], r"y_pred is empty: at least one row is needed"),
    "swapped": ([0.2, 0.9], [0, 1], r"y_true holds fractions and y_pred does not: the arguments look swapped"),
    "swapped matrix": (
        [[0.2, 0.8], [0.9, 0.1]],
        [1, 0],
        r"the arguments look swapped: calibrant takes the truth first",
    ),
    "swapped distribution": (Categorical([0.2, 0.9]), [0, 1], r"y_true is a Categorical: the arguments look swapped"),
    "several labels per row": (
        [[1, 1], [1, 0]],
        [[0.2, 0.8], [0.9, 0.1]],
        r"rows that are not one-hot: .*Bernoulli\(y_pred\)",
    ),
    "labels of another width": (
        [[0, 1, 0], [1, 0, 0]],
        [[0.2, 0.8], [0.9, 0.1]],
        r"y_true must be one label per row; got shape",
    ),
    "three axes": ([0], [[[0.5, 0.5]]], r"y_pred must be \(n,\) or \(n, k\); got shape \(1, 1, 2\)"),
    "ragged": ([0, 1], [[0.5, 0.5], [1.0]], r"y_pred has rows of different lengths"),
    "text probabilities": ([0, 1], ["a", "b"], r"y_pred must hold real numbers; got values like .*'a'"),
    "missing values": ([0, None], [0.5, 0.5], r"y_true has missing values in 1 place, first in row 1"),
    "mixed types": ([0, 1], [0.5, "a"], r"y_pred must hold real numbers; got values like 'a'"),
    "not an array": ([0, 1], {0.5, 0.6}, r"y_pred is a set: give an array, a list, a data-frame column"),
    "text among numbers": ([0, 1], np.array(["0.9", "nan"]), r"y_pred must hold real numbers; got values like 'nan'"),
    "complex": ([0, 1], np.array([0.5, 0.5j]), r"y_pred must hold real numbers"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize(
    "measure", [ECE(), Brier(), ExactTest(ECE(), n_resamples=9)], ids=["ECE", "Brier", "ExactTest"]
)
def test_bad_input_is_refused_in_words(case, measure):
    y_true, y_pred, message = BAD[case]
    with pytest.raises(InputError, match=message):
        measure(y_true, y_pred)


def test_bad_input_from_torch_is_refused_too():
    torch = pytest.importorskip("torch")
    with pytest.raises(InputError, match="y_pred has NaN"):
        ECE()(torch.tensor([0, 1]), torch.tensor([0.5, float("nan")]))
    with pytest.raises(InputError, match=r"y_true must be class labels; got fractions like 0.25"):
        ECE()(torch.tensor([0.0, 0.25]), torch.tensor([0.5, 0.2]))


@pytest.mark.parametrize(("value", "message"), [(0.25, "got fractions like 0.25"), (1e300, r"got 1e\+300: give what")])
@pytest.mark.parametrize("shape", [(2,), (2, 2)])
def test_labels_that_are_no_whole_numbers(value, message, shape):
    """Of any shape; whole numbers that no integer holds, too."""
    with pytest.raises(InputError, match=f"y_true must be class labels; {message}"):
        Brier()(np.full(shape, value), np.full((2, 2), 0.5))


def test_labels_that_never_use_class_0_get_a_hint_and_an_answer():
    y_pred = np.full((40, 3), 1 / 3)
    with pytest.warns(UserWarning, match="class 0 never occurs in y_true though the predictions expect it"):
        assert ECE(lens=TopLabel())([1, 2] * 20, y_pred).n == 40


def test_no_hint_when_class_0_was_not_expected_either():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ECE(lens=TopLabel())([1, 2] * 20, [[0.0, 0.5, 0.5]] * 40)
        ECE(lens=TopLabel())([1, 2], [[0.3, 0.4, 0.3]] * 2)


def test_one_row_is_enough():
    assert ECE()([1], [0.75]).value == pytest.approx(0.25, abs=1e-15)
    assert ExactTest(ECE(), n_resamples=19)([1], [0.75]).pvalue > 0.05


def test_a_class_never_seen_is_no_error():
    estimate = ECE(lens=ClassWise())([0, 1, 0], [[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.7, 0.2, 0.1]])
    last = estimate.table["event"] == "2"
    assert estimate.table["observed"][last].tolist() == [0.0, 0.0]


def test_slack_of_float32_softmax_is_tolerated_and_kept(rng):
    logits = rng.normal(size=(1000, 50)).astype(np.float32)
    odds = np.exp(logits)
    y_pred = odds / odds.sum(axis=1, keepdims=True) * np.float32(1 + 5e-7)
    assert Categorical(y_pred).probs is y_pred


def test_rounding_beyond_the_ends_is_clipped():
    assert Categorical([1 + 1e-7, -1e-9, 0.5]).probs.tolist() == [1.0, 0.0, 0.5]


def test_half_precision_is_lifted():
    assert Categorical(np.array([0.25, 0.5], dtype=np.float16)).probs.dtype == np.float32


def test_large_finite_sums_are_not_taken_for_infinity():
    from calibrant._validate import check_finite

    check_finite(np.full(10, 1e308), "x")


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], "sample_weight has 1 row and y_true has 2"),
        ([1.0, -1.0], "sample_weight must not be negative; found -1 in row 1"),
        ([0.0, 0.0], "sample_weight is zero everywhere"),
        ([1.0, np.nan], "sample_weight has NaN"),
        ([[1.0], [1.0]], r"sample_weight must be one number per row; got shape \(2, 1\)"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(InputError, match=message):
        ECE()([0, 1], [0.2, 0.9], sample_weight=weights)


@pytest.mark.parametrize(
    ("y_true", "message"),
    [
        ([[0, 2], [1, 0]], "y_true must be zeros and ones; found 2"),
        ([[0.0, 1.0], [1.0, 0.0]], "y_true must be integer zeros and ones; got dtype float64"),
        ([[0], [1]], r"y_true must be \(n, 2\) zeros and ones; got shape \(2, 1\)"),
    ],
)
def test_bad_multi_label_targets(y_true, message):
    with pytest.raises(InputError, match=message):
        ECE()(y_true, Bernoulli([[0.1, 0.9], [0.4, 0.6]]))


@pytest.mark.parametrize("labels", [["a"], ["a", "a"], ["a", "b", "c"]])
def test_bad_class_names(labels):
    with pytest.raises(InputError, match="labels must be 2 different names"):
        Categorical([0.2, 0.9], labels=labels)


def test_a_near_miss_is_suggested():
    assert did_you_mean("digt", ["digit", "ink"]) == " (did you mean 'digit'?)"
    assert did_you_mean("zzz", ["digit", "ink"]) == "; known: digit, ink"


def test_levels_are_one_or_several_between_none_and_all():
    assert as_levels(0.5, "levels") == (0.5,)
    assert as_levels(np.array([0.1, 0.9]), "levels") == (0.1, 0.9)
    for bad in (0, 1, 1.5, -0.1, np.nan, "half", None, [0.5, 1], [True]):
        with pytest.raises(InputError, match="levels must lie strictly between 0 and 1; got"):
            as_levels(bad, "levels")
    with pytest.raises(InputError, match=r"levels must hold at least one level between 0 and 1; got \[\]"):
        as_levels([], "levels")


@pytest.mark.parametrize(
    "call", [ECE(), SKCE(), KDE(), Variational(), ExactTest(ECE(), 9)], ids=lambda c: type(c).__name__
)
def test_a_public_call_checks_probabilities_once(call, monkeypatch):
    """What is made of them below is trusted."""
    checks = []
    check = Categorical.__post_init__
    monkeypatch.setattr(Categorical, "__post_init__", lambda self: (checks.append(self), check(self))[1])
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 300)
    call(Categorical.trusted(p).sample(rng, 1)[0], p)
    assert len(checks) == 1


def test_counts_that_nothing_can_hold_are_refused_and_seeds_are_not():
    check_count(2**53, "n")
    check_count(10**30, "seed", least=0)
    with pytest.raises(InputError, match="n must be a whole number from 1 to 9007199254740992; got one of 31 digits"):
        check_count(10**30, "n")
    for number in (10**6000, -(10**6000)):
        with pytest.raises(InputError, match="got one of 6001 digits"):
            check_count(number, "n")


@pytest.mark.parametrize("norm", [0.5, "x", np.nan, 10**30, 10**400, pytest.param(10**6000, id="6001 digits"), None])
def test_what_is_no_norm(norm):
    with pytest.raises(InputError, match="norm must be a number of at least 1, or inf"):
        check_norm(norm)


@pytest.mark.parametrize("norm", [1, 2.5, np.inf, np.float32(2)])
def test_what_is_one(norm):
    check_norm(norm)


@pytest.mark.parametrize(
    ("x", "words"),
    [
        ([object(), "a"], r"x mixes types \(object, str\): give numbers, or text labels, alone"),
        ([[1], [1, 2]], "x has rows of different lengths"),
    ],
)
def test_what_makes_no_array_is_told_why(x, words):
    with pytest.raises(InputError, match=words):
        as_array(x, "x")


def test_decimals_in_rows_are_numbers():
    found = as_array([[Decimal("0.2"), Decimal("0.8")], [Decimal("0.5"), Decimal("0.5")]], "x")
    assert found.dtype == np.float64
    assert found.tolist() == [[0.2, 0.8], [0.5, 0.5]]


def test_complex_tensors_are_no_numbers():
    torch = pytest.importorskip("torch")
    with pytest.raises(InputError, match="x must hold real numbers; got dtype torch.complex64"):
        as_real(torch.ones(2, dtype=torch.complex64), "x")


def test_what_can_be_an_array_is_one_column():
    class Column:
        def __array__(self, dtype=None, copy=None):
            return np.array(["a", "b"])

    column = Column()
    assert named_columns(column, 2, "by") == {"group": column}


def test_a_frame_without_columns_has_no_numbers():
    pandas = pytest.importorskip("pandas")
    assert as_array(pandas.DataFrame(index=range(3)), "x").shape == (3, 0)
