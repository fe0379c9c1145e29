from dataclasses import replace

import pytest

from calibrant.planning.bench import trials
from calibrant.planning.families import FAMILIES, MEASURED
from calibrant.planning.machine import key_of, shipped
from calibrant.recalibration import Recalibrator
from calibrant.results import brief

ALL = [(family, kind) for family in FAMILIES.values() for kind in family.kinds]


def some_load(family, kind):
    return replace(next(trials(family, kind)), resamples=99, waves=64 if "waves" in family.name else 0, block=20)


def test_names_are_unique():
    assert len(FAMILIES) == len(MEASURED) + 3
    assert len({brief(family) for family in MEASURED}) == len(MEASURED)


@pytest.mark.parametrize(("family", "kind"), ALL, ids=[f"{kind}-{family.name}" for family, kind in ALL])
def test_every_family_has_built_in_rates_and_settings_that_commands_read(family, kind):
    pytest.importorskip("cyclopts")
    from calibrant.cli.settings import parse_estimator, parse_recalibrator, parse_test

    load = some_load(family, kind)
    assert len(shipped().seconds[key_of(family, load)]) == len(family.terms(load))
    made = family.make(load)
    parse = parse_recalibrator if isinstance(made, Recalibrator) else parse_test if load.resamples else parse_estimator
    parse = parse_estimator if parse is parse_test and "test" not in family.name else parse
    assert parse(brief(made)) == made
