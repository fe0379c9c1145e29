"""Several devices as one engine: here tensors on the CPU, a thread for each."""

import time
from functools import partial
from threading import Event, Timer, current_thread

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from calibrant import SKCE, Categorical, ExactTest, Normal, _pairwise, evaluate  # noqa: E402
from calibrant._compiled.choice import precision_in_force  # noqa: E402
from calibrant._pairwise import moments_of_panels  # noqa: E402
from calibrant._validate import InputError  # noqa: E402
from calibrant.checks import check_engine  # noqa: E402
from calibrant.engines import DevicePool, connect, devices, precision  # noqa: E402
from calibrant.engines.devices import PANEL  # noqa: E402
from calibrant.estimators.kernel_errors import kernel_sums  # noqa: E402
from calibrant.estimators.kernel_errors.kernel_problem import KernelForm, resolve_problem  # noqa: E402
from calibrant.estimators.kernel_errors.kernel_resamples import GpuLabelResamples  # noqa: E402
from calibrant.estimators.kernel_errors.kernel_sums import compiled_corner  # noqa: E402
from calibrant.inference.exact_tests.aggregated import Pool  # noqa: E402
from calibrant.inference.kernel_tests import kernel_matrix  # noqa: E402
from calibrant.inference.kernel_tests.kernel_matrix import KernelMatrix  # noqa: E402
from calibrant.kernels import Exponential, Gaussian, Identity  # noqa: E402
from calibrant.recalibration.base import HeldOut  # noqa: E402

N = 2300


@pytest.fixture
def pool():
    with DevicePool(["cpu", "cpu"]) as engine:
        yield engine


@pytest.fixture
def classes(rng):
    return rng.integers(0, 3, N), rng.dirichlet(np.ones(3), N)


def test_it_is_an_engine(pool):
    check_engine(pool)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("as_tensors", [False, True])
def test_classes_have_the_digits_of_no_engine(pool, classes, rng, weighted, as_tensors):
    w = rng.uniform(0.5, 2, N) if weighted else None
    serial = SKCE(Exponential(0.4))(*classes, sample_weight=w)
    y, p = map(torch.from_numpy, classes) if as_tensors else classes
    found = SKCE(Exponential(0.4))(y, p, sample_weight=w, engine=pool)
    assert found.value == pytest.approx(serial.value, rel=1e-12)
    assert found.standard_error == pytest.approx(serial.standard_error, rel=1e-12)
    assert isinstance(found.value, float)


def test_normals_have_the_digits_of_no_engine(pool, rng):
    predictions = Normal.example(rng, N)
    y = predictions.sample(rng, 1)[0]
    estimator = SKCE(Exponential(0.7), Gaussian(1.0))
    assert estimator(y, predictions, engine=pool).value == pytest.approx(estimator(y, predictions).value, rel=1e-11)


def test_digits_do_not_depend_on_how_many_devices_there_are(classes):
    found = []
    for count in (1, 2, 3):
        with DevicePool(["cpu"] * count) as engine:
            found.append(SKCE(Exponential(0.4))(*classes, engine=engine).value)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("weighted", [False, True])
def test_resamples_are_those_of_no_engine(pool, classes, rng, weighted):
    y, p = classes[0][:300], classes[1][:300]
    w = rng.uniform(0.5, 2, 300) if weighted else None
    test = ExactTest(SKCE(Exponential(0.4)), n_resamples=99)
    alone, there = test(y, p, sample_weight=w, rng=3), test(y, p, sample_weight=w, rng=3, engine=pool)
    assert there.null_distribution == pytest.approx(alone.null_distribution, rel=1e-11, abs=1e-15)
    assert there.pvalue == alone.pvalue


def test_resamples_of_numbers_are_those_of_no_engine(pool, rng):
    predictions = Normal.example(rng, 120)
    y = predictions.sample(rng, 1)[0]
    test = ExactTest(SKCE(Exponential(0.7), Gaussian(1.0)), n_resamples=19)
    assert test(y, predictions, engine=pool).null_distribution == pytest.approx(
        test(y, predictions).null_distribution, rel=1e-10, abs=1e-15
    )


def test_several_statistics_share_their_resamples(pool, classes):
    predictions = Categorical(classes[1][:200])
    kernel, ece = (
        SKCE(Exponential(0.4)).given(predictions, None),
        SKCE(Exponential(0.9), block=50).given(predictions, None),
    )
    made = [
        Pool.draw({"a": kernel, "b": ece}, classes[0][:200], predictions, 20, engine=engine) for engine in (None, pool)
    ]
    for name in ("a", "b"):
        assert made[1].values[name] == pytest.approx(made[0].values[name], rel=1e-11, abs=1e-15)


def test_labels_are_resampled_where_the_device_is(gpu, rng, classes):
    """NumPy arrays, too, are compared on the GPU."""
    device = "cpu" if gpu.type == "cpu" else "cuda:0"
    y, p = classes[0][:150], classes[1][:150]
    test = ExactTest(SKCE(Exponential(0.4)), n_resamples=19)
    with DevicePool([device]) as engine:
        there = test(y, p, engine=engine)
    assert there.null_distribution == pytest.approx(test(y, p).null_distribution, abs=1e-6)
    resamples = SKCE(Exponential(0.4)).given(Categorical(p), None)
    assert isinstance(devices.moved(resamples, partial(devices.there, device)), GpuLabelResamples)


def test_panels_are_compiled_where_the_device_is(gpu, rng, classes):
    device = "cpu" if gpu.type == "cpu" else "cuda:0"
    y, p = classes[0][:300], classes[1][:300]
    kernel, _, rows = resolve_problem(Exponential(0.4), Identity(), None, y, Categorical(p))
    with DevicePool([device]) as engine:
        found = moments_of_panels(partial(compiled_corner, KernelForm(kernel), 64), rows, 64, engine)
    alone = moments_of_panels(partial(compiled_corner, KernelForm(kernel), 64), rows, 64, None)
    assert found.row_sums == pytest.approx(alone.row_sums, abs=1e-4)
    assert np.abs(found.row_sums - alone.row_sums).max() > 1e-12  # single precision: it was the GPU's code
    assert isinstance(found.row_sums, np.ndarray)


def test_a_million_rows_are_some_hundred_tasks(pool):
    class Rows:
        def __len__(self):
            return 10**6

        def __getitem__(self, cut):
            return cut

    seen = []

    class Counting:
        panel = PANEL

        def map(self, fn, *tasks):
            seen.extend(zip(*tasks, strict=True))
            raise StopIteration

    assert pool.panel == PANEL
    with pytest.raises(StopIteration):
        moments_of_panels(None, Rows(), 512, Counting())
    assert len(seen) == 136


def test_a_shared_value_is_moved_to_each_device_once(monkeypatch, classes):
    moved = []
    monkeypatch.setattr(devices, "there", lambda device, value: moved.append(device) or value)
    with DevicePool(["cpu"]) as engine:
        shared = engine.share(Categorical(classes[1]))
        assert list(engine.map(lambda p, i: (p.n_classes, i), [shared] * 5, range(5))) == [(3, i) for i in range(5)]
    assert moved.count(torch.device("cpu")) == sum(1 for _ in moved) >= 1
    before = len(moved)
    assert shared.on(torch.device("cpu")).n_classes == 3
    assert len(moved) == before


def test_tasks_see_tensors_and_results_come_back_as_arrays(pool, classes):
    seen = []
    shared = pool.share((Categorical(classes[1]), "text"))
    (found,) = pool.map(lambda pair: seen.append(type(pair[0].probs)) or {"p": pair[0]}, [shared])
    assert seen == [torch.Tensor]
    assert np.array_equal(found["p"].probs, classes[1])
    assert isinstance(found["p"].probs, np.ndarray)


def test_bare_arrays_stay_as_they_are(pool):
    (found,) = pool.map(lambda x: type(x), [pool.share(np.ones(2))])
    assert found is np.ndarray


def test_tasks_go_to_whichever_device_is_free(pool):
    def nap(seconds):
        time.sleep(seconds)
        return current_thread().name

    names = list(pool.map(nap, [0.3, 0.0, 0.0, 0.0]))
    assert names[0] not in names[1:]
    assert len(set(names)) == 2


def test_the_first_error_comes_at_once_and_others_are_not_started(pool):
    release, started = Event(), []

    def work(i):
        started.append(i)
        if i == 0:
            release.wait(20)
        if i == 1:
            raise KeyError("this one")

    results = pool.map(work, range(50))
    begin = time.monotonic()
    with pytest.raises(KeyError, match="this one"):
        next(results)
    assert time.monotonic() - begin < 5
    release.set()
    assert list(pool.map(abs, [-1])) == [1]
    assert len(started) < 50


def test_results_that_nobody_wants_are_not_made(pool):
    started = []

    def work(i):
        started.append(i)
        time.sleep(0.02)
        return i

    results = pool.map(work, range(200))
    assert next(results) == 0
    results.close()
    assert list(pool.map(abs, [-1])) == [1]  # after all that were asked for before
    assert len(started) < 200


def test_the_precision_of_the_caller_holds_in_tasks(pool):
    with precision("float64"):
        inside = pool.map(lambda i: precision_in_force(), range(5))
    outside = pool.map(lambda i: precision_in_force(), range(5))
    assert set(inside) == {"float64"}
    assert set(outside) == {"float32"}


def test_a_device_without_room_lets_go_of_what_it_holds(classes):
    """The second task has room only where the rows of the first are gone."""
    with DevicePool(["cpu"]) as engine:
        shared = [engine.share(Categorical(classes[1])) for _ in range(2)]
        here = torch.device("cpu")

        def work(p, index):
            if index and here in shared[0].copies:
                raise torch.cuda.OutOfMemoryError
            return p.n_classes

        assert list(engine.map(work, shared, range(2))) == [3, 3]
        assert here not in shared[0].copies


def test_a_task_that_never_has_room_says_so(pool):
    def work(i):
        raise torch.cuda.OutOfMemoryError

    with pytest.raises(InputError, match="the GPU has no memory for a task and the rows that it needs: free"):
        list(pool.map(work, [1]))


def test_a_closed_pool_says_so(pool):
    pool.close()
    with pytest.raises(InputError, match=r"DevicePool\(\['cpu', 'cpu'\]\) is closed: make a new one"):
        pool.map(abs, [1])


def test_results_after_the_pool_was_closed_are_refused_and_not_waited_for(pool):
    release = Event()
    results = pool.map(lambda i: release.wait(20), range(20))
    Timer(0.05, release.set).start()
    pool.close()
    with pytest.raises(
        InputError, match=r"is closed: make a new one, and use it and its results inside its with block"
    ):
        list(results)


def test_results_with_names_keep_them(pool, classes):
    (found,) = pool.map(HeldOut, [np.arange(2)], [pool.share(Categorical(classes[1]))])
    assert isinstance(found, HeldOut)
    assert isinstance(found.predictions.probs, np.ndarray)


def test_reports_are_made(pool, classes):
    y, p = classes[0][:200], classes[1][:200]
    alone, there = (evaluate(y, p, n_resamples=99, engine=engine) for engine in (None, pool))
    assert [number.value for number in there.numbers] == [number.value for number in alone.numbers]


@pytest.mark.parametrize("single", [False, True])
def test_products_with_kernel_matrices_are_made_where_the_rows_are(pool, classes, rng, monkeypatch, single):
    """CUDA refuses to multiply a tensor with an array of NumPy."""
    monkeypatch.setattr(kernel_matrix, "STORED", 0)
    multiplied = []
    as_before = _pairwise._product_of_tile
    monkeypatch.setattr(_pairwise, "_product_of_tile", lambda *a: multiplied.append(type(a[-1])) or as_before(*a))
    y, p = classes[0][:600], classes[1][:600]
    matrix = KernelMatrix.of(SKCE(Exponential(0.4)), y, Categorical(p.astype(np.float32) if single else p), None)
    v = rng.normal(size=(600, 2))
    found = matrix.multiplying(pool)(v)
    assert set(multiplied) == {torch.Tensor}
    assert found == pytest.approx(matrix @ v, abs=1e-4 if single else 1e-12)


def test_a_task_that_uses_its_own_pool_is_refused(pool):
    """It would wait for the device that it has."""
    with pytest.raises(InputError, match=r"a task of DevicePool\(.*\) would wait for itself: leave its engine out"):
        list(pool.map(lambda i: list(pool.map(abs, [i])), range(3)))
    assert list(pool.map(abs, [-1])) == [1]


@pytest.mark.parametrize("block", [None, 50])
def test_gradients_are_refused(pool, classes, block):
    p = torch.tensor(classes[1], requires_grad=True)
    with pytest.raises(InputError, match=r"gradients are not recorded by engines: leave the engine out"):
        SKCE(Exponential(0.4), block=block)(torch.tensor(classes[0]), p, engine=pool)


def test_blocks_of_rows_are_moved_to_the_devices(pool, classes, monkeypatch):
    seen = []
    as_before = kernel_sums._sums_of_blocks

    def sums(form, size, rows, **alone):
        seen.append(type(rows.coords))
        return as_before(form, size, rows, **alone)

    monkeypatch.setattr(kernel_sums, "_sums_of_blocks", sums)
    found = SKCE(Exponential(0.4), block=50)(*classes, engine=pool).value
    assert set(seen) == {torch.Tensor}
    assert found == pytest.approx(SKCE(Exponential(0.4), block=50)(*classes).value, rel=1e-12)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], r"devices must be a list of names such as \['cuda:0', 'cuda:1'\], or None for all; got \[\]"),
        ("cuda:0", "devices must be a list of names"),
        (["gpu0"], "device 'gpu0' is not known: say 'cuda:0', or 'cpu'"),
        (["meta"], "device 'meta' is neither of CUDA nor 'cpu'"),
        (["cuda:7"], "device 'cuda:7' is not there: torch sees 2 GPUs"),
        (["cuda:1", "cpu", "cuda:1"], "devices names cuda:1 twice: a GPU does one task at a time"),
        ([None], "device None is not known"),
    ],
)
def test_devices_that_are_not_there_are_refused(monkeypatch, names, message):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(InputError, match=message):
        DevicePool(names)


def test_names(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for made in (DevicePool(), connect("gpus"), connect("gpus:2"), DevicePool(["cuda", "cuda:1"])):
        with made as engine:
            assert repr(engine) == "DevicePool(['cuda:0', 'cuda:1'])"
    with connect("gpus:1") as engine:
        assert len(engine.devices) == 1
    with pytest.raises(InputError, match="device 'cuda:2' is not there: torch sees 2 GPUs"):
        connect("gpus:3")
    with pytest.raises(InputError, match="gpus takes a positive number, such as gpus:4"):
        connect("gpus:0")


def test_without_a_gpu_or_torch_it_says_so(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(InputError, match="torch sees no GPU: see nvidia-smi"):
        DevicePool()
    with pytest.raises(InputError, match="device 'cuda:0' is not there: torch sees 0 GPUs; see nvidia-smi"):
        connect("gpus:2")
    monkeypatch.setattr(devices, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="DevicePool needs torch: pip install torch"):
        DevicePool(["cpu"])
