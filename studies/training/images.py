"""The images of CIFAR-10 from JPEG bytes, split, and cropped and mirrored on the device."""

import io
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

MEAN, SPREAD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
"""Of the three colours, in parts of 255."""

MARGIN = 4
"""Pixels that crops may move to each side."""

N_VALIDATION = 5_000
"""Images that are kept from training: the split of the paper."""


@dataclass(frozen=True, eq=False)
class Images:
    """Images ``(n, height, width, 3)`` of bytes, and their labels ``(n,)``."""

    pixels: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device) -> "Images":
        """On a device."""
        return Images(self.pixels.to(device), self.labels.to(device))

    def padded(self) -> "Images":
        """With a black margin, for :func:`crops`."""
        margin = (0, 0, MARGIN, MARGIN, MARGIN, MARGIN)
        return Images(torch.nn.functional.pad(self.pixels, margin), self.labels)

    def batches(self, size: int) -> Iterator[Tensor]:
        """As networks take them, in order."""
        for start in range(0, len(self), size):
            yield normalised(self.pixels[start : start + size])


def read(path: Path, at_most: Sequence[int] | None = None) -> tuple[Images, Images, Images]:
    """Training, validation and test images of the file, or at most so many of each; the split is drawn with seed 0."""
    data = np.load(path)
    labels, is_test, offsets, blob = data["labels"], data["is_test"], data["offsets"], data["jpeg"]
    rng = np.random.default_rng(0)
    trained, tested = rng.permutation(np.flatnonzero(~is_test)), np.flatnonzero(is_test)
    parts = [trained[N_VALIDATION:], trained[:N_VALIDATION], tested]
    if at_most is not None:
        tested = rng.permutation(tested)
        parts = [rows[:n] for rows, n in zip([*parts[:2], tested], at_most, strict=True)]
    chosen = np.concatenate(parts)
    with ThreadPoolExecutor(16) as pool:
        decoded = list(pool.map(lambda i: _decoded(blob[offsets[i] : offsets[i + 1]]), chosen, chunksize=500))
    pixels, cuts = torch.stack(decoded), np.cumsum([len(part) for part in parts])[:-1].tolist()
    groups = zip(torch.tensor_split(pixels, cuts), parts, strict=True)
    train, validation, test = (Images(x, torch.from_numpy(labels[rows].astype(np.int64))) for x, rows in groups)
    return train, validation, test


def _decoded(blob: np.ndarray) -> Tensor:
    """An image of bytes, ``(height, width, 3)``."""
    try:
        from torchvision.io import ImageReadMode, decode_jpeg
    except ImportError:
        from PIL import Image

        return torch.from_numpy(np.asarray(Image.open(io.BytesIO(blob.tobytes())).convert("RGB")).copy())
    return decode_jpeg(torch.from_numpy(blob.copy()), mode=ImageReadMode.RGB).permute(1, 2, 0).contiguous()


def normalised(pixels: Tensor) -> Tensor:
    """Colours around zero, ``(n, 3, height, width)`` with channels last in memory."""
    mean = pixels.new_tensor(MEAN, dtype=torch.float32) * 255
    spread = pixels.new_tensor(SPREAD, dtype=torch.float32) * 255
    return ((pixels.float() - mean) / spread).permute(0, 3, 1, 2)


def crops(padded: Tensor, rows: Tensor, moves: Tensor, mean: Tensor, spread: Tensor) -> Tensor:
    """Images of these rows, each moved by ``moves[:, :2]`` pixels and mirrored where ``moves[:, 2]`` is 1, normalised.

    Nothing waits for the device.
    """
    size = padded.shape[1] - 2 * MARGIN
    line = torch.arange(size, device=padded.device)
    across = torch.where(moves[:, 2:] > 0, size - 1 - line, line) + moves[:, 1:2]
    down = line + moves[:, :1]
    taken = padded[rows[:, None, None], down[:, :, None], across[:, None, :]]
    return ((taken.float() - mean) / spread).permute(0, 3, 1, 2)
