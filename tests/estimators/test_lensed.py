import numpy as np
import pytest

from calibrant import Categorical, ClassWise, PositiveClass, TopLabel
from calibrant._validate import InputError
from calibrant.estimators import KolmogorovSmirnov
from calibrant.estimators.base import View


def test_looking_settles_the_lens_and_names_the_reduction(rng):
    p = Categorical([[0.2, 0.8]], labels=["cat", "owl"])
    settled, events, lens = KolmogorovSmirnov().look(p)
    assert settled.lens == PositiveClass()
    assert [event.name for event in events] == ["owl"]
    assert lens == "positive class (owl)"
    assert KolmogorovSmirnov(TopLabel()).look(Categorical.example(rng, 3))[2] == "top-label"


def test_several_events_are_averaged(rng):
    p = Categorical.example(rng, 50)
    y = p.sample(rng, 1)[0].astype(int)
    each = [KolmogorovSmirnov(PositiveClass(i))(y, p).value for i in range(p.n_classes)]
    assert KolmogorovSmirnov(ClassWise())(y, p).value == pytest.approx(np.mean(each), rel=1e-12)


def test_a_single_event_is_reduced_to_two_classes(rng):
    p = Categorical.example(rng, 20)
    y = p.sample(rng, 1)[0].astype(int)
    reduced, targets, smaller = KolmogorovSmirnov(TopLabel()).reduce(y, p)
    assert smaller.n_classes == 2
    assert reduced(targets, smaller).value == KolmogorovSmirnov(TopLabel())(y, p).value


def test_what_is_no_lens_is_refused():
    with pytest.raises(InputError, match="lens must be a lens such as TopLabel"):
        KolmogorovSmirnov("top")


def test_a_view_names_the_class_it_asks_about(rng):
    predictions = Categorical(rng.dirichlet(np.ones(3), 4))
    assert View.of(PositiveClass(2), predictions).name == "positive class (2)"
    assert View.of(TopLabel(), predictions).name == "top-label"
    assert View.of(None, Categorical([0.2, 0.4])).lens == PositiveClass()


def test_a_view_of_several_events_has_no_only_one(rng):
    view = View.of(ClassWise(), Categorical.example(rng, 4))
    with pytest.raises(
        InputError, match=r"KolmogorovSmirnov tests one event and ClassWise\(\) has 3: use lens=TopLabel\(\) or"
    ):
        view.only(KolmogorovSmirnov())
    assert View.of(TopLabel(), Categorical.example(rng, 4)).only(KolmogorovSmirnov()).name == "favoured class is right"
