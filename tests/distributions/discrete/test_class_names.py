"""Names of classes at the boundary: which column is which, which of two is the event, and how targets are matched."""

import numpy as np
import pytest

from calibrant import Bernoulli, Categorical, InputError
from calibrant.distributions.discrete.class_names import as_number, event_of, index_of, is_same, positions

TWO = [[0.8, 0.2], [0.3, 0.7]]


@pytest.mark.parametrize(
    ("labels", "event"),
    [
        ((0, 1), 1),
        ((1, 0), 0),
        (("1", "0"), 0),
        ((-1, 1), 1),
        ((2.0, 1.0), 0),
        ((False, True), 1),
        (("True", "False"), 0),
        (("Yes", "No"), 0),
        (("no", "yes"), 1),
        (("positive", "negative"), 0),
        (("cat", "dog"), 1),
        (("dog", "cat"), 1),
        (("a", "b", "c"), 1),
        (None, 1),
    ],
)
def test_the_event_of_two_is_the_larger_number_or_yes_or_the_second(labels, event):
    assert event_of(labels) == event


@pytest.mark.parametrize(
    ("y", "labels", "found"),
    [
        (["dog", "cat"], ("cat", "dog"), [1, 0]),
        (["1", "2"], (1, 2), [0, 1]),
        ([1, 2], ("2", "1"), [1, 0]),
        ([1.0, 2.0], (1, 2), [0, 1]),
        ([True, False], ("True", "False"), [0, 1]),
        (["True", "False"], (False, True), [1, 0]),
        ([0.5, 1.5], (0.5, 1.5), [0, 1]),
        (["1", 1], (1, "1"), [1, 0]),  # which differ, as they are names of different columns
    ],
)
def test_targets_are_matched_as_they_are_or_as_numbers(y, labels, found):
    values = np.array(y, dtype=object) if len({type(v) for v in y}) > 1 else np.array(y)
    if values.dtype == object:
        assert [positions(np.array([v]), labels)[0] for v in y] == found
    else:
        assert positions(values, labels).tolist() == found


def test_numbers_of_labels():
    assert [as_number(x) for x in ("3", " 2 ", True, "false", "cat", "nan", "inf", None)] == [3, 2, 1, 0, *[None] * 4]
    assert is_same(np.str_("1"), 1)
    assert not is_same("1a", 1)


def test_classes_are_found_by_name():
    assert index_of(np.str_("dog"), ("cat", "dog")) == 1
    with pytest.raises(
        InputError, match=r"there is no class 'dig'; the classes are \['cat', 'dog'\] \(did you mean 'dog'\?\)"
    ):
        index_of("dig", ("cat", "dog"))


@pytest.mark.parametrize(
    "labels", [["cat", "dog"], ("cat", "dog"), np.array(["cat", "dog"]), {0: "cat", 1: "dog"}, {1: "dog", 0: "cat"}]
)
def test_labels_come_in_any_list(labels):
    assert Categorical(TWO, labels).labels == ("cat", "dog")


def test_labels_come_from_columns():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    for labels in (pandas.Series, pandas.Index, pandas.Categorical, polars.Series, arrow.array):
        assert Categorical(TWO, labels(["cat", "dog"])).labels == ("cat", "dog")


@pytest.mark.parametrize("labels", [["cat"], ["cat", "cat"], "ab", 5, {"cat": 0, "dog": 1}])
def test_labels_that_name_no_columns_are_refused(labels):
    with pytest.raises(InputError, match=r"labels must be .*2 .*names, one per class; got"):
        Categorical(TWO, labels)


def test_the_positive_label_is_the_event():
    one = Categorical(TWO, ["cat", "dog"], "cat")
    assert (one.event, one.labels, one.pos_label) == (0, ("cat", "dog"), "cat")
    assert one.mean.tolist() == [0.8, 0.3]
    assert one[:1].temper(2.0).event == one.checked().event == 0
    assert Categorical(TWO, [1, 2], "1").pos_label == 1
    assert Categorical(TWO, pos_label=True).event == 1


def test_the_column_of_the_positive_label_is_that_of_the_event():
    alone = Categorical([0.2, 0.7], pos_label="dog")
    assert alone.class_names == ("not dog", "dog")
    assert alone.as_targets(["cat", "dog"]).tolist() == [0, 1]
    assert alone.as_targets(["owl", "cow"]).tolist() == [0, 0]
    assert Categorical([0.2, 0.7], ["cat", "dog"], "cat").labels == ("dog", "cat")
    with pytest.raises(InputError, match="there is no class 'owl'"):
        alone.index_of("owl")


@pytest.mark.parametrize(
    ("probs", "labels", "label", "message"),
    [
        (TWO, None, "cat", r"pos_label='cat' is which column of y_pred\? Give labels=\[...\]"),
        (TWO, ["cat", "dog"], "dig", r"there is no class 'dig'.*did you mean 'dog'"),
        ([[0.2, 0.3, 0.5]], None, 2, r"pos_label is for two classes and y_pred has 3: .*lens=PositiveClass\(2\)"),
        (
            [0.2],
            ["yes", "no"],
            None,
            r"y_pred is one column, of which of \['yes', 'no'\]\? Give pos_label='yes' or pos_label='no'",
        ),
    ],
)
def test_an_event_that_is_not_known_is_refused(probs, labels, label, message):
    with pytest.raises(InputError, match=message):
        Categorical(probs, labels, label)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_names_of_columns_are_the_labels(library):
    frame = pytest.importorskip(library).DataFrame
    p, q = [0.2, 0.7], [0.8, 0.3]
    assert Categorical(frame({"yes": p, "no": q})).event == 0
    assert Categorical(frame({"p_dog": p, "p_cat": q})).labels == ("dog", "cat")
    assert Categorical(frame({"p_dog": p, "p_cat": q}), ["a", "b"]).labels == ("a", "b")
    assert Categorical(frame({"p": p})).labels is None
    with pytest.raises(
        InputError, match=r"in another order than the columns of y_pred, \['dog', 'cat'\]: leave labels out"
    ):
        Categorical(frame({"p_dog": p, "p_cat": q}), ["cat", "dog"])


def test_names_that_a_library_gave_are_none():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    assert Categorical(pandas.DataFrame(TWO)).labels is None
    assert Categorical(polars.DataFrame(TWO, orient="row")).labels is None


def test_names_are_given_once():
    named = Categorical(TWO, ["cat", "dog"])
    assert named.named(["cat", "dog"], None).labels == ("cat", "dog")
    assert named.named(None, "cat").event == 0
    assert named.named(None, "cat").named(None, None).event == 0
    with pytest.raises(InputError, match=r"labels=\['a', 'b'\] and those of y_pred differ, \['cat', 'dog'\]"):
        named.named(["a", "b"], None)
    with pytest.raises(InputError, match="every label of Bernoulli"):
        Bernoulli(TWO).named(None, "cat")
    assert Bernoulli(TWO).named(["cat", "dog"], None).label_names == ("cat", "dog")


@pytest.mark.parametrize(
    "make", [np.array, lambda x: x, lambda x: np.array(x, dtype=float), lambda x: np.array(x) == 1]
)
def test_one_hot_targets(make):
    assert Categorical(TWO).as_targets(make([[0, 1], [1, 0]])).tolist() == [1, 0]


def test_rows_that_are_not_one_hot_are_refused():
    with pytest.raises(InputError, match=r"shape \(2, 2\) with rows that are not one-hot: .*Bernoulli\(y_pred\)"):
        Categorical(TWO).as_targets([[1, 1], [1, 0]])


def test_tensors_stay_tensors():
    torch = pytest.importorskip("torch")
    one = Categorical(torch.tensor(TWO))
    for y in (torch.tensor([0.0, 1.0]), torch.tensor([-1, 1]), torch.tensor([[1, 0], [0, 1]])):
        found = one.as_targets(y)
        assert isinstance(found, torch.Tensor)
        assert found.tolist() == [0, 1]


def test_labels_of_several_types_are_refused():
    with pytest.raises(InputError, match="y_true mixes types: give one kind of label, such as text"):
        Categorical([[0.5, 0.5]] * 2, ["a", "b"]).as_targets(np.array(["a", 1], dtype=object))


def test_rows_of_text_are_refused():
    with pytest.raises(InputError, match=r"y_true must be one label per row; got shape \(2, 2\): give one column"):
        Categorical([[0.5, 0.5]] * 2).as_targets(np.array([["a", "b"], ["b", "a"]]))


def test_complex_labels_are_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises(InputError, match="y_true must be labels; got dtype torch.complex64: convert it to integers"):
        Categorical(torch.full((2, 2), 0.5)).as_targets(torch.ones(2, dtype=torch.complex64))
