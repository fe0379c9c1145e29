"""Pictures are drawn without a screen, and every test leaves pyplot as it found it."""

import pytest


@pytest.fixture(autouse=True)
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    before = dict(matplotlib.rcParams)
    yield pyplot
    assert dict(matplotlib.rcParams) == before
    pyplot.close("all")
