"""Files as people have them: each gives the number that is meant, or one line whose option gives it when it is followed."""

import bz2
import gzip
import json
import lzma
import re
import shlex

import numpy as np
import pytest

from calibrant import CRPS, Normal

polars = pytest.importorskip("polars")
pytest.importorskip("cyclopts")

N = 60
rng = np.random.default_rng(5)
P = rng.uniform(0.02, 0.98, N).round(2)
Y = (rng.random(N) < P) * 1
Q = rng.dirichlet(np.ones(4), N)
K = (rng.random((N, 1)) >= Q.cumsum(axis=1)[:, :3]).sum(axis=1)
KEY = np.array(list("ABCD"))[K]
WORDS = np.array(["no", "yes"])[Y]
SAID = np.array(["low", "high"])[(P > 0.5) * 1]


def csv(*rows, head="y,p", sep=",", decimal="."):
    lines = [[str(v).replace(".", decimal) if isinstance(v, float) else str(v) for v in row] for row in rows]
    return "\n".join([head.replace(",", sep), *(sep.join(line) for line in lines), ""])


def pairs(y=Y, p=P, **how):
    return csv(*zip(y, (v.item() if isinstance(v, np.generic) else v for v in p), strict=True), **how)


def four(values=Q, y=KEY, head="key,A,B,C,D", **how):
    return csv(*((t, *map(float, row)) for t, row in zip(y, values, strict=True)), head=head, **how)


ROWS = [{"y": int(y), "p": float(p)} for y, p in zip(Y, P, strict=True)]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)
PERCENT = [f"{100 * p:.0f}%" for p in P]
FOUR = ("--y-true", "key", "--estimator", "Brier()")
TWO = ("--estimator", "Brier()")


def brier(y, p):
    return float(np.mean((np.asarray(y) - p) ** 2))


def brier_of_four(p=Q):
    return float(np.mean(((np.eye(4)[K] - p) ** 2).sum(axis=1)))


NORMAL = ("--estimator", "CRPS()", "--predict")


def crps(y, mu):
    return CRPS()(np.asarray(y, dtype=float), Normal(np.asarray(mu, dtype=float), 1.0)).value


BINARY, CLASSES = brier(Y, P), brier_of_four()
BAD = pairs() + "1,\n"

WORKS = {
    "plain.csv": (pairs(), TWO, BINARY),
    "semicolons.csv": (pairs(sep=";"), TWO, BINARY),
    "semicolons and decimal commas.csv": (pairs(sep=";", decimal=","), TWO, BINARY),
    "tabs.tsv": (pairs(sep="\t"), TWO, BINARY),
    "tabs.csv": (pairs(sep="\t"), TWO, BINARY),
    "tabs.txt": (pairs(sep="\t", decimal=","), TWO, BINARY),
    "bars.csv": (pairs(sep="|"), TWO, BINARY),
    "colons.csv": (pairs(sep=":"), (*TWO, "--sep", ":"), BINARY),
    "says its separator.csv": ("sep=;\n" + pairs(sep=";"), TWO, BINARY),
    "quoted decimal commas.csv": ("y,p\n" + "".join(f'{y},"{p}"\n'.replace(".", ",") for y, p in zip(Y, P, strict=True)), TWO, BINARY),
    "all quoted.csv": ('"y","p"\n' + "".join(f'"{y}","{p}"\n' for y, p in zip(Y, P, strict=True)), TWO, BINARY),
    "spaces.csv": (pairs().replace(",", ", "), TWO, BINARY),
    "capitals.csv": (pairs(head="Label,Prob"), TWO, BINARY),
    "returns.csv": (pairs().replace("\n", "\r\n"), TWO, BINARY),
    "no last line feed.csv": (pairs().rstrip("\n"), TWO, BINARY),
    "a mark.csv": (pairs().encode("utf-8-sig"), TWO, BINARY),
    "utf-16.csv": (pairs(sep="\t").encode("utf-16"), TWO, BINARY),
    "utf-16-be.csv": (pairs().encode("utf-16-be"), (*TWO, "--encoding", "utf-16-be"), BINARY),
    "latin.csv": (pairs(head="y,größe").encode("latin-1"), (*TWO, "--y-pred", "größe", "--encoding", "latin-1"), BINARY),
    "gz.csv.gz": (gzip.compress(pairs().encode()), TWO, BINARY),
    "gz by another name.csv": (gzip.compress(pairs().encode()), TWO, BINARY),
    "bz2.csv.bz2": (bz2.compress(pairs().encode()), TWO, BINARY),
    "xz.csv.xz": (lzma.compress(pairs().encode()), TWO, BINARY),
    "gz.jsonl.gz": (gzip.compress(LINES.encode()), TWO, BINARY),
    "list.json": (json.dumps(ROWS), TWO, BINARY),
    "columns.json": (json.dumps({"y": Y.tolist(), "p": P.tolist()}), TWO, BINARY),
    "columns by row.json": (polars.DataFrame({"y": Y, "p": P}).write_json(), TWO, BINARY),
    "lines.json": (LINES, TWO, BINARY),
    "lines.log": (LINES, TWO, BINARY),
    "no ending": (pairs(), TWO, BINARY),
    "text.dat": (pairs(sep=";"), TWO, BINARY),
    "numbers as text.jsonl": ("".join(json.dumps({"y": int(y), "p": str(p)}) + "\n" for y, p in zip(Y, P, strict=True)), TWO, BINARY),
    "an index.csv": (csv(*((i, y, float(p)) for i, (y, p) in enumerate(zip(Y, P, strict=True))), head=",y,p"), TWO, BINARY),
    "truth values.csv": (pairs(Y == 1), TWO, BINARY),
    "minus one.csv": (pairs(2 * Y - 1), TWO, BINARY),
    "floats.csv": (pairs([f"{y}.0" for y in Y]), TWO, BINARY),
    "percent signs.csv": (pairs(p=PERCENT), TWO, BINARY),
    "percent signs with a space.csv": (pairs(p=[p.replace("%", " %") for p in PERCENT]), TWO, BINARY),
    "a positive label.csv": (pairs(WORDS), (*TWO, "--pos-label", "yes"), BINARY),
    "answers.csv": (csv(*(("x", "x" if y else "z", float(p)) for y, p in zip(Y, P, strict=True)), head="answer,key,confidence"), (*TWO, "--y-true", "answer==key"), BINARY),
    "right and sure.csv": (pairs(head="correct,confidence"), TWO, BINARY),
    "letters.csv": (four(), FOUR, CLASSES),
    "letters in a list.csv": (four(), (*FOUR, "--y-pred", "A,B,C,D"), CLASSES),
    "letters in another order.csv": (four(Q[:, ::-1], head="key,D,C,B,A"), (*FOUR, "--y-pred", "D,C,B,A"), CLASSES),
    "named classes.csv": (four(head="key,s,t,u,v"), (*FOUR, "--y-pred", "A=s,B=t,C=u,D=v"), CLASSES),
    "logits of a family.csv": (four(np.log(Q) + 1, head="key,z_A,z_B,z_C,z_D"), (*FOUR, "--predict", "Categorical.from_logits(logits='z_*')"), CLASSES),
    "objects within objects.jsonl": (
        "".join(json.dumps({"key": k, "probs": dict(zip("ABCD", map(float, q), strict=True))}) + "\n" for k, q in zip(KEY, Q, strict=True)),
        (*FOUR, "--y-pred", "probs.*"),
        CLASSES,
    ),
    "objects within objects by themselves.jsonl": (
        "".join(json.dumps({"key": k, "probs": dict(zip("ABCD", map(float, q), strict=True))}) + "\n" for k, q in zip(KEY, Q, strict=True)),
        FOUR,
        CLASSES,
    ),
    "letters without a missing row.csv": (four() + "A,,,,\n,1,0,0,0\n", (*FOUR, "--missing", "drop"), CLASSES),
    "a name without brackets.csv": (pairs(), ("--estimator", "Brier"), BINARY),
    "log of the harness.jsonl": (
        "".join(json.dumps({"doc_id": i, "doc": {}, "target": int(k), "filtered_resps": [[x, False] for x in np.log(q).tolist()]}) + "\n" for i, (k, q) in enumerate(zip(K, Q, strict=True))),
        ("--estimator", "Brier()"),
        CLASSES,
    ),
    "log of inspect.json": (
        json.dumps({"eval": {}, "samples": [{"id": i, "target": "x", "scores": {"s": {"value": "IC"[y], "metadata": {"confidence": float(p)}}}} for i, (y, p) in enumerate(zip(Y, P, strict=True))]}),
        TWO,
        BINARY,
    ),
    "a decision beside.csv": (csv(*((y, int(p > 0.5), float(p)) for y, p in zip(Y, P, strict=True)), head="y,y_pred,score"), TWO, BINARY),
}  # fmt: skip

REFUSED = {
    "an empty value.csv": (BAD, TWO, BINARY),
    "N-A.csv": (pairs() + "1,N/A\n", TWO, BINARY),
    "nan.csv": (pairs() + "1,NaN\n", TWO, BINARY),
    "no truth.csv": (pairs() + "N/A,0.5\n", TWO, BINARY),
    "no truth of words.csv": (pairs(WORDS) + "n/a,0.5\n", (*TWO, "--pos-label", "yes"), BINARY),
    "no truth, semicolons.csv": (pairs(WORDS, sep=";", decimal=",") + ";0,5\n", (*TWO, "--pos-label", "yes"), BINARY),
    "a footer.csv": (pairs() + "total,\n", TWO, BINARY),
    "blank lines.csv": (pairs() + "\n\n", TWO, BINARY),
    "null.jsonl": (LINES + '{"y": 1, "p": null}\n', TWO, BINARY),
    "a field less.jsonl": (LINES + '{"y": 1}\n', TWO, BINARY),
    "percent.csv": (pairs(p=(100 * P).round(0)), TWO, BINARY),
    "percent of four.csv": (four(100 * Q), FOUR, CLASSES),
    "log-probabilities.csv": (four(np.log(Q)), (*FOUR, "--y-pred", "A,B,C,D"), CLASSES),
    "logits.csv": (four(np.log(Q) + 3), (*FOUR, "--y-pred", "A,B,C,D"), CLASSES),
    "log-odds.csv": (pairs(p=np.log(P / (1 - P))), TWO, BINARY),
    "rounded.csv": (four(Q.round(2)), FOUR, brier_of_four(Q.round(2) / Q.round(2).sum(axis=1, keepdims=True))),
    "verbal.csv": (pairs(p=SAID), TWO, brier(Y, np.where(SAID == "low", 0.25, 0.75))),
    "an object within.jsonl": (
        "".join(json.dumps({"key": k, "of": dict(zip("ABCD", map(float, q), strict=True)), "at": dict(zip("ABCD", map(float, q), strict=True))}) + "\n" for k, q in zip(KEY, Q, strict=True)),
        (*FOUR, "--y-pred", "of"),
        CLASSES,
    ),
    "columns as words.csv": (four(), (*FOUR, "--y-pred", "A", "B", "C", "D"), CLASSES),
    "one word more.csv": (pairs(p=SAID), (*TWO, "--scale", "low=0.25"), brier(Y, np.where(SAID == "low", 0.25, 0.75))),
    "words of truth.csv": (pairs(WORDS), TWO, BINARY),
    "labels from 1.csv": (four(y=K + 1, head="key,p_0,p_1,p_2,p_3"), FOUR, CLASSES),
    "names of another kind.csv": (four(head="key,p_1,p_2,p_3,p_4"), FOUR, CLASSES),
    "columns of no usual name.csv": (pairs(head="outcome,chance"), (*TWO, "--y-true", "outcome"), BINARY),
    "a slip.csv": (pairs(head="outcome,chance"), (*TWO, "--y-true", "outcome", "--y-pred", "chanse"), BINARY),
    "thousands or decimals.csv": (csv(*((float(y), f"{1 + p:.3f}".replace(".", ",")) for y, p in zip(Y, P, strict=True)), head="y;mu", sep=";"), (*NORMAL, "Normal(mu, 1)"), crps(Y, 1 + P)),
    "thousands or decimals in the truth.csv": (csv(*((f"{1 + p:.3f}".replace(".", ","), y) for y, p in zip(Y, P, strict=True)), head="y;mu", sep=";"), (*NORMAL, "Normal(mu, 1)"), crps(1 + P, Y)),
    "latin names.csv": (pairs(head="y,p,größe").encode("latin-1").replace(b"\n", b",1\n").replace(b"e,1\n", b"e\n", 1), TWO, BINARY),
    "latin values.csv": (pairs(sep=",").replace("\n", ",é\n").replace("y,p,é", "y,p,g").encode("latin-1"), TWO, BINARY),
    "wide without a mark.csv": (pairs().encode("utf-16-le"), TWO, BINARY),
    "two separators.csv": ("y;z,p\n" + "".join(f"{y};1,{p}\n" for y, p in zip(Y, P, strict=True)), (*TWO, "--y-pred", "p", "--y-true", "y;z", "--pos-label", "1;1"), BINARY),
    "parquet by another name.csv": ("PARQUET", TWO, BINARY),
}  # fmt: skip

FILL = {"chance": "chance", "low=?": "low=0.25", "high=?": "high=0.75"}


def content_of(name, content):
    if content == "PARQUET":
        import io

        out = io.BytesIO()
        polars.DataFrame({"y": Y, "p": P}).write_parquet(out)
        return out.getvalue()
    return content if isinstance(content, bytes) else content.encode()


def estimated(run, path, options):
    code, out, err = run("estimate", str(path), *options, "--format", "json")
    return code, out and json.loads(out)["estimates"][0]["value"], err


@pytest.mark.parametrize("name", WORKS)
def test_what_is_meant_is_found(run, tmp_path, name):
    content, options, worth = WORKS[name]
    (tmp_path / name).write_bytes(content_of(name, content))
    code, value, err = estimated(run, tmp_path / name, options)
    assert code == 0, err
    assert value == pytest.approx(worth, rel=1e-9)


VALUE = r"(?: (?:'[^']*'|[^\s,;:]+(?:,[^\s,;:]+)*))?"
OPTION = re.compile(
    rf"--(?:decimal|sep) \S+|--(?:missing|scale|y-pred|pos-label|normalise|encoding|input-format){VALUE}"
)


def followed(message, options):
    """The first option that a message names, put in place of one of the same name; what is open is filled in."""
    words = shlex.split(OPTION.search(message)[0])
    suggestion = re.search(r"did you mean '([^']*)'", message)
    if suggestion:
        words = ["--y-pred", suggestion[1]]
    if words == ["--y-pred"]:
        words = ["--y-pred", re.search(r"has columns (.*?):", message)[1].split(", ")[-1]]
    for gap, value in FILL.items():
        words = [word.replace(gap, value) for word in words]
    kept = list(options)
    if words[0] in kept:
        place = kept.index(words[0])
        del kept[place : place + 2]
        kept = kept if words[0] != "--y-pred" else [word for word in kept if word not in "BCD"]
    return (*kept, *words)


@pytest.mark.parametrize("name", REFUSED)
def test_advice_works_when_it_is_followed(run, tmp_path, name):
    content, options, worth = REFUSED[name]
    (tmp_path / name).write_bytes(content_of(name, content))
    code, _, message = estimated(run, tmp_path / name, options)
    assert code == 2
    assert message.count("\n") == 1
    assert not re.search(r"\b(?:y_true|y_pred|labels|pos_label|scale|missing)=", message), message
    code, value, err = estimated(run, tmp_path / name, followed(message, options))
    assert code == 0, (message, err)
    assert value == pytest.approx(worth, rel=1e-9)


def test_there_are_enough_of_them():
    assert len(WORKS) + len(REFUSED) >= 60
