"""Who evaluates a language model: three logs, a page from each, and what it says."""

import json
import math

import numpy as np
import pytest

pytest.importorskip("cyclopts")
pytest.importorskip("polars")

N = 150
rng = np.random.default_rng(11)
KNOWN = rng.dirichlet(np.ones(4), N)
RIGHT = (rng.random((N, 1)) >= KNOWN.cumsum(axis=1)[:, :3]).sum(axis=1)
SURER = KNOWN**3 / (KNOWN**3).sum(axis=1, keepdims=True)
SUBJECT = np.array(["law", "physics"])[rng.integers(0, 2, N)]


def inspect_sample(i, subject):
    letters = [{"token": f" {letter}", "logprob": math.log(p)} for letter, p in zip("ABCD", SURER[i], strict=True)]
    chosen = letters[int(SURER[i].argmax())]
    answer = chosen["token"].strip()
    return {
        "id": i,
        "epoch": 1,
        "choices": ["w", "x", "y", "z"],
        "target": "ABCD"[RIGHT[i]],
        "metadata": {"subject": subject},
        "scores": {"choice": {"value": "C" if "ABCD"[RIGHT[i]] == answer else "I", "answer": answer}},
        "output": {
            "choices": [
                {
                    "message": {"content": f"ANSWER: {answer}"},
                    "logprobs": {"content": [{**chosen, "top_logprobs": letters}]},
                }
            ]
        },
    }


@pytest.fixture
def logs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    samples = [inspect_sample(i, subject) for i, subject in enumerate(SUBJECT)]
    whole = {"version": 2, "eval": {"task": "quiz", "model": "large"}, "samples": samples}
    (tmp_path / "inspect.json").write_text(json.dumps(whole))
    lines = [
        {
            "doc_id": i,
            "doc": {"subject": subject},
            "target": int(RIGHT[i]),
            "filtered_resps": [[math.log(p), False] for p in SURER[i]],
        }
        for i, subject in enumerate(SUBJECT)
    ]
    (tmp_path / "samples_quiz.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    said = [f"{100 * p:.0f}%" for p in SURER.max(axis=1)]
    rows = [f"{'ABCD'[a]};{'ABCD'[k]};{p}" for a, k, p in zip(SURER.argmax(axis=1), RIGHT, said, strict=True)]
    (tmp_path / "answers.csv").write_text("answer;key;confidence\n" + "\n".join(rows) + "\n")
    return tmp_path


def test_a_log_of_inspect_becomes_a_page(run, logs):
    code, out, err = run("report", "inspect.json", "--by", "metadata.subject", "--n-resamples", "99")
    assert code == 0
    assert "Note: a log of Inspect, inspect.json: quiz by large." in err
    page = (logs / "calibrant-report.html").read_text()
    for words in (
        "If only the surest answers count",
        "A right answer is surer than a wrong one in",
        "metadata.subject",
    ):
        assert words in page
    assert "probabilities are those of the letters where the answer was given" in page.replace(
        "Probabilities", "probabilities"
    )
    assert "over-confident" in out.lower()


def test_samples_of_the_harness_say_the_same(run, logs):
    numbers = [
        run(
            "estimate",
            name,
            "--estimator",
            "ECE(EqualMass(10), lens=TopLabel())",
            "--estimator",
            "AURC(TopLabel())",
            "--format",
            "json",
        )
        for name in ("inspect.json", "samples_quiz.jsonl")
    ]
    first, second = ([e["value"] for e in json.loads(out)["estimates"]] for _, out, _ in numbers)
    assert first == pytest.approx(second, rel=1e-9)


def test_stated_confidences_against_the_key(run, logs):
    code, _, err = run("report", "answers.csv")
    assert (code, "has columns answer, key, confidence: say which with --y-true" in err) == (2, True)
    code, _, err = run("report", "answers.csv", "--y-true", "key")
    assert code == 2
    assert "of a confidence in 'answer' say --y-true answer==TRUTH" in err
    code, out, err = run(
        "report", "answers.csv", "--y-true", "answer==key", "--n-resamples", "99", "--format", "markdown"
    )
    assert code == 0
    assert "column 'confidence' has percent signs, and is divided by 100" in err
    assert "too high" in out or "over-confident" in out.lower()


def test_when_it_should_rather_not_answer(run, logs):
    shares = ("SelectiveAccuracy(0.5, TopLabel())", "SelectiveAccuracy(1.0, TopLabel())", "AUC(TopLabel())")
    words = [word for share in shares for word in ("--estimator", share)]
    _code, out, _ = run("estimate", "samples_quiz.jsonl", *words, "--format", "json")
    half, whole, ranked = (e["value"] for e in json.loads(out)["estimates"])
    assert whole == pytest.approx((SURER.argmax(axis=1) == RIGHT).mean())
    assert half > whole
    assert ranked > 0.5


def test_a_map_learned_on_a_log_is_applied_to_it(run, logs):
    code, _, err = run("recalibrate", "samples_quiz.jsonl", "--method", "Temperature()", "--save", "map.json")
    assert code == 0, err
    code, _out, err = run(
        "recalibrate", "samples_quiz.jsonl", "--y-pred", "p_*", "--apply", "map.json", "--out", "better.csv"
    )
    assert code == 0, err
    assert (logs / "better.csv").read_text().startswith("doc_id,p_0,p_1,p_2,p_3,target")
