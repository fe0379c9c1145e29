"""Logs of language models as rows: those of Inspect, and the samples of the lm-evaluation-harness."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias
from zipfile import BadZipFile, ZipFile

from calibrant._validate import InputError

Row: TypeAlias = dict[str, Any]
Log: TypeAlias = Mapping[str, Any]

GRADES = {"C": 1, "I": 0, "N": 0}
"""Inspect's words for right, wrong and no answer; partly right is neither, and has no value."""

STATED = re.compile(r"confidence\W{0,5}(\d+(?:\.\d+)?)\s*(%?)", re.IGNORECASE)
"""How a model states its confidence in its answer: ``Confidence: 85%``, or 0.85."""

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def is_inspect_log(found: Log) -> bool:
    """Whether this is a log of Inspect with its samples."""
    return isinstance(found.get("samples"), list) and isinstance(found.get("eval"), dict)


def read_inspect_archive(path: Path) -> Log:
    """A log of Inspect in its own format, a zip of JSON."""
    try:
        with ZipFile(path) as archive:
            names = sorted(
                name for name in archive.namelist() if name.startswith("samples/") and name.endswith(".json")
            )
            header = json.loads(archive.read("header.json")) if "header.json" in archive.namelist() else {}
            return {**header, "samples": [json.loads(archive.read(name)) for name in names]}
    except (BadZipFile, NotImplementedError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path.name} cannot be read as a log of Inspect: {error}; inspect log convert --to json may help"
        ) from error


def inspect_rows(log: Log, name: str) -> tuple[list[Row], list[str]]:
    """A row a sample, and what a reader must know.

    ``p_A`` and so on are the log-probabilities of the letters where the answer was given, made to sum to one; ``target`` is
    then the right letter. Otherwise ``confidence`` is what the score's metadata say, or the model in its answer, and ``correct``
    whether the first score calls it right.
    """
    samples = [sample for sample in log["samples"] if sample.get("scores")]
    if not samples:
        raise InputError(f"{name} is a log of Inspect without scored samples: run the evaluation to its end")
    about = log.get("eval", {})
    notes = [f"a log of Inspect, {name}: {about.get('task', 'a task')} by {about.get('model', 'a model')}"]
    rows = [_sample_row(sample) for sample in samples]
    if (left := len(log["samples"]) - len(samples)) > 0:
        notes.append(f"{left:,} samples without a score are left out")
    cut = [row.pop("_cut") for row in rows]
    has_letters = all("p_A" in row for row in rows)
    if has_letters:
        notes.append("probabilities are those of the letters where the answer was given, made to sum to one")
        notes += [
            f"in {sum(cut):,} of {len(cut):,} samples some letters are missing: they get the smallest that is listed"
        ] * any(cut)
    elif any("confidence" in row for row in rows):
        stated = sum(row.pop("_stated", False) for row in rows)
        notes += [f"{stated:,} confidences are read from the answers, as 'Confidence: 85%'"] * (stated > 0)
    for row in rows:
        row.pop("_stated", None)
        letters = [key for key in row if key.startswith("p_")]
        target = row.pop("_target")
        row["target" if has_letters else "key"] = target
        if not has_letters:
            for key in letters:
                del row[key]
    epochs = {sample.get("epoch", 1) for sample in samples}
    notes += [f"there are {len(epochs)} epochs: rows with the same id belong together"] * (len(epochs) > 1)
    return rows, notes


def _sample_row(sample: Log) -> Row:
    scores = sample["scores"]
    target = sample.get("target")
    target = target[0] if isinstance(target, list) and len(target) == 1 else target
    row: Row = {
        "id": sample.get("id"),
        "epoch": sample.get("epoch", 1),
        "_target": target if isinstance(target, str) else json.dumps(target),
    }
    for place, (scorer, score) in enumerate(scores.items()):
        value = score.get("value")
        grade = GRADES.get(value) if isinstance(value, str) else value if isinstance(value, int | float) else None
        row["correct" if place == 0 else f"correct.{scorer}"] = None if grade is None else grade + 0
        row |= {} if place else {"answer": score.get("answer")}
        row |= {key if key == "confidence" else f"score.{key}": value for key, value in _scalars(score.get("metadata"))}
    row |= {f"metadata.{key}": value for key, value in _scalars(sample.get("metadata"))}
    output = (sample.get("output", {}).get("choices") or [{}])[0]
    found, row["_cut"] = _letters(output.get("logprobs"), len(sample.get("choices") or ()))
    row |= found
    if "confidence" not in row and (stated := _stated(output.get("message", {}).get("content"))) is not None:
        row |= {"confidence": stated, "_stated": True}
    return row


def _stated(content: Any) -> float | None:
    """The confidence that an answer states last."""
    text = (
        content
        if isinstance(content, str)
        else " ".join(p.get("text", "") for p in content or () if isinstance(p, dict))
    )
    found = STATED.findall(text)
    if not found:
        return None
    number, percent = found[-1]
    value = float(number) / 100 if percent else float(number)
    return value if value <= 1 else None


def _letters(logprobs: Any, count: int) -> tuple[Row, bool]:
    """The probabilities of the letters of the choices where the last of them was written, and whether some are not listed."""
    letters = LETTERS[:count]
    for token in reversed((logprobs or {}).get("content") or []):
        if count > 1 and token["token"].strip(" ().*") in letters and token["token"].strip(" ().*"):
            listed = [token, *(token.get("top_logprobs") or [])]
            ways = {(t["token"], t["logprob"]) for t in listed if len(t["token"].strip(" ().*")) == 1}
            shares = {
                letter: sum(math.exp(p) for word, p in ways if word.strip(" ().*") == letter) for letter in letters
            }
            least = math.exp(min(t["logprob"] for t in listed))
            filled = {letter: share or least for letter, share in shares.items()}
            total = sum(filled.values())
            return {f"p_{letter}": share / total for letter, share in filled.items()}, 0 in shares.values()
    return {}, False


def _scalars(found: Any) -> Iterator[tuple[str, Any]]:
    """The fields of an object that hold one value."""
    for key, value in (found or {}).items() if isinstance(found, dict) else ():
        if isinstance(value, str | int | float):
            yield key, value


def is_harness_record(record: Log) -> bool:
    """Whether this is a sample of the lm-evaluation-harness."""
    return "doc_id" in record and "doc" in record and ("resps" in record or "filtered_resps" in record)


def harness_rows(records: Iterable[Log], name: str) -> tuple[list[Row], list[str]]:
    """A row a sample, and what a reader must know.

    Of several choices, ``p_0`` and so on are their log-likelihoods made to sum to one, and ``target`` is the right one. Otherwise
    ``correct`` is the first score that there is.
    """
    found = list(records)
    notes = [f"samples of the lm-evaluation-harness, {name}"]
    filters = list(dict.fromkeys(record.get("filter", "none") for record in found))
    if len(filters) > 1:
        found = [record for record in found if record.get("filter", "none") == filters[0]]
        notes.append(f"of the filters {', '.join(filters)} the first is read")
    likelihoods = [_likelihoods(record) for record in found]
    most = max(map(len, likelihoods))
    has_choices = min(map(len, likelihoods)) > 1
    if has_choices:
        notes.append("probabilities are the log-likelihoods of the choices, made to sum to one")
        notes += [f"samples have {min(map(len, likelihoods))} to {most} choices: further ones get 0"] * (
            min(map(len, likelihoods)) < most
        )
    rows = []
    for record, values in zip(found, likelihoods, strict=True):
        row: Row = {"doc_id": record["doc_id"]}
        if has_choices:
            shares = [math.exp(value - max(values)) for value in values]
            row |= {f"p_{i}": (shares[i] / sum(shares) if i < len(shares) else 0.0) for i in range(most)}
            row["target"] = _target(record, name)
        else:
            row["key"] = record.get("target")
        row |= next(({"correct": record[metric]} for metric in ("exact_match", "acc") if metric in record), {})
        row |= {f"doc.{key}": value for key, value in _scalars(record["doc"])}
        rows.append(row)
    return rows, notes


def _likelihoods(record: Log) -> list[float]:
    """The log-likelihood of each choice; none where an answer was written."""
    answers = record.get("filtered_resps") or record.get("resps") or []
    try:
        return [float(_first(answer)) for answer in answers] if all(isinstance(a, list) for a in answers) else []
    except (TypeError, ValueError):
        return []


def _first(answer: Any) -> Any:
    while isinstance(answer, Sequence) and not isinstance(answer, str):
        answer = answer[0]
    return answer


def _target(record: Log, name: str) -> int:
    """The number of the right choice: as it is, or by its letter or text."""
    target, doc = record.get("target"), record["doc"]
    text = str(target).strip()
    if text.isdigit():
        return int(text)
    choices = doc.get("choices", doc.get("options", ()))
    texts = choices.get("text", ()) if isinstance(choices, dict) else choices
    labels = choices.get("label", LETTERS) if isinstance(choices, dict) else LETTERS
    for known in (list(texts), list(labels)):
        if text in known:
            return known.index(text)
    raise InputError(
        f"{name}: the target {text[:40]!r} of sample {record['doc_id']} is no number, letter or text of its choices"
    )
