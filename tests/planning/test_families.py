import pytest

from calibrant.cli.settings import parse_estimator, parse_recalibrator, parse_test
from calibrant.planning.families import FAMILIES, MEASURED
from calibrant.planning.rates import key_of, shipped
from calibrant.recalibration.base import Recalibrator
from calibrant.results import brief
from tests.planning.test_family import ALL, IDS, some_load
