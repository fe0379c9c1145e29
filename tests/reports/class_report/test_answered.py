import numpy as np

from calibrant import TopLabel, evaluate
from calibrant.estimators import AUC, AURC


def test_the_picture_says_what_the_estimators_say(rng):
    p = rng.dirichlet(np.ones(4), 200)
    y = (rng.random((200, 1)) >= p.cumsum(axis=1)[:, :3]).sum(axis=1)
    pictures = {picture.kind: picture for picture in evaluate(y, p, n_resamples=99, rng=0).pictures}
    words = pictures["risk_coverage"].caption
    assert f"{100 * AURC(TopLabel())(y, p).value:.1f} %" in words
    assert f"{100 * AUC(TopLabel())(y, p).value:.1f} %" in words
    assert pictures["risk_coverage"].tables["curve"]["coverage"][-1] == 1
