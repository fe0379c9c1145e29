import numpy as np
import pytest

from calibrant import (
    ECE,
    Bernoulli,
    Bootstrap,
    Brier,
    Categorical,
    ClassWise,
    ExactTest,
    MultiLabel,
    PositiveClass,
    TopLabel,
    groups,
)
from calibrant._array import namespace, to_numpy
from calibrant._validate import InputError
from calibrant.lenses import default_lens

PROBS = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])


def test_top_label_is_confidence_and_hit():
    hit, confidence = TopLabel()([0, 2, 2], PROBS)
    assert hit.tolist() == [1, 0, 1]
    assert confidence.probs.tolist() == [0.7, 0.6, 0.4]


def test_top_label_breaks_ties_by_the_first_class():
    assert TopLabel()([0, 1], [[0.5, 0.5], [0.5, 0.5]])[0].tolist() == [1, 0]


def test_positive_class_by_number_and_by_name():
    assert PositiveClass()([1, 0], [0.8, 0.3])[0].tolist() == [1, 0]
    observed, p = PositiveClass(2)([0, 2, 2], PROBS)
    assert observed.tolist() == [0, 1, 1]
    assert p.probs.tolist() == [0.1, 0.3, 0.4]
    named = Categorical(PROBS, labels=["cat", "dog", "owl"])
    assert PositiveClass("dog")(["dog", "cat", "owl"], named)[0].tolist() == [1, 0, 0]


def test_class_wise_is_one_label_a_class():
    observed, p = ClassWise()([0, 2, 2], PROBS)
    assert observed.tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 1]]
    assert isinstance(p, Bernoulli)
    assert p.label_names == ("0", "1", "2")


def test_multi_label_looks_at_each_label(rng):
    p, y = rng.random((30, 2)), rng.integers(0, 2, (30, 2))
    events = MultiLabel().events(Bernoulli(p))
    assert [e.observed(y).tolist() for e in events] == [(y[:, c] == 1).tolist() for c in range(2)]


def test_a_lens_returns_a_problem_that_every_estimator_takes(rng):
    p = rng.dirichlet(np.ones(4), 60)
    y = rng.integers(0, 4, 60)
    assert ECE()(*TopLabel()(y, p)).value == ECE(lens=TopLabel())(y, p).value
    assert ECE()(*ClassWise()(y, p)).value == pytest.approx(ECE(lens=ClassWise())(y, p).value, rel=1e-14)
    assert Brier()(*PositiveClass(3)(y, p)).value == pytest.approx(np.mean((p[:, 3] - (y == 3)) ** 2), rel=1e-13)


def test_the_lens_that_people_mean():
    assert default_lens(Categorical([0.5])) == PositiveClass()
    assert default_lens(Categorical(PROBS)) == TopLabel()
    assert default_lens(Bernoulli([[0.5, 0.1]])) == MultiLabel()
    found = ECE()([0, 1, 2], PROBS)
    assert found.value == ECE(lens=TopLabel())([0, 1, 2], PROBS).value
    assert found.lens == "top-label"
    assert "top-label" in repr(found)


@pytest.mark.parametrize(
    ("lens", "predictions", "message"),
    [
        (PositiveClass(), Categorical(PROBS), r"with 3 classes, say which one is positive: PositiveClass\(label\)"),
        (PositiveClass("cow"), Categorical(PROBS), r"there is no class 'cow'; the classes are \[0, 1, 2\]"),
        (TopLabel(), Bernoulli(PROBS), r"TopLabel\(\) looks at class probabilities; got Bernoulli"),
        (MultiLabel(), Categorical(PROBS), r"MultiLabel\(\) looks at Bernoulli\(y_pred\); got Categorical"),
    ],
)
def test_lenses_refuse_what_they_cannot_see(lens, predictions, message):
    with pytest.raises(InputError, match=message):
        lens.events(predictions)


class TestLibraries:
    """One event is a problem in the library of the predictions, wherever the targets come from."""

    y = np.array([0, 2, 2])

    @pytest.mark.parametrize("lens", [TopLabel(), PositiveClass(2)], ids=repr)
    def test_values_are_those_of_numpy(self, lens, xp):
        host, expected = lens(self.y, PROBS)
        for y in (self.y, self.y.tolist(), xp.asarray(self.y)):
            observed, predictions = lens(y, xp.asarray(PROBS))
            assert namespace(observed) is namespace(predictions.probs) is namespace(xp.asarray(PROBS))
            assert to_numpy(observed).tolist() == host.tolist()
            assert to_numpy(observed).dtype == np.uint8
            assert to_numpy(predictions.probs).tolist() == expected.probs.tolist()

    def test_targets_of_another_library_come_to_numpy(self):
        torch = pytest.importorskip("torch")
        observed, predictions = TopLabel()(torch.tensor(self.y), PROBS)
        assert isinstance(observed, np.ndarray)
        assert isinstance(predictions.probs, np.ndarray)
        assert observed.tolist() == [1, 0, 1]

    def test_gradients_pass_to_the_favoured_class(self):
        torch = pytest.importorskip("torch")
        p = torch.tensor(PROBS, requires_grad=True)
        observed, predictions = TopLabel()(torch.tensor(self.y), p)
        assert not observed.requires_grad
        (slope,) = torch.autograd.grad((predictions.probs * torch.tensor([1.0, 2.0, 3.0])).sum(), p)
        assert slope.tolist() == [[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]]

    def test_gradients_pass_to_the_positive_class(self):
        torch = pytest.importorskip("torch")
        p = torch.tensor([[0.2, 0.8], [0.6, 0.4]], requires_grad=True)
        (slope,) = torch.autograd.grad(PositiveClass()(torch.tensor([1, 0]), p)[1].probs.sum(), p)
        assert slope.tolist() == [[0.0, 1.0], [0.0, 1.0]]
        q = torch.tensor([0.8, 0.4], requires_grad=True)
        (slope,) = torch.autograd.grad(PositiveClass(0)([1, 0], q)[1].probs.sum(), q)
        assert slope.tolist() == [-1.0, -1.0]

    def test_the_favoured_of_two_classes_given_as_one_number(self):
        torch = pytest.importorskip("torch")
        q = torch.tensor([0.8, 0.4], requires_grad=True)
        observed, predictions = TopLabel()([1, 1], q)
        predictions.probs.sum().backward()
        assert observed.tolist() == [1, 0]
        assert q.grad.tolist() == [1.0, -1.0]

    def test_events_answer_on_the_host(self, xp, rng):
        (event,) = TopLabel().events(Categorical(xp.asarray(PROBS)))
        assert isinstance(event.probability, np.ndarray)
        stack = rng.integers(0, 3, (5, 3))
        assert event.observed(stack).tolist() == (stack == [0, 1, 2]).tolist()

    def test_names_of_classes_are_found_in_any_library(self):
        torch = pytest.importorskip("torch")
        named = Categorical(torch.tensor(PROBS), labels=["cat", "dog", "owl"])
        assert TopLabel()(["cat", "cat", "owl"], named)[0].tolist() == [1, 0, 1]

    def test_several_events_come_to_the_host(self, xp):
        observed, predictions = ClassWise()(self.y, xp.asarray(PROBS))
        assert observed.tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 1]]
        assert isinstance(predictions.probs, np.ndarray)


class TestGroups:
    y, p, by = [1, 0, 1, 0, 1], [0.9, 0.2, 0.6, 0.5, 0.3], ["b", "a", "b", "a", "a"]

    def test_one_row_a_slice_in_sorted_order(self):
        table = groups(ECE(), self.y, self.p, by=self.by)
        assert table["group"].tolist() == ["a", "b"]
        assert table["n"].tolist() == [3, 2]
        assert table["value"] == pytest.approx(
            [ECE()([0, 0, 1], [0.2, 0.5, 0.3]).value, ECE()([1, 1], [0.9, 0.6]).value]
        )

    def test_tests_and_intervals_bring_their_columns(self):
        assert list(groups(ExactTest(ECE(), 19), self.y, self.p, by=self.by)) == [
            "group", "n", "value", "null_low", "null_high", "pvalue",
        ]  # fmt: skip
        assert list(groups(Bootstrap(Brier(), 19), self.y, self.p, by=self.by)) == [
            "group",
            "n",
            "value",
            "low",
            "high",
        ]

    def test_slices_without_an_interval_have_no_ends(self):
        measure = Bootstrap(lambda targets, predictions: float(np.mean(targets)), 19)
        table = groups(measure, [0, 1, 0, 1, 1], self.p, by=["a", "a", "a", "b", "b"])
        assert np.isnan(table["low"]).tolist() == [False, True]

    def test_options_and_weights_go_to_the_measure(self):
        w = [1.0, 2.0, 3.0, 4.0, 5.0]
        table = groups(Brier(), self.y, self.p, by=self.by, sample_weight=w)
        assert table["value"][1] == pytest.approx((1 * 0.01 + 3 * 0.16) / 4)
        same = [groups(ExactTest(ECE(), 49), self.y, self.p, by=self.by, rng=s)["pvalue"].tolist() for s in (1, 1)]
        assert same[0] == same[1]

    def test_columns_of_data_frames(self):
        pandas = pytest.importorskip("pandas")
        assert groups(ECE(), self.y, self.p, by=pandas.Series(self.by))["group"].tolist() == ["a", "b"]

    def test_length_is_checked(self):
        with pytest.raises(InputError, match="by has 2 rows and y_true has 5"):
            groups(ECE(), self.y, self.p, by=[1, 2])
        with pytest.raises(InputError, match=r"by=\['a', 'b'\] names columns: give them"):
            groups(ECE(), self.y, self.p, by=["a", "b"])
