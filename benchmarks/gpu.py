"""How fast and how right the sums over all pairs are on a GPU.

Run ``python benchmarks/gpu.py`` on a machine with a GPU: checks against double precision, the table of times next to the
limit of the arithmetic and to tiles of torch, the shapes that were tried, and other ways to the same sums. Everything is
written to ``benchmarks/results/gpu-<device>.json``, or below ``$OUT`` where that is set. Three to four minutes, much of it for
compiling; ``--seconds`` says when to stop. ``--shrink 5000`` divides the numbers of rows, to try the script itself; its times
then say nothing. No file of this folder may be called cuda: torch imports a module of that name.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
os.environ.setdefault("XDG_CACHE_HOME", tempfile.mkdtemp())  # shapes are searched for anew

import torch
from gpu_checks import checks
from gpu_data import HALF, WHOLE, coarse_shapes, dirichlet, normals, reference, residuals, simplex
from gpu_record import DEVICE, IS_GPU, RESULTS, START, environment, guarded, limit, row, say, timed, write
from gpu_variants import brief, variants, wide

from calibrant._compiled import cuda, cuda_launch, cuda_moments, cuda_products, cuda_resamples, cuda_softmax
from calibrant._compiled import cuda_moments as cuda_normals
from calibrant._compiled import cuda_torch as tiles

SHRINK = 1


def rows(n: int) -> int:
    """As many rows as were asked for, or fewer to try the script."""
    return max(n // SHRINK, 300)


def check() -> None:
    """Print what is wrong, and the check that is closest to its bound."""
    found = RESULTS["checks"] = {}
    tried = 0
    for name, work, bound in checks():
        error, tried = guarded(name, work), tried + 1
        if error is not None:
            found[name] = {"error": error, "bound": bound}
            if not error <= bound:
                say(f"WRONG  {name:<42} error {error:.1e}, bound {bound:.0e}")
        if IS_GPU:
            torch.cuda.empty_cache()
    right = sum(c["error"] <= c["bound"] for c in found.values())
    closest = max(found, key=lambda name: found[name]["error"] / found[name]["bound"])
    say(f"{right} of {tried} checks are right; closest to its bound: {closest}, {found[closest]['error']:.1e}")
    many = {name: f"{check['error']:.1e}" for name, check in found.items() if "rows" in name}
    say(", ".join(f"{name}: {error}" for name, error in many.items()))


def classes_of_a_million() -> None:
    """The error is that of the first 200,000 rows; that of U is in units of its standard error under calibration, too."""
    p, y = simplex(rows(1_000_000), 10)
    r, n, pairs = residuals(p, y), rows(200_000), rows(1_000_000) ** 2 / 2
    some, of_some = p[:n], r[:n]
    peer = 25 * timed(lambda: tiles.feature_moments(some.float(), of_some.float(), 0.5, False, HALF), 1)
    right, sizes, squares = reference(some, of_some, 0.5, False)
    noise = float(2 * squares) ** 0.5
    ways = {
        "IEEE": (lambda a, b: cuda_moments.feature_moments(a, b, 0.5, False, HALF), limit(pairs, 35, 2), 1.0),
        "tf32x3": (lambda a, b: cuda_products.feature_moments(a, b, 0.5, False), limit(pairs, 8, 2, 0, 60), 0.6),
    }
    for name, (work, least, target) in ways.items():
        found = work(some, of_some)[0]
        off = abs(float(found.sum() - right.sum()))
        errors = {
            "error of U": off / abs(float(right.sum())),
            "of its noise": off / noise,
            "of a row": float(((found - right).abs() / sizes).max()),
        }
        row(f"SKCE, n=10^6, k=10, {name}", timed(lambda work=work: work(p, r)), least, target, peer, **errors)
    seconds = 25 * timed(lambda: cuda_moments.feature_moments(some, of_some, 0.5, False, WHOLE), 1)
    row("SKCE, n=10^6, k=10, float64, 25 x 200,000 rows", seconds, limit(2 * pairs, 35), 6.0, peer)


def imagenet() -> None:
    p, y = simplex(rows(50_000), 1000 if SHRINK == 1 else 50, confident=True)
    r, pairs = residuals(p, y), rows(50_000) ** 2 / 2
    right, sizes, squares = reference(p, r, 0.5, False)
    noise = float(2 * squares) ** 0.5
    peer = timed(lambda: tiles.feature_moments(p, r, 0.5, False, HALF))  # which the first way is, too
    ways = {
        "IEEE": (lambda: cuda.feature_moments(p, r, 0.5, False), limit(pairs, 2000, 2)),
        "tf32x3": (lambda: cuda_products.feature_moments(p, r, 0.5, False), limit(pairs, 8, 2, 0, 6000)),
    }
    for name, (work, least) in ways.items():
        found = work()[0]
        off = abs(float(found.sum() - right.sum()))
        errors = {"of its noise": off / noise, "of a row": float(((found - right).abs() / sizes).max())}
        row(f"SKCE, n=50,000, k=1,000, {name}", timed(work), least, 0.5, peer, **errors)


def normal_predictions() -> None:
    small, data = normals(rows(200_000)), normals(rows(1_000_000))
    settings = 1.0, False, 1.0
    peer = 25 * timed(lambda: tiles.normal_moments(*(a.float() for a in small), *settings, HALF), 1)
    some = normals(rows(50_000))
    right, found = (
        f(*some, *settings, t)[0].sum() for f, t in ((tiles.normal_moments, WHOLE), (cuda_normals.normal_moments, HALF))
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
    n, resamples, batch = rows(100_000), 999, 41 if SHRINK == 1 else 3
    p, _ = simplex(n, 10)
    sums = cuda_resamples.LabelSums(p, p, torch.ones(n, dtype=WHOLE, device=DEVICE), 0.5, False)
    y = torch.randint(0, 10, (batch, n), device=DEVICE, dtype=torch.int32)
    seconds = resamples / batch * timed(lambda: sums(y), 2)
    features = torch.cat([residuals(p, labels.long()).float() for labels in y], dim=1)
    points = p.float()

    def by_tiles() -> None:
        for start in range(0, n // 5, 4000):
            k = torch.exp(-2 * tiles.distances(points[start : start + 4000], points))
            (features[start : start + 4000] * (k @ features)).sum()

    peer = 5 * resamples / batch * timed(by_tiles, 1)
    least = limit(resamples * n**2 / 2, 1, 0, 1)
    row("exact test, n=10^5, k=10, M=999, without drawing", seconds, least, 10.0, peer)


def whole_calls() -> None:
    """What users call, drawing, checking of input and choosing of length scales included."""
    from calibrant import KDE, SKCE, ExactTest, Normal
    from calibrant.engines import DevicePool
    from calibrant.kernels import Exponential

    p, y = simplex(rows(1_000_000), 10)
    row("SKCE(Exponential(0.5)), n=10^6", timed(lambda: SKCE(Exponential(0.5))(y, p), 2), 0.0, 1.5)
    row("SKCE(), n=10^6, k=10", timed(lambda: SKCE()(y, p), 2), 0.0, 1.0)
    with DevicePool([str(DEVICE)]) as engine:
        seconds = timed(lambda: SKCE(Exponential(0.5))(y, p, engine=engine), 2)
        row("the same by panels of a pool of one device", seconds, 0.0, 2.0)
    p, y = p[: rows(100_000)], y[: rows(100_000)]
    row("SKCE() and its gradient, n=8,192, k=10", timed(lambda: _gradient(SKCE(), y[:8192], p[:8192])), 0.0, 0.1)
    row("KDE(), n=10^5, k=10", timed(lambda: KDE()(y, p), 2), 0.0, 0.5)
    row("KDE(bandwidth=0.02), n=10^5", timed(lambda: KDE(bandwidth=0.02)(y, p), 2), 0.0, 0.2)
    start = perf_counter()
    result = ExactTest(SKCE(Exponential(0.5)))(y, p)
    assert not result.notes, result.notes
    row("ExactTest(SKCE(Exponential(0.5))), n=10^5, M=999", perf_counter() - start, 0.0, 10.0)
    p, y = simplex(rows(50_000), 1000 if SHRINK == 1 else 50, confident=True)
    row("SKCE(), n=50,000, k=1,000", timed(lambda: SKCE()(y, p), 2), 0.0, 0.5)
    _, mu, s, y = normals(rows(1_000_000))
    row("SKCE() of Normal, n=10^6", timed(lambda: SKCE()(y[:, 0], Normal(mu[:, 0], s)), 2), 0.0, 2.0)


def _gradient(estimator: Any, y: torch.Tensor, p: torch.Tensor) -> None:
    leaf = p.clone().requires_grad_()
    estimator(y, leaf).value.backward()


def shapes() -> None:
    """The fastest shape of each kind, and how much slower the others are."""
    for key, times in cuda_launch.searched.items():
        order = sorted(times, key=lambda shape: times[shape])
        others = " ".join(f"{times[shape] / times[order[0]]:.2f}" for shape in order[1:])
        say(f"{key.split(': ')[1]}: {brief(order[0])}; others {others} x")
    RESULTS["shapes"] = {k: {str(s): t for s, t in v.items()} for k, v in cuda_launch.searched.items()}


def other_ways(deadline: float) -> None:
    n = rows(200_000)
    p, y = simplex(n, 10)
    found = RESULTS["variants"] = {}
    for name, work in variants(p, residuals(p, y), 0.5):
        _variant(found, name, work, 25.0, deadline)
    for name, work in wide(rows(20_000), (64, 256, 1000) if SHRINK == 1 else (20,)):
        _variant(found, name, work, 1.0, deadline)


def _variant(found: dict[str, float], name: str, work: Callable[[], object], factor: float, deadline: float) -> None:
    if perf_counter() - START < deadline:
        seconds = guarded(name, lambda: timed(work, 2))
        if seconds is not None:
            found[name] = factor * seconds
            print(f"    {factor * seconds:7.4f} s  {name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=200.0, help="when to stop starting new variants")
    parser.add_argument("--shrink", type=int, default=1, help="divide numbers of rows by this")
    settings = parser.parse_args()
    global SHRINK
    SHRINK = RESULTS["numbers of rows are divided by"] = settings.shrink
    if not IS_GPU:
        coarse_shapes()
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
    write()


if __name__ == "__main__":
    main()
