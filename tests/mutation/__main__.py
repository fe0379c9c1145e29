"""``python -m tests.mutation``: do the tests notice small faults in the code?

``python -m tests.mutation --seed 1 --sample 300`` draws mutants of the estimators and of inference, tries each with the tests
that run its lines, and prints those that no test noticed. The checked-out files are copied first and never changed.
Faults that change nothing are listed with their reason in ``equivalent.txt`` beside this file.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse  # libraries read the number of threads when they are imported
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.mutation.mutations import Mutant, mutants, mutated
from tests.mutation.record import Record
from tests.mutation.trials import Faulty, forked, prepare, run_chosen

ROOT = Path(__file__).parents[2]
LEFT_OUT = (".git", "build", "dist", ".venv", "node_modules", ".mypy_cache", ".ruff_cache", ".pytest_cache")
PACKAGES = ["estimators", "inference"]


def main() -> None:
    """Try a sample and print what survived."""
    options = _options()
    os.nice(10)
    prepare()
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        root = Path(folder).resolve() / "copy"
        shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(*LEFT_OUT))
        store = ROOT / "build" / "mutation"
        store.mkdir(parents=True, exist_ok=True)
        records = {package: Record(root, store, package) for package in options.packages}
        print(f"{sum(len(record.seconds) for record in records.values())} tests recorded", flush=True)
        chosen = sample(root, options.packages, options.seed, options.sample)[options.part :: options.parts]
        known = known_from(options.again) if options.again else {}
        results = []
        for mutant in chosen:
            (record,) = (record for package, record in records.items() if f"/{package}/" in mutant.path)
            results.append(known.get(mutant.name) or _tried(mutant, record, options.unchanged))
        _summary(chosen, results)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.mutation", description=__doc__.split("\n")[0])
    parser.add_argument(
        "packages", nargs="*", default=PACKAGES, help="folders of src/calibrant; estimators and inference"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--parts", type=int, default=1, help="how many processes share the sample")
    parser.add_argument("--part", type=int, default=0, help="which share is tried; the first is 0")
    parser.add_argument(
        "--again", type=Path, help="what an earlier run printed: try only what survived it and is not equivalent"
    )
    parser.add_argument("--unchanged", action="store_true", help="run the same tests without faults: none may fail")
    return parser.parse_args()


def sample(root: Path, packages: list[str], seed: int, size: int) -> list[Mutant]:
    """Mutants drawn at random; those of a file come together."""
    every: list[Mutant] = []
    for package in packages:
        for path in sorted((root / "src" / "calibrant" / package).rglob("*.py")):
            every += mutants(path.relative_to(root).as_posix(), path.read_text())
    print(f"{len(every)} mutants", flush=True)
    return sorted(sorted(every, key=lambda mutant: mutant.rank(seed))[:size], key=lambda mutant: mutant.name)


def _tried(mutant: Mutant, record: Record, unchanged: bool) -> str:
    """What became of a mutant, also printed."""
    tests = record.tests(mutant)
    source = (record.root / mutant.path).read_text()
    module = ".".join(Path(mutant.path).relative_to("src").with_suffix("").parts)
    faulty = None if unchanged else Faulty(module, record.root / mutant.path, mutated(source, mutant))
    seconds = 20 + 4 * sum(record.seconds[test] for test in tests)
    log, start = record.root / "trial.txt", time.monotonic()
    code = forked(lambda: run_chosen(tests, faulty), record.root, seconds, log) if tests else 5
    became = {0: "survived", 5: "untested", None: "out of time"}.get(code, "killed")
    print(f"{became} ({len(tests)} tests, {time.monotonic() - start:.1f} s, {code}) {mutant.name}", flush=True)
    return became


def known_from(path: Path) -> dict[str, str]:
    """What became of mutants that tests noticed in an earlier run, where tests were added alone, and of equivalent ones."""
    lines = path.read_text().splitlines()
    killed = {line.partition(") ")[2] for line in lines if line.startswith(("killed", "out of time"))}
    return dict.fromkeys(killed, "killed before") | dict.fromkeys(equivalent(), "survived")


def _summary(chosen: list[Mutant], results: list[str]) -> None:
    same = equivalent()
    left = [m for m, became in zip(chosen, results, strict=True) if became in ("survived", "untested")]
    counts = Counter(results)
    killed = counts["killed"] + counts["killed before"]
    print(f"\n{len(chosen)} tried: {killed} killed, {counts['out of time']} out of time, ", end="")
    print(f"{counts['survived']} survived, {counts['untested']} run by no test; ", end="")
    print(f"{sum(m.name in same for m in left)} of those left are equivalent.")
    print("\n".join(f"  {mutant.name}" for mutant in left if mutant.name not in same))


def equivalent() -> dict[str, str]:
    """Mutants that were read and change nothing that a caller can see, with the reason on the line below."""
    lines = Path(__file__).with_name("equivalent.txt").read_text().splitlines()
    names = [i for i, line in enumerate(lines) if line.startswith("src/")]
    return {lines[i]: lines[i + 1].strip() for i in names}


if __name__ == "__main__":
    main()
