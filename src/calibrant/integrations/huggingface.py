"""Estimators as metrics of the library ``evaluate``."""

from collections.abc import Callable
from typing import Any

import numpy as np

from calibrant._validate import InputError


def as_metric(estimator: Callable[..., Any], name: str = "calibration", n_classes: int | None = None) -> Any:
    """An estimator as a metric of Hugging Face's ``evaluate``: ``compute``, ``add``, ``add_batch``, ``evaluate.combine``.

    ``predictions`` are one probability per row, or with ``n_classes`` a list of so many; ``references`` are labels from 0 on.
    ``compute`` hands other arguments, such as ``sample_weight``, on to the estimator, and gives ``{name: value}``::

        as_metric(ECE(), "ece").compute(references=[0, 1, 1, 1], predictions=[0.1, 0.9, 0.8, 0.7])     # {'ece': 0.175}

    >>> as_metric("ece")
    Traceback (most recent call last):
        ...
    calibrant._validate.InputError: estimator must be an estimator such as ECE(); got 'ece'
    """
    if not callable(estimator):
        raise InputError(f"estimator must be an estimator such as ECE(); got {estimator!r}")
    import datasets
    import evaluate

    number = datasets.Value("float64")
    scores = number if n_classes is None else [number]
    features = datasets.Features({"predictions": scores, "references": datasets.Value("int64")})

    class CalibrationMetric(evaluate.Metric):  # type: ignore[misc]
        """The estimator over all rows that were added."""

        def _info(self) -> Any:
            description = f"{estimator!r} of calibrant"
            return evaluate.MetricInfo(description=description, citation="", inputs_description="", features=features)

        def _compute(self, predictions: Any, references: Any, **options: Any) -> dict[str, float]:
            found: Any = estimator(np.asarray(references), np.asarray(predictions), **options)
            return {name: float(found.value)}

    return CalibrationMetric(config_name=name, keep_in_memory=True)
