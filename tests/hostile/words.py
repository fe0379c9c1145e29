"""Command lines: every command and option, with words that are broken in one way."""

import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.hostile.values import DEEP, NUMBERS, TEXTS


class Line(NamedTuple):
    """What is odd about it, the words, and what comes through the pipe."""

    kind: str
    words: tuple[str, ...]
    stdin: bytes | None = None


SETTINGS = [
    *(
        "ECE(",
        "ECE)",
        "ECE",
        "ece()",
        "ECE(15)",
        "ECE(bins=0)",
        "ECE(bins=EqualMass(0))",
        "ECE(EqualMass(-1))",
        "ECE()()",
    ),
    *(
        "ECE(EqualMass(1000000000))",
        "ECE(EqualMass(1e400))",
        "ECE(norm=nan)",
        "ECE(norm='x')",
        "ECE(lens=ECE())",
        "ECE(lens=5)",
    ),
    *(
        "ECE(EqualMass(True))",
        "ECE(norm=0)",
        "ECE(EqualMass(15), EqualMass(15), 3)",
        "ECE(bins=EqualMass(2.5))",
        "SKCE(7)",
    ),
    *("ECE(norm=1, norm=2)", "ECE(*[1])", "ECE(**{})", "ECE(x=1)", "SKCE(Exponential(0))", "SKCE(Exponential(-1))"),
    *(
        "SKCE(Exponential(inf))",
        "SKCE(Exponential('x'))",
        "SKCE(block=0)",
        "SKCE(block=1)",
        "SKCE(block=1000000000000000000000000000000)",
        "Normal(0, 1)",
    ),
    *(
        "SKCE(Exponential(1e-320))",
        "SKCE(Gaussian(1e308))",
        "SKCE(Exponential((0.1, 0.2)))",
        "KDE(bandwidth=0)",
        "KDE(-1)",
    ),
    *(
        "KDE(bandwidth=nan)",
        "Brier()",
        "Brier",
        "LogLoss(7)",
        "ECE(lens=ClassWise())",
        "TopLabel()",
        "Platt()",
        "CRPS()",
    ),
    *(
        "ExactTest(ECE())",
        "ExactTest()",
        "ExactTest(5)",
        "ExactTest(ECE(), 0)",
        "ExactTest(ExactTest(ECE()))",
        "AggregatedTest()",
    ),
    *("HosmerLemeshow()", "Spiegelhalter()", "Variational()", "RankTest()", "BlockTest()", "PairedDifference(Brier())"),
    *(
        "Bootstrap(ECE(), 0)",
        "Edges((0, 1))",
        "ECE(Edges((0, 0.5, 0.5, 1)))",
        "ECE(Edges(()))",
        "ECE(Edges(0.5))",
        "Mixture()",
    ),
    *(
        "__import__('os')",
        "lambda: 0",
        "1 + 1",
        "f'{1}'",
        "None",
        "()",
        "[]",
        "1",
        "''",
        "...",
        "x.y()",
        "(ECE())",
        "ECE();ECE()",
    ),
    *(
        "Isotonic()",
        "Temperature()",
        "Best()",
        "Stack()",
        "OneVsRest(Platt())",
        "OneVsRest(5)",
        "Best((Platt(), 5))",
        "Temperature(5)",
    ),
    *(
        "HistogramBinning(0)",
        "HistogramBinning(EqualMass(3))",
        "SplineScaling(-1)",
        "Platt(penalty=nan)",
        "MatrixScaling()",
    ),
    *("(" * 500, "-" * 3000 + "1", "ECE(" * 300 + ")" * 300, "1" * 5000, DEEP[:3000], "ECE(\x00)", "ECE('\ud800')"),
    *(
        "ECE(bins=\x1b[31m)",
        "é()",
        "𝔼CE()",
        "ECE(\n)",
        "ECE(norm=1e999)",
        "ECE(norm=-inf)",
        "ECE(norm=1j)",
        "ECE(norm=10000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000)",
    ),
]
"""Texts of estimators, tests and recalibrators."""

FAMILIES = [
    *(
        "Normal",
        "Normal(",
        "Normal()",
        "Normal(y)",
        "Normal(y, y)",
        "Normal(p, w)",
        "Normal(p, 0)",
        "Normal(p, -1)",
        "Normal(0, 1)",
    ),
    *(
        "Normal(p, p, p)",
        "Normal(loc=p)",
        "Normal(x=p)",
        "Normal('*', 1)",
        "Normal('p_*', 1)",
        "Normal(g, 1)",
        "Normal(p, 1e400)",
    ),
    *(
        "Normal(p, nan)",
        "Normal(p, 'p')",
        "Ensemble(p)",
        "Ensemble('*')",
        "Quantiles('q_*')",
        "Quantiles('m_*')",
        "Quantiles(p)",
    ),
    *(
        "Quantiles('q_*', levels=(0.1,))",
        "Quantiles('q_*', levels=(0.9, 0.5, 0.1))",
        "Quantiles('q_*', levels=(0, 1, 2))",
    ),
    *(
        "Poisson(p)",
        "Poisson(y)",
        "NegativeBinomial(p, p)",
        "Gamma(p, p)",
        "Beta(p, p)",
        "StudentT(3, p, 1)",
        "Bernoulli('p_*')",
    ),
    *(
        "Categorical('p_*')",
        "Categorical.from_logits('p_*')",
        "Categorical(p)",
        "Mixture((0.5, 0.5), Normal(p, 1))",
        "Mixture(p)",
    ),
    *(
        "Mixture('p_*', Normal('m_*', 1))",
        "Truncated(Normal(p, 1), 0, 1)",
        "Truncated(Normal(p, 1), 1, 0)",
        "Truncated(p, 0, 1)",
    ),
    *(
        "MultivariateNormal(p, p)",
        "Histogram('p_*', edges=(0, 1))",
        "LogNormal(p, 1)",
        "Laplace(p, p)",
        "Uniform(p, p)",
        "Uniform(1, 0)",
    ),
    *(
        "Normal(p, Normal(p, 1))",
        "ECE()",
        "1",
        "x",
        "()",
        "(p, p)",
        "Normal(p,\x00)",
        "Normal((p, p), 1)",
        "Normal(p, (1, 2))",
    ),
]
"""Texts of families of predictions and their columns."""

GATES = [
    *(
        "ECE > 0.05",
        "ECE>",
        ">",
        "ECE",
        "",
        "ECE > nan",
        "ECE > inf",
        "ECE => 1",
        "ECE = 1",
        "pvalue < 0.01",
        "x > 0",
        "ECE > 0 > 1",
    ),
    *(
        "Brier >= 1e400",
        "Brier < -inf",
        "Brier > 0x1",
        "Brier > 1_0",
        " Brier  <  1 ",
        "\x1b[31m > 1",
        "ECE > ½",
        "statistic > 0",
    ),
]

PATIENT = [*("30s", "1", "0", "-1", "1e9", "x", "", "9" * 400, "10min", "1.5s", "٣s", "1 s", "s", "\x1b[31m")]
COUNTS = [*("0", "-1", "1", "2", "1.5", "x", "", "9" * 30, "-" + "9" * 30, "1e3", "٣", "nan", "0x10", "\x1b[31m")]
ENGINES = [
    "threads:2",
    "threads:0",
    "threads:-1",
    "threads:x",
    "threads",
    "x",
    "",
    "processes:0",
    ":",
    "dask:",
    "\x1b[31m",
    "gpus:x",
]
FORMATS = ["table", "json", "markdown", "table", "json", "", "x", "JSON", "\x1b[31m"]

OPTIONS: dict[str, dict[str, Sequence[str]]] = {
    "estimate": {
        "--estimator": SETTINGS,
        "--fail-if": GATES,
        "--format": FORMATS,
        "--seed": COUNTS,
        "--engine": ENGINES,
        "--y-true": [],
        "--y-pred": [],
        "--by": [],
        "--sample-weight": [],
        "--predict": FAMILIES,
        "--pos-label": [],
        "--input-format": ["csv", "jsonl", "npz", "parquet", "x", ""],
        "--interval": ["--interval"],
    },
    "test": {
        "--test": SETTINGS,
        "--fail-if": GATES,
        "--format": FORMATS,
        "--seed": COUNTS,
        "--engine": ENGINES,
        "--alpha": NUMBERS,
        "--by": [],
        "--predict": FAMILIES,
        "--y-pred": [],
        "--n-resamples": COUNTS[:7],
    },
    "monitor": {
        "--alpha": NUMBERS,
        "--window": COUNTS,
        "--save-every": PATIENT,
        "--format": FORMATS,
        "--seed": COUNTS,
        "--strict": ["--strict"],
        "--stop": ["--stop"],
        "--y-true": [],
        "--y-pred": [],
        "--predict": FAMILIES,
        "--title": [],
        "--by": [],
        "--pos-label": [],
        "--input-format": ["csv", "jsonl", "npz", "parquet", "x"],
    },
    "recalibrate": {
        "--method": SETTINGS,
        "--folds": COUNTS,
        "--format": FORMATS[:4],
        "--seed": COUNTS,
        "--engine": ENGINES,
        "--y-true": [],
        "--y-pred": [],
        "--predict": FAMILIES,
        "--force": ["--force"],
        "--level": NUMBERS,
    },
    "report": {
        "--n-resamples": COUNTS[:7],
        "--seed": COUNTS,
        "--fail-if": GATES,
        "--format": FORMATS,
        "--title": [],
        "--id": [],
        "--by": [],
        "--y-true": [],
        "--predict": FAMILIES,
        "--engine": ENGINES,
    },
    "simulate": {
        "--data-sets": COUNTS[:7],
        "--workers": ["0", "-1", "x", "1.5"],
        "--estimator": SETTINGS,
        "--size": COUNTS[:7],
    },
    "plan": {
        "--n": [*COUNTS, "1e7", "1e400"],
        "--k": COUNTS,
        "--kind": ["x", "classes"],
        "--members": COUNTS,
        "--memory": PATIENT,
    },
    "demo": {"--seed": COUNTS[1:2]},
    "completion": {},
    "doctor": {},
}
"""The options of each command and the words that follow them; without any, those of any text."""

QUICK = {
    "test": ("--n-resamples", "19"),
    "report": ("--n-resamples", "99", "--out", "page.json"),
    "recalibrate": ("--method", "Intercept()", "--folds", "2"),
    "simulate": ("--estimator", "ECE()", "--data-sets", "10"),
    "plan": ("--n", "1000"),
}
"""What makes a command affordable."""

NAMED = {
    "demo": ["", "digit", "\x1b[31m", "x" * 300],
    "completion": ["tcsh", "", "bash", "\x00"],
    "doctor": ["--fast", "x"],
}
"""Words of commands that read no file."""


def hostile_line(chance: random.Random, command: str, file: str | None, options: Sequence[str]) -> Line:
    """A command on a file, with one odd option or word, or none."""
    if command in NAMED:
        return Line("word", (command, chance.choice(NAMED[command])))
    known = OPTIONS[command]
    words = [command, *([] if file is None else [file]), *options, *QUICK.get(command, ())]
    way = chance.random()
    if way < 0.8:
        option = chance.choice(list(known))
        value = chance.choice(known[option] or TEXTS)
        if option in words:
            at = words.index(option)
            words[at : at + 2] = []
        return Line(option, (*words, *([option] if value == option else [option, value])))
    if way < 0.9:
        return Line(
            "word", (*words, chance.choice([*TEXTS, "--x", "--seed", "--format=json", "--no-strict", "-", "-h"]))
        )
    words[chance.randrange(1, len(words))] = chance.choice(TEXTS)
    return Line("word", tuple(words))


def hostile_places(folder: Path) -> list[str]:
    """Paths where nothing can be written, or nothing should be."""
    (folder / "folder").mkdir(exist_ok=True)
    if not os.path.lexists(folder / "loop"):
        os.symlink("loop", folder / "loop")
        os.symlink("nowhere", folder / "dangling")
        os.symlink("folder", folder / "link")
    names = [
        "folder",
        "loop",
        "dangling",
        "link",
        "nowhere/x.csv",
        "loop/x.csv",
        "folder/../x.csv",
        "",
        ".",
        "/dev/null",
        "/dev/full",
    ]
    names += [
        "/proc/self/mem",
        "/proc/x",
        "x\x00.csv",
        "x" * 300 + ".csv",
        "\x1b[31m.csv",
        "é.csv",
        "\udc80.csv",
        "x",
        "x.gz",
        "x.CSV",
    ]
    return [
        *names,
        "~/x.csv",
        "-x.csv",
        "x\n.csv",
        "a b.csv",
        "'.csv",
        "[x].csv",
        "x.html",
        "x.pdf.json",
        "x.md",
        "x.json",
        "x.npz",
    ]
