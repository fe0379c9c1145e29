"""Every family of work by name."""

from collections.abc import Mapping
from types import MappingProxyType

from calibrant.planning.estimates import ESTIMATES
from calibrant.planning.family import Family
from calibrant.planning.procedures import AGGREGATED, FITS, TESTS

MEASURED = (*ESTIMATES, *TESTS, *FITS)
"""Families whose rates ``calibrant doctor --bench`` measures."""

FAMILIES: Mapping[str, Family] = MappingProxyType({family.name: family for family in (*MEASURED, *AGGREGATED)})
