"""What all parts of the comparison share: the program, the mixed table by its own formulas, errors, tables to print."""
import json, math, pathlib, resource, subprocess, sys

import numpy as np
import pandas as pd

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
REGIONS = ["north", "east", "south", "west"]
REGION = np.array([0.4, 0.3, 0.2, 0.1])
MEMBER = np.array([0.1, 0.3, 0.6, 0.9])
WORDS, NUMBERS = ["region", "member"], ["visits", "share", "amount"]


def built():
    """The program that `cargo build --release` made."""
    metadata = subprocess.run(["cargo", "metadata", "--format-version", "1", "--no-deps"], cwd=ROOT, capture_output=True,
                              check=True, text=True).stdout
    return pathlib.Path(json.loads(metadata)["target_directory"]) / "release" / "zhat"


def zhat(a, *words):
    """What the program prints, and the processor seconds it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([str(a.program), *map(str, words), "--threads", "1", "--quiet"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"zhat {' '.join(map(str, words))}\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def mixed(rows, rng):
    """Rows of the built-in set of that name, by its own formulas."""
    region = rng.choice(4, rows, p=REGION)
    member = (rng.random(rows) < MEMBER[region]).astype(int)
    visits = rng.binomial(12, 0.1 + 0.15 * region + 0.3 * member)
    share = 1 / (1 + np.exp(-(0.3 * (visits - 5) - member + 0.6 * rng.standard_normal(rows))))
    amount = 50 + 10 * region + 40 * share + (2 + 4 * (region % 2)) * rng.standard_normal(rows)
    return pd.DataFrame(dict(region=np.array(REGIONS)[region], member=np.array(["no", "yes"])[member], visits=visits,
                             share=np.round(share, 6), amount=np.round(amount, 5)))


def log_density(table):
    """The true log-density of rows of it without holes."""
    normal = lambda x, mean, deviation: -0.5 * ((x - mean) / deviation) ** 2 - np.log(deviation) - 0.5 * math.log(2 * math.pi)
    region = np.array([REGIONS.index(word) for word in table["region"]])
    member = (table["member"] == "yes").to_numpy().astype(int)
    visits, share, amount = [table[name].to_numpy(float) for name in NUMBERS]
    chance = 0.1 + 0.15 * region + 0.3 * member
    choose = np.array([math.log(math.comb(12, int(k))) for k in visits])
    of_visits = choose + visits * np.log(chance) + (12 - visits) * np.log(1 - chance)
    odds = np.log(share / (1 - share))
    of_share = normal(odds, 0.3 * (visits - 5) - member, 0.6) - np.log(share * (1 - share))
    of_amount = normal(amount, 50 + 10 * region + 40 * share, 2.0 + 4.0 * (region % 2))
    of_member = np.where(member == 1, MEMBER[region], 1 - MEMBER[region])
    return np.log(REGION[region]) + np.log(of_member) + of_visits + of_share + of_amount


def with_holes(table, share, rng):
    """Cells missing completely at random, but never a whole row."""
    holes = rng.random(table.shape) < share
    whole = holes.all(axis=1)
    holes[whole, rng.integers(table.shape[1], size=whole.sum())] = False
    return table.mask(holes), holes


def filled_by_mean(table, like):
    """What is missing as the mean or the most frequent word of some rows; whole numbers stay whole."""
    table = table.copy()
    for name in table.columns:
        if name.rstrip("0123456789") in WORDS:
            table[name] = table[name].fillna(like[name].mode()[0])
        else:
            mean = like[name].mean()
            table[name] = table[name].fillna(round(mean) if name.startswith("visits") else mean)
    return table


def mean_and_error(values, digits=4):
    return f"{values.mean():.{digits}f} ± {values.std() / math.sqrt(len(values)):.{digits}f}"


def percent_and_error(hits):
    hits = np.asarray(hits, float)
    return f"{100 * hits.mean():.1f} ± {100 * hits.std() / math.sqrt(len(hits)):.1f} %"


def print_table(header, rows):
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, ["-" * width for width in widths], *rows]:
        print("| " + " | ".join(text.ljust(width) for text, width in zip(row, widths)) + " |", flush=True)
