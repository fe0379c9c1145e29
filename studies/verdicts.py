"""What reports say of worlds whose truth is known, and whether what they advise goes with it.

Every data set gives two answers. The verdict: false alarms of calibrated worlds, and the words found for the others. The
advice: an alarm must come with a map or say why there is none, and without an alarm no map may be offered.

Run ``python -m studies.verdicts --keep FOLDER`` (an hour or so on two cores). Finished data sets are kept in the folder, a
file a world, so a run that was broken off goes on where it stopped. ``--worlds forest "P10*"`` runs some worlds alone, so
that several machines can share the work: copy their files into one folder, and run again with ``--write``, which puts the
table into docs/studies/verdicts.md. ``--data-sets 20 5`` draws fewer data sets of calibrated and of other worlds. Leaves with
code 1 where a calibrated world raises more alarms than chance allows, or advice contradicts a verdict.
"""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import binom

from calibrant import __version__, evaluate
from calibrant.inference import interval_of_share
from calibrant.lab.study import StudyRecord
from calibrant.reports import Advice, Reason
from calibrant.results import Table
from studies.verdict_worlds import CASES, Case

N_RESAMPLES = 199
LEVEL, CERTAINTY = 0.05, 0.999
"""The share of calibrated data sets that may raise an alarm, and of studies like this one that keep to the bound."""

PAGE = Path(__file__).parents[1] / "docs" / "studies" / "verdicts.md"
WORDS = """# What the report says of {worlds} worlds

Data drawn from worlds whose truth is known, and the sentence that the report gives ({resamples} resamples). In calibrated
worlds an alarm is false: at most 5 % of data sets may raise one, at any number of rows; of {sets} data sets that is at most
{most} in 99.9 % of studies of one world, and at most {most_of_all} in 99.9 % of studies of all {calibrated} of them. In the other
worlds the sentence must name what is wrong: `named` is the share of data sets in which it did. Too few rows to tell is no
alarm.

`advice` is the share of data sets whose advice goes with the verdict: after an alarm there is a map, or the advice says why
there is none; without one nothing is offered. `map` is the share of alarms that come with a map. Repeat by
`python -m studies.verdicts --keep FOLDER --write`.

## Calibrated

{table}

In all, {alarms:,} of {draws:,} data sets raise an alarm: {share:.1f} %. {above}

## Not calibrated

{others}

## Advice that contradicts its verdict

{contradictions}
"""


@dataclass(frozen=True)
class Outcome:
    """What the report said of one data set."""

    headline: str
    finding: str | None
    is_alarm: bool
    is_named: bool
    advice: str
    has_map: bool
    is_consistent: bool


def outcome(case: Case, seed: int) -> Outcome:
    """Draw a data set, and read its report."""
    data = case.draw(np.random.default_rng([seed, case.n, len(case.name)]), case.n)
    report = evaluate(
        data.y_true, data.y_pred, by=data.by, sample_weight=data.weights, n_resamples=N_RESAMPLES, rng=seed
    )
    verdict, advice = report.verdict, report.advice
    assert advice is not None
    return Outcome(
        headline=verdict.headline,
        finding=verdict.finding,
        is_alarm=verdict.is_alarm,
        is_named=any(words in verdict.headline for words in case.words),
        advice=advice.headline,
        has_map=advice.code is not None,
        is_consistent=is_consistent(advice, is_alarm=verdict.is_alarm),
    )


def is_consistent(advice: Advice, *, is_alarm: bool) -> bool:
    """After an alarm a map, or the reason why there is none; without an alarm no map."""
    if not is_alarm:
        return advice.code is None
    return advice.code is not None or advice.reason not in (None, Reason.NOTHING_WRONG)


def outcomes(case: Case, sets: int, folder: Path | None, pool: ProcessPoolExecutor) -> list[Outcome]:
    """Every data set of a world; those that the folder holds are not drawn again."""
    record = None if folder is None else record_of(case, folder)
    done = {} if record is None else {seed: Outcome(**found) for seed, found in record.read().items()}
    todo = [seed for seed in range(sets) if seed not in done]
    for seed, found in zip(todo, pool.map(partial(outcome, case), todo), strict=True):
        done[seed] = found
        if record is not None:
            record.add(seed, asdict(found))
    return [done[seed] for seed in range(sets)]


def record_of(case: Case, folder: Path) -> StudyRecord:
    """The file of a world."""
    name = "".join(letter if letter.isalnum() else "-" for letter in case.name)
    settings = {"calibrant": __version__, "world": case.name, "rows": case.n, "resamples": N_RESAMPLES}
    return StudyRecord(folder / f"{name}.jsonl", settings)


def share(count: int, total: int) -> str:
    """How many of how many, with the limits of the share."""
    if total == 0:
        return ""
    limits = interval_of_share(count, total)
    return f"{count} of {total} ({100 * limits.low:.0f} to {100 * limits.high:.0f} %)"


def most_alarms(sets: int, worlds: int = 1) -> int:
    """The most false alarms of any world that a study of so many worlds shows in 99.9 % of cases."""
    return int(binom.isf((1 - CERTAINTY) / worlds, sets, LEVEL))


def row_of(case: Case, found: Sequence[Outcome]) -> dict[str, object]:
    """What a table shows of a world."""
    alarms = [one for one in found if one.is_alarm]
    named = [one.is_named for one in found] if case.words else [one.is_alarm for one in found]
    usual = next(
        (o.headline for o, flag in zip(found, named, strict=True) if flag == bool(case.words)), found[0].headline
    )
    return {
        "world": case.name,
        "rows": case.n,
        "truth": case.truth,
        "sentence": usual,
        ("named" if case.words else "alarms"): share(sum(named), len(found)),
        "map": share(sum(one.has_map for one in alarms), len(alarms)),
        "advice": share(sum(one.is_consistent for one in found), len(found)),
    }


def contradictions(results: dict[Case, list[Outcome]]) -> Iterator[str]:
    """What advice said against its verdict, world by world, the most frequent sentence first."""
    for case, found in results.items():
        wrong = Counter((one.headline, one.advice) for one in found if not one.is_consistent)
        for (headline, advice), count in wrong.most_common(1):
            yield f"* {case.name}, {wrong.total()} of {len(found)}, such as {count} times: “{headline}” and “{advice}”"


def page_of(results: dict[Case, list[Outcome]]) -> str:
    """The page, of all worlds that have results."""
    parts = {flag: {c: found for c, found in results.items() if bool(c.words) == flag} for flag in (False, True)}
    tables = {}
    for flag, part in parts.items():
        rows = [row_of(*item) for item in part.items()]
        tables[flag] = Table({key: [row[key] for row in rows] for key in rows[0]}).to_markdown() if rows else "None."
    calibrated = parts[False]
    sets = max((len(found) for found in calibrated.values()), default=0)
    draws, alarms = sum(map(len, calibrated.values())), sum(o.is_alarm for found in calibrated.values() for o in found)
    above = [f"{c.name} ({sum(o.is_alarm for o in found)})" for c, found in too_many_alarms(calibrated).items()]
    return WORDS.format(
        worlds=len(results),
        resamples=N_RESAMPLES,
        sets=sets,
        most=most_alarms(sets),
        most_of_all=most_alarms(sets, max(1, len(calibrated))),
        calibrated=len(calibrated),
        table=tables[False],
        alarms=alarms,
        draws=draws,
        share=100 * alarms / max(1, draws),
        above=f"Worlds above the bound: {', '.join(above) or 'none'}.",
        others=tables[True],
        contradictions="\n".join(contradictions(results)) or "None.",
    )


def too_many_alarms(calibrated: dict[Case, list[Outcome]]) -> dict[Case, list[Outcome]]:
    """Calibrated worlds with more alarms than chance allows in a study of all of them."""
    return {
        case: found
        for case, found in calibrated.items()
        if sum(one.is_alarm for one in found) > most_alarms(len(found), len(calibrated))
    }


def main(asked: Namespace) -> int:
    """All worlds that were asked for, a file each."""
    chosen = [case for case in CASES if any(fnmatch(case.name, pattern) for pattern in asked.worlds)]
    if asked.keep is not None:
        asked.keep.mkdir(parents=True, exist_ok=True)
    results: dict[Case, list[Outcome]] = {}
    with ProcessPoolExecutor(asked.workers) as pool:
        for case in chosen:
            found = outcomes(case, asked.data_sets[bool(case.words)], asked.keep, pool)
            results[case] = found
            row = row_of(case, found)
            shown = row.get("named", row.get("alarms"))
            print(f"{case.name:34} {shown:26} advice {row['advice']:26} {row['sentence']}", flush=True)
    for line in contradictions(results):
        print(line)
    if asked.write:
        PAGE.write_text(page_of(results), encoding="utf-8")
    calibrated = {case: found for case, found in results.items() if not case.words}
    broken = [*too_many_alarms(calibrated), *contradictions(results)]
    return 1 if broken else 0


def parser() -> ArgumentParser:
    """The words of the command."""
    found = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    found.add_argument("--data-sets", type=int, nargs=2, default=(200, 40), metavar=("CALIBRATED", "OTHERS"))
    found.add_argument(
        "--worlds", nargs="+", default=["*"], help="names, or patterns such as 'forest*'; all without it"
    )
    found.add_argument("--workers", type=int, default=2)
    found.add_argument("--keep", type=Path, help="folder of finished data sets, a file a world")
    found.add_argument("--write", action="store_true", help="write docs/studies/verdicts.md")
    return found


if __name__ == "__main__":
    sys.exit(main(parser().parse_args()))
