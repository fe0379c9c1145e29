"""One visual language: the colours of every picture, light, dark, or left to the style sheet of a page."""

import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from calibrant._validate import check_one_of

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

    def _variable(self, found: "re.Match[str]") -> str:
        for name, stand_in in asdict(self).items():
            if found[0] == stand_in:
                return f"var(--{name})"
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


def settings(palette: Palette) -> dict[Any, Any]:
    """Matplotlib's settings for a picture: text stays text, and the same data give the same file."""
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


def dress(axes: "Axes", palette: Palette, *, grid: bool = True) -> None:
    """Quiet lines behind what is drawn, no frame above and to the right, and numbers written out."""
    axes.set_facecolor("none")
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(palette.grid)
    axes.grid(visible=grid, color=palette.grid, linewidth=0.7)
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
    """A name that fits: the end of a long one becomes an ellipsis, and dollar signs stay dollar signs.

    >>> shortened("a short name", 20), shortened("a name that is much too long", 12)
    ('a short name', 'a name that…')
    """
    line = " ".join(str(name).split())
    text = line if len(line) <= most else line[: most - 1].rstrip() + "…"
    return text.replace("$", r"\$")
