"""Pictures of the pages in ``docs/users``, of one guide and of the gallery: each page's own examples are run, and drawn.

``python docs/pictures.py`` writes ``docs/images/users/*.svg``, ``docs/images/gallery/*.svg`` and ``docs/images/monitoring.svg``;
names choose pages: ``python docs/pictures.py llm gallery``.
"""

import doctest
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from calibrant import EqualMass, TopLabel
from calibrant.plots import pit_histogram, reliability, windows

HERE = Path(__file__).parent


def examples(page: Path) -> dict[str, Any]:
    """The names that the examples of a page leave behind."""
    names: dict[str, Any] = {"__name__": page.stem}
    for example in doctest.DocTestParser().get_examples(page.read_text(encoding="utf-8")):
        exec(compile(example.source, str(page), "single"), names)
    return names


def side_by_side(titles: tuple[str, str], draw: Callable[[Any, int], Any], height: float = 4.6) -> Figure:
    """Two pictures with a title each."""
    figure, axes = plt.subplots(1, 2, figsize=(10, height), gridspec_kw={"wspace": 0.3})
    for i, (ax, title) in enumerate(zip(axes, titles, strict=True)):
        draw(ax, i)
        ax.set_title(title, loc="left", fontsize=12, fontweight="bold", pad=40)  # above the legend
    return figure


def llm(page: dict[str, Any]) -> Figure:
    """Both models."""
    models = (page["small"], page["large"])
    return side_by_side(
        ("small: says too much", "large: as it should be"),
        lambda ax, i: reliability(page["y_true"], models[i], lens=TopLabel(), bins=EqualMass(10), ax=ax, legend=not i),
    )


def clinician(page: dict[str, Any]) -> Figure:
    """The hospital where the score was made, and the one that differs."""
    rows = [page["hospital"] == name for name in "AC"]
    return side_by_side(
        ("Hospital A", "Hospital C"),
        lambda ax, i: reliability(
            page["died"][rows[i]], page["risk"][rows[i]], bins=EqualMass(10), axis="logit", ax=ax, legend=not i
        ),
    )


def forecaster(page: dict[str, Any]) -> Figure:
    """PIT values of both ensembles."""
    forecasts = (page["narrow"], page["honest"])
    return side_by_side(
        ("narrow: a U", "honest: flat"),
        lambda ax, i: pit_histogram(page["y_true"], forecasts[i], ax=ax, legend=not i),
        3.4,
    )


def credit(page: dict[str, Any]) -> Figure:
    """The first month and the last, on the scale of log-odds."""
    rows = [page["month"] == month for month in (1, 6)]
    return side_by_side(
        ("Month 1", "Month 6"),
        lambda ax, i: reliability(
            page["clicked"][rows[i]],
            page["score"][rows[i]],
            bins=page["scale"],
            axis="logit",
            n_resamples=199,
            ax=ax,
            legend=i == 0,
        ),
    )


def deep_learning(page: dict[str, Any]) -> Figure:
    """Before and after the temperature."""
    y_pred = (page["y_pred"], page["cooler"](page["y_pred"]))
    y = page["y"][page["test"]]
    return side_by_side(
        ("As trained", "With a temperature"),
        lambda ax, i: reliability(y, y_pred[i], lens=TopLabel(), bins=EqualMass(10), ax=ax, legend=not i),
    )


def monitoring(page: dict[str, Any]) -> Figure:
    """Windows of the stream."""
    return windows(page["monitor"]).figure_


def dependence(page: dict[str, Any]) -> Figure:
    """P-values of calibrated answers to five questions about each of 100 texts, in the order of their size."""
    figure, ax = plt.subplots(figsize=(6.2, 4.2))
    share = (np.arange(page["sets"]) + 1) / page["sets"]
    looks = {"rows taken as independent": ("#b3261e", 2.2), "clusters=text": ("#1f5fa8", 2.2)}
    for (label, (colour, width)), values in zip(looks.items(), zip(*page["pvalues"], strict=True), strict=True):
        ax.step(np.sort(values), share, where="post", color=colour, linewidth=width, label=label)
    ax.plot([0, 1], [0, 1], color="0.5", linewidth=1, dashes=(4, 3))
    ax.axvline(0.05, color="0.7", linewidth=1)
    ax.annotate("5 %", (0.05, 1.0), xytext=(4, -10), textcoords="offset points", color="0.4")
    ax.set(xlabel="p-value", ylabel="share of calibrated data sets with a smaller one", xlim=(0, 1), ylim=(0, 1))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="lower right")
    return figure


PAGES = {
    "users/llm": llm,
    "users/clinician": clinician,
    "users/forecaster": forecaster,
    "users/credit": credit,
    "users/deep-learning": deep_learning,
    "guide/dependent-rows": dependence,
    "guide/monitoring": monitoring,
}


def gallery(page: dict[str, Any]) -> dict[str, Figure]:
    """Every display of the page, by its name, which is that of its function."""
    return {name: value.figure_ for name, value in page.items() if hasattr(value, "figure_")}


def save(figure: Figure, name: str) -> None:
    """Write a picture that has the same bytes each time."""
    target = HERE / "images" / f"{name}.svg"
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)


def main(chosen: list[str]) -> None:
    """Draw the pictures of these pages, or of all."""
    mpl.use("agg")
    mpl.rcParams["svg.hashsalt"] = "calibrant"
    for name, draw in PAGES.items():
        if not chosen or name.partition("/")[2] in chosen:
            save(draw(examples(HERE / f"{name}.md")), name.removeprefix("guide/"))
    if not chosen or "gallery" in chosen:
        for name, figure in gallery(examples(HERE / "gallery.md")).items():
            save(figure, f"gallery/{name}")


if __name__ == "__main__":
    main(sys.argv[1:])
