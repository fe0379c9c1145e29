"""One small cluster on this machine for all tests that need one."""

import logging

import pytest


@pytest.fixture(scope="session")
def cluster():
    """Four workers, each a process of one thread, that talk over TCP; what is killed is started again."""
    distributed = pytest.importorskip(
        "distributed", reason="Dask is not installed: pip install -r requirements-dev.txt"
    )
    with distributed.LocalCluster(
        n_workers=4,
        threads_per_worker=1,
        processes=True,
        protocol="tcp",
        dashboard_address=":0",
        worker_dashboard_address=":0",
        silence_logs=logging.CRITICAL,
    ) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def address(cluster):
    """As one would type it."""
    return cluster.scheduler_address.replace("tcp://", "dask://")


@pytest.fixture
def engine(address):
    """A connection of its own."""
    from calibrant.engines import connect

    with connect(address) as engine:
        yield engine
