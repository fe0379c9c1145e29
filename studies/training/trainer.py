"""Training a network of one architecture with one loss, again and again with other seeds, as one captured graph a step."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from studies.training.images import MARGIN, MEAN, SPREAD, Images, crops
from studies.training.networks import ARCHITECTURES, CLIPPED, begin
from studies.training.plan import Run
from studies.training.terms import LOSSES

BATCH = 512

MOMENTUM, DECAY = 0.9, 5e-4

PEAK, SMALL_PEAK = 0.4, 0.05
"""Largest step sizes of the whole batch, with normalisation and without; they go with the root of its size."""

WARM_UP = 0.2
"""Part of the steps in which the step size rises; then it falls to zero."""

LONGEST = 1.0
"""Gradients of networks without normalisation are shortened to this."""

WARM_STEPS = 3
"""Steps before a graph is captured."""


class Trainer:
    """Steps of stochastic gradients with momentum; everything that changes between steps lies on the device.

    On a GPU a step is captured once as a graph and replayed; the host only draws orders and crops, once an epoch.
    """

    def __init__(self, network: str, loss: str, train: Images, batch: int = BATCH) -> None:
        self.train, self.batch, self.device = train, min(batch, len(train)), train.labels.device
        self.steps = len(train) // self.batch
        self.loss, self.clips = LOSSES[loss], network in CLIPPED
        self.is_graphed = self.device.type == "cuda"
        self.stream = torch.cuda.Stream() if self.is_graphed else None  # type: ignore[no-untyped-call]
        self.network = ARCHITECTURES[network]().to(self.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.parameters = list(self.network.parameters())
        self.decays = [DECAY if p.ndim > 1 else 0.0 for p in self.parameters]
        self.moments = [torch.zeros_like(p) for p in self.parameters]
        shape = (self.steps, self.batch)
        self.rows = torch.zeros(shape, dtype=torch.int64, device=self.device)
        self.moves = torch.zeros((*shape, 3), dtype=torch.int64, device=self.device)
        self.rates = torch.zeros(100 * self.steps, device=self.device)
        self.at, self.weight = (
            torch.zeros(1, dtype=torch.int64, device=self.device),
            torch.zeros((), device=self.device),
        )
        self.total = torch.zeros((), device=self.device)
        self.mean, self.spread = (255 * torch.tensor(part, device=self.device) for part in (MEAN, SPREAD))
        self.replay: Callable[[], object] = self._step
        if self.is_graphed:
            self._capture()

    def begin(self, run: Run) -> None:
        """Weights, order and step sizes of a run."""
        self.run = run
        self.random = torch.Generator().manual_seed(run.seed)
        with self.on_stream():
            begin(self.network, self.random)
            with torch.no_grad():
                for moment in self.moments:
                    moment.zero_()
            self.at.zero_()
            self.weight.fill_(run.weight)
            peak = (SMALL_PEAK if self.clips else PEAK) * math.sqrt(self.batch / BATCH)
            rates = [peak * rate(i / (run.epochs * self.steps)) for i in range(run.epochs * self.steps)]
            self.rates[: len(rates)].copy_(torch.tensor(rates))
        self.network.train()

    def epochs(self) -> Iterator[Iterator[None]]:
        """The epochs of the run, each an iterator over its steps."""
        for _ in range(self.run.epochs):
            self._shuffle()
            yield self._all_steps()

    def logits(self, images: Images, batch: int = 2500) -> Tensor:
        """Of images, as half precision on the host."""
        self.network.eval()
        with self.on_stream(), torch.no_grad():
            found = torch.cat([self._outputs(x) for x in images.batches(batch)]).half().cpu()
        self.network.train()
        return found

    def on_stream(self) -> AbstractContextManager[object]:
        """Its own stream; nothing on the host."""
        return torch.cuda.stream(self.stream) if self.stream is not None else nullcontext()

    def _all_steps(self) -> Iterator[None]:
        for _ in range(self.steps):
            with self.on_stream():
                self.replay()
            yield

    def _shuffle(self) -> None:
        shape, n = (self.steps, self.batch, 3), self.steps * self.batch
        rows = torch.randperm(len(self.train), generator=self.random)[:n].reshape(shape[:2])
        moves = torch.randint(0, 2 * MARGIN + 1, shape, generator=self.random)
        moves[..., 2] = torch.randint(0, 2, shape[:2], generator=self.random)
        if not self.run.augments:
            moves = moves * 0 + torch.tensor([MARGIN, MARGIN, 0])
        with self.on_stream():
            self.rows.copy_(rows)
            self.moves.copy_(moves)
            self.total.zero_()

    def _outputs(self, x: Tensor) -> Tensor:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.is_graphed, cache_enabled=False):
            return self.network(x)

    def _step(self) -> None:
        now = self.at % self.steps
        rows, moves = self.rows.index_select(0, now)[0], self.moves.index_select(0, now)[0]
        x = crops(self.train.pixels, rows, moves, self.mean, self.spread)
        loss = self.loss(self._outputs(x), self.train.labels[rows], self.weight)
        slopes = list(torch.autograd.grad(loss, self.parameters))
        with torch.no_grad():
            self._move(slopes)
            self.total.add_(loss.detach())
            self.at.add_(1)

    def _move(self, slopes: list[Tensor]) -> None:
        """Nesterov's step."""
        if self.clips:
            length = torch.stack(torch._foreach_norm(slopes)).norm()
            torch._foreach_mul_(slopes, (LONGEST / (length + 1e-6)).clamp(max=1))
        pulls = torch._foreach_add(slopes, torch._foreach_mul(self.parameters, self.decays))
        torch._foreach_mul_(self.moments, MOMENTUM)
        torch._foreach_add_(self.moments, pulls)
        torch._foreach_add_(pulls, self.moments, alpha=MOMENTUM)
        torch._foreach_mul_(pulls, self.rates.index_select(0, self.at)[0])
        torch._foreach_sub_(self.parameters, pulls)

    def _capture(self) -> None:
        assert self.stream is not None
        begin(self.network, torch.Generator().manual_seed(0))
        self.moves.fill_(MARGIN)
        self.moves[..., 2] = 0
        torch.cuda.synchronize()
        with self.on_stream():
            for _ in range(WARM_STEPS):
                self._step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=self.stream):
                self._step()
        except RuntimeError as reason:  # slower, but the time on the device is not lost
            print(f"no graph, steps one by one: {reason}", flush=True)
        else:
            self.replay = graph.replay


def rate(part: float) -> float:
    """The step size after a part of all steps, the largest being 1: up along a line, down along a cosine.

    >>> [round(rate(part), 2) for part in (0.0, 0.1, 0.2, 0.6, 1.0)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    if part < WARM_UP:
        return part / WARM_UP
    return 0.5 + 0.5 * math.cos(math.pi * (part - WARM_UP) / (1 - WARM_UP))


def seconds_per_epoch(trainer: Trainer, run: Run, epochs: int = 2) -> float:
    """The least of some epochs, with nothing beside; of the processor's time where there is no GPU."""
    clock = time.perf_counter if trainer.is_graphed else time.process_time
    trainer.begin(run)
    taken = []
    for _, steps in zip(range(epochs), trainer.epochs(), strict=False):
        finished(trainer)
        started = clock()
        for _ in steps:
            pass
        finished(trainer)
        taken.append(clock() - started)
    return min(taken)


def finished(trainer: Trainer) -> None:
    """Wait until all its steps are done; what others have begun goes on."""
    if trainer.stream is not None:
        trainer.stream.synchronize()


def is_sound(network: nn.Module) -> bool:
    """Whether all weights are numbers."""
    return all(bool(torch.isfinite(p).all()) for p in network.parameters())
