import sys
from itertools import pairwise

import numpy as np
import pytest

from calibrant._validate import InputError
from studies.widmann.data import Sample
from studies.widmann.networks import train


@pytest.fixture
def sample(rng):
    return Sample(rng.random((20, 4)), rng.normal(5, 2, 20))


@pytest.fixture
def seeds():
    return np.random.SeedSequence(1).spawn(3)


def test_networks_of_one_graph_are_those_trained_alone(sample, seeds, rng):
    pytest.importorskip("torch")
    others = rng.random((5, 4))
    together = train(sample, others, [1, 30], seeds)
    assert together.shape == (3, 2, 25)
    for i, seed in enumerate(seeds):
        assert together[i : i + 1] == pytest.approx(train(sample, others, [1, 30], [seed]), rel=1e-9)
    assert not np.allclose(together[0], together[1])


def test_a_network_of_layers_learns_the_same(sample, seeds):
    """The same weights in torch's own layers, with its own loss, 50 iterations long."""
    torch = pytest.importorskip("torch")
    sizes, rng = (4, 200, 50, 1), np.random.default_rng(seeds[0])
    layers = [torch.nn.Linear(a, b, dtype=torch.float64) for a, b in pairwise(sizes)]
    for layer in layers:
        limit = np.sqrt(6 / (layer.in_features + layer.out_features))
        weights = rng.uniform(-limit, limit, (layer.in_features, layer.out_features))
        layer.weight.data, layer.bias.data = torch.from_numpy(weights.T.copy()), torch.zeros_like(layer.bias)
    network = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2])
    adam = torch.optim.Adam(network.parameters(), lr=0.001)
    x, y = torch.from_numpy(sample.x), torch.from_numpy(sample.y)
    for _ in range(50):
        adam.zero_grad()
        torch.nn.functional.mse_loss(network(x)[:, 0], y).backward()
        adam.step()
    found = train(sample, sample.x[:0], [50], seeds)
    assert found[0, 0] == pytest.approx(network(x)[:, 0].detach().numpy(), rel=1e-8)


def test_threads_are_given_back(sample, seeds):
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        train(sample, sample.x, [1], seeds)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_without_torch_it_says_what_to_install(sample, seeds, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match=r"training networks needs torch: pip install 'calibrant\[torch\]'"):
        train(sample, sample.x, [1], seeds)
