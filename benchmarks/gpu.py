"""How fast and how right the sums over all pairs are on a GPU.

Run ``python benchmarks/gpu.py`` on a machine with a GPU: checks against double precision, the table of times next to the
limit of the arithmetic and to tiles of torch, the shapes that were tried, and other ways to the same sums. Everything is
written to ``benchmarks/results/gpu-<device>.json``, or below ``$OUT`` where that is set. About four minutes, most of it for
compiling; ``--seconds`` says when to stop. ``--shrink 5000`` divides the numbers of rows, to try the script itself; its times
then say nothing. No file of this folder may be called cuda: torch imports a module of that name.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
os.environ.setdefault("XDG_CACHE_HOME", tempfile.mkdtemp())  # shapes are searched for anew

import torch
from gpu_checks import HALF, WHOLE, checks, dirichlet, normals, residuals, simplex
from gpu_record import DEVICE, IS_GPU, RESULTS, START, environment, guarded, limit, row, say, timed, write
from gpu_variants import variants

from calibrant._fused import (
    cuda_launch,
    cuda_moments,
    cuda_normals,
    cuda_products,
    cuda_redraws,
    cuda_softmax,
    cuda_torch,
)

SHRINK = 1


def rows(n: int) -> int:
    """As many rows as were asked for, or fewer to try the script."""
    return max(n // SHRINK, 300)


def check() -> None:
    for name, work, bound in checks():
        error = guarded(name, work)
        if error is not None:
            RESULTS.setdefault("checks", {})[name] = {"error": error, "bound": bound}
            say(f"{'right' if error <= bound else 'WRONG'}  {name:<42} error {error:.1e}, bound {bound:.0e}")


def classes_of_a_million() -> None:
    """The error is that of 200,000 rows, next to torch in double precision."""
    p, y = simplex(rows(200_000), 10)
    r = residuals(p, y)
    right = cuda_torch.feature_moments(p, r, 0.5, False, WHOLE)
    peer = 25 * timed(lambda: cuda_torch.feature_moments(p.float(), r.float(), 0.5, False, HALF), 1)
    n = len(p)
    mean_size = float(right[1] / n / (n - 1)) ** 0.5
    p, y = simplex(rows(1_000_000), 10)
    r, pairs = residuals(p, y), rows(1_000_000) ** 2 / 2
    ways = {
        "IEEE": (lambda a, b: cuda_moments.feature_moments(a, b, 0.5, False, HALF), limit(pairs, 26, 2), 1.0),
        "tf32x3": (lambda a, b: cuda_products.feature_moments(a, b, 0.5, False), limit(pairs, 8, 2, 0, 60), 0.6),
    }
    for name, (work, least, target) in ways.items():
        found = work(p[:n], r[:n])
        off = abs(float(found[0].sum() - right[0].sum()))
        errors = {
            "error of U": off / abs(float(right[0].sum())),
            "of the root mean square of h": off / n / (n - 1) / mean_size,
            "of a row": float(((found[0] - right[0]).abs() / right[0].abs().mean()).max()),
        }
        row(f"SKCE, n=10^6, k=10, {name}", timed(lambda work=work: work(p, r)), least, target, peer, **errors)
    general = timed(lambda: cuda_moments.feature_moments(p, 1.5 * r, 0.5, False, HALF), 2)
    row("SKCE, n=10^6, k=10, IEEE, any residuals", general, limit(pairs, 35, 2), 1.0, peer)


def imagenet() -> None:
    p, y = simplex(rows(50_000), 1000 if SHRINK == 1 else 50, confident=True)
    r, pairs = residuals(p, y), rows(50_000) ** 2 / 2
    peer = timed(lambda: cuda_torch.feature_moments(p.float(), r.float(), 0.5, False, HALF), 1)
    right = cuda_torch.feature_moments(p, r, 0.5, False, WHOLE)
    p, r = p.float(), r.float()
    ways = {
        "IEEE": (lambda: cuda_moments.feature_moments(p, r, 0.5, False, HALF), limit(pairs, 3000, 2)),
        "tf32x3": (lambda: cuda_products.feature_moments(p, r, 0.5, False), limit(pairs, 8, 2, 0, 6000)),
    }
    for name, (work, least) in ways.items():
        error = abs(float(work()[0].sum() / right[0].sum()) - 1)
        row(f"SKCE, n=50,000, k=1,000, {name}", timed(work), least, 0.5, peer, **{"error of U": error})


def normal_predictions() -> None:
    small, data = normals(rows(200_000)), normals(rows(1_000_000))
    settings = 1.0, False, 1.0
    peer = 25 * timed(lambda: cuda_torch.normal_moments(*(a.float() for a in small), *settings, HALF), 1)
    some = normals(rows(50_000))
    right, found = (
        f(*some, *settings, t)[0].sum()
        for f, t in ((cuda_torch.normal_moments, WHOLE), (cuda_normals.normal_moments, HALF))
    )
    seconds = timed(lambda: cuda_normals.normal_moments(*data, *settings, HALF))
    error = {"error of U": abs(float(found / right) - 1)}
    row("SKCE, normal predictions, n=10^6", seconds, limit(rows(1_000_000) ** 2 / 2, 26, 6), 2.0, peer, **error)


def kernel_regression() -> None:
    n, pairs = rows(100_000), rows(100_000) ** 2
    p, y = simplex(n, 10)
    queries, keys = (part.requires_grad_() for part in dirichlet(p, 0.02))
    forward = timed(lambda: cuda_softmax.class_averages(queries.detach(), keys.detach(), y, 10))
    out = cuda_softmax.class_averages(queries, keys, y, 10)
    total = sum((part**2).sum() for part in out)
    backward = timed(lambda: torch.autograd.grad(total, (queries, keys), retain_graph=True))
    peers = guarded("regression in tiles of torch", lambda: _regression_in_tiles(queries, keys, y)) or (None, None)
    row("KDE, n=10^5, k=10, forward", forward, limit(pairs, 25, 1), 0.05, peers[0])
    row("KDE, n=10^5, k=10, backward", backward, limit(pairs, 2 * 40, 2), 0.15, peers[1])
    for size in (n // 2, n) if IS_GPU else ():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        some = [part[:size].detach().requires_grad_() for part in (queries, keys)]
        sum((part**2).sum() for part in cuda_softmax.class_averages(*some, y[:size], 10)).backward()
        peak = (torch.cuda.max_memory_allocated() - before) / 2**20
        RESULTS.setdefault("memory of regression, MiB", {})[size] = peak
        say(f"       forward and backward of {size:,} rows take {peak:.0f} MiB more")


def _regression_in_tiles(queries: torch.Tensor, keys: torch.Tensor, y: torch.Tensor) -> tuple[float, float]:
    """Panels of rows in single precision, seconds forward and backward; a tenth of the rows, times ten."""
    q, k, v = (
        queries.detach().float(),
        keys.detach().float().requires_grad_(),
        torch.nn.functional.one_hot(y, 10).float(),
    )
    cuts = [slice(i, i + 2000) for i in range(0, len(y) // 10, 2000)]

    def panel(cut: slice) -> torch.Tensor:
        w = torch.softmax(q[cut] @ k.T, dim=1)
        return ((w @ v) ** 2).sum() + (((w * w) @ v) ** 2).sum()

    def forward() -> None:
        with torch.no_grad():
            for cut in cuts:
                panel(cut)

    def both() -> None:
        for cut in cuts:
            panel(cut).backward()

    ahead = timed(forward, 1)
    return 10 * ahead, 10 * (timed(both, 1) - ahead)


def exact_test() -> None:
    n, redraws, batch = rows(100_000), 999, 41 if SHRINK == 1 else 3
    p, _ = simplex(n, 10)
    sums = cuda_redraws.LabelSums(p, p, torch.ones(n, dtype=WHOLE, device=DEVICE), 0.5, False)
    y = torch.randint(0, 10, (batch, n), device=DEVICE, dtype=torch.int32)
    seconds = redraws / batch * timed(lambda: sums(y), 2)
    features = torch.cat([residuals(p, labels.long()).float() for labels in y], dim=1)
    points = p.float()

    def tiles() -> None:
        for start in range(0, n // 5, 4000):
            k = torch.exp(-2 * cuda_torch.distances(points[start : start + 4000], points))
            (features[start : start + 4000] * (k @ features)).sum()

    peer = 5 * redraws / batch * timed(tiles, 1)
    least = limit(redraws * n**2 / 2, 1, 0, 1)
    row("exact test, n=10^5, k=10, M=999, without drawing", seconds, least, 10.0, peer)


def whole_calls() -> None:
    """What users call, drawing and checking of input included."""
    from calibrant import KDE, SKCE, ExactTest
    from calibrant.kernels import Exponential

    p, y = simplex(rows(1_000_000), 10)
    row("SKCE(Exponential(0.5)), n=10^6", timed(lambda: SKCE(Exponential(0.5))(y, p), 2), 0.0, 1.5)
    p, y = p[: rows(100_000)], y[: rows(100_000)]
    row("KDE(bandwidth=0.02), n=10^5", timed(lambda: KDE(bandwidth=0.02)(y, p), 2), 0.0, 0.2)
    start = perf_counter()
    result = ExactTest(SKCE(Exponential(0.5)))(y, p)
    assert not result.notes, result.notes
    row("ExactTest(SKCE(Exponential(0.5))), n=10^5, M=999", perf_counter() - start, 0.0, 10.0)


def shapes() -> None:
    for key, times in cuda_launch.searched.items():
        say(key)
        fastest = min(times.values())
        for shape, seconds in sorted(times.items(), key=lambda item: item[1]):
            say(f"    {1e3 * seconds:9.3f} ms {seconds / fastest:6.2f} x  {shape}")
    RESULTS["shapes"] = {k: {str(s): t for s, t in v.items()} for k, v in cuda_launch.searched.items()}


def other_ways(deadline: float) -> None:
    n = rows(200_000)
    p, y = simplex(n, 10)
    r = residuals(p, y)
    right = cuda_torch.feature_moments(p, r, 0.5, False, WHOLE)[0]
    for name, work in variants(p, r, 0.5):
        if perf_counter() - START > deadline:
            say("no time for more variants")
            return
        seconds = guarded(name, lambda work=work: timed(work, 2))
        if seconds is not None:
            sums = work()[0][:n]
            error = abs(float(sums.sum() / right.sum()) - 1)
            RESULTS.setdefault("variants", {})[name] = {"seconds at n=10^6": 25 * seconds, "error of U": error}
            say(f"    {25 * seconds:7.3f} s at n=10^6, error of U {error:.1e}: {name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=280.0, help="when to stop starting new variants")
    parser.add_argument("--shrink", type=int, default=1, help="divide numbers of rows by this")
    settings = parser.parse_args()
    global SHRINK
    SHRINK = RESULTS["numbers of rows are divided by"] = settings.shrink
    RESULTS["environment"] = guarded("environment", environment)
    say(RESULTS["environment"])
    guarded("checks", check)
    parts = (classes_of_a_million, kernel_regression, normal_predictions, imagenet, exact_test, whole_calls)
    for part in parts:
        guarded(part.__name__, part)
        write()
    guarded("shapes", shapes)
    guarded("other ways", lambda: other_ways(settings.seconds))
    say("failed:", RESULTS.get("failed", "nothing"))
    for name, found in RESULTS.get("times", {}).items():
        print(f"{found['seconds']:9.4f} s  target {found['target']:<5} limit {found['limit']:.3f}  {name}")
    write()


if __name__ == "__main__":
    main()
