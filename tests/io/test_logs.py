"""Logs of language models, made by hand as their formats are documented."""

import json
import math
import zipfile

import numpy as np
import pytest

from calibrant._validate import InputError
from calibrant.io import read
from calibrant.io.logs import _likelihoods

pytest.importorskip("polars")


def token(word, *others):
    listed = [{"token": w, "logprob": math.log(p)} for w, p in ((word[0], word[1]), *others)]
    return {**listed[0], "top_logprobs": listed}


def sample(i, *, value="C", metadata=None, text="Answer: A", content=None, **more):
    choice = {
        "message": {"role": "assistant", "content": text},
        "logprobs": None if content is None else {"content": content},
    }
    scores = {"choice": {"value": value, "answer": "A", "explanation": text, "metadata": metadata}}
    found = {"id": i, "epoch": 1, "input": "?", "choices": ["x", "y", "z"], "target": "A", "scores": scores}
    return {**found, "output": {"model": "m", "choices": [choice]}, "metadata": {"subject": "law"}, **more}


def log(*samples):
    return {"version": 2, "status": "success", "eval": {"task": "quiz", "model": "openai/m"}, "samples": list(samples)}


def written(path, found):
    path.write_text(json.dumps(found, indent=1))
    return path


def test_confidences_of_scores(tmp_path):
    found = log(
        sample(1, metadata={"confidence": 0.9, "tries": 2}),
        sample(2, value="I", metadata={"confidence": 0.4, "tries": 1}),
    )
    data = read(written(tmp_path / "x.json", found), by=["score.tries", "metadata.subject"])
    assert data.y_true.tolist() == [1, 0]
    assert data.y_pred.probability(1).tolist() == [0.9, 0.4]
    assert data.by["metadata.subject"].tolist() == ["law", "law"]
    assert data.notes == ("a log of Inspect, x.json: quiz by openai/m",)


def test_the_archive_is_the_same(tmp_path):
    samples = [sample(i, value="CI"[i % 2], metadata={"confidence": 0.25 * i}) for i in range(4)]
    with zipfile.ZipFile(tmp_path / "x.eval", "w") as archive:
        archive.writestr("header.json", json.dumps({"eval": {"task": "quiz", "model": "m"}}))
        for i, one in enumerate(samples):
            archive.writestr(f"samples/{i}_epoch_1.json", json.dumps(one))
    (tmp_path / "of no ending").write_bytes((tmp_path / "x.eval").read_bytes())
    for name in ("x.eval", "of no ending"):
        data = read(tmp_path / name)
        assert data.y_true.tolist() == [1, 0, 1, 0]
        assert data.y_pred.probability(1).tolist() == [0, 0.25, 0.5, 0.75]


def test_stated_confidences(tmp_path):
    found = log(sample(1, text="It is A.\nConfidence: 85%"), sample(2, value="I", text="confidence = 0.3"))
    data = read(written(tmp_path / "x.json", found))
    assert data.y_pred.probability(1).tolist() == [0.85, 0.3]
    assert "2 confidences are read from the answers, as 'Confidence: 85%'" in data.notes


def test_letters_where_the_answer_was_given(tmp_path):
    words = [
        token(("The", 0.9)),
        token((" A", 0.6), ("A", 0.1), (" B", 0.2), ("the", 0.05), (" C", 0.1)),
        token((".", 0.9)),
    ]
    cut = [token((" B", 0.5), (" A", 0.25), ("x", 0.05))]
    data = read(written(tmp_path / "x.json", log(sample(1, content=words), sample(2, target=["B"], content=cut))))
    assert data.y_pred.labels == ("A", "B", "C")
    assert data.y_true.tolist() == ["A", "B"]
    assert data.y_pred.matrix == pytest.approx(np.array([[0.7, 0.2, 0.1], [0.3125, 0.625, 0.0625]]))
    assert data.notes[-1] == "in 1 of 2 samples some letters are missing: they get the smallest that is listed"


def test_unscored_samples_and_partial_answers(tmp_path):
    found = log(
        sample(1, metadata={"confidence": 0.9}),
        {**sample(2), "scores": None},
        sample(3, value="P", metadata={"confidence": 0.5}),
    )
    path = written(tmp_path / "x.json", found)
    with pytest.raises(InputError, match="column 'correct' has missing values in 1 of 2 rows"):
        read(path)
    data = read(path, missing="drop")
    assert data.y_true.tolist() == [1]
    assert "1 samples without a score are left out" in data.notes[1]
    with pytest.raises(InputError, match="without scored samples: run the evaluation to its end"):
        read(written(tmp_path / "y.json", log({**sample(1), "scores": {}})))


def test_a_log_without_confidence_lists_its_columns(tmp_path):
    with pytest.raises(InputError, match="x.json has columns id, epoch, correct, .*: say which with y_pred"):
        read(written(tmp_path / "x.json", log(sample(1))))


def test_broken_archives(tmp_path):
    (tmp_path / "x.eval").write_bytes(b"PK\3\4broken")
    with pytest.raises(InputError, match="x.eval cannot be read as a log of Inspect"):
        read(tmp_path / "x.eval")


def harness(i, likelihoods, target, **more):
    doc = {"question": "?", "subject": "law", "choices": {"text": ["x", "y", "z"], "label": ["A", "B", "C"]}}
    resps = [[[str(value), "False"]] for value in likelihoods]
    filtered = [[str(value), "False"] for value in likelihoods]
    return {
        "doc_id": i,
        "doc": doc,
        "target": target,
        "arguments": {},
        "resps": resps,
        "filtered_resps": filtered,
        "acc": 1.0,
        **more,
    }


def lines(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_choices_of_the_harness(tmp_path):
    records = [harness(0, [-1.0, -2.0, -3.0], "0"), harness(1, [-1.0, -1.0], "B"), harness(2, [-5.0, -1.0, -1.5], "z")]
    data = read(lines(tmp_path / "samples_arc_2026.jsonl", *records), by=["doc.subject"])
    assert data.y_true.tolist() == [0, 1, 2]
    assert data.y_pred.matrix[0] == pytest.approx(np.exp([-1, -2, -3]) / np.exp([-1, -2, -3]).sum())
    assert data.y_pred.matrix[1].tolist() == [0.5, 0.5, 0.0]
    assert "samples have 2 to 3 choices: further ones get 0" in data.notes


def test_numbers_as_numbers_and_several_filters(tmp_path):
    one = harness(0, [0, 0], 1, filtered_resps=[[-0.5, True], [-1.5, False]])
    records = [{**one, "filter": "strict"}, {**one, "filter": "loose"}]
    data = read(lines(tmp_path / "x.jsonl", *records))
    assert data.y_true.tolist() == [1]
    assert "of the filters strict, loose the first is read" in data.notes


def test_written_answers_of_the_harness(tmp_path):
    records = [
        {**harness(i, [], "4"), "resps": [["4"]], "filtered_resps": ["4"], "exact_match": i % 2, "certainty": 0.5}
        for i in range(2)
    ]
    with pytest.raises(
        InputError, match="has columns doc_id, key, correct, doc.question, doc.subject: say which with y_pred"
    ):
        read(lines(tmp_path / "x.jsonl", *records))


def test_a_target_that_is_no_choice(tmp_path):
    with pytest.raises(InputError, match="the target 'w' of sample 0 is no number, letter or text of its choices"):
        read(lines(tmp_path / "x.jsonl", harness(0, [-1, -2], "w")))


def test_letters_of_some_samples_alone_are_left_out(tmp_path):
    asked = [token(("A", 0.8), ("B", 0.2))]
    found = log(
        sample(1, text="A", content=asked, metadata={"confidence": 0.7}),
        sample(2, value="I", metadata={"confidence": 0.4}),
    )
    data = read(written(tmp_path / "x.json", found))
    assert data.y_pred.probability(1).tolist() == [0.7, 0.4]


def test_answers_that_are_no_likelihoods_are_none(tmp_path):
    found = _likelihoods({"resps": [["yes"], ["no"]]})
    assert found == []
    assert _likelihoods({"resps": [[-0.5, True], [[-1.5, False]]]}) == [-0.5, -1.5]
