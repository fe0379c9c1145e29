import numpy as np
import pytest

from studies.coverage.catalogue import CLAIMS
from studies.coverage.worlds import SETTINGS


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_every_claim_is_tried_somewhere_and_can_be_sent_to_a_worker(claim):
    import pickle

    suited = [setting for setting in SETTINGS if claim.applies(setting)]
    smallest = min(suited, key=lambda setting: setting.n)
    again = pickle.loads(pickle.dumps(claim))
    values = np.array([again.found(smallest.draw(np.random.default_rng(0)), 0)], dtype=float)
    assert values.shape[1] in (1, 2, 4)
