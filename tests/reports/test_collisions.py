"""Columns, classes, labels and models may be called like anything that reports name themselves."""

from dataclasses import replace

import numpy as np
import pytest

from calibrant import (
    ECE,
    Bernoulli,
    Categorical,
    EqualMass,
    Monitor,
    MultivariateNormal,
    Normal,
    Quantiles,
    TopLabel,
    compare,
    monitor_report,
)
from calibrant.reports import before_and_after
from calibrant.reports.evaluation import planned, report_of, silent
from calibrant.reports.render.html import columns_of

SITES = np.array(["north", "south"])
N = 240


def report(y, y_pred, by):
    problem, outline = planned(y, y_pred, by, None, 99, 0, None)
    return report_of(problem, replace(outline, pictures=()), "title", silent)


def check_section(found, name, site, error_in):
    """The last section has the numbers of this column beside its groups, in its data and on the page."""
    section = found.sections[-1]
    assert section.noun == name
    assert sorted(section.table["group"]) == sorted(set(site))
    for row in section.table.rows():
        rows = site == row["group"]
        assert row["rows"] == rows.sum()
        assert row["error"] == pytest.approx(error_in(rows))
    first, second, *_ = columns_of(section.table, section.noun)
    assert (first.heading, second.heading) == (name, "rows")
    assert first.texts == tuple(section.table["group"])
    titles = [each.title for each in found.sections]
    assert len(set(titles)) == len(titles)
    assert all(f"| {group} |" in found.to_markdown() for group in set(site))


COLUMNS = ["group", "rows", "claimed", "happened", "error", "null_low", "excess", "pvalue", "p", "if calibrated"]

IN_CLASSES = [
    "class",
    "each class",
    "Each class",
    "confidence",
    "rates",
    "tails",
    "tails of classes",
    "kernel",
    "kernel 1",
]


@pytest.mark.parametrize("name", [*COLUMNS, *IN_CLASSES, "class-wise error", "brier", "slices 1", "999 resamples"])
def test_columns_of_class_reports(name):
    rng = np.random.default_rng(1)
    p, site = rng.dirichlet(np.ones(3), N), rng.choice(SITES, N)
    y = Categorical(np.where((site == "north")[:, None], p, np.ones(3) / 3)).sample(rng, 1)[0]

    def error_in(rows):
        return ECE(EqualMass(15), lens=TopLabel())(y[rows], p[rows]).value

    check_section(report(y, p, {"half": np.arange(N) % 2, name: site}), name, site, error_in)


@pytest.mark.parametrize("name", ["label", "Each label", "each mean", "each tail", "rate", "error", "log", "group"])
def test_columns_of_label_reports(name):
    rng = np.random.default_rng(2)
    p, site = rng.random((N, 2)), rng.choice(SITES, N)
    y = (rng.random((N, 2)) < np.where((site == "north")[:, None], p, p**2)) * 1

    def error_in(rows):
        return ECE(EqualMass(15))(y[rows], Bernoulli(p[rows])).value

    check_section(report(y, Bernoulli(p, labels=("rate", "north")), {name: site}), name, site, error_in)


def numbers(rng):
    mean, scale = rng.normal(size=N), rng.uniform(0.5, 2, N)
    return rng.normal(mean, scale), Normal(mean, scale)


def quantiles(rng):
    y, normal = numbers(rng)
    return y, Quantiles(normal.quantile([0.1, 0.5, 0.9]), [0.1, 0.5, 0.9])


def vectors(rng):
    mean = rng.normal(size=(N, 2))
    return rng.normal(mean), MultivariateNormal(mean, np.ones((N, 2)))


@pytest.mark.parametrize(
    ("world", "name"),
    [
        *((numbers, name) for name in ("predicted spread", "predicted mean", "quarters by predicted spread", "within")),
        *((quantiles, name) for name in ("predicted spread", "middle quantile", "quantile error", "Each level")),
        *((vectors, name) for name in ("coordinate", "each class", "group")),
    ],
)
@pytest.mark.parametrize("n_sites", [2, 4])
def test_columns_of_forecast_reports(world, name, n_sites):
    y, y_pred = world(np.random.default_rng(3))
    site = np.array(["north", "south", "east", "west"])[np.arange(N) % n_sites]
    problem, _ = planned(y, y_pred, None, None, 99, 0, None)

    def error_in(rows):
        part = problem.pit.rows(np.flatnonzero(rows))
        return part.error(part.targets, part.predictions).value

    check_section(report(y, y_pred, {name: site}), name, site, error_in)


@pytest.mark.parametrize(
    ("name", "models"),
    [
        *((name, ("a", "b")) for name in ("group", "rows", "pvalue", "Log loss", "Log loss of a", "a")),
        *(("site", models) for models in (("group", "rows"), ("pvalue", "measure"), ("a_b", "a b"))),
    ],
)
def test_columns_and_models_of_comparisons(name, models):
    rng = np.random.default_rng(4)
    p, site = rng.random(N), rng.choice(SITES, N)
    y = (rng.random(N) < p) * 1
    given = dict(zip(models, (p, 0.25 + p / 2), strict=True))
    found = compare(y, given, by={name: site}, n_resamples=99, rng=0)
    (section,) = found.sections
    for row in section.table.rows():
        rows = site == row["group"]
        assert row["rows"] == rows.sum()
        for model, q in given.items():
            chosen = np.where(y[rows] == 1, q[rows], 1 - q[rows])
            assert row[f"Log loss of {model}"] == pytest.approx(-np.log(chosen).mean())
    headings = [column.heading for column in columns_of(section.table, section.noun)]
    assert headings == [name, "rows", *(f"Log loss of {model}" for model in models), "p"]
    shown = {row["model"]: row["value"] for row in found.numbers.rows() if row["number"] == "Brier score"}
    assert shown == pytest.approx({model: ((q - y) ** 2).mean() for model, q in given.items()})


NAMES = ("between 1 % and 5 %", "confidence", "over-confident about confidence")


@pytest.mark.parametrize(("labels", "wrong"), [(NAMES, 0), (NAMES, 1), (NAMES, 2), ((1, "1", 2), 1)])
def test_labels_of_monitor_pages(labels, wrong):
    rng = np.random.default_rng(wrong)
    p = rng.uniform(0.2, 0.8, (900, 3))
    truth = p.copy()
    truth[:, wrong] **= 2
    y = (rng.random((900, 3)) < truth) * 1
    page = monitor_report(Monitor(window=300).update(y, Bernoulli(p, labels=labels)), n_resamples=199)
    names = Bernoulli(p, labels=labels).label_names
    assert len(set(names)) == 3
    assert page.verdict.finding == "label"
    assert page.alarm.defect.member == wrong
    assert names[wrong] in page.verdict.headline
    windows = page.picture("windows")
    assert windows.title == f"Windows of 300 rows: {names[wrong]}"
    assert windows.tables["gap"]["claimed"].mean() == pytest.approx(p[:, wrong].mean())
    assert "<svg" in page.to_html()


@pytest.mark.parametrize("labels", [("0", "x", "y"), ("gap", "error", "beyond_chance"), ("a are too low", "a", "b")])
def test_classes_of_monitor_pages(labels):
    rng = np.random.default_rng(5)
    p = rng.dirichlet([1, 1, 1], 1500)
    truth = np.stack([p[:, 0] * 0.4, p[:, 1] + p[:, 0] * 0.3, p[:, 2] + p[:, 0] * 0.3], axis=1)
    y = Categorical(truth).sample(rng, 1)[0]
    y_true = np.array(labels, dtype=object)[y]
    page = monitor_report(Monitor(window=300).update(y_true, Categorical(p, labels=labels)), n_resamples=199)
    names = Categorical(p, labels=labels).class_names
    assert len(set(names)) == 3
    assert (page.verdict.finding, page.alarm.defect.member) == ("class", 0)
    windows = page.picture("windows")
    assert windows.title == f"Windows of 300 rows: {names[0]}"
    assert windows.tables["gap"]["claimed"].mean() == pytest.approx(p[:, 0].mean())
    assert "<svg" in page.to_html()


def test_classes_of_pages_before_and_after():
    rng = np.random.default_rng(6)
    p = rng.dirichlet(np.ones(3), N)
    y, calm = Categorical(p).sample(rng, 1)[0], p**0.5 / (p**0.5).sum(axis=1, keepdims=True)
    plain = before_and_after(y, p, calm, n_resamples=99, rng=0)
    labels = ("before_curve", "after", "settings")
    named = before_and_after(np.array(labels)[y], *(Categorical(q, labels) for q in (p, calm)), n_resamples=99, rng=0)
    assert (named.before.error, named.after.error) == (plain.before.error, plain.after.error)
    assert named.scores.to_dict() == plain.scores.to_dict()
    assert "<svg" in named.to_html()
