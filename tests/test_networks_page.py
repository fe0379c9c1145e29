"""The numbers of docs/guide/networks.md, on the predictions they are of; skipped where those are absent."""

from pathlib import Path

import numpy as np
import pytest

from calibrant import ECE, Categorical, EqualMass, LogLoss, TopLabel
from calibrant.recalibration import Default

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "networks.md"


def test_the_page_has_the_numbers_of_the_network(network):
    name, y, p = network
    if not name.startswith("wideresnet"):
        pytest.skip("the page is of the other network")
    order, text = np.random.default_rng(0).permutation(len(y)), PAGE.read_text("utf-8")
    validation, test = order[:5000], order[5000:]
    predictions = Categorical(p)
    before = ECE(EqualMass(15), lens=TopLabel())(y[test], predictions[test])
    assert f"{100 * float(before):.2f} %" in text
    interval = before.confidence_interval()
    assert f"{100 * interval.low:.3g} % to {100 * interval.high:.3g} %" in text
    after = Default().fit(y[validation], predictions[validation], folds=0).map.apply(predictions[test])
    for some in (predictions[test], after):
        assert f"{float(LogLoss()(y[test], some)):.4f} of " in text
