import numpy as np
import pytest

from calibrant import Bernoulli, Categorical, ClassWise, Normal, PositiveClass, TopLabel
from calibrant._softmax import Softmax
from calibrant._validate import InputError
from calibrant.estimators.simplex.local import questions

P = np.array([[0.5, 0.3, 0.2], [0.1, 0.7, 0.2]])


def test_several_classes_are_whole_vectors():
    (question,), name = questions(None, Categorical(P.astype(np.float32)))
    assert name == "canonical"
    assert question.points.dtype == np.float64
    assert question.predicted.shape == (2, 3)
    assert question.outcomes(np.array([2, 1])).tolist() == [2, 1]
    assert question.observed(np.array([2, 1])).tolist() == [[False, False, True], [False, True, False]]


@pytest.mark.parametrize(
    ("lens", "predictions", "names", "first"),
    [
        (None, Categorical([0.2, 0.4]), ["1"], [0.2, 0.4]),
        (TopLabel(), Categorical(P), ["favoured class is right"], [0.5, 0.7]),
        (PositiveClass(2), Categorical(P), ["2"], [0.2, 0.2]),
        (ClassWise(), Categorical(P), ["0", "1", "2"], [0.5, 0.1]),
        (None, Bernoulli(P), ["0", "1", "2"], [0.5, 0.1]),
    ],
)
def test_events_ask_for_the_occurrence_alone(lens, predictions, names, first):
    asked, _ = questions(lens, predictions)
    assert [question.name for question in asked] == names
    assert asked[0].predicted[:, 0].tolist() == pytest.approx(first)
    assert asked[0].points.sum(axis=1) == pytest.approx([1, 1])


def test_outcomes_of_events():
    (question,), _ = questions(TopLabel(), Categorical(P))
    resamples = np.array([[0, 1], [1, 1], [0, 2]])
    assert question.outcomes(resamples).tolist() == [[1, 1], [0, 1], [1, 0]]
    assert question.observed(question.outcomes(resamples)).shape == (3, 2, 1)


def test_averages_of_what_is_asked():
    local = Softmax(np.zeros(2), np.array([[0.4, 0.6], [0.5, 0.5]]), np.ones(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
    (event,), _ = questions(None, Categorical([0.2, 0.4]))
    assert event.asked(local).mean.tolist() == [[0.6], [0.5]]
    assert event.asked(local).mean_of_squares.tolist() == [[2.0], [4.0]]


def test_gradients_reach_the_points():
    torch = pytest.importorskip("torch")
    p = torch.tensor(P, requires_grad=True)
    for lens in (None, TopLabel(), ClassWise()):
        asked, _ = questions(lens, Categorical(p))
        assert asked[0].points.requires_grad
        assert asked[0].outcomes(torch.tensor([0, 1])).tolist() in ([0, 1], [1, 1], [1, 0])


def test_other_predictions_have_no_events():
    with pytest.raises(InputError, match="Normal predictions have no events"):
        questions(None, Normal([0.0], [1.0]))
