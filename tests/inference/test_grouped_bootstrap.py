import pytest

from calibrant import ECE, Bootstrap, ClassWise, EqualMass, TopLabel
from calibrant._validate import InputError
from calibrant.estimators.sweep import Sweep
from calibrant.inference.grouped_bootstrap import GroupedBootstrap


@pytest.mark.parametrize("stretch", [1.0, 0.7])
def test_it_agrees_with_the_bootstrap_of_rows(stretch, rng):
    p = rng.random(20_000)
    y = (rng.random(20_000) < 0.5 + stretch * (p - 0.5)) * 1
    estimator = ECE(EqualMass(15))
    rows, groups = Bootstrap(estimator, 499)(y, p), GroupedBootstrap(estimator, 4999)(y, p)
    assert groups.value == rows.value
    assert groups.standard_error == pytest.approx(rows.standard_error, rel=0.1)
    noise = 0.25 * rows.standard_error  # of quantiles of 499 values, some three times
    assert groups.interval.low == pytest.approx(rows.interval.low, abs=noise)
    assert groups.interval.high == pytest.approx(rows.interval.high, abs=noise)


def test_the_favoured_class_is_one_event(rng):
    p = rng.dirichlet([1, 1, 1], 5000)
    assert GroupedBootstrap(ECE(lens=TopLabel()), 99)(p.argmax(axis=1), p).interval.low > 0


def test_what_it_cannot_resample_is_refused(rng):
    p = rng.dirichlet([1, 1, 1], 50)
    with pytest.raises(InputError, match="averages 3"):
        GroupedBootstrap(ECE(lens=ClassWise()))(p.argmax(axis=1), p)
    for estimator in (ECE(norm=2), ECE(Sweep())):
        with pytest.raises(InputError, match="norm 1 and bins that do not adapt"):
            GroupedBootstrap(estimator)
