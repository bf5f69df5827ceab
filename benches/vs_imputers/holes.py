"""What missing cells cost a density whose truth is known: trained on rows with holes, scored on whole ones."""
import shutil

import numpy as np
import pandas as pd

from common import filled_by_mean, log_density, mean_and_error, mixed, print_table, with_holes, zhat


def holes(a):
    rng = np.random.default_rng(a.seed + 1)
    number = a.density_rows
    # As many again as validation and test take, so that so many are trained on.
    table = mixed(int(number / 0.8), rng)
    test = mixed(10_000, rng)
    truth = log_density(test)
    holed, _ = with_holes(table, a.missing, rng)
    test.to_csv(a.cache / "whole_test.csv", index=False)
    whole = holed.dropna()
    rows = []
    for label, part, name in [
        ("all cells", table, "whole"),
        (f"{100 * a.missing:.0f} % of the cells missing, as they are", holed, "holed"),
        (f"rows without missing cells alone ({len(whole)})", whole, "dropped"),
        ("missing cells filled with mean or mode", filled_by_mean(holed, holed), "meaned"),
    ]:
        out, path = a.cache / f"density_{name}", a.cache / f"density_{name}.csv"
        part.to_csv(path, index=False)
        shutil.rmtree(out, ignore_errors=True)
        _, seconds = zhat(a, "fit", path, "--out", out, "--seed", a.seed, "--processor-time", f"{a.seconds:g}s", "--kind",
                          "visits=integer,share=bounded:0:1,amount=continuous")
        zhat(a, "score", out, a.cache / "whole_test.csv", "--out", a.cache / "scores.csv")
        scores = pd.read_csv(a.cache / "scores.csv")["log_density"].to_numpy(float)
        rows.append([label, mean_and_error(truth - scores), f"{seconds:.0f} s"])
    print(f"\nGap to the true log-likelihood, nats a row, on {len(test)} whole rows: {number} rows of the mixed table to learn from\n")
    print_table(["learnt from", "gap", "processor"], rows)
