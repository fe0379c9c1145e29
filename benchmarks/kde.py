"""How fast kernel regression on the simplex is: compiled, against a dense formulation, and as a training loss.

Run ``python benchmarks/kde.py`` (needs torch). Everything is timed in one process on the same threads, the best of several
runs after a first one that compiles, and reported as ratios. Memory is that of processes of their own.
"""

import os
import subprocess
import sys

import numpy as np
import torch
from harness import best, classes, peak_memory

from calibrant import KDE
from calibrant.estimators import TangentKDE
from calibrant.estimators.simplex.dirichlet import DirichletRows, regression

BANDWIDTH = 0.05


def dense(y: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    """The L1 error with all pairs and classes at once, an array of n x n x k."""
    alpha = p / BANDWIDTH
    constant = torch.lgamma(alpha.sum(1) + p.shape[1]) - torch.lgamma(alpha + 1).sum(1)
    logs = (alpha[None, :, :] * p.log()[:, None, :]).sum(2) + constant[None, :]
    logs.fill_diagonal_(-torch.inf)
    weights = torch.softmax(logs, dim=1)
    observed = torch.nn.functional.one_hot(y, p.shape[1]).to(p.dtype)
    return (weights @ observed - p).abs().sum(1).mean()


def against_dense() -> None:
    y, p = classes(10, 5_000)
    single, estimator = torch.from_numpy(p).float(), KDE(1, BANDWIDTH, debias=False)
    slow, expected = best(lambda: dense(torch.from_numpy(y), single), 2)
    slow64, exact = best(lambda: dense(torch.from_numpy(y), torch.from_numpy(p)), 2)
    fast, found = best(lambda: estimator(y, p), 5)
    alone, _ = best(lambda: regression(DirichletRows.of(p, BANDWIDTH), y, 10), 5)
    threads = torch.get_num_threads()
    print(
        f"(c) n=5,000, k=10, {threads} threads: {fast * 1e3:.0f} ms with its standard error, {alone * 1e3:.0f} ms without;"
    )
    print(f"    dense torch {slow64 / fast:.1f}x and {slow64 / alone:.1f}x in double precision, as ours is;")
    print(f"    {slow / fast:.1f}x and {slow / alone:.1f}x in single precision")
    print(f"    values {found.value:.10f}, {float(exact):.10f}, single {float(expected):.10f}")
    for name, other in (
        ("bandwidth found", KDE(1)),
        ("p = 2, debiased", KDE(2, BANDWIDTH)),
        ("tangent", TangentKDE(1)),
    ):
        print(f"    {name}: {best(lambda other=other: other(y, p), 2)[0] / fast:.1f}x")


def memory() -> None:
    estimator = KDE(1, BANDWIDTH)
    estimator(*classes(10, 3_000))
    small = peak_memory()
    estimator(*classes(10, 50_000))
    print(f"(a) peak memory, k=10: {small:.0f} MB at n=3,000, and {peak_memory() - small:.0f} MB more at n=50,000")


def backward(n: int) -> float:
    y, p = classes(10, n)
    logits = torch.tensor(np.log(p), requires_grad=True)
    KDE(2, BANDWIDTH)(torch.from_numpy(y), torch.softmax(logits, dim=1)).value.backward()
    return peak_memory()


def memory_of_backward() -> None:
    backward(256)
    small = backward(1_024)
    large = backward(4_096)
    print(
        f"(b) backward, k=10: {large - small:.0f} MB more at n=4,096 than at n=1,024 (all pairs: {15 * 8} MB an array)"
    )


class Block(torch.nn.Module):
    """Two convolutions and a shortcut."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.one = torch.nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.two = torch.nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.norms = torch.nn.ModuleList([torch.nn.BatchNorm2d(out) for _ in range(2)])
        self.short = torch.nn.Conv2d(channels, out, 1, stride) if stride > 1 else torch.nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = torch.relu(self.norms[0](self.one(x)))
        return torch.relu(self.norms[1](self.two(inner)) + self.short(x))


def resnet_20() -> torch.nn.Module:
    widths = [(16, 16, 1)] * 3 + [(16, 32, 2)] + [(32, 32, 1)] * 2 + [(32, 64, 2)] + [(64, 64, 1)] * 2
    head = [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(64, 10)]
    return torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, 1, 1), *(Block(*w) for w in widths), *head)


def training_step() -> None:
    torch.manual_seed(0)
    network, x, y = resnet_20(), torch.randn(256, 3, 32, 32), torch.randint(0, 10, (256,))
    logits = network(x).detach().requires_grad_()
    estimator = KDE(1, BANDWIDTH, debias=False, root=False)

    def step() -> None:
        torch.nn.functional.cross_entropy(network(x), y).backward()

    def regulariser() -> None:
        estimator(y, torch.softmax(logits, dim=1)).value.backward()

    whole, part = best(step, 3)[0], best(regulariser, 10)[0]
    print(f"(d) batch of 256, k=10: {part * 1e3:.1f} ms, {100 * part / whole:.1f} % of a step of ResNet-20")


PARTS = {"memory": memory, "backward": memory_of_backward}


def main() -> None:
    if len(sys.argv) > 1:
        PARTS[sys.argv[1]]()
        return
    for part in PARTS:  # first: a process inherits the peak of its parent
        # Freed tiles go back to the system at once, so that the resident set shows what is alive.
        environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}
        subprocess.run([sys.executable, __file__, part], check=True, env=environment)
    against_dense()
    training_step()


if __name__ == "__main__":
    main()
