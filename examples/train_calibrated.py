"""Train small networks with and without a calibration loss, and see what it does to accuracy and calibration.

Two tasks: handwritten digits with noise and a hidden patch, 600 of them to learn from; a table of 20 columns where a
fifth of the labels is drawn at random. Networks learn these by heart and are then too confident. Each loss is tried with
several weights; the weight that is reported is chosen on validation rows, and all numbers are of test rows.

Run with scikit-learn, torch and matplotlib: ``python examples/train_calibrated.py``; ``--quick`` for a glimpse.
"""

import argparse
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_digits, make_classification
from torch import Tensor, nn

from calibrant import KDE, SKCE, Categorical, ExactTest
from calibrant.estimators import MMCE
from calibrant.kernels import Exponential
from calibrant.losses import CalibrationLoss, FocalLoss, LabelSmoothing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Rows: TypeAlias = tuple[Tensor, Tensor]
"""Features and labels."""

Loss: TypeAlias = Callable[[Tensor, Tensor], Tensor]

MEASURE = KDE(p=1, bandwidth=0.03, debias=False)
"""The canonical error that is reported, with the same bandwidth for all."""


def digits(seed: int) -> tuple[Rows, Rows, Rows]:
    """600 digits to learn from, 300 to choose by, 897 to test on; a patch of each is hidden, and there is noise."""
    pixels, labels = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))
    images = pixels[order].reshape(-1, 8, 8) / 16
    for image, (row, column) in zip(images, rng.integers(0, 6, (len(images), 2)), strict=True):
        image[row : row + 3, column : column + 3] = 0
    return _split((images + rng.normal(scale=0.25, size=images.shape)).reshape(-1, 64), labels[order], 600, 300)


def tabular(seed: int) -> tuple[Rows, Rows, Rows]:
    """1,000 rows to learn from, 500 to choose by, 1,500 to test on; 4 classes, a fifth of the labels at random."""
    features, labels = make_classification(
        3000, 20, n_informative=8, n_redundant=4, n_classes=4, flip_y=0.2, random_state=seed
    )
    return _split((features - features.mean(axis=0)) / features.std(axis=0), labels, 1000, 500)


def _split(features: np.ndarray, labels: np.ndarray, *sizes: int) -> tuple[Rows, Rows, Rows]:
    x, y = torch.tensor(features, dtype=torch.float32), torch.tensor(labels)
    first, second = sizes[0], sizes[0] + sizes[1]
    return (x[:first], y[:first]), (x[first:second], y[first:second]), (x[second:], y[second:])


TASKS = {"digits": digits, "tabular": tabular}

LOSSES: dict[str, tuple[Callable[[float], Loss], tuple[float, ...]]] = {
    "XE": (lambda _: nn.CrossEntropyLoss(), (0,)),
    "label smoothing": (LabelSmoothing, (0.05, 0.1)),
    "FL-53": (lambda _: FocalLoss(), (0,)),
    "MMCE": (partial(CalibrationLoss, MMCE()), (0.5, 1, 2, 4)),
    "SKCE-XE": (partial(CalibrationLoss, SKCE(Exponential(0.5))), (4, 16, 32)),
    "KDE²-XE": (partial(CalibrationLoss, KDE(p=2, bandwidth=0.05, root=False)), (0.5, 1, 2, 4)),
    "KDE-XE": (partial(CalibrationLoss, KDE(bandwidth=0.05, debias=False)), (0.2, 0.4, 0.6, 0.8)),
}
"""Losses as functions of their weight, and the weights that are tried."""


def train(rows: Rows, loss: Loss, seed: int, epochs: int) -> nn.Module:
    """Two hidden layers, Adam, batches of about 256 rows: the loss is all that differs."""
    torch.manual_seed(seed)
    x, y = rows
    layers = [nn.Linear(x.shape[1], 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, int(y.max()) + 1)]
    network = nn.Sequential(*layers)
    optimiser = torch.optim.Adam(network.parameters())
    for _ in range(epochs):
        for batch in torch.randperm(len(x)).chunk(round(len(x) / 256)):
            optimiser.zero_grad()
            loss(network(x[batch]), y[batch]).backward()
            optimiser.step()
    return network


def temperature(logits: Tensor, labels: Tensor) -> float:
    """The divisor of the logits with the least log loss."""

    def log_loss(log_temperature: float) -> float:
        return float(nn.functional.cross_entropy(logits / np.exp(log_temperature), labels))

    return float(np.exp(minimize_scalar(log_loss, bounds=(-3, 3), method="bounded").x))


@dataclass(frozen=True)
class Run:
    """One training run and what came of it; pairs are before and after temperature scaling."""

    task: str
    loss: str
    weight: float
    seed: int
    accuracy: float
    error: tuple[float, float]
    by_chance: tuple[float, float]
    pvalue: tuple[float, float]
    temperature: float
    validation: tuple[float, float]
    """Accuracy and error on validation rows."""


def run(job: tuple[str, str, float, int], epochs: int, most: int | None = None) -> Run:
    """Train once, then measure on all test rows, or on so many."""
    torch.set_num_threads(1)
    task, name, weight, seed = job
    learn, choose, test = TASKS[task](seed)
    network = train(learn, LOSSES[name][0](weight), seed, epochs)
    with torch.no_grad():
        held, logits = network(choose[0]), network(test[0])
    scale = temperature(held, choose[1])
    measured = [measure(logits[:most] / t, test[1][:most], seed) for t in (1.0, scale)]
    return Run(
        *job,
        _accuracy(logits, test[1]),
        *((before, after) for before, after in zip(*measured, strict=True)),
        scale,
        (_accuracy(held, choose[1]), MEASURE(choose[1], torch.softmax(held, 1)).value),
    )


def measure(logits: Tensor, labels: Tensor, seed: int) -> tuple[float, float, float]:
    """The canonical error, what a calibrated model with these predictions would show, and the p-value of the SKCE."""
    y, predictions = labels.numpy(), Categorical(torch.softmax(logits.double(), 1).numpy())
    resampled = predictions.sample(np.random.default_rng(seed), 20)
    error, *by_chance = MEASURE.given(predictions, None)(
        np.vstack([y, resampled])
    )  # all at once: predictions are shared
    test = ExactTest(SKCE(), n_resamples=99)(y, predictions, rng=seed)
    return float(error), float(np.mean(by_chance)), test.pvalue


def _accuracy(logits: Tensor, labels: Tensor) -> float:
    return float((logits.argmax(1) == labels).double().mean())


def mean_and_error(values: Iterable[float]) -> tuple[float, float]:
    """Over seeds."""
    x = np.array(list(values))
    return float(x.mean()), float(x.std(ddof=1) / np.sqrt(len(x))) if len(x) > 1 else 0.0


def chosen(runs: list[Run], task: str, loss: str) -> list[Run]:
    """The runs of the weight with the least error on validation rows, of those as accurate there as XE, less one error."""
    plain, plain_error = mean_and_error(r.validation[0] for r in runs if (r.task, r.loss) == (task, "XE"))
    groups = [[r for r in runs if (r.task, r.loss, r.weight) == (task, loss, w)] for w in LOSSES[loss][1]]
    groups = [group for group in groups if group]
    accurate = [g for g in groups if mean_and_error(r.validation[0] for r in g)[0] >= plain - plain_error]
    return min(accurate or groups, key=lambda group: mean_and_error(r.validation[1] for r in group)[0])


def table(runs: list[Run], task: str) -> str:
    """Means and standard errors over seeds, as Markdown; numbers before and after temperature scaling."""
    lines = [
        "| loss | weight | accuracy, % | canonical L1 | by chance | p-value | T | then: canonical L1 | by chance | p-value |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in LOSSES:
        best = chosen(runs, task, name)
        cells = [
            name,
            f"{best[0].weight:g}" if best[0].weight else "",
            _cell((100 * r.accuracy for r in best), 1),
            *_cells_of_errors(best, 0),
            _cell((r.temperature for r in best), 2),
            *_cells_of_errors(best, 1),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _cells_of_errors(runs: list[Run], when: int) -> tuple[str, str, str]:
    by_chance, _ = mean_and_error(r.by_chance[when] for r in runs)
    pvalue, _ = mean_and_error(r.pvalue[when] for r in runs)
    return _cell((r.error[when] for r in runs), 3), f"{by_chance:.3f}", f"{pvalue:.2f}"


def _cell(values: Iterable[float], places: int) -> str:
    mean, error = mean_and_error(values)
    return f"{mean:.{places}f} ± {error:.{places}f}"


def difference(runs: list[Run], task: str) -> str:
    """KDE-XE less XE, seed by seed: the same rows and the same first weights."""
    plain, kde = ({r.seed: r for r in chosen(runs, task, name)} for name in ("XE", "KDE-XE"))
    error = _cell((kde[seed].error[0] - plain[seed].error[0] for seed in plain), 3)
    accuracy = _cell((100 * (kde[seed].accuracy - plain[seed].accuracy) for seed in plain), 1)
    return f"KDE-XE less XE, by seed: canonical L1 {error}, accuracy {accuracy} points"


STYLES = {
    "XE": ("#1f1f1f", "*", 13, (0, 0)),
    "label smoothing": ("#9b9a97", "P", 8, (4, 5)),
    "FL-53": ("#e0a800", "X", 8, (0, 0)),
    "MMCE": ("#6940a5", "s", 5.5, (-6, -12)),
    "SKCE-XE": ("#0f7b6c", "D", 5.5, (4, -12)),
    "KDE²-XE": ("#d9730d", "^", 7, (6, 3)),
    "KDE-XE": ("#0b6e99", "o", 6.5, (-9, 7)),
}
"""Colour, marker and its size, and where the weight is written."""

LOST = 4.0
"""Points of accuracy below XE beyond which a run is not drawn."""

MEASURES: dict[str, Callable[[Run], float]] = {
    "canonical L1 error": lambda r: r.error[0],
    "the same, less what chance alone would show": lambda r: r.error[0] - r.by_chance[0],
}


def figure(runs: list[Run], path: Path) -> None:
    """Accuracy against error: a column per task, a row per measure, a line per loss, a point per weight, with standard errors."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style = {"svg.hashsalt": "calibrant", "axes.spines.top": False, "axes.spines.right": False, "font.size": 10}
    with mpl.rc_context(style | {"axes.edgecolor": "#999999", "axes.axisbelow": True}):
        drawing = Figure(figsize=(11, 9), layout="constrained")
        panels = drawing.subplots(len(MEASURES), len(TASKS), squeeze=False)
        for row, (label, error) in zip(panels, MEASURES.items(), strict=True):
            for panel, task in zip(row, TASKS, strict=True):
                _draw(panel, [r for r in runs if r.task == task], error)
                panel.set_xlabel(label)
            row[0].set_ylabel("accuracy on test rows, %")
        for panel, task in zip(panels[0], TASKS, strict=True):
            panel.set_title(task, loc="left", fontweight="bold")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        drawing.legend(handles, labels, loc="outside upper center", ncols=len(LOSSES), frameon=False)
        drawing.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=150)
    if path.suffix == ".svg":
        path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")


def _draw(panel: "Axes", runs: list[Run], error: Callable[[Run], float]) -> None:
    """One panel; runs that have lost many points of accuracy are told in words. Rings mark the weights chosen."""
    least = 100 * np.mean([r.accuracy for r in runs if r.loss == "XE"]) - LOST
    lost = []
    for name, (_, weights) in LOSSES.items():
        groups = [group for w in weights if (group := [r for r in runs if (r.loss, r.weight) == (name, w)])]
        heights = [mean_and_error(100 * r.accuracy for r in group) for group in groups]
        lost += [f"{name} {g[0].weight:g} ({y[0]:.0f} %)" for g, y in zip(groups, heights, strict=True) if y[0] < least]
        kept = [(g[0].weight, mean_and_error(map(error, g)), y) for g, y in zip(groups, heights, strict=True)]
        kept = [point for point in kept if point[2][0] >= least]
        ringed = chosen(runs, runs[0].task, name)[0].weight if len(weights) > 1 else None
        if kept:
            _draw_line(panel, name, kept, ringed)
    panel.grid(color="#ececec")
    if lost:
        panel.text(0.01, 0.02, f"below: {', '.join(lost)}", transform=panel.transAxes, fontsize=8, color="#666666")


def _draw_line(
    panel: "Axes",
    name: str,
    points: list[tuple[float, tuple[float, float], tuple[float, float]]],
    ringed: float | None,
) -> None:
    """Points are weights with error and accuracy, each with its standard error."""
    colour, marker, size, offset = STYLES[name]
    weights, x, y = zip(*points, strict=True)
    (at, across), (height, up) = zip(*x, strict=True), zip(*y, strict=True)
    panel.errorbar(at, height, up, across, fmt="none", ecolor=f"{colour}44", elinewidth=1)
    panel.plot(at, height, color=f"{colour}99", linewidth=1.4)
    look = {"markersize": size, "markeredgecolor": "white", "markeredgewidth": 0.7}
    panel.plot(at, height, color=colour, marker=marker, linewidth=0, label=name, **look)
    for weight, *place in zip(weights, at, height, strict=True):
        if weight == ringed:
            panel.plot(*place, color=colour, marker="o", markersize=14, markerfacecolor="none")
        if ringed is not None:
            panel.annotate(f"{weight:g}", place, offset, textcoords="offset points", fontsize=8, color=colour)


def main() -> None:
    """Train all, print a table a task, draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="runs of each loss and weight")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--quick", action="store_true", help="one seed, few epochs, one weight: seconds")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument(
        "--out", type=Path, default=Path("train-calibrated.svg"), help="where the figure goes: SVG or PNG"
    )
    options = parser.parse_args()
    seeds, epochs = (1, 5) if options.quick else (options.seeds, options.epochs)
    weights = {name: tried[1:2] or tried if options.quick else tried for name, (_, tried) in LOSSES.items()}
    jobs = [(task, name, w, s) for task in TASKS for name in LOSSES for w in weights[name] for s in range(seeds)]
    if options.quick:
        runs = [run(job, epochs, most=300) for job in jobs]
    else:
        with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
            runs = list(pool.map(partial(run, epochs=epochs), jobs))
    for task in TASKS:
        print(f"\n{task}\n\n{table(runs, task)}\n\n{difference(runs, task)}")
    figure(runs, options.out)
    print(f"\n{options.out}")


if __name__ == "__main__":
    main()
