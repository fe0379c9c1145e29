"""``python -m studies.training.train IMAGES --out FOLDER --seconds 400``: train what the plan asks for and is not done yet.

Needs torch, NumPy and torchvision or Pillow, and nothing of this library. Each finished run is written at once:
half-precision logits of the 5,000 validation and 10,000 test images into packs ``NAME-0.npz``, ``NAME-1.npz``, and a line
into ``NAME.json``. A later call is given that file as ``--done NAME.json`` and goes on with the rest. No run is begun that
would not end in time.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from studies.training.images import Images, read
from studies.training.plan import PLANS, Run
from studies.training.trainer import Trainer, finished, is_sound, seconds_per_epoch

RUNS_PER_PACK = 45
"""Of 300,000 bytes: 13.5 million bytes a file."""

UNKNOWN_SECONDS = 1.0
"""Of an epoch, before one was seen."""

MARGIN_SECONDS = 6.0
"""Of a run, beside its epochs."""

TIMED: dict[str, dict[str, tuple[str, ...]]] = {
    "paper": {"wrn16-4": ("xe", "kde"), "resnet18": ("xe", "kde", "mmce", "skce", "fl53")},
    "small": {"vgg11-8": ("xe", "kde", "mmce", "skce", "fl53")},
}
"""Losses whose epochs are timed, by plan; last the architecture that is trained first."""


@dataclass(eq=False)
class Record:
    """What is done: written again with every run, the last pack alone."""

    folder: Path
    name: str
    labels: dict[str, np.ndarray]
    lines: dict[str, dict[str, Any]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    pack: dict[str, np.ndarray] = field(default_factory=dict)
    n_packs: int = 0

    def add(self, run: Run, line: dict[str, Any], logits: dict[str, np.ndarray]) -> None:
        """A finished run."""
        self.lines[run.name] = asdict(run) | line
        if len(self.pack) >= 2 * RUNS_PER_PACK:
            self.pack, self.n_packs = {}, self.n_packs + 1
        self.pack |= {f"{run.name}.{part}": values for part, values in logits.items()}
        path = self.folder / f"{self.name}-{self.n_packs}.npz"
        with path.with_suffix(".part").open("wb") as file:
            np.savez(file, **self.labels, **self.pack)  # type: ignore[arg-type]
        path.with_suffix(".part").replace(path)
        self.write()

    def write(self) -> None:
        """The lines."""
        text = json.dumps({"runs": self.lines, "seconds": self.seconds, "device": device_name()}, indent=0)
        (self.folder / f"{self.name}.json").write_text(text + "\n", "utf-8")


@dataclass(eq=False)
class Slot:
    """A place for one training at a time; trainers of the present architecture are kept, as capturing takes time."""

    train: Images
    batch: int
    trainers: dict[tuple[str, str], Trainer] = field(default_factory=dict)

    def trainer(self, run: Run) -> Trainer:
        """One that begins this run."""
        key = run.network, run.loss
        if key not in self.trainers:
            if any(network != run.network for network, _ in self.trainers):
                self.trainers.clear()
            self.trainers[key] = Trainer(*key, self.train, self.batch)
        self.trainers[key].begin(run)
        return self.trainers[key]


@dataclass(eq=False)
class Work:
    """Runs to do before a deadline, several at a time."""

    queue: list[Run]
    parts: dict[str, Images]
    record: Record
    deadline: float
    scale: float = 1.0
    """Of the numbers of epochs: to try a plan."""

    seen: dict[str, float] = field(default_factory=dict)
    """Seconds of an epoch of an architecture while others run beside it."""

    def take(self) -> Run | None:
        """The first run that would end in time."""
        left = self.deadline - time.monotonic()
        known = max(self.seen.values(), default=UNKNOWN_SECONDS)
        for i, run in enumerate(self.queue):
            if self.epochs(run) * self.seen.get(run.network, known) + MARGIN_SECONDS * min(self.scale, 1) <= left:
                return self.queue.pop(i)
        return None

    def epochs(self, run: Run) -> int:
        """Of a run, scaled."""
        return max(1, round(run.epochs * self.scale))

    def follow(self, slot: Slot) -> Iterator[None]:
        """Train one run after another; a step of the iterator is a step of training."""
        while (run := self.take()) is not None:
            trainer = slot.trainer(Run(**(asdict(run) | {"epochs": self.epochs(run)})))
            started = time.monotonic()
            for steps in trainer.epochs():
                yield from steps
            finished(trainer)
            each = (time.monotonic() - started) / self.epochs(run)
            self.seen[run.network] = max(each, 0.8 * self.seen.get(run.network, 0))
            self._keep(run, trainer, each)

    def _keep(self, run: Run, trainer: Trainer, each: float) -> None:
        line: dict[str, Any] = {"seconds_together": each, "loss_at_end": float(trainer.total) / trainer.steps}
        logits = {part: trainer.logits(self.parts[part]).numpy() for part in ("validation", "test")}
        right = logits["test"].argmax(1) == self.record.labels["labels_test"]
        line |= {"accuracy": float(right.mean()), "is_sound": is_sound(trainer.network)}
        self.record.add(run, line, logits)
        left = self.deadline - time.monotonic()
        print(f"{run.name}: accuracy {line['accuracy']:.4f}, {each:.3f} s an epoch, {left:.0f} s left", flush=True)


def measure_epochs(work: Work, slot: Slot, timed: dict[str, tuple[str, ...]]) -> None:
    """Seconds of an epoch with each loss, one after another and nothing beside: the paper's table 4."""
    for network, losses in timed.items():
        for loss in losses:
            key = f"{network}_{loss}"
            if key not in work.record.seconds:
                run = Run(network, loss, 0.1, 0)
                trainer = slot.trainer(run)
                work.record.seconds[key] = seconds_per_epoch(trainer, run)
        work.seen[network] = max(work.record.seconds[f"{network}_{loss}"] for loss in losses)
    work.record.write()
    print({key: round(value, 3) for key, value in work.record.seconds.items()}, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Train until the plan is done or the time is over."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.training.train", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("images", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--name", default="runs", help="of the files that are written")
    parser.add_argument("--done", type=Path, nargs="*", default=[], help="JSON files of earlier calls")
    parser.add_argument("--seconds", type=float, default=400)
    parser.add_argument("--together", type=int, default=1, help="trainings at a time")
    parser.add_argument("--plan", choices=PLANS, default="paper")
    parser.add_argument(
        "--at-most", type=int, nargs=3, metavar=("TRAINING", "VALIDATION", "TEST"), help="images, to try the plan"
    )
    parser.add_argument("--epochs-scale", type=float, default=1.0, help="of the numbers of epochs, to try the plan")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--networks", nargs="*", help="only these")
    parser.add_argument("--no-timing", action="store_true")
    given = parser.parse_args(arguments)
    started = time.monotonic()
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train, validation, test = (part.to(device) for part in read(given.images, given.at_most))
    train = train.padded()
    print(f"{len(train)} images after {time.monotonic() - started:.1f} s on {device_name()}", flush=True)
    parts = {"validation": validation, "test": test}
    labels = {f"labels_{key}": part.labels.cpu().numpy().astype(np.uint8) for key, part in parts.items()}
    given.out.mkdir(parents=True, exist_ok=True)
    record = Record(given.out, given.name, labels)
    earlier = [json.loads(path.read_text("utf-8")) for path in given.done]
    done = {name for file in earlier for name in file["runs"]}
    for file in earlier:
        record.seconds |= file["seconds"]
    queue = [
        run for run in PLANS[given.plan]() if run.name not in done and run.network in (given.networks or [run.network])
    ]
    work = Work(queue, parts, record, started + given.seconds, given.epochs_scale)
    slots = [Slot(train, given.batch) for _ in range(given.together)]
    if not given.no_timing:
        measure_epochs(work, slots[0], TIMED.get(given.plan, {}))
    advance_together([work.follow(slot) for slot in slots])
    record.write()
    print(f"{len(record.lines)} runs done, {len(work.queue)} left after {time.monotonic() - started:.0f} s", flush=True)
    return 0


def advance_together(jobs: list[Iterator[None]]) -> None:
    """A step of each in turn, until all have ended."""
    while jobs:
        jobs = [job for job in jobs if next(job, StopIteration) is None]


def device_name() -> str:
    """In words."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "the processor"


if __name__ == "__main__":
    sys.exit(main())
