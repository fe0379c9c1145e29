"""Architectures for images of 32 pixels: residual, wide, dense and plain networks, with normalisation and without."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

N_CLASSES = 10


def _convolution(inputs: int, outputs: int, stride: int = 1, size: int = 3) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)


class Residual(nn.Module):
    """Two convolutions and a shortcut. He et al. (2016)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first, self.norm1 = _convolution(inputs, outputs, stride), nn.BatchNorm2d(outputs)
        self.second, self.norm2 = _convolution(outputs, outputs), nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(_convolution(inputs, outputs, stride, 1), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """The rectified sum."""
        y = self.norm2(self.second(torch.relu(self.norm1(self.first(x)))))
        return torch.relu(y + self.shortcut(x))


class PreActivated(nn.Module):
    """As :class:`Residual`, with normalisation before each convolution. Zagoruyko & Komodakis (2016)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.norm1, self.first = nn.BatchNorm2d(inputs), _convolution(inputs, outputs, stride)
        self.norm2, self.second = nn.BatchNorm2d(outputs), _convolution(outputs, outputs)
        is_same = stride == 1 and inputs == outputs
        self.shortcut = None if is_same else _convolution(inputs, outputs, stride, 1)

    def forward(self, x: Tensor) -> Tensor:
        """The sum, not rectified."""
        y = torch.relu(self.norm1(x))
        aside = x if self.shortcut is None else self.shortcut(y)
        return self.second(torch.relu(self.norm2(self.first(y)))) + aside


class Dense(nn.Module):
    """A convolution whose result is appended to its input. Huang et al. (2017)."""

    def __init__(self, inputs: int, growth: int) -> None:
        super().__init__()
        self.norm, self.convolution = nn.BatchNorm2d(inputs), _convolution(inputs, growth)

    def forward(self, x: Tensor) -> Tensor:
        """All that came before, and more."""
        return torch.cat([x, self.convolution(torch.relu(self.norm(x)))], 1)


class Network(nn.Module):
    """Layers, the mean over all places, and a line; the line is in single precision."""

    def __init__(self, layers: nn.Module, width: int) -> None:
        super().__init__()
        self.layers, self.line = layers, nn.Linear(width, N_CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        y = self.layers(x)
        y = y.float().mean((2, 3)) if y.ndim == 4 else y.float()
        with torch.autocast(x.device.type, enabled=False):
            return self.line(y)


def residual(width: int, blocks: int = 2) -> Network:
    """ResNet-18 has width 64 and two blocks in each of four stages."""
    layers: list[nn.Module] = [_convolution(3, width), nn.BatchNorm2d(width), nn.ReLU()]
    inputs = width
    for stage in range(4):
        for block in range(blocks):
            outputs = width * 2**stage
            layers.append(Residual(inputs, outputs, 2 if stage and not block else 1))
            inputs = outputs
    return Network(nn.Sequential(*layers), inputs)


def wide(factor: int, blocks: int = 2) -> Network:
    """WRN-16-4 has factor 4 and two blocks in each of three stages."""
    layers: list[nn.Module] = [_convolution(3, 16)]
    inputs = 16
    for stage in range(3):
        for block in range(blocks):
            outputs = 16 * factor * 2**stage
            layers.append(PreActivated(inputs, outputs, 2 if stage and not block else 1))
            inputs = outputs
    return Network(nn.Sequential(*layers, nn.BatchNorm2d(inputs), nn.ReLU()), inputs)


def dense(growth: int, layers_each: int) -> Network:
    """Three blocks of appended convolutions with means of four pixels between: DenseNet-22 has six layers each."""
    inputs = 2 * growth
    layers: list[nn.Module] = [_convolution(3, inputs)]
    for block in range(3):
        for _ in range(layers_each):
            layers.append(Dense(inputs, growth))
            inputs += growth
        layers += [nn.BatchNorm2d(inputs), nn.ReLU()]
        if block < 2:
            layers += [_convolution(inputs, inputs, size=1), nn.AvgPool2d(2)]
    return Network(nn.Sequential(*layers), inputs)


def plain(width: int, *, normalises: bool) -> Network:
    """Eight convolutions in a row, as VGG-11 has them."""
    layers: list[nn.Module] = []
    inputs = 3
    for stage, count in enumerate((1, 1, 2, 2, 2)):
        outputs = width * min(2**stage, 8)
        for _ in range(count):
            layers.append(nn.Conv2d(inputs, outputs, 3, padding=1, bias=not normalises))
            layers += [nn.BatchNorm2d(outputs)] if normalises else []
            layers.append(nn.ReLU())
            inputs = outputs
        layers.append(nn.MaxPool2d(2))
    return Network(nn.Sequential(*layers), inputs)


def perceptron(width: int) -> Network:
    """Two hidden layers on the pixels."""
    first, second = nn.Linear(3 * 32 * 32, width), nn.Linear(width, width)
    return Network(nn.Sequential(nn.Flatten(), first, nn.ReLU(), second, nn.ReLU()), width)


ARCHITECTURES: dict[str, Callable[[], Network]] = {
    "resnet18": partial(residual, 32),
    "resnet18-wide": partial(residual, 64),
    "resnet10-narrow": partial(residual, 16, 1),
    "wrn16-4": partial(wide, 4),
    "densenet22": partial(dense, 16, 6),
    "vgg11": partial(plain, 64, normalises=True),
    "vgg11-plain": partial(plain, 64, normalises=False),
    "perceptron": partial(perceptron, 1024),
    "tiny": partial(residual, 4, 1),
    "vgg11-8": partial(plain, 8, normalises=True),
    "resnet10-8": partial(residual, 8, 1),
    "wrn10-2": partial(wide, 2, 1),
    "densenet10": partial(dense, 8, 2),
    "vgg11-16-plain": partial(plain, 16, normalises=False),
    "perceptron-512": partial(perceptron, 512),
}
"""By name; ResNet-18 here has half the usual width, and those from "tiny" on are for a processor."""

CLIPPED = ("vgg11-plain", "vgg11-16-plain", "perceptron", "perceptron-512")
"""Without normalisation: smaller steps, and gradients are shortened."""


def begin(network: nn.Module, generator: torch.Generator) -> None:
    """Draw all weights anew, in place: He's normal for convolutions and hidden layers, small for the last line."""
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.reset_running_stats()
                module.weight.fill_(1)
                module.bias.fill_(0)
            elif isinstance(module, nn.Conv2d | nn.Linear):
                last = isinstance(module, nn.Linear) and module.out_features == N_CLASSES
                inputs = module.weight[0].numel()
                drawn = torch.randn(module.weight.shape, generator=generator)
                module.weight.copy_(drawn * ((1 if last else 2) / inputs) ** 0.5)
                if module.bias is not None:
                    module.bias.fill_(0)
