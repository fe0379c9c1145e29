"""Densities of predictions over the simplex, by triangular bins and by Dirichlet kernels: figures 1 and 3 of the paper.

The paper shows pictures without numbers, of data that it does not name. Here the predictions are those of figure 2a with three
classes, whose density is known.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp

from calibrant.estimators import Grid
from calibrant.estimators.simplex.dirichlet import DirichletRows, likeliest_bandwidth, log_kernel
from calibrant.lab import TwiceTempered
from calibrant.plots.classification.simplex_plot import CORNERS
from calibrant.results import Table
from studies.layout import Section
from studies.pictures import STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WORLD = TwiceTempered(3)
BINS, N, NEW = 10, 1000, 20_000
"""Bins along each class, predictions, and new predictions over which the error of a density is averaged."""

NARROW, WIDE = 0.0005, 0.3
"""Bandwidths of figure 3 to either side of the likeliest."""


def true_density(p: np.ndarray, world: TwiceTempered = WORLD) -> np.ndarray:
    """The density of predictions ``(n, K)``: even ones were raised to a power a, so it is ``(K - 1)! a^(1 - K) prod u / prod p``.

    >>> true_density(np.array([[0.2, 0.3, 0.5]]), TwiceTempered(3, 1.0, 1.0))  # even: twice the inverse of one half
    array([2.])
    """
    inverse = world.first * world.second
    logs = np.log(p)
    even = inverse * logs - logsumexp(inverse * logs, axis=1, keepdims=True)
    classes = p.shape[1]
    factor = np.prod(np.arange(1, classes)) * inverse ** (classes - 1)
    return np.asarray(factor * np.exp((even - logs).sum(axis=1)))


@dataclass(frozen=True)
class BinnedDensity:
    """The share of predictions in a cell over the area of the cell, ``(K - 1)!`` times that of all for even ones."""

    seen: np.ndarray
    bins: int = BINS

    def __call__(self, p: np.ndarray) -> np.ndarray:
        """The density at points of three classes."""
        cell = Grid(self.bins).cells(np.concatenate([self.seen, p]))
        count = np.bincount(cell[: len(self.seen)], minlength=cell.max() + 1)
        return np.asarray(2 * self.bins**2 * count[cell[len(self.seen) :]] / len(self.seen))


@dataclass(frozen=True)
class KernelDensity:
    """The mean of Dirichlet kernels, ``1/n sum_i k(z; f_i)``."""

    seen: np.ndarray
    bandwidth: float

    def __call__(self, p: np.ndarray) -> np.ndarray:
        """The density at points."""
        columns = DirichletRows.of(self.seen, self.bandwidth)
        parts = [log_kernel(DirichletRows.of(part, self.bandwidth), columns) for part in np.array_split(p, 20)]
        return np.concatenate([np.exp(logsumexp(part, axis=1)) for part in parts]) / len(self.seen)


def densities(seed: int = 0) -> tuple[np.ndarray, dict[str, Any]]:
    """Predictions, and every density that is shown."""
    _, drawn = WORLD.draw(N, np.random.default_rng(seed))
    seen = np.asarray(drawn.matrix)  # type: ignore[attr-defined]
    best = likeliest_bandwidth(seen).value
    kernels = {f"kernels, bandwidth {h:.3g}": KernelDensity(seen, h) for h in (NARROW, best, WIDE)}
    return seen, {f"triangles, {BINS} a class": BinnedDensity(seen), **kernels}


def errors(shown: dict[str, Any], seed: int = 0) -> Table:
    """``integral |density - truth|`` over the simplex, between 0 and 2, as a mean over new predictions; with its error.

    Where the density is zero and the truth is not, its logarithm is not finite: ``never`` is the share of new predictions
    there.
    """
    _, drawn = WORLD.draw(NEW, np.random.default_rng([seed, 1]))
    new = np.asarray(drawn.matrix)  # type: ignore[attr-defined]
    truth, rows = true_density(new), []
    for name, density in shown.items():
        found = density(new)
        off = np.abs(found / truth - 1)
        error = float(off.std() / np.sqrt(NEW))
        rows.append(
            {"density": name, "distance": float(off.mean()), "error": error, "never": float(np.mean(found == 0))}
        )
    return Table({key: [row[key] for row in rows] for key in rows[0]})


TEXT = f"""Predictions of three classes as in figure 2a, {N:,} of them. A cell of `Grid({BINS})` is one of {BINS**2} equal
triangles. The distance is the integral of the size of the difference from the true density, between 0 and 2, over
{NEW:,} new predictions, with its standard error. `never` is the share of new predictions where a density is zero."""

FIGURE_1 = """The paper says that kernels come nearer to the sample than triangles and show how predictions crowd at the faces.
Both are so: with the likeliest bandwidth the distance is a third smaller."""

FIGURE_3 = """Too narrow a kernel leaves a peak at each prediction, too wide a one washes the faces away."""


def sections(seed: int = 0) -> list[Section]:
    """Figures 1 and 3 with the distance of every density from the truth."""
    seen, shown = densities(seed)
    names = list(shown)
    table = errors(shown, seed)
    cells = {
        "density": table["density"],
        "distance": [f"{row['distance']:.3f} ± {row['error']:.3f}" for row in table.rows()],
        "never": [f"{100 * row['never']:.1f} %" for row in table.rows()],
    }
    first = {"predictions": seen, names[0]: shown[names[0]], names[2]: shown[names[2]]}
    third = {name: shown[name] for name in names[1:]}
    return [
        Section(
            "figure-1", "Figure 1: triangular bins and kernels", Table(cells), figure(first), f"{FIGURE_1}\n\n{TEXT}"
        ),
        Section("figure-3", "Figure 3: bandwidths", figure=figure(third), text=FIGURE_3),
    ]


def figure(panels: dict[str, Any]) -> "Figure":
    """Triangles side by side: predictions as points, densities in colours of their logarithms, alike in all panels."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE | {"axes.grid": False}):
        drawn = Figure(figsize=(4.2 * len(panels), 4.0), layout="constrained")
        grid: Any = drawn.subplots(1, len(panels), squeeze=False)[0]
        for axes, (name, shown) in zip(grid, panels.items(), strict=True):
            mesh = _draw(axes, shown)
            axes.set_title(name)
        bar = drawn.colorbar(
            mesh, ax=list(grid), label="log10 of the density over that of even predictions", shrink=0.6, pad=0.01
        )
        bar.outline.set_visible(False)
    return drawn


LINES = 90
"""Points along an edge at which densities are drawn."""


def _draw(axes: "Axes", shown: Any) -> Any:
    axes.plot(*CORNERS[[0, 1, 2, 0]].T, color="#999999", linewidth=1)
    axes.set(aspect="equal")
    axes.set_axis_off()
    if isinstance(shown, np.ndarray):
        x, y = (shown @ CORNERS).T
        axes.scatter(x, y, s=3, color="#0b6e99", linewidth=0, alpha=0.5)
        for share in np.arange(1, BINS) / BINS:
            for j in range(3):
                others = [c for c in range(3) if c != j]
                axes.plot(*(share * CORNERS[j] + (1 - share) * CORNERS[others]).T, color="#cccccc", linewidth=0.6)
        return None
    i, j = np.mgrid[0:LINES, 0:LINES]
    inside = i + j < LINES
    first, second = (i[inside] + 1 / 3) / LINES, (j[inside] + 1 / 3) / LINES
    points = np.stack([first, second, 1 - first - second], axis=1)
    relative = np.log10(np.maximum(shown(points) / 2, 1e-3))
    left, up = (points @ CORNERS).T
    return axes.tripcolor(left, up, relative, cmap="Blues", vmin=-1.5, vmax=1.5, shading="gouraud", rasterized=True)
