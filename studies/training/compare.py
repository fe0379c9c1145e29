"""Training with calibration losses: what came out, tables 2 to 4 and figure 4 of Popordanoska, Sayer & Blaschko (2022).

Written by ``python -m studies.training.compare MEASURED RUNS [RUNS ...] --out FOLDER``. MEASURED is the file of lines that
``measure`` wrote, RUNS are the JSON files of ``train``.

Losses of the same seed began with the same weights and saw the same images in the same order. Beside every mean stands its
standard error over seeds, and differences are taken within seeds: they are called lower or higher where Student's test of the
differences rejects at 5 %. Of KDE-XE, the weight is chosen whose canonical error (`Variational`) on validation images is least,
among those whose accuracy there is within a point of cross-entropy's. Errors are those of the test images; "paper" is the
estimate of the paper, with the likeliest bandwidth.

The paper claims that KDE-XE has a lower canonical error than cross-entropy, MMCE and the focal loss at the same accuracy; that
temperature scaling does not lower it; and that the term costs a few percent of the time of an epoch.
"""

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import t

from calibrant.results import Table
from studies import pictures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = {
    "xe": "XE", "kde": "KDE-XE", "kde-narrow": "KDE-XE, narrow", "mmce": "MMCE", "fl53": "FL-53", "ls": "label smoothing",
    "skce": "SKCE-XE",
}  # fmt: skip
"""What pages call losses."""

COLUMNS = {
    "accuracy": ("accuracy, %", 100),
    "log_loss": ("log loss", 1),
    "canonical_kde": ("canonical, paper", 1),
    "canonical_variational": ("canonical, Variational", 1),
    "top_label_width": ("top label, %", 100),
    "class_wise_width": ("class-wise, %", 100),
}
"""Measures in tables: their titles and units."""

WITHIN = 0.01
"""Of the accuracy of cross-entropy, for a weight to be chosen."""

BASE = "xe", 0.0

CANONICAL = "canonical_variational"
"""The estimate that decides."""


@dataclass(frozen=True, order=True)
class Kind:
    """Runs that differ in their seed alone."""

    network: str
    epochs: int
    augments: bool
    loss: str
    weight: float

    @property
    def schedule(self) -> tuple[str, int, bool]:
        """What losses that are compared have in common."""
        return self.network, self.epochs, self.augments

    @property
    def name(self) -> str:
        """For tables.

        >>> Kind("tiny", 16, True, "kde", 0.05).name, Kind("tiny", 16, True, "fl53", 0.0).name
        ('KDE-XE, 0.05', 'FL-53')
        """
        return NAMES[self.loss] + (f", {self.weight:g}" if self.weight else "")


@dataclass(frozen=True, eq=False)
class Runs:
    """What was measured: by kind and by whether the temperature was scaled, by seed, a number by its name."""

    found: dict[tuple[Kind, bool], dict[int, dict[str, float]]] = field(default_factory=dict)

    @classmethod
    def read(cls, measured: Path, plans: Iterable[Path]) -> "Runs":
        """Lines of ``measure``, with what ``train`` says of their runs."""
        plan: dict[str, dict[str, Any]] = {}
        for path in plans:
            plan |= json.loads(path.read_text("utf-8"))["runs"]
        runs = cls()
        for text in measured.read_text("utf-8").splitlines():
            line = json.loads(text)
            run = plan[line["run"]]
            kind = Kind(*(run[name] for name in ("network", "epochs", "augments", "loss", "weight")))
            runs.found.setdefault((kind, line["after"]), {})[run["seed"]] = line
        return runs

    def schedules(self) -> list[tuple[str, int, bool]]:
        """Of more than one loss, in order."""
        bases = [kind.schedule for kind, after in self.found if (kind.loss, kind.weight) == BASE and not after]
        return [one for one in bases if sum(kind.schedule == one for kind, _ in self.found) > 2]

    def kinds(self, schedule: tuple[str, int, bool]) -> list[Kind]:
        """Of a schedule, cross-entropy first, as far as there are two seeds."""
        kinds = {kind for (kind, after), seeds in self.found.items() if kind.schedule == schedule and len(seeds) > 1}
        order = list(NAMES)
        return sorted(kinds, key=lambda kind: (order.index(kind.loss), kind.weight))

    def values(self, kind: Kind, name: str, after: bool = False) -> dict[int, float]:
        """By seed."""
        return {seed: line[name] for seed, line in self.found[kind, after].items()}

    def chosen(self, schedule: tuple[str, int, bool], loss: str) -> Kind:
        """The weight of a loss that the validation images choose."""
        kinds = self.kinds(schedule)
        least = mean(self.values(kinds[0], "validation_accuracy"))[0] - WITHIN
        tried = [kind for kind in kinds if kind.loss == loss]
        kept = [kind for kind in tried if mean(self.values(kind, "validation_accuracy"))[0] >= least]
        return min(kept or tried, key=lambda kind: mean(self.values(kind, "validation_canonical"))[0])

    def table(self, schedule: tuple[str, int, bool], after: bool) -> Table:
        """Means with standard errors, and in how many seeds each exact test rejects at 5 %."""
        rows = []
        for kind in self.kinds(schedule):
            row: dict[str, Any] = {"loss": kind.name}
            row |= {title: pm(mean(self.values(kind, n, after)), unit) for n, (title, unit) in COLUMNS.items()}
            for test in ("p_top_label", "p_canonical"):
                p = list(self.values(kind, test, after).values())
                row[f"rejected, {test[2:].replace('_', ' ')}"] = f"{sum(x <= 0.05 for x in p)} of {len(p)}"
            rows.append(row)
        return Table({name: [row[name] for row in rows] for name in rows[0]})

    def differences(self, schedule: tuple[str, int, bool], after: bool) -> Table:
        """KDE-XE, with the weight chosen, less every other loss, within seeds."""
        chosen, rows = self.chosen(schedule, "kde"), []
        for kind in self.kinds(schedule):
            if kind.loss != "kde":
                row = {f"{chosen.name} less": kind.name}
                for name, (title, unit) in COLUMNS.items():
                    one, other = (self.values(k, name, after) for k in (chosen, kind))
                    row[title] = pm(mean({s: one[s] - other[s] for s in one.keys() & other.keys()}), unit, sign="+")
                rows.append(row)
        return Table({name: [row[name] for row in rows] for name in rows[0]})

    def lines(self) -> Iterator[dict[str, Any]]:
        """All of it, one line a run."""
        for (kind, after), seeds in self.found.items():
            for seed, line in sorted(seeds.items()):
                settings = {"network": kind.network, "epochs": kind.epochs, "augments": kind.augments}
                numbers = {k: v for k, v in line.items() if k not in ("run", "after")}
                yield settings | {"loss": kind.loss, "weight": kind.weight, "seed": seed, "after": after} | numbers


def mean(values: dict[int, float]) -> tuple[float, float]:
    """Over seeds, with its standard error."""
    x = np.array(list(values.values()))
    return float(x.mean()), float(x.std(ddof=1) / len(x) ** 0.5) if len(x) > 1 else float("nan")


def pm(found: tuple[float, float], unit: float = 1, sign: str = "") -> str:
    """In words.

    >>> pm((0.612, 0.003), 100), pm((0.012, 0.003), sign="+")
    ('61.20 ± 0.30', '+0.0120 ± 0.0030')
    """
    digits = 2 if unit > 1 else 4
    return f"{unit * found[0]:{sign}.{digits}f} ± {unit * found[1]:.{digits}f}"


def figure(runs: Runs, schedule: tuple[str, int, bool]) -> "Figure":
    """Figure 4: the canonical error against the accuracy, a point a loss and weight; two standard errors to each side."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    kinds = runs.kinds(schedule)
    losses = list(dict.fromkeys(kind.loss for kind in kinds))
    with mpl.rc_context(pictures.STYLE):
        drawn = Figure(figsize=(9.2, 8.0), layout="constrained")
        grid = drawn.subplots(2, 2, sharex=True, sharey="row")
        for axes_row, name in zip(grid, ("canonical_kde", "canonical_variational"), strict=True):
            for axes, after in zip(axes_row, (False, True), strict=True):
                for i, loss in enumerate(losses):
                    here = [kind for kind in kinds if kind.loss == loss]
                    x, y = (np.array([mean(runs.values(k, n, after)) for k in here]) for n in ("accuracy", name))
                    style = {"color": pictures.COLOURS[i], "marker": pictures.MARKERS[i], "linestyle": ":"}
                    error = {"yerr": 2 * y[:, 1], "xerr": 200 * x[:, 1], "elinewidth": 1, "capsize": 2}
                    axes.errorbar(100 * x[:, 0], y[:, 0], label=NAMES[loss], **error, **style)
                    for kind, at, up in zip(here, 100 * x[:, 0], y[:, 0], strict=True):
                        if len(here) > 1:
                            axes.annotate(
                                f"{kind.weight:g}", (at, up), xytext=(4, 5), textcoords="offset points", fontsize=8
                            )
                axes.set_title("after temperature scaling" if after else "as trained")
            axes_row[0].set_ylabel(f"canonical error, {'paper' if name.endswith('kde') else 'Variational'}")
        for axes in grid[-1]:
            axes.set_xlabel("accuracy, %")
        handles, labels = grid[0, 0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    return drawn


def compared(one: dict[int, float], other: dict[int, float], unit: float = 1) -> str:
    """How numbers of the same seeds differ, in words.

    >>> compared({0: 0.51, 1: 0.52, 2: 0.52, 3: 0.53}, {0: 0.5, 1: 0.5, 2: 0.5, 3: 0.5})
    'higher by 0.0200 ± 0.0041'
    >>> compared({0: 0.4, 1: 0.6}, {0: 0.5, 1: 0.5})
    'not told apart (+0.0000 ± 0.1000)'
    """
    gaps = {seed: one[seed] - other[seed] for seed in one.keys() & other.keys()}
    middle, error = mean(gaps)
    if abs(middle) <= t.isf(0.025, len(gaps) - 1) * error:
        return f"not told apart ({pm((middle, error), unit, sign='+')})"
    return f"{'higher' if middle > 0 else 'lower'} by {pm((abs(middle), error), unit)}"


def verdict(runs: Runs, schedule: tuple[str, int, bool]) -> list[str]:
    """What became of the paper's claims."""
    kinds, chosen = runs.kinds(schedule), runs.chosen(schedule, "kde")

    def against(kind: Kind, name: str, after: bool = False, unit: float = 1) -> str:
        return compared(runs.values(chosen, name, after), runs.values(kind, name, after), unit)

    lines = [
        f"* {chosen.name} against {kind.name}: accuracy is {against(kind, 'accuracy', unit=100)}; canonical error is "
        f"{against(kind, CANONICAL)}; after temperature scaling it is {against(kind, CANONICAL, after=True)}."
        for kind in kinds
        if kind.loss != "kde"
    ]
    for kind in (kinds[0], chosen):
        told = [
            compared(runs.values(kind, name, True), runs.values(kind, name)) for name in (CANONICAL, "canonical_kde")
        ]
        lines.append(
            f"* Temperature scaling of {kind.name}: canonical error is {told[0]}; as the paper estimates it, {told[1]}."
        )
    return lines


def page(runs: Runs, seconds: dict[str, float], name: str) -> str:
    """All of it."""
    title, _, text = (__doc__ or "").strip().partition("\n\n")
    parts = [f"# {title}", text]
    for schedule in runs.schedules():
        network, epochs, augments = schedule
        seeds = {len(runs.found[kind, False]) for kind in runs.kinds(schedule)}
        how_many = f"{min(seeds)} seeds" if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)} seeds"
        parts += [
            f"## {network}, {epochs} epochs{'' if augments else ' without crops'}, {how_many}",
            "\n".join(verdict(runs, schedule)),
        ]
        parts += [f"![The canonical error against the accuracy]({name}-{network}.svg)"]
        for after in (False, True):
            parts += ["After temperature scaling:" if after else "As trained:"]
            parts += [runs.table(schedule, after).to_markdown(), runs.differences(schedule, after).to_markdown()]
        timed = {key.removeprefix(f"{network}_"): s for key, s in seconds.items() if key.startswith(f"{network}_")}
        if timed:
            told = ", ".join(
                f"{NAMES[loss]} {s:.3f} ({100 * (s / timed['xe'] - 1):+.1f} %)" for loss, s in timed.items()
            )
            parts += [f"Seconds of an epoch, the least of two: {told}."]
    return "\n\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare."""
    parser = argparse.ArgumentParser(prog="python -m studies.training.compare")
    parser.add_argument("measured", type=Path)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True, help="a folder for the page, the pictures and a CSV")
    parser.add_argument("--name", default="training-losses", help="of the files that are written")
    given = parser.parse_args(arguments)
    runs = Runs.read(given.measured, given.runs)
    given.out.mkdir(parents=True, exist_ok=True)
    lines = list(runs.lines())
    with (given.out / f"{given.name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in line.items()} for line in lines)
    seconds: dict[str, float] = {}
    for path in given.runs:
        seconds |= json.loads(path.read_text("utf-8"))["seconds"]
    (given.out / f"{given.name}.md").write_text(page(runs, seconds, given.name), "utf-8")
    for schedule in runs.schedules():
        (given.out / f"{given.name}-{schedule[0]}.svg").write_text(pictures.svg(figure(runs, schedule)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
