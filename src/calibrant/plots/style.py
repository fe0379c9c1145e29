"""One visual language: the colours of every picture, axes of probabilities, names at the ends of lines."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from scipy.special import expit, logit

from calibrant._validate import check_one_of
from calibrant.results import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Theme: TypeAlias = Literal["light", "dark"]
"""Which of the two palettes a picture is drawn with."""

STEPS = 20
"""Shades of a map on either side of its middle."""

SERIES = ("accent", "unsure", "good", "bad", "muted", "ink")
"""Colours of several lines, in this order; blue and amber first, which everybody can tell apart."""

MARKERS = ("o", "s", "^", "D", "v", "P")
"""Marks of several lines: no line is told by its colour alone."""


@dataclass(frozen=True)
class Palette:
    """Colours by what they mean; ``low``, ``mid`` and ``high`` are the ends and the middle of a map.

    Blue and orange differ for every kind of colour vision, and every mark that says "beyond chance" has a shape of its own.
    Ink can be read on all shades of a map.
    """

    paper: str
    ink: str
    muted: str
    grid: str
    band: str
    accent: str
    bad: str
    good: str
    unsure: str
    low: str
    mid: str
    high: str

    def shade(self, value: float) -> str:
        """The colour of a map at a value from -1, low, to 1, high.

        >>> LIGHT.shade(0.0) == LIGHT.mid, LIGHT.shade(1.0) == LIGHT.high
        (True, True)
        """
        step = round(STEPS * min(max(value, -1.0), 1.0))
        return self._mixed(self.low if step < 0 else self.high, abs(step) / STEPS)

    def _mixed(self, end: str, share: float) -> str:
        parts = [(int(end[i : i + 2], 16), int(self.mid[i : i + 2], 16)) for i in (1, 3, 5)]
        return "#" + "".join(f"{round(share * a + (1 - share) * b):02x}" for a, b in parts)


LIGHT = Palette(
    paper="#ffffff",
    ink="#1c2024",
    muted="#667078",
    grid="#e4e4e0",
    band="#9aa3ab",
    accent="#1f5fa8",
    bad="#b3361b",
    good="#1d7a4d",
    unsure="#9a6a00",
    low="#5a9bd8",
    mid="#ffffff",
    high="#f0924e",
)

DARK = Palette(
    paper="#1c2024",
    ink="#e8e8e4",
    muted="#9aa3ab",
    grid="#30363b",
    band="#78828a",
    accent="#6fa8e8",
    bad="#f0805f",
    good="#5fc08c",
    unsure="#e0ac3e",
    low="#2a66a6",
    mid="#1c2024",
    high="#a34a18",
)

PALETTES: dict[Theme, Palette] = {"light": LIGHT, "dark": DARK}


@dataclass(frozen=True)
class StyleSheet(Palette):
    """Colours that stand for CSS variables: :meth:`put_in` writes the variables into a drawing."""

    def _mixed(self, end: str, share: float) -> str:
        return f"#0{'a' if end == self.low else 'b'}00{round(STEPS * share):02x}"

    def put_in(self, tag: str) -> str:
        """A tag of a drawing with ``var(--ink)`` and the like for every colour, so that it follows light and dark."""
        return re.sub(r"#[0-9a-f]{6}", self._variable, tag)

    @cached_property
    def _names(self) -> dict[str, str]:
        return {colour: name for name, colour in asdict(self).items()}

    def _variable(self, found: "re.Match[str]") -> str:
        if found[0] in self._names:
            return f"var(--{self._names[found[0]]})"
        if found[0][:5] not in ("#0a00", "#0b00"):
            return found[0]
        end, share = "low" if found[0][2] == "a" else "high", 100 * int(found[0][5:], 16) / STEPS
        return f"color-mix(in srgb, var(--{end}) {share:g}%, var(--mid))"


NAMES = tuple(asdict(LIGHT))
CSS = StyleSheet(*(f"#{i:02x}{i:02x}{i:02x}" for i in range(1, len(NAMES) + 1)))
"""Colours no other picture has, one a variable."""


def palette_of(theme: Theme) -> Palette:
    """The palette of a theme."""
    check_one_of(theme, tuple(PALETTES), "theme")
    return PALETTES[theme]


@contextmanager
def styled(palette: Palette) -> Iterator[None]:
    """Matplotlib's settings for a picture: text stays text, and the same data give the same file.

    Only these settings are put back. ``rc_context`` puts back all, and so undoes what the first figure of a notebook
    switches on: that figures are shown.
    """
    from matplotlib import rcParams

    wanted = _settings(palette)
    before = {name: rcParams[name] for name in wanted}
    rcParams.update(wanted)
    try:
        yield
    finally:
        rcParams.update(before)


def _settings(palette: Palette) -> dict[Any, Any]:
    return {
        "font.size": 11,
        "font.family": "sans-serif",
        "svg.fonttype": "none",
        "svg.hashsalt": "calibrant",
        "text.color": palette.ink,
        "text.usetex": False,
        "axes.unicode_minus": True,
        "axes.labelcolor": palette.ink,
        "axes.edgecolor": palette.grid,
    }


def dress(axes: "Axes", palette: Palette) -> None:
    """Quiet lines behind what is drawn, no frame above and to the right, and numbers written out."""
    axes.set_facecolor("none")
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(palette.grid)
    axes.grid(visible=True, color=palette.grid, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, colors=palette.muted, which="both", labelsize=10, pad=5)
    for axis in (axes.xaxis, axes.yaxis):
        axis.label.set_color(palette.ink)
    plain_numbers(axes)


def plain_numbers(axes: "Axes") -> None:
    """No powers of ten at the end of an axis: numbers as short as they can be read."""
    from matplotlib.ticker import FuncFormatter, ScalarFormatter

    for axis in (axes.xaxis, axes.yaxis):
        if isinstance(axis.get_major_formatter(), ScalarFormatter):
            axis.set_major_formatter(FuncFormatter(lambda x, _: compact(x)))


def compact(x: float) -> str:
    """A number for an axis, in few letters.

    >>> compact(-0.25), compact(1500.0), compact(25_000.0), compact(1.2e9), compact(0.00025)
    ('−0.25', '1500', '25k', '1.2G', '2.5e−4')
    """
    size = abs(x)
    unit, letter = next((u for u in ((1e9, "G"), (1e6, "M"), (1e4, "k")) if size >= u[0]), (1.0, ""))
    if 1e-12 < size < 1e-3:
        digits, power = f"{x:.2e}".split("e")
        text = f"{float(digits):g}e{int(power)}"
    else:
        text = f"{x / (1e3 if letter == 'k' else unit):.6g}{letter}" if size > 1e-12 else "0"
    return text.replace("-", "\N{MINUS SIGN}")


def shortened(name: str, most: int) -> str:
    """A name that fits: the middle of a long one becomes an ellipsis, and dollar signs stay dollar signs.

    >>> shortened("a short name", 20), shortened("a name that is much too long", 12)
    ('a short name', 'a name t…ong')
    """
    line = " ".join(str(name).split())
    return (line if len(line) <= most else _without_middle(line, most)).replace("$", r"\$")


def _without_middle(line: str, most: int) -> str:
    """Two thirds of the letters from the beginning, and the rest from the end."""
    last = (most - 1) // 3
    return f"{line[: most - 1 - last].rstrip()}…{line[len(line) - last :].lstrip()}"


def distinct_names(names: Sequence[str], most: int) -> list[str]:
    """Names that fit, none like another: where the middle tells them apart, what they begin with alike is left out.

    >>> distinct_names(["risk model of 2019, all wards", "risk model of 2023, all wards"], 16)
    ['…2019, all wards', '…2023, all wards']
    >>> distinct_names(["one", "the other"], 16)
    ['one', 'the other']
    """
    short = [shortened(name, most) for name in names]
    if len(set(short)) == len(set(names)):
        return short
    alike = _common_start(names)
    start = alike.rfind(" ") + 1 or len(alike)
    cut = [f"…{str(name)[start:]}" for name in names]
    return [shortened(name, most) if len(name) <= most else f"{name[: most - 1]}…" for name in cut]


def _common_start(names: Sequence[str]) -> str:
    """What all names begin with."""
    same = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    return "".join(letters[0] for letters in same)


MIN_RANGE = 0.4
"""A smaller range of values than this is drawn close up."""

APART = {"x": 0.13, "y": 0.07}
"""Labels on an axis of log-odds are at least this share of it apart: they are wider than high."""

LABELS = (0.5, *(x for k in range(1, 7) for x in (10.0**-k, 1 - 10.0**-k)), 0.2, 0.8, 0.3, 0.7, 0.6, 0.4, 0.05, 0.95)
"""Probabilities worth a label, the first ones rather than the last."""


def limits_of(values: np.ndarray, floor: float | None = None) -> tuple[float, float]:
    """All of [0, 1], or a close-up where values lie near each other; in log-odds, all values and a little padding."""
    low, high = float(values.min()), float(values.max())
    if floor is not None:
        low, high = logit(np.clip([low, high], floor, 1 - floor)).tolist()
        padding = 0.05 * (high - low) or 0.5
        return float(expit(low - padding)), float(expit(high + padding))
    if high - low > MIN_RANGE:
        return -0.02, 1.02
    padding = 0.1 * (high - low) or 0.02
    return max(low - padding, -padding / 5), min(high + padding, 1 + padding / 5)


def scaled(words: str, floor: float | None, inches: float = np.inf) -> str:
    """What lies along an axis of so many inches, and that it is one of log-odds: in fewer words where it is short."""
    if floor is None:
        return words
    short = words if 0.085 * (len(words) + 17) <= inches else words.split()[0]
    return f"{short} (log-odds scale)"


def ticks_of(low: float, high: float, apart: float, floor: float = 0.0) -> list[float]:
    """Probabilities to label on an axis of log-odds between these, further apart than a share of it.

    What is nearer to 0 or 1 than the floor is drawn there: the first labels, where the axis reaches so far.

    >>> ticks_of(0.0005, 0.9995, 0.1)
    [0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999]
    >>> ticks_of(0.3, 0.9995, 0.2, floor=0.001)
    [0.5, 0.9, 0.99, 0.999]
    """
    start, end = logit(np.array([low, high]))
    edge = apart * (end - start) / 4  # half a label must fit between the last one and the end
    chosen = [p for p in (floor, 1 - floor) if 0 < p < 1 and low <= p <= high]
    for p in LABELS:
        place = logit(np.array(p))
        if start + edge <= place <= end - edge and all(
            abs(place - logit(np.array(q))) > apart * (end - start) for q in chosen
        ):
            chosen.append(p)
    return sorted(chosen)


def frame_probabilities(
    axes: "Axes", x: tuple[float, float], y: tuple[float, float], floor: float | None, *, apart: float | None = None
) -> None:
    """Limits of both axes, and log-odds with a floor, their labels ``apart`` by this share at least."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    if floor is not None:
        axes.set(xscale="logit", yscale="logit")
        for name, axis, ends in (("x", axes.xaxis, x), ("y", axes.yaxis, y)):
            axis.set_major_locator(FixedLocator(ticks_of(*ends, apart or APART[name], floor)))
            axis.set_major_formatter(FuncFormatter(lambda p, _: _probability(p, floor)))
            axis.set_minor_locator(NullLocator())
    axes.set(xlim=x, ylim=y)


def _probability(p: float, floor: float) -> str:
    """A label of an axis of log-odds, whose ends stand for 0 and 1."""
    if min(p, 1 - p) <= floor * (1 + 1e-9):
        return "0" if p < 0.5 else "1"
    return f"{p:.6f}".rstrip("0")


def inches_of(axes: "Axes") -> tuple[float, float]:
    """Width and height."""
    figure: Any = axes.figure
    box, (width, height) = axes.get_position(), figure.get_size_inches()
    return box.width * width, box.height * height


LABEL_ROOM = 0.65
"""Inches that labels take to the left of axes."""


def has_room_left(axes: "Axes") -> bool:
    """Whether no other axes of the same grid end where the words to the left of these would stand.

    >>> from matplotlib.figure import Figure
    >>> [has_room_left(axes) for axes in Figure(figsize=(6.4, 4.8)).subplots(1, 2)]
    [True, False]
    """
    figure: Any = axes.figure
    width, own = figure.get_size_inches()[0], axes.get_position(original=True)
    boxes = [other.get_position(original=True) for other in figure.axes if other is not axes]
    level = [box for box in boxes if box.y0 < own.y1 and own.y0 < box.y1 and box.x1 <= own.x0]
    return all((own.x0 - box.x1) * width >= LABEL_ROOM for box in level)


def room_right(axes: "Axes", taken: float) -> float:
    """Inches from the left of axes to where those beside them have words, so many to the left of them, or to the end of the figure.

    >>> from matplotlib.figure import Figure
    >>> [round(room_right(axes, 0.3), 1) for axes in Figure(figsize=(10, 5)).subplots(1, 2)]
    [3.8, 4.5]
    """
    figure: Any = axes.figure
    width, own = figure.get_size_inches()[0], axes.get_position(original=True)
    boxes = [other.get_position(original=True) for other in figure.axes if other is not axes]
    ends = [box.x0 * width - taken - 0.15 for box in boxes if box.y0 < own.y1 and own.y0 < box.y1 and box.x0 >= own.x1]
    return float(min([width, *ends]) - own.x0 * width)


def share_of_rows(axes: "Axes", histogram: Table, palette: Palette) -> None:
    """How predictions are spread, as bars."""
    share = 100 * histogram["weight"] / histogram["weight"].sum()
    lower, width = histogram["lower"], histogram["upper"] - histogram["lower"]
    axes.bar(
        lower + 0.07 * width, share, width=0.86 * width, align="edge", color=palette.accent, alpha=0.55, linewidth=0
    )
    axes.set(ylabel="% of rows", ylim=(0, 1.08 * share.max()))


End = tuple[str, float, float, str]
"""A name, where its line ends, and its colour."""

LINE = 0.16
"""Inches from one name to the next at least."""


def label_ends(axes: "Axes", ends: Sequence[End], *, most: int = 24) -> None:
    """Each name to the right of the axes, level with the end of its line or as near to it as others let it."""
    low, high = axes.get_ylim()
    height = inches_of(axes)[1]
    wanted = np.array([(y - low) / (high - low) for _, _, y, _ in ends])
    places = apart(wanted, LINE / height)
    names = distinct_names([name for name, *_ in ends], most)
    for text, (*_, colour), place in zip(names, ends, places, strict=True):
        axes.text(1.02, place, text, transform=axes.transAxes, va="center", ha="left", fontsize=9.5, color=colour)


def apart(wanted: np.ndarray, least: float) -> np.ndarray:
    """The nearest places in the same order within [0, 1] that are so far apart, also
    from the ends by half of it: crowded ones are centred on their mean.

    >>> apart(np.array([0.5, 0.1, 0.5]), 0.2).round(2)
    array([0.4, 0.1, 0.6])
    """
    order = np.argsort(wanted, kind="stable")
    pools: list[tuple[float, int]] = []
    for i, place in enumerate(wanted[order]):
        mean, size = float(place) - i * least, 1  # without the gaps before it, places need only not decrease
        while pools and pools[-1][0] > mean:
            before, count = pools.pop()
            mean, size = (before * count + mean * size) / (count + size), count + size
        pools.append((mean, size))
    level = np.concatenate([np.full(size, mean) for mean, size in pools])
    level = np.clip(level, least / 2, max(1 - least * (len(wanted) - 0.5), least / 2))
    found = np.empty_like(wanted, dtype=np.float64)
    found[order] = level + least * np.arange(len(wanted))
    return found
