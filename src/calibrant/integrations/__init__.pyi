# Written by `python -m calibrant._names`.

from calibrant.integrations.arviz import from_arviz as from_arviz
from calibrant.integrations.huggingface import as_metric as as_metric
from calibrant.integrations.mlflow import log_report as log_report
