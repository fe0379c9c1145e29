"""Commands with --engine say what they say without."""

import json
import math
import socket
import subprocess
import sys

import pytest

from calibrant import compare, evaluate, io
from calibrant.engines import connect

pytest.importorskip("cyclopts")
polars = pytest.importorskip("polars")

COLUMNS = ["--y-true", "digit", "--y-pred", "p_*"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Some rows of the digits, as one model says and as a bolder one does."""
    folder = tmp_path_factory.mktemp("files")
    table = polars.read_csv(io.example("digits"))[:250]
    table.write_csv(folder / "plain.csv")
    sharp = table.select("^p_.*$").to_numpy() ** 2
    bold = {f"p_{k}": p for k, p in enumerate((sharp / sharp.sum(axis=1, keepdims=True)).T)}
    table.with_columns(**{name: polars.Series(p) for name, p in bold.items()}).write_csv(folder / "bold.csv")
    return [str(folder / name) for name in ("plain.csv", "bold.csv")]


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run a command; its exit code, and what it says."""
    from calibrant.cli import main

    monkeypatch.chdir(tmp_path)  # where pages go

    def call(*words):
        with pytest.raises(SystemExit) as left:
            main(list(words))
        shown = capsys.readouterr()
        return left.value.code, shown.out, " ".join(shown.err.split())

    return call


@pytest.fixture(params=["threads:2", "processes:2", "cluster"])
def place(request):
    return request.getfixturevalue("address") if request.param == "cluster" else request.param


COMMANDS = {
    "report": ["report", "PLAIN", *COLUMNS, "--n-resamples", "99"],
    "report of several": ["report", "PLAIN", "BOLD", *COLUMNS, "--n-resamples", "99"],
    "estimate": ["estimate", "PLAIN", *COLUMNS, "--estimator", "SKCE()", "--estimator", "SKCE(block=10)"],
    "intervals": ["estimate", "PLAIN", *COLUMNS, "--estimator", "ECE(lens=TopLabel())", "--interval"],
    "test": ["test", "PLAIN", *COLUMNS, "--n-resamples", "99"],
    "recalibrate": ["recalibrate", "BOLD", *COLUMNS, "--method", "Temperature()"],
}


def assert_same(there, here, where="$"):
    """Everything but the last digits of numbers, and by which loop they came."""
    if where.endswith(".route"):
        return
    if isinstance(here, dict):
        assert list(there) == list(here), where
        for key in here:
            assert_same(there[key], here[key], f"{where}.{key}")
    elif isinstance(here, list):
        assert len(there) == len(here), where
        for i, (a, b) in enumerate(zip(there, here, strict=True)):
            assert_same(a, b, f"{where}[{i}]")
    elif isinstance(here, float) and not math.isnan(here):
        assert there == pytest.approx(here, rel=1e-12, abs=1e-15), where
    else:
        assert there == here or there != there, where


@pytest.mark.parametrize("name", COMMANDS)
def test_numbers_are_those_of_this_process(name, place, files, run):
    words = [dict(zip(("PLAIN", "BOLD"), files, strict=True)).get(word, word) for word in COMMANDS[name]]
    code, here, _ = run(*words, "--format", "json")
    other, there, _ = run(*words, "--format", "json", "--engine", place)
    assert (code, other) == (0, 0)
    assert_same(json.loads(there), json.loads(here))


def test_functions_take_engines_too(files):
    data = [io.read(file, y_true="digit", y_pred="p_*") for file in files]
    y, models = data[0].y_true, {"plain": data[0].y_pred, "bold": data[1].y_pred}
    with connect("threads:2") as threads:
        for work in (
            lambda engine: evaluate(y, models["plain"], n_resamples=99, engine=engine),
            lambda engine: compare(y, models, n_resamples=99, engine=engine),
        ):
            assert_same(json.loads(work(threads).to_json()), json.loads(work(None).to_json()))


def test_nobody_at_the_address(files, run):
    pytest.importorskip("distributed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code, out, err = run("report", files[0], *COLUMNS, "--engine", f"dask://127.0.0.1:{port}")
    assert (code, out) == (2, "")
    assert f"no Dask scheduler answers at tcp://127.0.0.1:{port} within 5 s: start one there (dask scheduler)" in err


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("dask:here", "engine 'dask:here' is no address: say dask://host:8786"),
        (
            "spark://host",
            "engine 'spark://host' is not known; known: threads:8, processes:4, gpus, gpus:2, dask://host:8786",
        ),
        ("threads:none", "threads takes a positive number, such as threads:4"),
    ],
)
@pytest.mark.parametrize("command", ["report", "report of several", "estimate", "test", "recalibrate"])
def test_engines_that_are_none_are_refused(command, engine, message, files, run):
    words = [dict(zip(("PLAIN", "BOLD"), files, strict=True)).get(word, word) for word in COMMANDS[command]]
    code, _, err = run(*words, "--engine", engine)
    assert code == 2
    assert message in err


@pytest.fixture
def small_cluster():
    """A scheduler of its own, which may be killed, and one worker; the process and the address."""
    distributed = pytest.importorskip("distributed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"

    def started(kind, *words):
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *words, "--no-dashboard"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    processes = started("scheduler", "--host", place), started("worker", place, "--nthreads", "1", "--no-nanny")
    try:
        with distributed.Client(place, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=60)
        yield processes[0], place
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_a_scheduler_that_is_killed_amid_a_command_is_named(files, run, monkeypatch, small_cluster):
    from calibrant.engines import DaskEngine

    scheduler, place = small_cluster
    waited = DaskEngine._waited

    def killed(self, future):
        scheduler.kill()
        scheduler.wait()
        return waited(self, future)

    monkeypatch.setattr(DaskEngine, "_waited", killed)
    code, _, err = run("test", files[0], *COLUMNS, "--n-resamples", "99", "--engine", f"dask://{place}")
    assert code == 2, err
    assert f"the cluster tcp://{place} is gone: start it again (dask scheduler), and connect to it anew" in err


def test_recalibrating_by_a_saved_map_needs_no_engine(files, run):
    run("recalibrate", files[1], *COLUMNS, "--method", "Temperature()", "--save", "map.json")
    code, _, err = run(
        "recalibrate", files[1], *COLUMNS, "--apply", "map.json", "--out", "x.csv", "--engine", "threads:2"
    )
    assert code == 2
    assert "--engine means nothing with --apply" in err
