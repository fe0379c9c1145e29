import numpy as np
import pytest
from scipy.stats import chi2

from calibrant.inference import CMETest
from calibrant.lab import SyntheticNormal
from studies.widmann import embeddings


@pytest.mark.parametrize("d", [1, 10])
def test_the_test_as_published_is_that_of_code_of_our_own(d):
    """``n Zbar' S^-1 Zbar`` with closed forms of isotropic normals, entry by entry, in the setting of the paper."""
    y, predictions = SyntheticNormal(False, d).draw(64, np.random.default_rng(2))
    places = embeddings.locations(d)
    z = np.empty((64, 10))
    for i in range(64):
        for j in range(10):
            gap = np.linalg.norm(places.y_pred.loc[j] - predictions.loc[i])  # equal spreads: the distance of means
            near = np.exp(-((places.y_true[j] - y[i]) ** 2).sum() / 2)
            width = 1 + predictions.scale[i, 0] ** 2
            mean = np.exp(-((places.y_true[j] - predictions.loc[i]) ** 2).sum() / (2 * width)) / width ** (d / 2)
            z[i, j] = np.exp(-gap) * (near - mean)
    mean = z.mean(axis=0)
    q = 64 * mean @ np.linalg.solve(np.cov(z.T), mean)
    result = CMETest(*embeddings.KERNELS, places, "chi2")(y, predictions)
    assert result.statistic == pytest.approx(q, rel=1e-5)  # locations of one dimension are nearly collinear
    assert result.pvalue == pytest.approx(chi2.sf(q, 10), rel=1e-4)


def test_chi_square_rejects_too_often_with_few_rows():
    """As the page says; blocks by the spread of pairs do not."""
    table = embeddings.rates(40, sizes=[16])
    level = {(row["d"], row["test"]): row["rejected"] for row in table.rows() if row["model"] == "calibrated"}
    assert level[1, "mean embedding, chi-square"] > 0.4
    assert level[1, "B=2, spread of pairs"] < 0.25


def test_the_parts_of_the_page(monkeypatch):
    monkeypatch.setattr(embeddings, "SIZES", (16,))
    monkeypatch.setattr(embeddings.rates, "__kwdefaults__", embeddings.rates.__kwdefaults__ | {"sizes": (16,)})
    monkeypatch.setattr(embeddings.times, "__kwdefaults__", {"sizes": (16,), "repeats": 1, "dimensions": 2})
    first, second = embeddings.sections(2)
    assert first.table.n_rows == 16
    assert second.table.n_rows == 4
