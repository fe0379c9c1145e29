import numpy as np
import pytest

from calibrant import ECE, EqualMass
from calibrant._validate import InputError
from calibrant.lab import BetaScores, ScoreWorld, bias_study
from calibrant.plots import bias
from calibrant.results import Table


def test_lines_are_those_of_a_study():
    estimators = {"few": ECE(EqualMass(5)), "many": ECE(EqualMass(20))}
    study = bias_study(ScoreWorld(BetaScores()), estimators, [50, 200], 5)
    display = bias(study)
    lines = [line for line in display.ax_.lines if len(line.get_xdata()) == 2 and line.get_marker() != "None"]
    for line, name in zip(lines, estimators, strict=True):
        np.testing.assert_allclose(line.get_ydata(), study["bias"][study["estimator"] == name])
        assert line.get_xdata().tolist() == [50, 200]
    assert [text.get_text() for text in display.ax_.texts] == ["few", "many"]
    assert len({line.get_marker() for line in lines}) == 2


def table(names):
    return Table(n=[10] * len(names), estimator=names, bias=[0.1] * len(names), bias_error=[0.01] * len(names))


def test_one_size_and_many_names_are_drawn():
    assert "nan" not in bias(table(["a", "x" * 99, *"bcdefghijk"])).to_svg()


@pytest.mark.parametrize(
    ("study", "words"),
    [
        (Table(n=[1], estimator=["a"]), "this one lacks bias, bias_error"),
        (Table(n=[1], estimator=["a"], bias=[np.nan], bias_error=[0.0]), "knows no bias of some estimator"),
        (table([str(i) for i in range(13)]), "13 lines cannot be told apart: give at most 12"),
    ],
)
def test_other_tables_are_refused(study, words):
    with pytest.raises(InputError, match=words):
        bias(study)
