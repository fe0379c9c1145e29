"""Awkward data, the same for every error of yes-or-no events: a clear refusal, or the right answer."""

import numpy as np
import pytest

from calibrant import ECE, DebiasedECE, EqualMass, SmoothECE, Sweep
from calibrant._validate import InputError
from calibrant.estimators import ICI, Edges, IsotonicCurve, KolmogorovSmirnov, Kuiper

ERRORS = [
    ECE(),
    ECE(EqualMass(15), norm=2),
    ECE(Edges((0, 0.5, 1))),
    ECE(Sweep()),
    ECE(Sweep("width"), norm=np.inf),
    DebiasedECE(norm=1),
    DebiasedECE(singletons="keep"),
    SmoothECE(),
    KolmogorovSmirnov(),
    Kuiper(),
    ICI(IsotonicCurve()),
]
UNBIASED_ALONE = (DebiasedECE,)


@pytest.mark.parametrize("error", ERRORS, ids=repr)
class TestAwkwardData:
    def test_fewer_rows_than_bins(self, error):
        value = error([0, 1, 1], [0.2, 0.6, 0.9]).value
        assert -1 <= value <= 1

    def test_one_row(self, error):
        expected = 0.0 if isinstance(error, ICI) else 0.7  # one point fits its own curve
        value = error([1], [0.3]).value
        assert (
            value == pytest.approx(0.7) or isinstance(error, DebiasedECE) or value == pytest.approx(1 - 0.3 - expected)
        )

    def test_all_scores_equal(self, error):
        value = error([1, 0, 0, 0], [0.4] * 4).value
        if not isinstance(error, UNBIASED_ALONE):
            assert value == pytest.approx(0.15, abs=1e-9)

    def test_scores_of_exactly_0_and_1(self, error):
        assert error([0, 1, 0, 1], [0.0, 1.0, 0.0, 1.0]).value == pytest.approx(0, abs=1e-9)
        upside_down = error([1, 0, 1, 0], [0.0, 1.0, 0.0, 1.0])
        if isinstance(getattr(error, "bins", None), Sweep):
            assert upside_down.value == 0
            assert "one bin compares means alone" in upside_down.notes[0]
        else:
            assert upside_down.value > 0.3

    def test_only_one_class(self, error):
        assert np.isfinite(error(np.ones(9, dtype=int), np.linspace(0.1, 0.9, 9)).value)

    def test_rows_without_weight_do_not_count(self, error, rng):
        p = rng.random(40)
        y = (rng.random(40) < p).astype(int)
        w = np.repeat([1.0, 0.0], 20)
        kept = error(y[:20], p[:20], sample_weight=w[:20]).value
        assert error(y, p, sample_weight=w).value == pytest.approx(
            kept, abs=2e-3 if isinstance(error, SmoothECE) else 1e-12
        )

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            ([1.0, -1.0, 1.0], "sample_weight must not be negative"),
            ([0.0, 0.0, 0.0], "sample_weight"),
            ([1.0, np.nan, 1.0], "sample_weight"),
            ([1.0, 1.0], "sample_weight"),
        ],
    )
    def test_bad_weights(self, error, weights, message):
        with pytest.raises(InputError, match=message):
            error([0, 1, 1], [0.2, 0.6, 0.9], sample_weight=weights)

    @pytest.mark.parametrize("p", [[0.2, np.nan], [0.2, 1.2], [-0.1, 0.5], [0.5], [], [[0.2, 0.3, 0.4]] * 2])
    def test_bad_scores(self, error, p):
        with pytest.raises(InputError):
            error([0, 1], p)

    def test_swapped_arguments(self, error):
        with pytest.raises(InputError, match="truth first|swapped|y_true"):
            error([0.25, 0.75], [0, 1])


@pytest.mark.parametrize("edges", [(0, 0.5, 0.4, 1), (0, 0.5, 0.5, 1), (0.1, 1), (0, 0.9), (0,), (), (0, np.nan, 1)])
def test_edges_must_grow_from_0_to_1(edges):
    with pytest.raises(InputError, match=r"edges must grow from 0 to 1, as \(0, 0.2, 0.5, 1\) does"):
        Edges(edges)


def test_bins_that_deal_out_rows_take_no_weights():
    with pytest.raises(InputError, match="ties='split' deals out whole rows: leave out sample_weight"):
        ECE(EqualMass(2, ties="split"))([0, 1, 1], [0.2, 0.8, 0.5], sample_weight=[1, 2, 3])
