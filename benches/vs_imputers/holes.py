"""What missing cells cost a density whose truth is known: trained on rows with holes, scored on whole ones."""
import shutil

import numpy as np
import pandas as pd

from common import filled_by_mean, log_density, mean_and_error, mixed, print_table, with_holes, zhat

KINDS = {"visits": "integer", "share": "bounded:0:1", "amount": "continuous"}


def holes(a):
    # Of five columns one row in six is whole, of ten one in 35.
    for copies in (1, 2):
        of_copies(a, copies)


def of_copies(a, copies):
    """So many independent rows of the mixed table side by side."""
    rng = np.random.default_rng(a.seed + copies)
    number = a.density_rows
    # As many again as validation and test take, so that so many are trained on.
    table, _ = side_by_side(int(number / 0.8), copies, rng)
    test, truth = side_by_side(10_000, copies, rng)
    holed, _ = with_holes(table, a.missing, rng)
    test.to_csv(a.cache / "whole_test.csv", index=False)
    whole = holed.dropna()
    kinds = ",".join(f"{name}{copy}={kind}" for copy in range(copies) for name, kind in KINDS.items())
    rows = []
    for label, part, name in [
        ("all cells", table, "whole"),
        (f"{100 * a.missing:.0f} % of the cells missing, as they are", holed, "holed"),
        (f"rows without missing cells alone ({len(whole)})", whole, "dropped"),
        ("missing cells filled with mean or mode", filled_by_mean(holed, holed), "meaned"),
    ]:
        out, path = a.cache / f"density_{name}{copies}", a.cache / f"density_{name}{copies}.csv"
        part.to_csv(path, index=False)
        shutil.rmtree(out, ignore_errors=True)
        _, seconds = zhat(a, "fit", path, "--out", out, "--seed", a.seed, "--processor-time", f"{a.seconds:g}s", "--kind", kinds)
        zhat(a, "score", out, a.cache / "whole_test.csv", "--out", a.cache / "scores.csv")
        scores = pd.read_csv(a.cache / "scores.csv")["log_density"].to_numpy(float)
        rows.append([label, mean_and_error(truth - scores), f"{seconds:.0f} s"])
    print(f"\nGap to the true log-likelihood, nats a row, on {len(test)} whole rows: {number} rows of {table.shape[1]} columns to learn from\n")
    print_table(["learnt from", "gap", "processor"], rows)


def side_by_side(rows, copies, rng):
    """The rows, and their true log-density."""
    tables = [mixed(rows, rng) for _ in range(copies)]
    named = [table.rename(columns=lambda name: f"{name}{copy}") for copy, table in enumerate(tables)]
    return pd.concat(named, axis=1), sum(log_density(table) for table in tables)
