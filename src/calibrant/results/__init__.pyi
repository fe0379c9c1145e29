# Written by `python -m calibrant._names`.

from calibrant.results.finding import Finding as Finding
from calibrant.results.result import Estimate as Estimate
from calibrant.results.result import Interval as Interval
from calibrant.results.result import Result as Result
from calibrant.results.result import SCHEMA as SCHEMA
from calibrant.results.result import Table as Table
from calibrant.results.result import TestResult as TestResult
from calibrant.results.result import jsonable as jsonable
from calibrant.results.words import brief as brief
from calibrant.results.words import how_many as how_many
from calibrant.results.words import number as number
from calibrant.results.words import percent as percent
