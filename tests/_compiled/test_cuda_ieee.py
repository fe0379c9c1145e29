from threading import Barrier, Thread

import pytest

torch = pytest.importorskip("torch")

from calibrant._compiled import cuda_torch as ieee  # noqa: E402


@pytest.fixture
def matmul(monkeypatch):
    """What torch keeps its setting in; tensor cores are allowed."""

    class Setting:
        fp32_precision = "tf32"

    monkeypatch.setattr(torch.backends.cuda, "matmul", Setting)
    return Setting


def test_tensor_cores_are_off_inside_the_block_alone(matmul):
    with ieee.ieee_products():
        assert matmul.fp32_precision == "ieee"
        with ieee.ieee_products():
            pass
        assert matmul.fp32_precision == "ieee"
    assert matmul.fp32_precision == "tf32"


def test_errors_restore_too(matmul):
    with pytest.raises(KeyError), ieee.ieee_products():
        raise KeyError
    assert matmul.fp32_precision == "tf32"


def test_older_versions_have_another_name(matmul):
    del matmul.fp32_precision
    matmul.allow_tf32 = True
    with ieee.ieee_products():
        assert matmul.allow_tf32 is False
    assert matmul.allow_tf32 is True


def test_the_last_thread_restores(matmul):
    meet, seen = Barrier(2), []

    def first():
        with ieee.ieee_products():
            meet.wait()  # both are inside
        meet.wait()

    def second():
        with ieee.ieee_products():
            meet.wait()
            meet.wait()  # the first has left
            seen.append(matmul.fp32_precision)

    threads = [Thread(target=work) for work in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == ["ieee"]
    assert matmul.fp32_precision == "tf32"


def test_the_setting_of_this_version_is_known():
    with ieee.ieee_products():
        assert not torch.backends.cuda.matmul.allow_tf32
