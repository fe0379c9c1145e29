import numpy as np
import pytest

from calibrant import Brier
from studies.coverage.catalogue import CLAIMS
from studies.coverage.claims import Estimated
from studies.coverage.study import BOUND, figure, sections, study, summary, tally
from studies.coverage.worlds import SETTINGS

SMALL = [setting for setting in SETTINGS if setting.label in ("even, n = 100", "3 members, n = 100")]


class Boastful(Brier):
    """Half of its standard error."""

    def estimate(self, targets, predictions, weights):
        from dataclasses import replace

        honest = super().estimate(targets, predictions, weights)
        return replace(honest, standard_error=honest.standard_error / 2, limits=None)


def boastful():
    return Estimated("boastful", SETTINGS[0].__class__.is_calibrated.fget, Boastful())


@pytest.fixture(scope="module")
def table():
    plain = [claim for claim in CLAIMS if not claim.costly][:3]
    return study(100, settings=SMALL, claims=[*plain, boastful()])


def test_false_statements_are_tried_again_and_stay_false(table):
    rows = [row for row in table.rows() if row["claim"] == "boastful" and row["world"] == "even, n = 100"]
    assert {row["statement"] for row in rows} == {"interval", "standard error"}
    assert all(row["again"] and row["data_sets"] == 400 and row["part"] > BOUND for row in rows)


def test_the_page_names_the_false_cells(table):
    (section,) = sections(table)
    assert set(section.table["claim"]) == {"boastful"}
    row = next(row for row in summary(table).rows() if row["claim"] == "boastful" and row["statement"] == "interval")
    assert (row["worlds"], row["false"]) == (1, 1)


def test_the_tally_counts_every_statement(table):
    words = tally(table)
    assert words.startswith(f"{table.n_rows} statements in 1 world:")
    assert words.endswith("2 are false.")


def test_the_map_has_a_panel_per_group_of_worlds(table):
    drawn = figure(table)
    assert [axes.get_title(loc="left") for axes in drawn.axes] == ["two classes"]
    assert "×" in [text.get_text() for text in drawn.axes[0].texts]


def test_cells_are_kept_and_do_not_depend_on_each_other(tmp_path):
    claims = [claim for claim in CLAIMS if not claim.costly][:2]
    whole = study(100, settings=SMALL[:1], claims=claims, folder=tmp_path)
    again = study(100, settings=SMALL[:1], claims=claims, folder=tmp_path)
    alone = study(100, settings=SMALL[:1], claims=claims[1:])
    assert np.array_equal(whole["share"], again["share"], equal_nan=True)
    assert np.array_equal(whole["share"][-len(alone["share"]) :], alone["share"], equal_nan=True)


def test_names_tell_claims_apart():
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)


@pytest.mark.study
def test_all_of_it(tmp_path):
    assert np.nanmax(study(folder=tmp_path)["part"]) <= BOUND


def test_a_cell_in_which_nothing_is_stated_ends_early():
    from calibrant import KDE

    table = study(100, settings=SMALL[:1], claims=[Estimated("KDE", boastful().suits, KDE())])
    assert set(table["data_sets"]) == {20}
    assert set(table["stated"]) == {0}
