"""Networks for the regression problem of Friedman (1991), trained as in Widmann, Lindsten & Zachariah (2021)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from calibrant._validate import InputError
from studies.widmann.data import Sample

if TYPE_CHECKING:
    from torch import Tensor

HIDDEN = (200, 50)
"""Units of the hidden layers, with rectifiers."""


def train(
    sample: Sample, others: np.ndarray, iterations: Sequence[int], seeds: Sequence[np.random.SeedSequence]
) -> np.ndarray:
    """What networks predict after ``iterations`` for the rows of the sample, then for other rows, ``(seeds, iterations, n)``.

    There is a network a seed, ``d-200-50-1``, with Glorot's uniform weights and no offsets at first. Each iteration of Adam
    sees all rows and goes down the mean squared error. All networks are one graph, whose matrix products come in
    batches: ten of them take 3.5 times as long as one. Double precision, one thread: threads that wait for another
    program's make this size of product a tenth as fast.

    >>> data = Sample(np.eye(3), np.array([1.0, 2.0, 3.0]))
    >>> means = train(data, np.zeros((1, 3)), [1, 200], np.random.SeedSequence(0).spawn(2))
    >>> means.shape, bool(np.all(abs(means[:, 1, :3] - data.y) < 0.1))
    ((2, 2, 4), True)
    """
    try:
        import torch
    except ModuleNotFoundError as error:
        raise InputError("training networks needs torch: pip install 'calibrant[torch]'") from error
    parameters = [torch.from_numpy(array).requires_grad_() for array in _initial(sample.x.shape[1], seeds)]
    rows, targets = torch.from_numpy(sample.x), torch.from_numpy(sample.y)
    everything = torch.from_numpy(np.concatenate([sample.x, others]))
    optimizer, wanted, found = torch.optim.Adam(parameters), set(iterations), {}
    with _one_thread():
        for iteration in range(1, max(iterations) + 1):
            optimizer.zero_grad()
            # Every network has weights of its own, so the sum goes down each of their errors.
            loss = (_means(rows, parameters) - targets).square().mean(dim=1).sum()
            loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it so
            optimizer.step()
            if iteration in wanted:
                with torch.no_grad():
                    found[iteration] = _means(everything, parameters).numpy()
    return np.stack([found[iteration] for iteration in iterations], axis=1)


def _initial(features: int, seeds: Sequence[np.random.SeedSequence]) -> list[np.ndarray]:
    """Weights and offsets of every layer, ``(networks, in, out)`` and ``(networks, 1, out)``."""
    sizes, rngs = (features, *HIDDEN, 1), [np.random.default_rng(seed) for seed in seeds]
    arrays: list[np.ndarray] = []
    for before, after in pairwise(sizes):
        limit = np.sqrt(6 / (before + after))
        weights = [rng.uniform(-limit, limit, (before, after)) for rng in rngs]
        arrays += [np.stack(weights), np.zeros((len(rngs), 1, after))]
    return arrays


def _means(rows: "Tensor", parameters: list["Tensor"]) -> "Tensor":
    """What every network says of the rows ``(n, d)``, ``(networks, n)``."""
    *layers, (weights, offsets) = zip(parameters[::2], parameters[1::2], strict=True)
    values = rows.expand(len(weights), *rows.shape)
    for hidden_weights, hidden_offsets in layers:
        values = hidden_offsets.baddbmm(values, hidden_weights).relu()
    return offsets.baddbmm(values, weights)[:, :, 0]


@contextmanager
def _one_thread() -> Iterator[None]:
    """Torch with a single thread, and then with as many as before."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
