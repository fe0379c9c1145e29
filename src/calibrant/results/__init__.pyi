# Written by `python -m calibrant._names`.

from calibrant.results.base import Result as Result
from calibrant.results.base import SCHEMA as SCHEMA
from calibrant.results.base import jsonable as jsonable
from calibrant.results.estimate import Estimate as Estimate
from calibrant.results.estimate import Interval as Interval
from calibrant.results.finding import Finding as Finding
from calibrant.results.table import Table as Table
from calibrant.results.test_result import TestResult as TestResult
from calibrant.results.words import brief as brief
from calibrant.results.words import how_many as how_many
from calibrant.results.words import number as number
from calibrant.results.words import percent as percent
