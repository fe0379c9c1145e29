import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import binom

from calibrant import SKCE, Bootstrap, ExactTest, LogLoss, Normal
from calibrant._validate import InputError
from calibrant.inference import WildBootstrapTest
from calibrant.inference.monte_carlo import block_rows
from calibrant.kernels import Exponential, Gaussian

KERNEL = SKCE(Exponential(1.0), Gaussian(1.0))


def errors(n, memory, rng):
    """Standard normal, each correlated with the one before."""
    step = np.sqrt(1 - memory**2)
    return lfilter([step], [1, -memory], np.r_[rng.normal() / step, rng.normal(size=n)])[1:]


def series(n, memory, rng):
    """Calibrated normal predictions, whose errors follow each other."""
    loc, scale = rng.normal(size=n), rng.uniform(0.5, 2, n)
    return loc + scale * errors(n, memory, rng), Normal(loc, scale)


@pytest.mark.parametrize("n_sets", [50, pytest.param(150, marks=pytest.mark.study)])
def test_the_level_of_dependent_rows(n_sets):
    """Over 150 calibrated series of 300 rows: tests for independent rows reject 50 and 44, blocks of 20 rows 15."""
    rng, counts = np.random.default_rng(0), np.zeros(3, dtype=int)
    m = 99 if n_sets == 150 else 39
    tests = [ExactTest(KERNEL, m), WildBootstrapTest(KERNEL, m), WildBootstrapTest(KERNEL, m, block=20)]
    for _ in range(n_sets):
        y, p = series(300, 0.7, rng)
        counts += [test(y, p).pvalue <= 0.05 for test in tests]
    high = binom.ppf(0.9995, n_sets, 0.05)
    assert (counts[:2] > high).all()
    assert counts[2] <= high


def test_blocks_see_an_error():
    rng = np.random.default_rng(1)
    y, p = series(300, 0.7, rng)
    assert WildBootstrapTest(KERNEL, 99, block=20)(y + 1.5, p).pvalue == 0.01


def test_intervals_of_dependent_rows():
    """How often the interval of a mean holds it: in 41 % and 87 % of 150 series of 400 rows with long memory; 80 are drawn."""
    rng, truth = np.random.default_rng(2), 0.5 * np.log(2 * np.pi) + 0.5
    covered = {1: 0, 40: 0}
    for _ in range(80):
        y, p = errors(400, 0.9, rng), Normal(np.zeros(400), np.ones(400))
        for block in covered:
            low, high = Bootstrap(LogLoss(), 199, block=block)(y, p).interval
            covered[block] += low <= truth <= high
    assert covered[1] < 48
    assert covered[40] > 60


def test_rows_of_blocks_follow_each_other(rng):
    rows = block_rows(100, 10, rng).reshape(10, 10)
    assert (np.diff(rows, axis=1) % 100 == 1).all()
    assert len(block_rows(23, 5, rng)) == 23


def test_too_long_blocks_are_refused(rng):
    y, p = series(20, 0.5, rng)
    for make in (WildBootstrapTest(KERNEL, 19, block=5), Bootstrap(LogLoss(), 19, block=5)):
        with pytest.raises(InputError, match="block must leave at least 5 blocks; got block=5 for 20 rows: at most 4"):
            make(y, p)
    with pytest.raises(InputError, match="block must be a whole number of at least 1; got 0"):
        Bootstrap(LogLoss(), block=0)
