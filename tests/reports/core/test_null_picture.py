import numpy as np

from calibrant import Categorical
from calibrant.reports.core.evidence import gather, null_of
from calibrant.results import percent


def test_bars_are_the_resamples(rng, problem_of):
    p = rng.random(100)
    problem = problem_of((rng.random(100) < p) * 1, Categorical(p))
    pool = gather(problem, {"error": problem.error}, ()).pool
    picture = null_of(problem, pool, problem.error, "error", "calibration error")
    assert picture.tables["resamples"]["count"].sum() == 99
    assert picture.tables["observed"]["pvalue"][0] == pool.pvalue("error")
    share = np.mean(pool.null("error") >= pool.observed("error"))
    assert f"and {percent(share)} of resamples" in picture.description
    assert pool_label(null_of(problem, pool, problem.error, "error", "PIT error")) == "PIT error"
    assert pool_label(picture) == "Calibration error"


def pool_label(picture):
    return picture.tables["observed"]["name"][0]
