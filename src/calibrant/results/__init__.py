"""What calls return: frozen values that turn into a number, a dictionary, or something worth reading."""

from calibrant.results.base import Result
from calibrant.results.estimate import Estimate
from calibrant.results.interval import Interval
from calibrant.results.outcome import TestResult
from calibrant.results.plain import SCHEMA, jsonable
from calibrant.results.table import Table
from calibrant.results.words import brief, how_many, number, percent

__all__ = [
    "SCHEMA",
    "Estimate",
    "Interval",
    "Result",
    "Table",
    "TestResult",
    "brief",
    "how_many",
    "jsonable",
    "number",
    "percent",
]
