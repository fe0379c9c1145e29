"""A report in the run of an experiment tracker."""

from typing import Any

from calibrant.reports import Report


def log_report(report: Report, name: str = "calibration", tracker: Any = None) -> dict[str, float]:
    """Log a report to the active run of MLflow: its numbers as metrics, its page and data as artifacts; returns the metrics.

    Each number is ``name.key``, with ``.low``, ``.high`` (its interval) and ``.pvalue`` where the report states them; shares are
    fractions. ``tracker`` is anything with the functions ``log_metrics``, ``log_text`` and ``log_dict`` of ``mlflow``, which it is
    by default.

    >>> from types import SimpleNamespace
    >>> from calibrant import evaluate
    >>> kept = {}
    >>> keep = lambda value, place: kept.update({place: value})
    >>> tracker = SimpleNamespace(log_metrics=kept.update, log_text=keep, log_dict=keep)
    >>> metrics = log_report(evaluate([0, 1] * 20, [0.1, 0.9] * 20, advice=False), tracker=tracker)
    >>> kept["calibration.brier"] == metrics["calibration.brier"], kept["calibration.html"][:15]
    (True, '<!doctype html>')
    """
    if tracker is None:
        import mlflow

        tracker = mlflow
    metrics: dict[str, float] = {}
    for found in report.numbers:
        place = f"{name}.{found.key}"
        metrics[place] = float(found.value)
        if found.interval is not None:
            metrics |= {f"{place}.low": float(found.interval.low), f"{place}.high": float(found.interval.high)}
        if found.pvalue is not None:
            metrics[f"{place}.pvalue"] = float(found.pvalue)
    tracker.log_metrics(metrics)
    tracker.log_text(report.to_html(), f"{name}.html")
    tracker.log_dict(report.to_dict(), f"{name}.json")
    return metrics
