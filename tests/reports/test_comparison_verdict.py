import pytest

from calibrant.reports.model_differences import LOG_LOSS as SCORE
from calibrant.reports.model_differences import OF_BINS as ERROR
from calibrant.reports.model_differences import Apart, ModelDifference, Standing, judge_models


def table(**pairs):
    """Differences of measures: ``measure={(a, b): (value_a, value_b, pvalue)}``."""
    return [
        ModelDifference(measure, a, b, x, y, Apart(x - y, x - y - 0.01, x - y + 0.01, p), p)
        for measure, found in (((ERROR, pairs["error"])), (SCORE, pairs["score"]))
        for (a, b), (x, y, p) in found.items()
    ]


class Said:
    class verdict:
        headline = "It is so."


@pytest.mark.parametrize(
    ("error", "score", "headline"),
    [
        ((0.1, 0.0, 0.01), (0.5, 0.4, 0.01), "b is better calibrated than a, and has the lower log loss."),
        ((0.0, 0.1, 0.01), (0.5, 0.4, 0.01), "a is better calibrated than b, but b has the lower log loss."),
        (
            (0.1, 0.0, 0.3),
            (0.5, 0.4, 0.01),
            "b has the lower log loss; in calibration the models cannot be told apart.",
        ),
        (
            (0.1, 0.0, 0.01),
            (0.5, 0.4, 0.3),
            "b is better calibrated than a; by log loss the models cannot be told apart.",
        ),
        ((0.1, 0.0, 0.3), (0.5, 0.4, 0.3), "a and b cannot be told apart on these rows."),
    ],
)
def test_two_models(error, score, headline):
    verdict = judge_models(
        table(error={("a", "b"): error}, score={("a", "b"): score}), {"a": Said, "b": Said}, SCORE, ERROR
    )
    assert verdict.headline == headline
    assert verdict.tone == ("unsure" if "told apart on" in headline else "good")
    assert verdict.evidence[-1] == "b: It is so."


def test_three_models():
    pairs = {("a", "b"): (0.5, 0.4, 0.01), ("a", "c"): (0.5, 0.41, 0.02), ("b", "c"): (0.4, 0.41, 0.6)}
    differences = table(error={key: (*value[:2], 0.5) for key, value in pairs.items()}, score=pairs)
    assert Standing.of(differences, SCORE) == (SCORE, "b", ("a",), ("c",))
    verdict = judge_models(differences, dict.fromkeys("abc", Said), SCORE, ERROR)
    assert verdict.headline == "b has the lower log loss than a; in calibration the models cannot be told apart."
    clear = table(error=pairs, score={key: (*value[:2], 0.001) for key, value in pairs.items()})
    headline = judge_models(clear, dict.fromkeys("abc", Said), SCORE, ERROR).headline
    assert headline == "b is better calibrated than a, and has the lowest log loss."


def test_the_evidence_is_from_the_best_model_s_side():
    differences = table(error={("a", "b"): (0.1, 0.02, 0.01)}, score={("a", "b"): (0.4, 0.5, 0.01)})
    score, error, *_ = judge_models(differences, {"a": Said, "b": Said}, SCORE, ERROR).evidence
    assert error.startswith(f"{ERROR.name}: 2 % of b, 10.0 % of a; 8 % apart, 95 % interval 7 % to 9 %, p = 0.01")
    assert score.startswith("Log loss: 0.4 of a, 0.5 of b; 0.1 apart, 95 % interval 0.09 to 0.11")


def test_without_a_score():
    differences = table(error={("a", "b"): (0.1, 0.0, 0.01)}, score={("a", "b"): (0.5, 0.4, 0.01)})
    assert judge_models(differences, {"a": Said, "b": Said}, None, ERROR).headline == "b is better calibrated than a."


def test_names_of_models_are_not_read():
    """Neither that of the best in what is said of it, nor "error" or "PIT" in any."""
    pairs = {("a", "a has the"): (0.5, 0.4, 0.01)}
    verdict = judge_models(table(error=pairs, score=pairs), dict.fromkeys(("a", "a has the"), Said), SCORE, ERROR)
    assert verdict.headline == "a has the is better calibrated than a, and has the lower log loss."
    pairs = {("error (PIT)", "Log loss"): (0.5, 0.4, 0.01)}
    verdict = judge_models(table(error=pairs, score=pairs), dict.fromkeys(("error (PIT)", "b"), Said), SCORE, ERROR)
    assert verdict.evidence[0].startswith("Log loss: 0.4 of Log loss, 0.5 of error (PIT); 0.1 apart")
