"""Make the example predictions that ship with calibrant: real models on data that scikit-learn ships.

Run with scikit-learn installed: ``python examples/make_data.py``. All predictions are out-of-fold (5 folds), so that
no row was seen by the model that predicts it.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline

HERE = Path(__file__).parents[1] / "src" / "calibrant" / "data"


def digits() -> None:
    """A small neural network that reads handwritten digits from six principal components."""
    images, digit = load_digits(return_X_y=True)
    network = MLPClassifier((128,), alpha=0, max_iter=600, random_state=0)
    model = make_pipeline(PCA(6, random_state=0), network)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    probabilities = cross_val_predict(model, images, digit, cv=folds, method="predict_proba")
    ink = np.array(["light", "medium", "heavy"])[
        np.digitize(images.sum(axis=1), np.quantile(images.sum(axis=1), [1 / 3, 2 / 3]))
    ]
    header = ",".join(["digit", "ink", *(f"p_{k}" for k in range(10))])
    rows = (
        f"{d},{i}," + ",".join(f"{p:.9g}" if p > 0.5 else f"{p:.4g}" for p in row)
        for d, i, row in zip(digit, ink, probabilities, strict=True)
    )
    (HERE / "digits.csv").write_text("\n".join([header, *rows]) + "\n")


def diabetes() -> None:
    """Disease progression by linear regression; the spread is the one seen on each fold's training rows."""
    features, progression = load_diabetes(return_X_y=True)
    centre, spread = np.empty(len(progression)), np.empty(len(progression))
    for train, test in KFold(5, shuffle=True, random_state=0).split(features):
        model = LinearRegression().fit(features[train], progression[train])
        centre[test] = model.predict(features[test])
        spread[test] = np.std(progression[train] - model.predict(features[train]), ddof=features.shape[1] + 1)
    sex = np.where(features[:, 1] > 0, "b", "a")  # the data set does not say which is which
    rows = (f"{y:g},{m:.5g},{s:.5g},{g}" for y, m, s, g in zip(progression, centre, spread, sex, strict=True))
    (HERE / "diabetes.csv").write_text("\n".join(["progression,mu,sigma,sex", *rows]) + "\n")


if __name__ == "__main__":
    digits()
    diabetes()
