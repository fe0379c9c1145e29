# Written by `python -m calibrant._names`.

from calibrant.results.result import Estimate as Estimate
from calibrant.results.result import Finding as Finding
from calibrant.results.result import Interval as Interval
from calibrant.results.result import Result as Result
from calibrant.results.result import SCHEMA as SCHEMA
from calibrant.results.result import TestResult as TestResult
from calibrant.results.result import jsonable as jsonable
from calibrant.results.table import Table as Table
from calibrant.results.text import brief as brief
from calibrant.results.text import how_many as how_many
from calibrant.results.text import number as number
from calibrant.results.text import percent as percent
