"""Files, maps, states and settings that atheris makes up, guided by which lines of calibrant each one reaches.

``python tests/hostile/fuzz.py files|maps|states|settings [FOLDER] -max_total_time=600`` (``pip install atheris``; Linux, Python 3.11 to
3.13). It ends with a traceback and the input at the first error that is not an ``InputError``; ``FOLDER`` keeps inputs that
reached something new, and is read again next time. All other options are libFuzzer's.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import atheris

READERS = ["calibrant.io", "calibrant.spec", "calibrant.recalibration", "calibrant.streams", "calibrant.monitoring"]

with atheris.instrument_imports(include=READERS):
    from calibrant import Brier, InputError, Monitor, state
    from calibrant._names import Words
    from calibrant.io import read
    from calibrant.recalibration import Temperature, load_map
    from calibrant.spec import parse
    from calibrant.streams import from_dict

ENDINGS = (".csv", ".jsonl", ".npz", ".parquet")

HERE = Path(tempfile.mkdtemp())

WORDS = Words("estimators", "kernels", "lenses", "inference", "distributions", "recalibration")


def files(data: bytes) -> None:
    """A file of predictions; the first byte chooses its ending."""
    path = HERE / f"predictions{ENDINGS[data[0] % len(ENDINGS)]}"
    path.write_bytes(data[1:])
    read(path)


def maps(data: bytes) -> None:
    """A map, as ``calibrant recalibrate --apply`` reads it."""
    path = HERE / "map.json"
    path.write_bytes(data)
    load_map(path)


def states(data: bytes) -> None:
    """States of estimators and monitors: what JSON can hold."""
    try:
        saved = json.loads(data)
    except (ValueError, RecursionError):
        return
    (Monitor.from_dict if len(data) % 2 else from_dict)(saved)


def settings(data: bytes) -> None:
    """Words of the command line."""
    parse(data.decode("utf-8", "replace"), WORDS)


TARGETS: dict[str, Callable[[bytes], None]] = {f.__name__: f for f in (files, maps, states, settings)}


def seeds() -> dict[str, list[bytes]]:
    """Good inputs to begin with."""
    y, p = [0, 1, 1, 0] * 10, [0.2, 0.7, 0.9, 0.4] * 10
    Temperature().fit(y, p).save(HERE / "good.json")
    csv = "y,p\n" + "".join(f"{a},{b}\n" for a, b in zip(y, p, strict=True))
    lines = "".join(json.dumps({"y": a, "p": b}) + "\n" for a, b in zip(y, p, strict=True))
    kept = [json.dumps(state(Brier()).update(y, p).to_dict()), json.dumps(Monitor().update(y, p).to_dict()) + " "]
    return {
        "files": [b"\x00" + csv.encode(), b"\x01" + lines.encode()],
        "maps": [(HERE / "good.json").read_bytes()],
        "states": [text.encode() for text in kept],
        "settings": [b"ECE(EqualMass(15), norm=2)", b"Gaussian(1.0)", b"Normal(loc=mu, scale=1)"],
    }


def main() -> None:
    """Try until an error that no user should see."""
    name, *options = sys.argv[1:]
    target = TARGETS[name]

    def once(data: bytes) -> None:
        with suppress(InputError):
            target(data or b" ")

    begin = Path(tempfile.mkdtemp())
    for i, seed in enumerate(seeds()[name]):
        (begin / str(i)).write_bytes(seed)
    folders = [option for option in options if not option.startswith("-")] or [tempfile.mkdtemp()]
    atheris.Setup([sys.argv[0], *folders, str(begin), *(o for o in options if o.startswith("-"))], once)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
