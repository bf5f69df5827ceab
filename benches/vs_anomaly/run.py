"""Strange rows by density, beside what one would take instead: areas under the ROC curve, default settings.

    python benches/vs_anomaly/run.py [--data FILE[:CLASS]] [--repeats 3] [--clean] [--only NAME] [--json FILE]

A set is rows of which some classes are strange. Detectors are fitted to 70 % of all rows without their classes (strange ones among them), or
with `--clean` to the rows of the usual classes alone, and judged on the rest. A FILE is a CSV whose last column is the class; CLASS is the strange one (the rarest without it).
"""

import argparse
import json
import sys
import time
import warnings

import numpy as np
from sklearn import datasets
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler

import zhat


def rarest(classes):
    """Which rows are of the rarest class."""
    names, numbers = np.unique(classes, return_counts=True)
    return classes == names[numbers.argmin()]


def thinned(X, strange, share, seed=0):
    """Strange rows thinned out to a share of all, as in ADBench."""
    rng = np.random.default_rng(seed)
    usual, odd = np.flatnonzero(~strange), np.flatnonzero(strange)
    keep = min(len(odd), int(share / (1 - share) * len(usual)))
    rows = np.concatenate([usual, rng.choice(odd, keep, replace=False)])
    return X[rows], strange[rows]


def sets(paths):
    """Names with rows and which of them are strange."""
    cancer = datasets.load_breast_cancer()
    yield "breast cancer, malignant", *thinned(cancer.data, cancer.target == 0, 0.05)
    wine = datasets.load_wine()
    yield "wine, third cultivar", *thinned(wine.data, wine.target == 2, 0.08)
    digits = datasets.load_digits()
    pixels = digits.data[:, digits.data.std(0) > 1]
    yield "digits, nine", *thinned(pixels, digits.target == 9, 0.05)
    iris = datasets.load_iris()
    yield "iris, virginica", *thinned(iris.data, iris.target == 2, 0.1)
    for path in paths:
        path, _, label = path.partition(":")
        table = np.genfromtxt(path, delimiter=",", dtype=str)
        try:
            table[0, :-1].astype(float)
        except ValueError:
            table = table[1:]
        classes = np.char.strip(table[:, -1], "\"' ")
        strange = classes == label if label else rarest(classes)
        yield path.rsplit("/", 1)[-1], *thinned(table[:, :-1].astype(float), strange, 0.1)


def detectors(seed, clean):
    """What is compared: a function from training and test rows to strangeness of the test rows."""

    def of_zhat(train, test):
        return -zhat.AnomalyDetector(trim=not clean, random_state=seed).fit(train).score_samples(test)

    def forest(train, test):
        return -IsolationForest(random_state=seed).fit(train).score_samples(test)

    def factor(train, test):
        return -LocalOutlierFactor(novelty=True).fit(train).score_samples(test)

    def mixture(train, test):
        # The number of components by BIC, which is what its user would do.
        fits = [GaussianMixture(number, reg_covar=1e-4, random_state=seed).fit(train) for number in (1, 2, 4, 8)]
        return -min(fits, key=lambda fit: fit.bic(train)).score_samples(test)

    return {
        "zhat": of_zhat,
        "IsolationForest": forest,
        "LocalOutlierFactor": factor,
        "GaussianMixture": mixture,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", action="append", default=[])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--clean", action="store_true")
    parser.add_argument("--only", default="", help="sets whose name holds this")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    found = {}
    for name, X, strange in sets(arguments.data):
        if arguments.only not in name:
            continue
        areas, seconds = {}, {}
        for seed in range(arguments.repeats):
            train, test, odd, truth = train_test_split(X, strange, test_size=0.3, stratify=strange, random_state=seed)
            if arguments.clean:
                train = train[~odd]
            moving = train.std(0) > 0
            scaler = StandardScaler().fit(train[:, moving])
            train, test = scaler.transform(train[:, moving]), scaler.transform(test[:, moving])
            for detector, judge in detectors(seed, arguments.clean).items():
                start = time.process_time()
                area = roc_auc_score(truth, judge(train, test))
                areas.setdefault(detector, []).append(area)
                seconds.setdefault(detector, []).append(time.process_time() - start)
        found[name] = {"rows": list(X.shape), "strange": float(strange.mean()), "auroc": areas, "seconds": seconds}
        told = ", ".join(f"{d} {np.mean(a):.3f} ({np.mean(seconds[d]):.1f} s)" for d, a in areas.items())
        print(f"{name} {X.shape[0]} x {X.shape[1]}, {100 * strange.mean():.0f} % strange: {told}", flush=True)
    names = list(next(iter(found.values()))["auroc"])
    print("\n| | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    for name, of_set in found.items():
        means = {detector: np.mean(of_set["auroc"][detector]) for detector in names}
        best = max(means.values())
        cells = [f"**{means[d]:.3f}**" if means[d] >= best - 5e-4 else f"{means[d]:.3f}" for d in names]
        print(f"| {name}, {of_set['rows'][0]} x {of_set['rows'][1]} | " + " | ".join(cells) + " |")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
