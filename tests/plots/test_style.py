from dataclasses import asdict

import numpy as np
import pytest

from calibrant._validate import InputError
from calibrant.plots.style import CSS, DARK, LIGHT, palette_of, shortened


def luminance(colour):
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(a, b):
    low, high = sorted([luminance(a), luminance(b)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_marks_stand_out(palette):
    for name in ("ink", "muted", "accent", "bad", "good", "unsure"):
        assert contrast(getattr(palette, name), palette.paper) >= 4.5, name
    for value in np.linspace(-1, 1, 41):
        assert contrast(palette.ink, palette.shade(value)) >= 4.5, value


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_shades_run_from_low_over_the_middle_to_high(palette):
    assert [palette.shade(v) for v in (-1, 0, 1, -7, 7)] == [
        palette.low,
        palette.mid,
        palette.high,
        palette.low,
        palette.high,
    ]
    middle, end = (np.array([int(c[i : i + 2], 16) for i in (1, 3, 5)]) for c in (palette.mid, palette.high))
    half = np.array([int(palette.shade(0.5)[i : i + 2], 16) for i in (1, 3, 5)])
    np.testing.assert_allclose(half, (middle + end) / 2, atol=0.5)


def test_every_stand_in_becomes_its_variable():
    for name, colour in asdict(CSS).items():
        assert CSS.put_in(f"fill: {colour}") == f"fill: var(--{name})"
    assert CSS.put_in(CSS.shade(-0.5)) == "color-mix(in srgb, var(--low) 50%, var(--mid))"
    assert CSS.put_in(CSS.shade(1.0)) == "color-mix(in srgb, var(--high) 100%, var(--mid))"
    assert len({CSS.shade(v) for v in np.linspace(-1, 1, 41)} & set(asdict(CSS).values())) == 0


def test_a_theme_must_exist():
    assert palette_of("dark") is DARK
    with pytest.raises(InputError, match="theme must be 'light' or 'dark'; got 'neon'"):
        palette_of("neon")


def test_long_names_are_cut_and_dollars_are_no_formulas():
    assert shortened("x" * 300, 10) == "x" * 6 + "…" + "x" * 3
    assert shortened("$\\frac{", 10) == r"\$\frac{"
    assert shortened("two\nlines", 20) == "two lines"


# Colours as seen without one kind of cone, in linear RGB: Machado, Oliveira & Fernandes (2009), severity 1.
BLIND = {
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(colour, seen):
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    x, y, z = np.cbrt(TO_XYZ @ np.clip(seen @ linear, 1e-6, 1) / TO_XYZ.sum(axis=1))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("kind", BLIND)
def test_nobody_takes_one_meaning_for_the_other(palette, kind):
    """A difference of 20 in CIELAB is plain to see side by side."""
    seen = np.array(BLIND[kind])
    for a, b in ((palette.accent, palette.bad), (palette.low, palette.high), (palette.accent, palette.band)):
        assert np.linalg.norm(lab(a, seen) - lab(b, seen)) > 20, (a, b)
