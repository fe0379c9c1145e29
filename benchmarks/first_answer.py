"""How long a newcomer waits for the first answer, from an empty folder: ``python benchmarks/first_answer.py``.

Makes an environment, installs the package with its command line, looks at the demonstration and makes a report on a file of
one's own. Needs a package index.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]

OWN = """
import random
random.seed(0)
rows = ["outcome,risk"]
for _ in range(2000):
    risk = random.random()
    rows.append(f"{int(random.random() < 0.2 + 0.6 * risk)},{risk:.3f}")
open("mine.csv", "w").write("\\n".join(rows))
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        python, program = f"{folder}/user/bin/python", f"{folder}/user/bin/calibrant"
        steps = {
            "an environment": [sys.executable, "-m", "venv", "user"],
            "pip install '.[cli]'": [python, "-m", "pip", "install", "-q", f"{ROOT}[cli]"],
            "calibrant demo": [program, "demo"],
            "a file of one's own": [python, "-c", OWN],
            "calibrant report mine.csv": [program, "report", "mine.csv", "--y-true", "outcome", "--y-pred", "risk"],
            "the same again": [program, "report", "mine.csv", "--y-true", "outcome", "--y-pred", "risk"],
        }
        total = 0.0
        print("| step | seconds |\n|---|---|")
        for name, command in steps.items():
            begin = time.perf_counter()
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
            took = time.perf_counter() - begin
            total += took
            print(f"| {name} | {took:.1f} |", flush=True)
        print(f"| all | {total:.1f} |")


if __name__ == "__main__":
    main()
