"""Which recalibration do estimators prefer, on networks: figure 2 and the form of tables 4 to 7 of Roelofs et al. (2022).

``python -m studies.roelofs.networks [FILE ...] [--splits 100] [--out FOLDER]`` takes the logits of small networks in
``studies/networks`` (on CIFAR-10, by `train --plan networks`), and besides a file of predictions for each further network, in any
format that calibrant reads (arrays ``predictions`` and ``ground_truth``, or as ``--y-pred`` and ``--y-true`` say).

In every split, rows drawn at random fit temperature scaling, isotonic regression and histogram binning (the latter two one class
against the rest, fifteen bins of equal mass), and the others measure the confidence: 5,000 and 10,000 rows of the small networks,
as of CIFAR-10 in the paper, and halves of other files. The logits of the paper's ten networks are not public: numbers are those
of other networks, and what can be compared is the pattern. All of the paper's have an error of 4 points or more before
recalibration; that of most of the small ones is less.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from calibrant import ECE, EqualWidth, Sweep, TopLabel, io
from calibrant.distributions import Categorical, Distribution
from calibrant.recalibration import HistogramBinning, Isotonic, OneVsRest, Recalibrator, Temperature
from calibrant.results import Table
from studies import pictures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEPT = Path(__file__).parents[1] / "networks"
"""Logits that are part of the project."""

EW, SWEEP = "15 bins, equal width", "sweep, equal mass"
ESTIMATORS = {EW: ECE(EqualWidth(15), lens=TopLabel()), SWEEP: ECE(Sweep(), lens=TopLabel())}

AS_THEY_ARE = "as they are"
RECALIBRATIONS: dict[str, Recalibrator | None] = {
    AS_THEY_ARE: None,
    "temperature": Temperature(),
    "isotonic": OneVsRest(Isotonic()),
    "histogram binning": OneVsRest(HistogramBinning(15, pseudocount=0)),
}

SHARE = 0.1
"""Of the rows in small samples."""

ALL, FEW = "all rows", f"{100 * SHARE:.0f} %"

PAPER_DISAGREES = {ALL: "in 30 % of ten networks", FEW: "in 22 % of samples"}
PAPER_GAPS = dict(
    zip(RECALIBRATIONS, ("at most 0.7 % more", "-3 to 73 % more", "0 to 37 % more", "0 to 21 % more"), strict=True)
)
"""What the fifteen bins find more than the sweep."""

LEAST = 4
"""Points of error of every network of the paper before recalibration."""

Found = dict[str, dict[str, np.ndarray]]
"""By network and sample, points ``(splits, recalibrations, estimators)``."""


@dataclass(frozen=True, eq=False)
class Network:
    """Predictions, outcomes, and the share of the rows that fits."""

    name: str
    predictions: Categorical
    y: np.ndarray
    fits: float = 0.5

    @classmethod
    def kept(cls, path: Path) -> "Network":
        """Of both parts of a file of ``studies.training.kept``: no row was trained on."""
        with np.load(path) as file:
            logits, y = (
                np.concatenate([file[f"{kind}_{part}"] for part in ("validation", "test")])
                for kind in ("logits", "labels")
            )
            fits = len(file["labels_validation"]) / len(y)
        return cls(path.stem, Categorical.from_logits(logits.astype(np.float64)), y.astype(np.int64), fits)

    def described(self) -> dict[str, object]:
        """A row of the table of networks."""
        hit, confidence = TopLabel()(self.y, self.predictions)
        right, claimed = 100 * float(np.mean(hit)), 100 * float(np.mean(np.asarray(confidence.probs)))
        return {
            "network": self.name,
            "rows": f"{len(self.y):,}",
            "accuracy, %": f"{right:.1f}",
            "confidence, %": f"{claimed:.1f}",
            "confidence - accuracy": f"{claimed - right:+.1f}",
        }


def errors(network: Network, rows: np.ndarray) -> np.ndarray:
    """Points that each estimator finds after each recalibration, fitted on the first of the rows, ``(recalibrations, 2)``."""
    predictions, y = network.predictions, network.y
    fitted, tested = np.split(rows, [round(network.fits * len(rows))])
    found = []
    for recalibrator in RECALIBRATIONS.values():
        after: Distribution = predictions[tested]
        if recalibrator is not None:
            after = recalibrator.fit(y[fitted], predictions[fitted], folds=0).map.apply(after)
        found.append([100 * float(estimator(y[tested], after)) for estimator in ESTIMATORS.values()])
    return np.array(found)


def measured(network: Network, splits: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Those of splits of all rows, and of a tenth of them, ``(splits, recalibrations, 2)`` each."""
    rng, n = np.random.default_rng(seed), len(network.y)
    sizes = {ALL: n, FEW: round(SHARE * n)}
    return {
        sample: np.array([errors(network, rng.permutation(n)[:size]) for _ in range(splits)])
        for sample, size in sizes.items()
    }


def best(values: np.ndarray) -> np.ndarray:
    """The place of the recalibration preferred in each split by each estimator, ``(splits, 2)``."""
    return 1 + values[:, 1:, :].argmin(axis=1)  # of those recalibrated


def preferred(found: Found) -> Table:
    """Figure 2: in how many splits each recalibration is best by each estimator, and in how many these disagree."""
    rows, names = [], list(RECALIBRATIONS)
    for network, samples in found.items():
        for sample, values in samples.items():
            chosen = best(values)
            votes = [
                ", ".join(f"{names[i]} {np.sum(column == i)}" for i in range(1, len(names)) if np.any(column == i))
                for column in chosen.T
            ]
            disagree = int(np.sum(chosen[:, 0] != chosen[:, 1]))
            rows.append((network, sample, *votes, f"{disagree} of {len(chosen)}"))
    return Table(dict(zip(("network", "rows", *ESTIMATORS, "disagree"), zip(*rows, strict=True), strict=True)))


def gaps(found: Found, recalibration: int) -> np.ndarray:
    """What the bins find more than the sweep, in points and as a percentage, by network, ``(networks, 2)``."""
    x, y = np.array([samples[ALL][:, recalibration, :].mean(axis=0) for samples in found.values()]).T
    return np.stack([x - y, 100 * (x - y) / x], axis=1)


def differences(found: Found) -> Table:
    """Tables 4 to 7: both errors after each recalibration, means over splits with the standard deviation between them.

    In parentheses, the place of the network in the order of the means, as in the paper.
    """
    rows = []
    for i, name in enumerate(RECALIBRATIONS):
        values = np.array([samples[ALL][:, i, :] for samples in found.values()])  # networks, splits, estimators
        places = values.mean(axis=1).argsort(axis=0).argsort(axis=0)
        for network, of_network, place, (gap, part) in zip(found, values, places, gaps(found, i), strict=True):
            cells = (f"{x.mean():.2f} ± {x.std(ddof=1):.2f} ({k})" for x, k in zip(of_network.T, place, strict=True))
            rows.append((name, network, *cells, f"{gap:+.2f}", f"{part:+.1f} %"))
    columns = ("recalibration", "network", *ESTIMATORS, "x - y", "of x")
    return Table(dict(zip(columns, zip(*rows, strict=True), strict=True)))


def claims(found: Found) -> Table:
    """What the paper says, and what came out."""
    rows = []
    for sample, paper in PAPER_DISAGREES.items():
        chosen = np.concatenate([best(samples[sample]) for samples in found.values()])
        apart, n = int(np.sum(chosen[:, 0] != chosen[:, 1])), len(chosen)
        rows.append(
            (
                f"{sample}: estimators prefer another recalibration",
                paper,
                f"in {apart} of {n} splits, {100 * apart / n:.0f} %",
            )
        )
    largest = {n: samples for n, samples in found.items() if samples[ALL][:, 0, 0].mean() >= LEAST}
    for i, name in enumerate(RECALIBRATIONS):
        low, high = np.sort(gaps(found, i)[:, 1])[[0, -1]]
        rows.append((f"{name}: the bins find more than the sweep", PAPER_GAPS[name], f"{low:.1f} to {high:.1f} % more"))
    if largest:
        low, high = np.sort(gaps(largest, 0)[:, 1])[[0, -1]]
        what = f"{AS_THEY_ARE}, networks of {LEAST:g} points or more: the bins find more"
        rows.append((what, PAPER_GAPS[AS_THEY_ARE], f"{low:.1f} to {high:.1f} % more"))
    return Table(dict(zip(("what", "the paper", "here"), zip(*rows, strict=True), strict=True)))


def figure(found: Found) -> "Figure":
    """Figure 2: a bar a network and estimator, its parts the splits in which each recalibration is preferred."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    names, labels = list(RECALIBRATIONS), ("15 bins", "sweep")
    with mpl.rc_context(pictures.STYLE | {"axes.grid": False}):
        drawn = Figure(figsize=(9.2, 0.62 * len(found) + 1.1), layout="constrained")
        for axes, sample in zip(drawn.subplots(1, 2, sharey=True), (ALL, FEW), strict=True):
            for row, samples in enumerate(found.values()):
                chosen = best(samples[sample])
                counts = np.stack([(chosen == i).mean(axis=0) for i in range(1, len(names))])
                for side, at in enumerate((row - 0.19, row + 0.19)):
                    start = 0.0
                    for i, part in enumerate(counts[:, side]):
                        label = names[i + 1] if (row, side) == (0, 0) else None
                        axes.barh(at, part, 0.34, start, color=pictures.COLOURS[i], label=label)
                        start += part
                    axes.text(1.02, at, labels[side], va="center", fontsize=7.5, color="#555555")
            axes.set(title=f"{sample}", xlabel="share of splits", xlim=(0, 1), ylim=(len(found) - 0.5, -0.5))
            axes.set_yticks(range(len(found)), list(found))
            axes.tick_params(axis="y", length=0)
        drawn.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return drawn


def page(networks: Sequence[Network], found: Found) -> str:
    """The tables in words."""
    title, _, text = (__doc__ or "").strip().partition("\n\n")
    splits = len(next(iter(found.values()))[ALL])
    described = [network.described() for network in networks]
    parts = [
        f"# {title}",
        text,
        f"Of {splits} splits. Errors are L1, in points.",
        claims(found).to_markdown(),
        "## The networks",
        Table({key: [row[key] for row in described] for key in described[0]}).to_markdown(),
        "## Figure 2: the recalibration preferred",
        "![The share of splits in which each recalibration is preferred, by network and estimator](roelofs-networks.svg)",
        preferred(found).to_markdown(),
        "## Tables 4 to 7: what both estimators find",
        "Means over splits and standard deviations between them; in parentheses the place of the network, from the least error.",
        differences(found).to_markdown(),
    ]
    return "\n\n".join(parts) + "\n"


def _read(paths: Sequence[Path], y_true: str, y_pred: str) -> Iterator[Network]:
    for path in paths:
        data = io.read(path, y_true=y_true, y_pred=y_pred)
        if not isinstance(data.y_pred, Categorical):
            raise SystemExit(f"{path} must hold class probabilities; it holds {data.y_pred!r}")
        yield Network(path.stem, data.y_pred, np.asarray(data.y_true))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the networks and print the tables, or write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.roelofs.networks", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--y-true", default="ground_truth")
    parser.add_argument("--y-pred", default="predictions")
    parser.add_argument("--out", type=Path, help="folder for roelofs-networks.md and its picture")
    given = parser.parse_args(arguments)
    if given.splits < 2:
        parser.error(f"--splits must be at least 2; got {given.splits}")
    if missing := [str(path) for path in given.files if not path.exists()]:
        parser.error(f"there is no file {missing[0]}: give files of predictions")
    networks = [Network.kept(path) for path in sorted(KEPT.glob("*.npz"))]
    networks += _read(given.files, given.y_true, given.y_pred)
    found = {network.name: measured(network, given.splits) for network in networks}
    if given.out is None:
        sys.stdout.write(page(networks, found))
    else:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "roelofs-networks.md").write_text(page(networks, found), "utf-8")
        (given.out / "roelofs-networks.svg").write_text(pictures.svg(figure(found)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
