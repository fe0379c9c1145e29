"""Log loss on fresh rows of models recalibrated by us and by scikit-learn: ``python benchmarks/recalibrated_classifier.py``."""

import warnings
from time import perf_counter

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from calibrant.sklearn import RecalibratedClassifier

DATA = {
    "cancer": load_breast_cancer(return_X_y=True),
    "digits": load_digits(return_X_y=True),
    "two": make_classification(3000, 20, n_informative=6, n_redundant=8, flip_y=0.1, random_state=0),
    "four": make_classification(3000, 20, n_informative=8, n_redundant=6, n_classes=4, flip_y=0.1, random_state=0),
}
MODELS = {
    "Bayes": GaussianNB(),
    "forest": RandomForestClassifier(100, random_state=0),
    "SVM": make_pipeline(StandardScaler(), SVC(random_state=0)),
    "boosting": HistGradientBoostingClassifier(max_iter=60, random_state=0),
}
WAYS = {
    "sigmoid": CalibratedClassifierCV,
    "isotonic": lambda model: CalibratedClassifierCV(model, method="isotonic"),
    "ours": RecalibratedClassifier,
    "ours, refit": lambda model: RecalibratedClassifier(model, ensemble=False),
}


def losses(X, y, model, way):
    """Log loss on the other half of the rows, over four splits."""
    splits = StratifiedShuffleSplit(4, test_size=0.5, random_state=1).split(X, y)
    fits = ((WAYS[way](model).fit(X[learn], y[learn]), rest) for learn, rest in splits)
    return np.mean([log_loss(y[rest], np.clip(fit.predict_proba(X[rest]), 1e-15, 1)) for fit, rest in fits])


def main():
    warnings.simplefilter("ignore")
    print("| data | model |", " | ".join(WAYS), "| seconds |")
    print("|---|---|" + "---|" * (len(WAYS) + 1))
    for data, (X, y) in DATA.items():
        for name, model in MODELS.items():
            start = perf_counter()
            row = [f"{losses(X, y, model, way):.4f}" for way in WAYS]
            print(f"| {data} | {name} |", " | ".join(row), f"| {perf_counter() - start:.0f} |", flush=True)


if __name__ == "__main__":
    main()
