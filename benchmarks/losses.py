"""What calibration losses cost in a training step, forward and backward, beside the plain formulas of torch.

Run ``python benchmarks/losses.py`` for one CPU thread: processor time, medians of interleaved repetitions. With ``--device cuda``
it measures wall time on a GPU, and also counts launches and synchronisations, compiles as one graph, captures CUDA graphs,
compares gradients with double precision, and sets all beside a step of a ResNet-18. A row that fails says why, and the rest goes
on; the exit status is 1 then. Where calibrant is not installed, ``PYTHONPATH=src:folder`` finds it, and what it needs.
"""

import argparse
import os
import statistics
import sys
import time
import traceback
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from calibrant import KDE, SKCE
from calibrant.estimators import MMCE, UCME
from calibrant.kernels import Exponential, Gaussian
from calibrant.losses import CalibrationLoss, SharpnessRegularised, SoftBinnedECE

Loss = Callable[[Tensor, Tensor], Tensor]

BANDWIDTH, LENGTHSCALE = 0.05, 0.5

SIZES = {"cpu": [(128, 10), (512, 10), (2048, 10)]}
SIZES["cuda"] = [*SIZES["cpu"], (128, 100), (512, 1000)]

STARTED, MAX_SECONDS = time.monotonic(), 320.0

FAILED: list[str] = []
"""Rows that could not be measured, or are wrong."""


def neighbours(p: Tensor, log_p: Tensor) -> Tensor:
    """Logarithms of Dirichlet densities, row j at the centre i, without those of a row at itself."""
    alpha = p / BANDWIDTH
    bias = torch.lgamma(alpha.sum(1) + p.shape[1]) - torch.lgamma(alpha + 1).sum(1)
    itself = torch.eye(len(p), dtype=torch.bool, device=p.device)
    return (log_p @ alpha.T + bias).masked_fill(itself, -torch.inf)


def kde(z: Tensor, y: Tensor) -> Tensor:
    """The L1 error."""
    log_p = torch.log_softmax(z, 1)
    p = log_p.exp()
    weights = torch.softmax(neighbours(p, log_p), 1)
    return (weights @ F.one_hot(y, p.shape[1]).to(p.dtype) - p).abs().sum(1).mean()


def frequencies(z: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Probabilities, frequencies and their squares, both without the bias of ratios."""
    log_p = torch.log_softmax(z, 1)
    p = log_p.exp()
    weights = torch.softmax(neighbours(p, log_p), 1)
    observed = F.one_hot(y, p.shape[1]).to(p.dtype)
    mean, both, squares = weights @ observed, weights**2 @ observed, (weights**2).sum(1, keepdim=True)
    m = len(z) - 1
    shift = torch.where(squares * 25 <= 1, m / (m - 1) * (both - squares * mean), 0.0)
    several = 1 - squares > 1e-8
    square = torch.where(several, (mean**2 - both) / torch.where(several, 1 - squares, 1.0), mean**2)
    return p, mean + shift, square + 4 * mean * shift


def debiased_kde(z: Tensor, y: Tensor) -> Tensor:
    """The L1 error of unbiased ratios."""
    p, mean, _ = frequencies(z, y)
    return (mean - p).abs().sum(1).mean()


def squared_kde(z: Tensor, y: Tensor) -> Tensor:
    """The squared error, without its bias."""
    p, mean, square = frequencies(z, y)
    return (square - 2 * p * mean + p**2).sum(1).mean()


def sharpness(z: Tensor, y: Tensor) -> Tensor:
    """The mean of squared frequencies."""
    return frequencies(z, y)[2].sum(1).mean()


def skce(z: Tensor, y: Tensor) -> Tensor:
    """The unbiased squared kernel error, exponential kernel."""
    p = torch.softmax(z, 1)
    r = F.one_hot(y, p.shape[1]) - p
    terms = torch.exp(-torch.cdist(p, p) / LENGTHSCALE) * (r @ r.T)
    return (terms.sum() - terms.diagonal().sum()) / (len(p) * (len(p) - 1))


def gaussian_skce(z: Tensor, y: Tensor) -> Tensor:
    """The unbiased squared kernel error, Gaussian kernel."""
    p = torch.softmax(z, 1)
    r = F.one_hot(y, p.shape[1]) - p
    size = (p * p).sum(1)
    squared = size[:, None] + size[None, :] - 2 * p @ p.T
    terms = torch.exp(squared / (-2 * LENGTHSCALE**2)) * (r @ r.T)
    return (terms.sum() - terms.diagonal().sum()) / (len(p) * (len(p) - 1))


def mmce(z: Tensor, y: Tensor) -> Tensor:
    """The kernel error of the confidence."""
    confidence, favoured = torch.softmax(z, 1).max(1)
    gap = (favoured == y).to(z.dtype) - confidence
    kernel = torch.exp(-(confidence[:, None] - confidence[None, :]).abs() / 0.4)
    return torch.sqrt(gap @ kernel @ gap) / len(z)


def ucme(z: Tensor, y: Tensor) -> Tensor:
    """The embedding at the first ten rows."""
    p = torch.softmax(z, 1)
    r = F.one_hot(y, p.shape[1]) - p
    kernel = torch.exp(-torch.cdist(p[:10], p) / LENGTHSCALE)
    return ((kernel * r[:, y[:10]].T).mean(1) ** 2).mean()


def soft_bins(z: Tensor, y: Tensor) -> Tensor:
    """The L2 error of fifteen bins with soft edges."""
    confidence, favoured = torch.softmax(z, 1).max(1)
    centres = (torch.arange(15, device=z.device) + 0.5) / 15
    member = torch.softmax(-((confidence[:, None] - centres) ** 2) / 0.01, 1)
    gap = member.T @ ((favoured == y).to(z.dtype) - confidence)
    return torch.sqrt((gap**2 / member.sum(0).clamp(min=1e-30)).sum() / len(z))


def with_log_loss(error: Loss) -> Loss:
    """Cross-entropy plus an error."""
    return lambda z, y: F.cross_entropy(z, y) + error(z, y)


def plain_sharpness_regularised(z: Tensor, y: Tensor) -> Tensor:
    """Squared error plus half the sharpness."""
    gap = torch.softmax(z, 1) - F.one_hot(y, z.shape[1])
    return (gap**2).sum(1).mean() + 0.5 * sharpness(z, y)


LOSSES: dict[str, tuple[Callable[[], CalibrationLoss], Loss]] = {
    "KDE, plain": (lambda: CalibrationLoss(KDE(bandwidth=BANDWIDTH, debias=False)), with_log_loss(kde)),
    "KDE": (lambda: CalibrationLoss(KDE(bandwidth=BANDWIDTH)), with_log_loss(debiased_kde)),
    "KDE squared": (lambda: CalibrationLoss(KDE(2, BANDWIDTH, root=False)), with_log_loss(squared_kde)),
    "SKCE": (lambda: CalibrationLoss(SKCE(Exponential(LENGTHSCALE))), with_log_loss(skce)),
    "SKCE, Gaussian": (lambda: CalibrationLoss(SKCE(Gaussian(LENGTHSCALE))), with_log_loss(gaussian_skce)),
    "MMCE": (lambda: CalibrationLoss(MMCE()), with_log_loss(mmce)),
    "UCME": (lambda: CalibrationLoss(UCME(Exponential(LENGTHSCALE))), with_log_loss(ucme)),
    "soft bins": (lambda: CalibrationLoss(SoftBinnedECE()), with_log_loss(soft_bins)),
    "sharpness": (lambda: SharpnessRegularised(bandwidth=BANDWIDTH), plain_sharpness_regularised),
}
"""Ours, and the obvious formula."""


def problem(n: int, k: int, device: str, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """Logits that are twice too sure of themselves, and labels."""
    generator = torch.Generator().manual_seed(n + k)
    logits = torch.randn(n, k, generator=generator)
    labels = torch.multinomial(torch.softmax(logits, 1), 1, generator=generator)[:, 0]
    return (2 * logits).to(device, dtype).requires_grad_(), labels.to(device)


def stepping(loss: Loss, z: Tensor, y: Tensor) -> Callable[[], None]:
    """Forward and backward."""

    def step() -> None:
        z.grad = None
        loss(z, y).backward()

    return step


def interleaved(works: list[Callable[[], None]], device: str, rounds: int = 21) -> list[float]:
    """Medians of milliseconds of a call: processor time, or on a GPU that of the clock until the work is done."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    times: list[list[float]] = [[] for _ in works]
    calls = []
    for work in works:
        for _ in range(3):
            work()
        finish(device)
        start = clock()
        for _ in range(3):
            work()
        finish(device)
        calls.append(max(1, min(100, int(0.03 / max((clock() - start) / 3, 1e-6)))))
    for _ in range(rounds):
        for place, work in enumerate(works):
            start = clock()
            for _ in range(calls[place]):
                work()
            finish(device)
            times[place].append(1e3 * (clock() - start) / calls[place])
    return [statistics.median(some) for some in times]


def finish(device: str) -> None:
    """Wait for the GPU."""
    if device == "cuda":
        torch.cuda.synchronize()


def attempt(what: str, work: Callable[[], str]) -> str:
    """What a row says, or why it failed, in one line."""
    if time.monotonic() - STARTED > MAX_SECONDS:
        return "left out: the time is up"
    try:
        return work()
    except Exception as error:  # every row is tried, whatever the one before did
        FAILED.append(what)
        if os.environ.get("CALIBRANT_TRACEBACKS"):
            traceback.print_exc()
        lines = str(error).strip().splitlines()
        return f"FAILED {type(error).__name__}: {lines[0][:150] if lines else ''}"


def gradient_error(ours: CalibrationLoss, device: str, n: int, k: int) -> str:
    """Relative distance from the gradient in double precision, of the loss and of its error alone."""
    z, y = problem(n, k, device)
    exact = z.detach().double().requires_grad_()
    errors = []
    for part in (lambda logits: ours(logits, y), lambda logits: ours.parts(logits, y)[1]):
        (single,), (double,) = torch.autograd.grad(part(z), z), torch.autograd.grad(part(exact), exact)
        errors.append(float((single - double).norm() / double.norm()))
    if max(errors) > 1e-5:
        FAILED.append(f"gradient {n} x {k}")
    return f"{errors[0]:.0e} {errors[1]:.0e}"


def timings(device: str) -> None:
    """One row for each loss and size."""
    yardstick = float("nan")
    if device == "cuda":
        print(attempt("resnet", lambda: f"ResNet-18, batch 128, 3 x 32 x 32: {resnet_step():.2f} ms"), flush=True)
        yardstick = YARDSTICK[-1] if YARDSTICK else yardstick
    print(f"{'loss':16}{'n x k':>12}{'ours, ms':>10}{'plain':>9}{'ratio':>7}{'of step':>9}  gradient: loss, error")
    for name, (make, plain) in LOSSES.items():
        for n, k in SIZES[device]:

            def row(make: Callable[[], CalibrationLoss] = make, plain: Loss = plain, n: int = n, k: int = k) -> str:
                ours, (z, y) = make(), problem(n, k, device)
                mine, theirs = interleaved([stepping(ours, z, y), stepping(plain, z, y)], device)
                share = f"{mine / yardstick:9.1%}" if device == "cuda" else " " * 9
                return f"{mine:10.3f}{theirs:9.3f}{mine / theirs:7.2f}{share}  {gradient_error(ours, device, n, k)}"

            print(f"{name:16}{n:>6} x {k:<4}{attempt(f'{name} {n} x {k}', row)}", flush=True)


YARDSTICK: list[float] = []

COMPILED_FIRST = ("KDE, plain", "SKCE", "MMCE", "UCME", "soft bins")
"""Compiling takes long: these before the others."""


def resnet_step() -> float:
    """Milliseconds of a step of a ResNet-18 with momentum."""
    import torchvision

    network = torchvision.models.resnet18(num_classes=10).cuda()
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    x, y = torch.randn(128, 3, 32, 32, device="cuda"), torch.randint(0, 10, (128,), device="cuda")

    def step() -> None:
        optimiser.zero_grad()
        F.cross_entropy(network(x), y).backward()
        optimiser.step()

    YARDSTICK.extend(interleaved([step], "cuda"))
    return YARDSTICK[-1]


def launches() -> None:
    """Kernels, copies and synchronisations of a step, by the profiler; and by torch, which refuses to wait."""
    from torch.profiler import ProfilerActivity, profile

    print("\nof one step: kernel launches, copies, synchronisations (profiler); refusal of waits (torch)")
    for name, (make, plain) in LOSSES.items():
        for which in ("ours", "plain"):

            def row(
                make: Callable[[], CalibrationLoss] = make, plain: Loss = plain, which: str = which, name: str = name
            ) -> str:
                z, y = problem(128, 10, "cuda")
                step = stepping(make() if which == "ours" else plain, z, y)
                for _ in range(5):
                    step()
                torch.cuda.synchronize()
                with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
                    step()
                counts = {event.key: event.count for event in found.key_averages()}
                started = sum(count for key, count in counts.items() if "LaunchKernel" in key)
                copied = sum(count for key, count in counts.items() if "Memcpy" in key and key.startswith("cuda"))
                waits = sum(count for key, count in counts.items() if "Synchronize" in key)
                waits -= counts.get("cudaDeviceSynchronize", 0)  # the profiler itself, when it ends
                text = f"{started:5}{copied:5}{waits:5}"
                if which == "ours":
                    text += f"   {refuses_waits(step)}"
                    if waits:
                        FAILED.append(f"{name} waits")
                return text

            print(f"{name:16}{which:6}{attempt(f'launches of {name}', row)}", flush=True)


def refuses_waits(step: Callable[[], None]) -> str:
    """Whether torch lets ten steps pass where waiting is an error."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(10):
            step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return "no waits"


def compiled(device: str) -> None:
    """One graph of all, and what it costs."""
    print("\ncompiled as one graph, 128 x 10: ms, relative distance of the gradient from that without")
    for name, (make, _) in sorted(LOSSES.items(), key=lambda item: item[0] not in COMPILED_FIRST):

        def row(make: Callable[[], CalibrationLoss] = make) -> str:
            torch._dynamo.reset()
            ours, (z, y) = make(), problem(128, 10, device)
            (expected,) = torch.autograd.grad(ours(z, y), z)
            whole = torch.compile(make(), fullgraph=True)
            step = stepping(whole, z, y)
            (milliseconds,) = interleaved([step], device, 7)
            assert z.grad is not None
            error = float((z.grad - expected).norm() / expected.norm())
            if error > 1e-5:
                FAILED.append("compiled")
            return f"{milliseconds:9.3f}  {error:.0e}"

        print(f"{name:16}{attempt(f'compiled {name}', row)}", flush=True)


def captured() -> None:
    """Forward and backward as a CUDA graph."""
    print("\nCUDA graph, 128 x 10: ms, relative distance of the gradient; a broken batch is seen by check()")
    for name, (make, _) in LOSSES.items():

        def row(make: Callable[[], CalibrationLoss] = make) -> str:
            ours, (z, y) = make(), problem(128, 10, "cuda")
            fresh = problem(128, 10, "cuda")[0].detach() * 0.7
            (expected,) = torch.autograd.grad(make()(other := fresh.clone().requires_grad_(), y), other)
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(3):
                    z.grad = None
                    ours(z, y).backward()
            torch.cuda.current_stream().wait_stream(stream)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            z.grad = None
            with torch.cuda.graph(graph):
                ours(z, y).backward()
            (milliseconds,) = interleaved([graph.replay], "cuda", 7)
            with torch.no_grad():
                z.copy_(fresh)
            graph.replay()
            torch.cuda.synchronize()
            error = float((z.grad - expected).norm() / expected.norm())
            ours.check()
            with torch.no_grad():
                z.fill_(torch.nan)
            graph.replay()
            seen = "not seen"
            try:
                ours.check()
            except ValueError:
                seen = "seen"
            if error > 1e-5 or seen != "seen":
                FAILED.append("captured")
            return f"{milliseconds:9.3f}  {error:.0e}  {seen}"

        print(f"{name:16}{attempt(f'captured {name}', row)}", flush=True)


def later() -> str:
    """A broken batch on the GPU is refused by one of the next calls."""
    ours, (z, y) = CalibrationLoss(MMCE()), problem(128, 10, "cuda")
    ours(z, y)
    ours(z / 0, y)
    for calls in range(1, 20):
        torch.cuda.synchronize()
        try:
            ours(z, y)
        except ValueError as error:
            return f"a broken batch is refused {calls} calls later: {error}"
    raise AssertionError("a broken batch was not seen")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=list(SIZES), default="cpu")
    parser.add_argument("--compile", action="store_true", help="also on the CPU: compile as one graph")
    options = parser.parse_args()
    torch.set_num_threads(1)
    where = torch.cuda.get_device_name() if options.device == "cuda" else "one CPU thread"
    print(f"torch {torch.__version__}, {where}; forward and backward, single-precision logits")
    timings(options.device)
    if options.device == "cuda":
        launches()
        captured()
        print(attempt("later", later), flush=True)
    if options.device == "cuda" or options.compile:
        compiled(options.device)
    print(f"\nfailed: {', '.join(FAILED)}" if FAILED else "\nall rows measured")
    sys.exit(bool(FAILED))


if __name__ == "__main__":
    main()
