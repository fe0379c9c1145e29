"""Small problems are fastest in one thread."""

import pytest


@pytest.fixture(autouse=True)
def one_thread():
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
