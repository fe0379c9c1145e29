"""What reports say of worlds whose truth is known: false alarms of calibrated ones, and the words found for the others.

Run ``python benchmarks/verdicts.py`` (some twenty minutes on two cores); ``python benchmarks/verdicts.py 20 5`` draws fewer data
sets of calibrated and of other worlds. With ``--write`` the table goes to docs/studies/verdicts.md.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy.stats import binom
from verdict_worlds import CASES, Case

from calibrant.inference.proportions import interval_of_share
from calibrant.reports.build import judge
from calibrant.reports.model import Verdict
from calibrant.results import Table

REDRAWS = 199
PAGE = Path(__file__).parents[1] / "docs" / "studies" / "verdicts.md"
WORDS = """# What the report says of thirty-six worlds

Data drawn from worlds whose truth is known, and the sentence that the report gives ({redraws} redraws). In calibrated
worlds an alarm is false: at most 5 % of data sets may raise one, at any number of rows; of {sets} data sets that is at most
{most} in 99.9 % of studies like this one. In the other worlds the sentence must name what is wrong: `named` is the share of data
sets in which it did. Too few rows to tell is no alarm. Repeat by `python benchmarks/verdicts.py --write`.

## Calibrated

{calibrated}

In all, {alarms:,} of {draws:,} data sets raise an alarm: {share:.1f} %.

## Not calibrated

{others}
"""


def verdict_of(case: Case, seed: int) -> Verdict:
    """One data set."""
    y_true, y_pred, by = case.draw(np.random.default_rng([seed, case.n, len(case.name)]), case.n)
    return judge(y_true, y_pred, by=by, n_resamples=REDRAWS, rng=seed)


def is_named(case: Case, verdict: Verdict) -> bool:
    """Whether the words were found; of a calibrated world, whether there was an alarm."""
    return any(words in verdict.headline for words in case.words) if case.words else verdict.is_alarm


def outcomes(case: Case, sets: int) -> tuple[str, list[bool]]:
    """The first sentence that is as it should be, and what was found in every data set."""
    verdicts = [verdict_of(case, seed) for seed in range(sets)]
    found = [is_named(case, verdict) for verdict in verdicts]
    usual = bool(case.words)
    return next((v.headline for v, f in zip(verdicts, found, strict=True) if f == usual), verdicts[0].headline), found


def main(calibrated: int = 200, others: int = 40, *, write: bool = False) -> None:
    """All worlds, a few at a time."""
    sets = [others if case.words else calibrated for case in CASES]
    with ProcessPoolExecutor(2) as pool:
        results = list(pool.map(outcomes, CASES, sets))
    rows: dict[bool, list[dict[str, object]]] = {False: [], True: []}
    for case, (sentence, found) in zip(CASES, results, strict=True):
        limits = interval_of_share(sum(found), len(found))
        share = f"{sum(found)} of {len(found)} ({100 * limits.low:.0f} to {100 * limits.high:.0f} %)"
        row = {"world": case.name, "rows": case.n, "truth": case.truth, "sentence": sentence}
        rows[bool(case.words)].append({**row, ("named" if case.words else "alarms"): share})
        print(f"{case.name:36} {share:26} {sentence}", flush=True)
    tables = {key: Table({name: [row[name] for row in part] for name in part[0]}) for key, part in rows.items()}
    most = int(binom.ppf(0.999, calibrated, 0.05))
    if write:
        found = [flag for case, (_, flags) in zip(CASES, results, strict=True) if not case.words for flag in flags]
        total = {"alarms": sum(found), "draws": len(found), "share": 100 * sum(found) / len(found)}
        texts = {"calibrated": tables[False].to_markdown(), "others": tables[True].to_markdown()}
        PAGE.write_text(WORDS.format(redraws=REDRAWS, sets=calibrated, most=most, **texts, **total), encoding="utf-8")


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:] if argument.isdigit()]
    main(*numbers, write="--write" in sys.argv)
