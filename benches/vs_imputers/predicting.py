"""The density of one column given all others: zhat beside gradient boosting."""
import json, math, shutil, time

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from common import mean_and_error, percent_and_error, print_table, zhat

LEVELS = np.linspace(0.025, 0.975, 20)
SETTINGS = [dict(learning_rate=rate, max_leaf_nodes=leaves) for rate in (0.1, 0.05) for leaves in (31, 127)]


def normal_crps(z):
    density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    below = 0.5 * (1 + np.vectorize(math.erf)(z / math.sqrt(2)))
    return z * (2 * below - 1) + 2 * density - 1 / math.sqrt(math.pi)


def ensemble_crps(quantiles, y):
    """Of the distribution whose quantiles go straight from one level to the next, by 200 of them."""
    inner = (np.arange(200) + 0.5) / 200
    draws = np.stack([np.interp(inner, LEVELS, row) for row in quantiles])
    apart = np.abs(draws - y[:, None]).mean(axis=1)
    ranks = 2 * np.arange(200) - 199
    return apart - (draws * ranks).sum(axis=1) / 200 ** 2


def boosted(x, y, held, **options):
    """As many rounds as validation rows ask for."""
    model = HistGradientBoostingRegressor(max_iter=1500, early_stopping=True, validation_fraction=None, n_iter_no_change=20, **options)
    return model.fit(x, y, X_val=held[0], y_val=held[1])


def of_zhat(a, name, table, target, held, test):
    out = a.cache / name
    shutil.rmtree(out, ignore_errors=True)
    _, seconds = zhat(a, "fit", a.cache / f"{name}.csv", "--target", target, "--out", out, "--seed", a.seed, "--processor-time", f"{a.seconds:g}s",
                      "--kind", f"{target}=continuous", "--set", "data.split.order=last", "--set", f"data.split.validation={held / len(table)!r}",
                      "--set", f"data.split.test={test / len(table)!r}")
    text, _ = zhat(a, "evaluate", out, "--json")
    found = json.loads(text)
    number = found["predictive"]["targets"][0]
    ninety = next(c for c in number["coverage"] if c["level"] == 0.9)
    return ["zhat", f"{-found['log_likelihood']:.4f} ± {found['se_test']:.4f}", f"{number['crps']:.4f} ± {number['se_crps']:.4f}",
            f"{100 * ninety['found']:.1f} ± {100 * ninety['standard_error']:.1f} %", f"{number['width_of_90']:.2f}", f"{seconds:.0f} s"]


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
    rows = [of_zhat(a, name, table, target, held, test)]
    began = time.process_time()
    models = [boosted(x, y, (xv, yv), **setting) for setting in SETTINGS]
    best = max(range(len(SETTINGS)), key=lambda at: models[at].validation_score_[-1])
    spent = time.process_time() - began
    sigma = math.sqrt(((models[best].predict(xv) - yv) ** 2).mean())
    z = (yt - models[best].predict(xt)) / sigma
    nll = 0.5 * z * z + math.log(sigma) + 0.5 * math.log(2 * math.pi)
    rows.append(["boosted mean, a normal of constant variance", mean_and_error(nll), mean_and_error(sigma * normal_crps(z)),
                 percent_and_error(np.abs(z) < 1.6449), f"{2 * 1.6449 * sigma:.2f}", f"{spent:.0f} s"])
    # As many leaves as are best for the mean, at the larger rate: the smaller would take an hour for all levels.
    best = dict(SETTINGS[best], learning_rate=max(setting["learning_rate"] for setting in SETTINGS))
    began = time.process_time()
    levels = [boosted(x, y, (xv, yv), loss="quantile", quantile=level, **best).predict(xt) for level in LEVELS]
    spent = time.process_time() - began
    quantiles = np.sort(np.stack(levels, axis=1), axis=1)
    low, high = [np.array([np.interp(p, LEVELS, row) for row in quantiles]) for p in (0.05, 0.95)]
    rows.append([f"boosted quantiles, {len(LEVELS)} levels", "none", mean_and_error(ensemble_crps(quantiles, yt)),
                 percent_and_error((yt >= low) & (yt <= high)), f"{(high - low).mean():.2f}", f"{spent:.0f} s"])
    print(f"\nPredicting {target} of {name}: {len(y)} rows to learn from, {len(yv)} to stop by, {len(yt)} to test on\n")
    print_table(["", "negative log-likelihood", "CRPS", "in the 90 % interval", "its width", "processor"], rows)
