import json
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from calibrant._compiled import cuda_launch as launch  # noqa: E402
from calibrant._compiled.cuda_memory import SPAN  # noqa: E402


@pytest.fixture
def device(monkeypatch, tmp_path):
    """A tensor that says it is on a GPU, and a folder for what is found."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(launch, "_found", {})
    monkeypatch.setattr(launch, "searched", {})
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "a GPU")
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(launch, "place", lambda x: nullcontext())
    return SimpleNamespace(is_cuda=True, device=0)


def test_blocks_divide_the_span():
    for shapes in launch.SHAPES.values():
        for shape in shapes:
            assert SPAN % shape.rows == SPAN % shape.columns == 0
            assert shape.chunk % SPAN == 0


def test_few_rows_and_other_devices_take_the_first_shape():
    def attempt(shape):
        raise AssertionError

    x = torch.zeros(1)
    assert launch.shape_of("features", "", x, 10**6, attempt) == launch.SHAPES["features"][0]
    assert launch.shape_of("features", "", SimpleNamespace(is_cuda=True), 100, attempt) == launch.SHAPES["features"][0]


def test_the_fastest_shape_is_found_once_and_kept(device, monkeypatch, tmp_path):
    fastest, tried = launch.SHAPES["features"][2], []

    def seconds(shape, attempt):
        tried.append(shape)
        return 1.0 if shape == fastest else 2.0

    monkeypatch.setattr(launch, "_seconds", seconds)
    for _ in range(2):
        assert launch.shape_of("features", "10", device, 10**6, lambda shape: None) == fastest
    assert tried == list(launch.SHAPES["features"])
    launch._found.clear()  # another process reads the file
    assert launch.shape_of("features", "10", device, 10**6, lambda shape: None) == fastest
    assert len(tried) == len(launch.SHAPES["features"])
    (key,) = json.loads((tmp_path / "calibrant" / "cuda_shapes.json").read_text())
    assert key.startswith("a GPU, triton ")


@pytest.mark.parametrize("text", ["", "[]", '{"a": {"rows": 1}}', '{"a": 1}'])
def test_a_file_that_cannot_be_read_is_as_none(device, tmp_path, text):
    folder = tmp_path / "calibrant"
    folder.mkdir()
    (folder / "cuda_shapes.json").write_text(text)
    assert launch._read() == {}


def test_shapes_that_do_not_fit_the_device_are_passed_over(device):
    from triton.runtime.errors import OutOfResources

    first, *_ = launch.SHAPES["resamples"]

    def attempt(shape):
        if shape == first:
            raise OutOfResources(2, 1, "shared memory")

    assert launch.shape_of("resamples", "", device, 10**6, attempt) in launch.SHAPES["resamples"][1:]
