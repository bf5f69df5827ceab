#!/usr/bin/env python3
"""zhat beside scikit-learn where cells are missing and where a column is predicted; prints two tables.

Filling: a table as `builtin:mixed` with cells missing completely at random, by zhat and by IterativeImputer (trees), KNNImputer and the mean or
mode. Predicting: the density of one column of a CSV file given all others, by zhat, by gradient boosting with a normal of constant variance, and
by gradient boosting of quantiles. One thread each; what it used of the processor stands beside every figure.
"""
import argparse, json, math, os, pathlib, resource, shutil, subprocess, sys, time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
REGIONS = ["north", "east", "south", "west"]
WORDS, NUMBERS = ["region", "member"], ["visits", "share", "amount"]
LEVELS = np.linspace(0.025, 0.975, 39)


def program():
    metadata = subprocess.run(["cargo", "metadata", "--format-version", "1", "--no-deps"], cwd=ROOT, capture_output=True,
                              check=True, text=True).stdout
    return pathlib.Path(json.loads(metadata)["target_directory"]) / "release" / "zhat"


def zhat(*words):
    """What the program prints, and the processor seconds it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([str(program()), *map(str, words), "--threads", "1", "--quiet"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"zhat {' '.join(map(str, words))}\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def mixed(rows, rng):
    """Rows of the built-in set of that name, by its own formulas."""
    region = rng.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])
    member = (rng.random(rows) < np.array([0.1, 0.3, 0.6, 0.9])[region]).astype(int)
    visits = rng.binomial(12, 0.1 + 0.15 * region + 0.3 * member)
    share = 1 / (1 + np.exp(-(0.3 * (visits - 5) - member + 0.6 * rng.standard_normal(rows))))
    amount = 50 + 10 * region + 40 * share + (2 + 4 * (region % 2)) * rng.standard_normal(rows)
    return pd.DataFrame(dict(region=np.array(REGIONS)[region], member=np.array(["no", "yes"])[member], visits=visits,
                             share=np.round(share, 6), amount=np.round(amount, 5)))


def with_holes(table, share, rng):
    """Never a whole row."""
    holes = rng.random(table.shape) < share
    holes[holes.all(axis=1), rng.integers(table.shape[1])] = False
    return table.mask(holes), holes


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
    squares, wrong = np.concatenate(squares), np.concatenate(wrong).astype(float)
    rmse = math.sqrt(squares.mean())
    return [f"{rmse:.3f} ± {squares.std() / math.sqrt(len(squares)) / (2 * rmse):.3f}",
            f"{100 * wrong.mean():.1f} ± {100 * wrong.std() / math.sqrt(len(wrong)):.1f} %"]


def filling(a):
    rng = np.random.default_rng(a.seed)
    table = mixed(a.rows + a.test_rows, rng)
    train, test = table[:a.rows], table[a.rows:].reset_index(drop=True)
    (train_holes, _), (test_holes, holes) = with_holes(train, a.missing, rng), with_holes(test, a.missing, rng)
    a.cache.mkdir(parents=True, exist_ok=True)
    train_holes.to_csv(a.cache / "train.csv", index=False)
    test_holes.to_csv(a.cache / "test.csv", index=False)
    rows = []
    shutil.rmtree(a.cache / "mixed", ignore_errors=True)
    _, seconds = zhat("fit", a.cache / "train.csv", "--out", a.cache / "mixed", "--seed", a.seed, "--processor-time", f"{a.seconds:g}s")
    _, more = zhat("impute", a.cache / "mixed", a.cache / "test.csv", "--quantiles", "0.05,0.95", "--out", a.cache / "filled.csv")
    filled = pd.read_csv(a.cache / "filled.csv")
    places = {name: index for index, name in enumerate(test.columns)}
    inside = []
    for name in NUMBERS:
        gone, values = holes[:, places[name]], test[name].to_numpy(float)
        low, high = filled[f"{name}_q0.05"].to_numpy(float), filled[f"{name}_q0.95"].to_numpy(float)
        inside.append(((values >= low) & (values <= high))[gone])
    inside = np.concatenate(inside).astype(float)
    covered = f"{100 * inside.mean():.1f} ± {100 * inside.std() / math.sqrt(len(inside)):.1f} %"
    rows.append(["zhat", *errors(filled, test, holes), covered, f"{seconds + more:.0f} s"])
    x, y = encoded(train_holes), encoded(test_holes)
    scale = x.std()
    trees = ExtraTreesRegressor(n_estimators=50, min_samples_leaf=3, random_state=a.seed)
    imputers = {"IterativeImputer, extra trees": IterativeImputer(trees, max_iter=10, random_state=a.seed),
                "IterativeImputer, gradient boosting": IterativeImputer(HistGradientBoostingRegressor(), max_iter=10, random_state=a.seed),
                "KNNImputer": KNNImputer(n_neighbors=20, weights="distance")}
    for name, imputer in imputers.items():
        began = time.process_time()
        found = imputer.fit(x / scale).transform(y / scale) * scale.to_numpy()
        rows.append([name, *errors(decoded(found, x.columns), test, holes), "none", f"{time.process_time() - began:.0f} s"])
    modes = test_holes.copy()
    for name in test.columns:
        value = train_holes[name].mode()[0] if name in WORDS else train_holes[name].mean()
        modes[name] = modes[name].fillna(value)
    rows.append(["mean and mode", *errors(modes, test, holes), "none", "0 s"])
    print(f"\nFilling: {a.rows} rows to learn from, {a.test_rows} to fill, {100 * a.missing:.0f} % of the cells missing completely at random\n")
    print_table(["", "numbers, rmse in deviations", "words, wrong", "in the 90 % interval", "processor"], rows)


def normal_crps(z):
    density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    below = 0.5 * (1 + np.vectorize(math.erf)(z / math.sqrt(2)))
    return z * (2 * below - 1) + 2 * density - 1 / math.sqrt(math.pi)


def mean_and_error(values):
    return f"{values.mean():.4f} ± {values.std() / math.sqrt(len(values)):.4f}"


def ensemble_crps(quantiles, y):
    """Of the distribution whose quantiles go straight from one level to the next, by 200 of them."""
    inner = (np.arange(200) + 0.5) / 200
    draws = np.stack([np.interp(inner, LEVELS, row) for row in np.sort(quantiles, axis=1)])
    apart = np.abs(draws - y[:, None]).mean(axis=1)
    ranks = 2 * np.arange(200) - 199
    return apart - (draws * ranks).sum(axis=1) / 200 ** 2


def boosting(x, y, held, seconds, **options):
    """As many rounds as validation rows ask for, within the time; its processor seconds."""
    began = time.process_time()
    best = None
    for rate in (0.1, 0.05):
        for leaves in (31, 127):
            if best is not None and time.process_time() - began > 0.5 * seconds:
                break
            model = HistGradientBoostingRegressor(learning_rate=rate, max_leaf_nodes=leaves, max_iter=1500, early_stopping=True,
                                                  validation_fraction=None, n_iter_no_change=20, **options)
            model.fit(x, y, X_val=held[0], y_val=held[1])
            loss = model.validation_score_[-1]
            if best is None or loss > best[0]:
                best = (loss, model)
    return best[1], time.process_time() - began


def predicting(a, name, path):
    rng = np.random.default_rng(a.seed)
    header = None if not any(c.isalpha() for c in pd.read_csv(path, nrows=0).columns[0]) else "infer"
    table = pd.read_csv(path, header=header)
    table.columns = [str(column) if header else f"c{at + 1}" for at, column in enumerate(table.columns)]
    target = a.target or table.columns[-1]
    table = table.iloc[rng.permutation(len(table))][:a.most_rows].reset_index(drop=True)
    held, test = int(0.1 * len(table)), int(0.1 * len(table))
    table.to_csv(a.cache / f"{name}.csv", index=False)
    parts = [table[:-held - test], table[-held - test:-test], table[-test:]]
    (x, y), (xv, yv), (xt, yt) = [(part.drop(columns=target).to_numpy(float), part[target].to_numpy(float)) for part in parts]
    rows = []
    out = a.cache / name
    shutil.rmtree(out, ignore_errors=True)
    _, seconds = zhat("fit", a.cache / f"{name}.csv", "--target", target, "--out", out, "--seed", a.seed, "--processor-time", f"{a.seconds:g}s",
                      "--kind", f"{target}=continuous", "--set", "data.split.order=last", "--set", f"data.split.validation={held / len(table)!r}",
                      "--set", f"data.split.test={test / len(table)!r}")
    text, _ = zhat("evaluate", out, "--json")
    found = json.loads(text)
    number = found["predictive"]["targets"][0]
    ninety = next(c for c in number["coverage"] if c["level"] == 0.9)
    rows.append(["zhat", f"{-found['log_likelihood']:.4f} ± {found['se_test']:.4f}", f"{number['crps']:.4f} ± {number['se_crps']:.4f}",
                 f"{100 * ninety['found']:.1f} ± {100 * ninety['standard_error']:.1f} %", f"{number['width_of_90']:.2f}", f"{seconds:.0f} s"])
    model, seconds = boosting(x, y, (xv, yv), a.seconds)
    sigma = math.sqrt(((model.predict(xv) - yv) ** 2).mean())
    z = (yt - model.predict(xt)) / sigma
    nll = 0.5 * z * z + math.log(sigma) + 0.5 * math.log(2 * math.pi)
    cover = (np.abs(z) < 1.6449).astype(float)
    rows.append(["boosted mean, a normal of constant variance", mean_and_error(nll), mean_and_error(sigma * normal_crps(z)),
                 f"{100 * cover.mean():.1f} ± {100 * cover.std() / math.sqrt(len(cover)):.1f} %", f"{2 * 1.6449 * sigma:.2f}", f"{seconds:.0f} s"])
    quantiles, spent = [], 0.0
    for level in LEVELS:
        model, seconds = boosting(x, y, (xv, yv), a.seconds / len(LEVELS), loss="quantile", quantile=level)
        quantiles.append(model.predict(xt))
        spent += seconds
    quantiles = np.sort(np.stack(quantiles, axis=1), axis=1)
    low, high = [np.stack([np.interp(p, LEVELS, row) for row in quantiles]) for p in (0.05, 0.95)]
    cover = ((yt >= low) & (yt <= high)).astype(float)
    rows.append([f"boosted quantiles, {len(LEVELS)} levels", "none", mean_and_error(ensemble_crps(quantiles, yt)),
                 f"{100 * cover.mean():.1f} ± {100 * cover.std() / math.sqrt(len(cover)):.1f} %", f"{(high - low).mean():.2f}", f"{spent:.0f} s"])
    print(f"\nPredicting {target} of {name}: {len(y)} rows to learn from, {len(yv)} to stop by, {len(yt)} to test on\n")
    print_table(["", "negative log-likelihood", "CRPS", "in the 90 % interval", "its width", "processor"], rows)


def print_table(header, rows):
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, ["-" * width for width in widths], *rows]:
        print("| " + " | ".join(text.ljust(width) for text, width in zip(row, widths)) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000, help="rows of the mixed table to learn from; 0 to leave it out")
    parser.add_argument("--test-rows", type=int, default=1_000, help="rows of it to fill")
    parser.add_argument("--missing", type=float, default=0.3, help="share of the cells that are missing")
    parser.add_argument("--data", action="append", default=[], metavar="NAME=FILE", help="a CSV file of which a column is predicted")
    parser.add_argument("--target", help="that column; the last, if not given (columns without names are c1, c2, ...)")
    parser.add_argument("--most-rows", type=int, default=50_000, help="rows of it, at most")
    parser.add_argument("--seconds", type=float, default=150, help="processor seconds of zhat's fits, and for boosting to stay below")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=pathlib.Path, default=ROOT / "out" / "vs_imputers", help="where tables and runs are kept")
    a = parser.parse_args()
    a.cache.mkdir(parents=True, exist_ok=True)
    if a.rows > 0:
        filling(a)
    for given in a.data:
        name, _, path = given.partition("=")
        if not pathlib.Path(path).is_file():
            sys.exit(f"--data {given}: write it as NAME=FILE, with a CSV file that exists")
        predicting(a, name, path)


if __name__ == "__main__":
    main()
