#!/usr/bin/env python3
"""What a user would take instead of zhat, on the same split and for the same processor seconds.

    python density_peers.py split NAME|FILE DIR [SEED]
    python density_peers.py gmm|kde|nsf DIR [SECONDS] [SEED]

`split` makes DIR from one of scikit-learn's sets (iris, wine, diabetes without the column sex, breast_cancer) or from a
CSV or NPY file: rows in random order, the last 10 % of them the test part and the 10 % before it the validation part
(20 % each below 1,000 rows), all standardised with the training part's mean and standard deviation. It writes
train.npy, validation.npy and test.npy, and all.npy with the three in this order.

The other form fits a model to DIR and prints one JSON line: the mean test log-likelihood in nats per row, its standard
error over the rows, the processor seconds. One thread. The seconds are counted after the imports, and scoring the test
rows comes on top, both in the competitor's favour. Needs numpy, pandas and scikit-learn, and for nsf torch and zuko.
"""
import json, math, os, pathlib, signal, sys, time, warnings

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np

warnings.filterwarnings("ignore")
clock = time.process_time
BUILT_IN = ("iris", "wine", "diabetes", "breast_cancer")
SMALL = 1000


def load(source):
    """The table behind a name of scikit-learn's, or of a file with discrete columns dequantised."""
    if source in BUILT_IN:
        from sklearn import datasets
        x = getattr(datasets, "load_" + source)().data
        return np.delete(x, 1, 1) if source == "diabetes" else x
    return dequantised(np.load(source) if source.endswith(".npy") else read_csv(source))


def read_csv(path):
    """A first line that is no row of numbers is the header."""
    import pandas
    table = pandas.read_csv(path, header=None, dtype=str)
    try:
        table.iloc[0].astype(float)
    except ValueError:
        table = table.iloc[1:]
    return table.astype(float).to_numpy()


def grid_step(column):
    """The step of the regular grid that a discrete column lies on; None for a continuous one.

    Discrete is a column of whole numbers, or one with at least twenty rows to a distinct value on average. The values
    may be shifted and rounded: distances of neighbours are multiples of the smallest one to a hundredth.
    """
    values = np.unique(column)
    whole = np.all(values == np.round(values))
    if len(values) < 2 or not (whole or 20 * len(values) <= len(column)):
        return None
    distances = np.diff(values)
    cells = np.round(distances / distances.min())
    if np.all(np.abs(distances / distances.min() - cells) <= 0.01 * cells):
        return (values[-1] - values[0]) / cells.sum()
    return 1.0 if whole else None


def dequantised(x):
    """Uniform noise of one step on discrete columns, without which their density is infinite. The same noise for every seed of
    the split, so that all splits are of one table."""
    x, rng = np.array(x, dtype=float), np.random.default_rng(0)
    for number, column in enumerate(x.T):
        if (step := grid_step(column)) is not None:
            print(f"column {number + 1}: uniform noise of {step:.6g}", file=sys.stderr)
            column += step * rng.random(len(column))
    return x


def split(source, out, seed=0):
    x = np.asarray(load(source), dtype=float)
    if not np.isfinite(x).all():
        sys.exit(f"{source}: cells that are missing or infinite; leave their rows out first")
    x = np.random.default_rng(seed).permutation(x)
    part = max(len(x) // (5 if len(x) < SMALL else 10), 1)
    train, validation, test = np.split(x, [len(x) - 2 * part, len(x) - part])
    mean, std = train.mean(0), train.std(0)
    if not std.all():
        sys.exit(f"{source}: column {1 + int(np.argmin(std))} is constant; leave it out first")
    pathlib.Path(out).mkdir(parents=True, exist_ok=True)
    parts = [("train", train), ("validation", validation), ("test", test), ("all", x)]
    for name, rows in parts:
        np.save(f"{out}/{name}.npy", ((rows - mean) / std).astype(np.float32))
    return {name: len(rows) for name, rows in parts}


def answer(model, scores, started, **more):
    error = np.std(scores) / len(scores) ** 0.5
    print(json.dumps(dict(model=model, test=float(np.mean(scores)), se=float(error), rows=len(scores),
                          seconds=round(clock() - started, 1), **more)))


class OutOfTime(Exception):
    pass


def best_within(seconds, candidates, fit, validation):
    """The candidate with the best mean log-density of the validation rows, as (value, candidate, model). The first always
    runs to its end; after that, a fit that is cut off by the end of the time does not count."""
    def stop(*_):
        raise OutOfTime

    signal.signal(signal.SIGPROF, stop)
    started, best = clock(), None
    try:
        for candidate in candidates:
            model = fit(candidate)
            value = float(model.score_samples(validation).mean())
            if best is None:
                signal.setitimer(signal.ITIMER_PROF, max(seconds - (clock() - started), 1e-3))
            if best is None or value > best[0]:
                best = (value, candidate, model)
    except OutOfTime:
        pass
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return best


def refit(fit, candidate, train, validation, test):
    """The test log-likelihood of the chosen candidate fitted again to training and validation rows: what a careful user of a
    small table would do."""
    if len(train) + len(validation) + len(test) >= SMALL:
        return {}
    rows = np.concatenate([train, validation])
    return dict(refit=float(fit(candidate, rows).score_samples(test).mean()))


def gmm(train, validation, test, seconds, seed):
    """scikit-learn's mixture: the best of full and diagonal covariances, two regularisations, 1 to 320 components. On more than 3,000
    rows full covariances with the smaller regularisation only, to leave the time to more components."""
    from sklearn.mixture import GaussianMixture
    train, validation, test = (rows.astype(np.float64) for rows in (train, validation, test))
    kinds = [("full", 1e-4)] + ([("full", 1e-2), ("diag", 1e-4)] if len(train) <= 3000 else [])
    candidates = [(k, kind, floor) for k in (1, 2, 3, 5, 8, 12, 20, 40, 80, 160, 320) if 5 * k <= len(train) for kind, floor in kinds]

    def fit(candidate, rows=train):
        k, kind, floor = candidate
        return GaussianMixture(k, covariance_type=kind, reg_covar=floor, random_state=seed, max_iter=300).fit(rows)

    started = clock()
    value, chosen, model = best_within(seconds, candidates, fit, validation)
    again = refit(fit, chosen, train, validation, test)
    answer("gmm", model.score_samples(test), started, validation=value, components=chosen[0], covariance=chosen[1], **again)


def kde(train, validation, test, seconds, seed):
    """scikit-learn's Gaussian kernels: the best of thirteen bandwidths, from the middle outwards. Large tables are cut to what
    can be summed in the time."""
    from sklearn.neighbors import KernelDensity
    train, test = train[:50000], test[:20000]
    bandwidths = (0.28, 0.2, 0.4, 0.14, 0.56, 0.1, 0.8, 0.24, 0.33, 0.17, 0.47, 0.05, 1.1)

    def fit(bandwidth, rows=train):
        return KernelDensity(bandwidth=bandwidth, rtol=1e-3).fit(rows)

    started = clock()
    value, chosen, model = best_within(seconds, bandwidths, fit, validation[:2000])
    again = refit(fit, chosen, train, validation, test)
    answer("kde", model.score_samples(test), started, validation=value, bandwidth=chosen, **again)


def nsf(train, validation, test, seconds, seed):
    """zuko's autoregressive neural spline flow: Adam, cosine schedule over the time, the best of its validations. They are 25 over
    the time and, for small tables, whose best comes early, one at every half power of two of the steps."""
    import torch, zuko
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    started, features, large = clock(), train.shape[1], len(train) > 5000
    hidden = (256, 256) if large else (128, 128)
    flow = zuko.flows.NSF(features, transforms=3 if features < 20 else 5, bins=8, hidden_features=hidden)
    train, validation, test = (torch.from_numpy(rows) for rows in (train, validation, test))
    batch, rate = (256 if large else 64), 1e-3
    optimiser = torch.optim.Adam(flow.parameters(), rate)
    early = {round(2 ** (half / 2)) for half in range(8, 40)}
    best, last, steps = (-math.inf, None, 0), 0.0, 0

    def score(rows):
        with torch.no_grad():
            return torch.cat([flow().log_prob(some) for some in rows.split(5000)])

    def validate(best):
        value = score(validation[:20000]).mean().item()
        return (value, {name: w.clone() for name, w in flow.state_dict().items()}, steps) if value > best[0] else best

    while (elapsed := clock() - started) < seconds:
        for group in optimiser.param_groups:
            group["lr"] = rate * 0.5 * (1 + math.cos(math.pi * elapsed / seconds))
        loss = -flow().log_prob(train[torch.randint(len(train), (batch,))]).mean()
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
        optimiser.step()
        steps += 1
        if elapsed - last > seconds / 25 or (not large and steps in early):
            last, best = elapsed, validate(best)
    best = validate(best)
    flow.load_state_dict(best[1])
    answer("nsf", score(test).numpy(), started, validation=best[0], steps=steps, best_step=best[2])


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("split", "gmm", "kde", "nsf"):
        sys.exit(__doc__)
    command, first, *rest = sys.argv[1:]
    if command == "split":
        print(json.dumps(split(first, rest[0], int(rest[1]) if len(rest) > 1 else 0)))
        return
    parts = [np.load(f"{first}/{name}.npy") for name in ("train", "validation", "test")]
    seconds = float(rest[0]) if rest else 150.0
    {"gmm": gmm, "kde": kde, "nsf": nsf}[command](*parts, seconds, int(rest[1]) if len(rest) > 1 else 0)


if __name__ == "__main__":
    main()
