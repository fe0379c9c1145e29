"""One browser for all tests, and a page for every kind of problem; skipped, saying why, where something is missing."""

import os
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from calibrant import (
    Bernoulli,
    Categorical,
    Ensemble,
    Monitor,
    MultivariateNormal,
    Normal,
    Poisson,
    evaluate,
    monitor_report,
)
from calibrant.plots import ClasswiseDisplay, ConfusionDisplay, WitnessDisplay
from calibrant.reports import Advice, Picture, before_and_after
from calibrant.reports.render.pdf import find_browser
from calibrant.results import Table

ROWS = 150

KINDS = [
    "binary",
    "multi-class",
    "multi-label",
    "numbers",
    "counts",
    "vectors",
    "ensembles",
    "before-after",
    "comparison",
    "stream",
    "stream-of-forecasts",
    "hostile-stream",
    "hostile",
]
"""Pages of every kind; tests that take ``kind`` look at all of them."""

HOSTILE = [
    "<script>document.title = 'owned'</script>",
    '"><img src=x onerror="document.title = \'owned\'">',
    "$\\frac{ & </style></svg>",
    "'; drop table -- {{ 7 * 7 }}",
    "שלום עולם 123",
    "right \u202e left",
    "🙂 👩‍👩‍👧 emoji",
    "nul\x00, bell\x07 and\nline break",
    "x" * 10_000,
]

ADVICE = Advice(
    "Recalibrate by Temperature().",
    ("The log loss falls from 0.5 to 0.4 on rows that it has not seen.",),
    Table(recalibrator=["Temperature()", "Isotonic()"], after=[0.4, 0.45]),
    "calibrant recalibrate predictions.csv --y-true outcome --y-pred 'p_*' --method 'Temperature()' --save map.json",
    "from calibrant import Temperature\n\nbetter = Temperature().fit(y_true, y_pred)(new_predictions)",
)


def binary(rng):
    p = rng.random(ROWS)
    source = ["predictions.csv", "--y-true", "outcome"]
    return evaluate(rng.random(ROWS) < p**2, p, **{**options(rng), "advice": True, "source": source})


def multi_class(rng):
    p = rng.dirichlet([1.0] * 4, ROWS)
    return evaluate(rng.integers(0, 4, ROWS), p, **options(rng))


def multi_label(rng):
    p = rng.random((ROWS, 3))
    return evaluate(rng.random((ROWS, 3)) < p, Bernoulli(p), **options(rng))


def numbers(rng):
    scale = np.exp(0.3 * rng.normal(size=ROWS))
    return evaluate(2 * scale * rng.normal(size=ROWS), Normal(np.zeros(ROWS), scale), **options(rng))


def counts(rng):
    rate = 1 + 5 * rng.random(ROWS)
    return evaluate(rng.poisson(2 * rate), Poisson(rate), **options(rng))


def vectors(rng):
    centre = rng.normal(size=(ROWS, 2))
    return evaluate(centre + rng.normal(size=(ROWS, 2)), MultivariateNormal(centre, 1.0), **options(rng))


def ensembles(rng):
    return evaluate(rng.normal(size=ROWS), Ensemble(0.6 * rng.normal(size=(ROWS, 10))), **options(rng))


def before_after(rng):
    p = rng.random(ROWS)
    y = (rng.random(ROWS) < p**2) * 1
    return before_and_after(y, p, p**2, recalibrator="Beta()", notes=["A note."], n_resamples=99, rng=0)


def comparison(rng):
    compare = pytest.importorskip(
        "calibrant.reports.model_comparison", reason="comparisons of models are not there yet"
    ).compare
    p = rng.random(ROWS)
    models = {"plain": p, "bold": p**2, HOSTILE[0]: np.sqrt(p)}
    return compare((rng.random(ROWS) < p) * 1, models, by=options(rng)["by"], n_resamples=99, rng=0)


def stream(rng):
    p = rng.random(5 * ROWS)
    y = rng.random(5 * ROWS) < np.where(np.arange(5 * ROWS) < 3 * ROWS, p, p**4)
    return monitor_report(Monitor(window=30).update(y * 1, p), title="Scores of a model", bad_lines=2, n_resamples=99)


def stream_of_forecasts(rng):
    monitor = Monitor(window=20).update(rng.normal(size=ROWS), Normal(np.zeros(ROWS), 1.0))
    return monitor_report(monitor, n_resamples=99)


def hostile_stream(rng):
    p = rng.dirichlet(np.ones(len(HOSTILE)), 2 * ROWS)
    monitor = Monitor(window=30).update(rng.choice(HOSTILE, 2 * ROWS), Categorical(p, labels=HOSTILE))
    return monitor_report(monitor, title=HOSTILE[0] + HOSTILE[-1], notes=HOSTILE, n_resamples=99)


def hostile(rng):
    y, p = rng.choice(HOSTILE, ROWS), Categorical(rng.dirichlet(np.ones(len(HOSTILE)), ROWS), labels=HOSTILE)
    by = {HOSTILE[1]: rng.choice(HOSTILE, ROWS)}
    report = evaluate(y, p, by=by, title=HOSTILE[0] + HOSTILE[-1], n_resamples=99, rng=0, advice=False)
    displays = {"classwise": ClasswiseDisplay, "confusion": ConfusionDisplay, "witness": WitnessDisplay}
    pictures = [
        Picture(kind, HOSTILE[0], HOSTILE[1], HOSTILE[2] * 3, display.from_predictions(y, p).tables)
        for kind, display in displays.items()
    ]
    advice = replace(ADVICE, headline=HOSTILE[1], sentences=tuple(HOSTILE), command=HOSTILE[2], code=HOSTILE[0])
    return replace(report, pictures=(*report.pictures[:1], *pictures), advice=advice, notes=tuple(HOSTILE))


def options(rng):
    return {"by": {"site": rng.choice(["north", "south"], ROWS)}, "n_resamples": 99, "rng": 0, "advice": False}


MAKERS = {
    maker.__name__.replace("_", "-"): maker
    for maker in (
        binary,
        multi_class,
        multi_label,
        numbers,
        counts,
        vectors,
        ensembles,
        before_after,
        comparison,
        stream,
        stream_of_forecasts,
        hostile_stream,
        hostile,
    )
}


@pytest.fixture(scope="session")
def page_file(tmp_path_factory):
    """The file of a page by its kind, made when it is first asked for."""
    pytest.importorskip("jinja2", reason="pages need jinja2: pip install 'calibrant[cli]'")
    pytest.importorskip("matplotlib", reason="pages need matplotlib: pip install 'calibrant[cli]'")
    folder = tmp_path_factory.mktemp("pages")

    def made(kind):
        path = folder / f"{kind}.html"
        if not path.exists():
            result = MAKERS[kind](np.random.default_rng(0))
            is_plain = getattr(result, "advice", ADVICE) is None
            (replace(result, advice=ADVICE) if is_plain else result).save(path)
        return path

    return made


@pytest.fixture(scope="session")
def browser():
    """Chromium without a window, once for all tests."""
    reason = "browser tests need playwright: pip install playwright (its own browsers are not needed)"
    playwright = pytest.importorskip("playwright.sync_api", reason=reason)
    program = find_browser()
    if program is None:
        pytest.skip("browser tests need Chromium, Chrome or Edge: apt install chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@dataclass
class Opened:
    """A page in the browser, with all it complained of and asked for."""

    page: object
    complaints: list = field(default_factory=list)
    requests: list = field(default_factory=list)


@pytest.fixture
def opened(browser, page_file):
    """Opens a page of a kind, in a window of its own; at the end, nothing was complained of or asked for."""
    contexts = []

    @contextmanager
    def open_page(kind, *, width=1280, is_quiet=True, **settings):
        context = browser.new_context(viewport={"width": width, "height": 900}, **settings)
        contexts.append(context)
        context.set_default_timeout(5000)
        seen = Opened(context.new_page())
        seen.page.on("console", lambda message: seen.complaints.append(message.text))
        seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        address = page_file(kind).as_uri()
        seen.page.goto(address)
        yield seen.page
        if is_quiet:
            assert seen.complaints == []
            assert set(seen.requests) <= {address, "data:,"}

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def axe():
    """The source of axe-core, from CALIBRANT_AXE or a node_modules folder beside the tests."""
    root = Path(__file__).parents[2]
    places = [os.environ.get("CALIBRANT_AXE"), root / "node_modules" / "axe-core" / "axe.min.js"]
    found = [Path(place) for place in places if place and Path(place).is_file()]
    if not found:
        pytest.skip("the audit needs axe-core: npm install axe-core, or set CALIBRANT_AXE to its axe.min.js")
    return found[0].read_text(encoding="utf-8")


@pytest.fixture(params=KINDS)
def kind(request):
    """Every kind of page in turn."""
    return request.param
