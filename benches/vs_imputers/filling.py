"""Missing cells filled by zhat and by scikit-learn's imputers."""
import math, shutil, time

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from common import NUMBERS, REGIONS, WORDS, filled_by_mean, mixed, percent_and_error, print_table, with_holes, zhat


def encoded(table):
    """Words as one column of 0 and 1 for each, missing ones as missing."""
    parts = []
    for name in WORDS:
        levels = REGIONS if name == "region" else ["no", "yes"]
        part = pd.DataFrame({f"{name}={level}": (table[name] == level).astype(float) for level in levels})
        part[table[name].isna().to_numpy()] = np.nan
        parts.append(part)
    return pd.concat([*parts, table[NUMBERS].astype(float)], axis=1)


def decoded(values, columns):
    table = pd.DataFrame(values, columns=columns)
    found = {}
    for name in WORDS:
        levels = REGIONS if name == "region" else ["no", "yes"]
        found[name] = np.array(levels)[table[[f"{name}={level}" for level in levels]].to_numpy().argmax(axis=1)]
    return pd.DataFrame({**found, **{name: table[name] for name in NUMBERS}})


def errors(filled, truth, holes):
    """Root mean square error of numbers in standard deviations of their columns, and the share of wrong words, each with its error."""
    places = {name: index for index, name in enumerate(truth.columns)}
    squares, wrong = [], []
    for name in NUMBERS:
        gone = holes[:, places[name]]
        apart = (filled[name].to_numpy(float) - truth[name].to_numpy(float)) / truth[name].std()
        squares.append(apart[gone] ** 2)
    for name in WORDS:
        gone = holes[:, places[name]]
        wrong.append((filled[name].to_numpy(object) != truth[name].to_numpy(object))[gone])
    squares = np.concatenate(squares)
    rmse = math.sqrt(squares.mean())
    return [f"{rmse:.3f} ± {squares.std() / math.sqrt(len(squares)) / (2 * rmse):.3f}", percent_and_error(np.concatenate(wrong))]


def by_boosting(train, test):
    """Every column from all others by gradient boosting, to which what is missing is a value like any other: no imputer, but what
    one would write by hand."""
    inputs = lambda table, name: table.drop(columns=name).astype({other: "category" for other in WORDS if other != name})
    filled = test.copy()
    for name in test.columns:
        model = HistGradientBoostingClassifier if name in WORDS else HistGradientBoostingRegressor
        known, gone = train[name].notna(), test[name].isna()
        fitted = model(categorical_features="from_dtype").fit(inputs(train, name)[known], train.loc[known, name])
        filled.loc[gone, name] = fitted.predict(inputs(test, name)[gone])
    return filled


def of_zhat(a, test, holes):
    """Fitted to the rows with holes, and those of the test filled; the share of numbers within their intervals."""
    shutil.rmtree(a.cache / "mixed", ignore_errors=True)
    _, seconds = zhat(a, "fit", a.cache / "train.csv", "--out", a.cache / "mixed", "--seed", a.seed, "--processor-time", f"{a.seconds:g}s")
    _, more = zhat(a, "impute", a.cache / "mixed", a.cache / "test.csv", "--quantiles", "0.05,0.95", "--out", a.cache / "filled.csv")
    filled = pd.read_csv(a.cache / "filled.csv")
    inside = []
    for at, name in enumerate(test.columns):
        if name in NUMBERS:
            gone, values = holes[:, at], test[name].to_numpy(float)
            low, high = filled[f"{name}_q0.05"].to_numpy(float), filled[f"{name}_q0.95"].to_numpy(float)
            inside.append(((values >= low) & (values <= high))[gone])
    covered = percent_and_error(np.concatenate(inside))
    return ["zhat", *errors(filled, test, holes), covered, f"{seconds:.0f} + {more:.0f} s"]


def filling(a):
    rng = np.random.default_rng(a.seed)
    table = mixed(a.rows + a.test_rows, rng)
    train, test = table[:a.rows], table[a.rows:].reset_index(drop=True)
    (train_holes, _), (test_holes, holes) = with_holes(train, a.missing, rng), with_holes(test, a.missing, rng)
    train_holes.to_csv(a.cache / "train.csv", index=False)
    test_holes.to_csv(a.cache / "test.csv", index=False)
    rows = [of_zhat(a, test, holes)]
    x, y = encoded(train_holes), encoded(test_holes)
    scale = x.std()
    trees = ExtraTreesRegressor(n_estimators=50, min_samples_leaf=3, random_state=a.seed)
    imputers = {"IterativeImputer, extra trees": IterativeImputer(trees, max_iter=10, random_state=a.seed),
                "IterativeImputer, gradient boosting": IterativeImputer(HistGradientBoostingRegressor(), max_iter=10, random_state=a.seed),
                "KNNImputer": KNNImputer(n_neighbors=20, weights="distance")}
    for name, imputer in imputers.items():
        began = time.process_time()
        imputer.fit(x / scale)
        learnt = time.process_time()
        found = imputer.transform(y / scale) * scale.to_numpy()
        seconds = f"{learnt - began:.0f} + {time.process_time() - learnt:.0f} s"
        rows.append([name, *errors(decoded(found, x.columns), test, holes), "none", seconds])
    began = time.process_time()
    found = by_boosting(train_holes, test_holes.astype({"visits": float}))
    rows.append(["gradient boosting, a model for each column", *errors(found, test, holes), "none", f"{time.process_time() - began:.0f} s"])
    rows.append(["mean and mode", *errors(filled_by_mean(test_holes, train_holes), test, holes), "none", "0 s"])
    print(f"\nFilling: {a.rows} rows to learn from, {a.test_rows} to fill, {100 * a.missing:.0f} % of the cells missing completely at random\n")
    print_table(["", "numbers, rmse in deviations", "words, wrong", "in the 90 % interval", "processor: learn + fill"], rows)
