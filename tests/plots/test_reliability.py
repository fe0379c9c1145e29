import re

import numpy as np
import pytest

from calibrant import evaluate
from calibrant.plots.drawing import to_svg

pytest.importorskip("matplotlib")


def test_close_predictions_are_drawn_close_up(rng):
    p = 0.01 + 0.02 * rng.random(3000)
    y = (rng.random(3000) < p).astype(int)
    tables = evaluate(y, p, n_resamples=99).picture("reliability").tables
    assert tables["curve"].n_rows == 15
    labels = [float(t) for t in re.findall(r">(0\.\d+)</text>", to_svg("reliability", tables))]
    assert max(labels) < 0.2
    assert np.isfinite(labels).all()
