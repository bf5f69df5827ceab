"""A table like the census's of adults, 14 columns of words, whole numbers and amounts with many zeros: how long a fit takes by itself."""
import json, shutil

import numpy as np
import pandas as pd

from common import print_table, zhat


def census(rows, rng):
    """Every column depends on some before it; the words are many, some of them rare, and 5 % of two columns are missing."""
    pick = lambda prefix, scores: np.array([f"{prefix}{at}" for at in range(scores.shape[1])])[(scores + rng.gumbel(size=scores.shape)).argmax(1)]
    age = np.clip(np.round(17 + rng.gamma(3.0, 7.5, rows)), 17, 90).astype(int)
    schooling = np.clip(np.round(10 + 2.5 * rng.standard_normal(rows) - 0.02 * (age - 40)), 1, 16).astype(int)
    sex = np.where(rng.random(rows) < 0.67, "male", "female")
    logits = lambda number, *parts: sum(np.outer(part, rng.normal(size=number)) for part in parts) - 0.35 * np.arange(number)
    centred = [(age - 38) / 13, (schooling - 10) / 2.5, (sex == "male") - 0.67]
    status = pick("status-", logits(7, *centred))
    work = pick("work-", logits(8, *centred[:2]))
    job = pick("job-", logits(14, *centred))
    relation = pick("relation-", logits(6, *centred) + 2.0 * np.equal.outer(np.char.replace(status, "status-", "").astype(int) % 6, np.arange(6)))
    origin = pick("origin-", -0.9 * np.arange(5.0) + np.zeros((rows, 5)))
    country = pick("country-", np.r_[0.0, -3.0 - 0.1 * np.arange(39)] + np.zeros((rows, 40)))
    hours = np.clip(np.where(rng.random(rows) < 0.45, 40, np.round(40 + 3 * centred[1] + 11 * rng.standard_normal(rows))), 1, 99).astype(int)
    weight = np.round(np.exp(12 + 0.5 * rng.standard_normal(rows)))
    gain = np.where(rng.random(rows) < 0.06 + 0.05 * (schooling > 12), np.round(np.exp(8.5 + rng.standard_normal(rows))), 0)
    loss = np.where(rng.random(rows) < 0.05, np.round(1870 + 370 * rng.standard_normal(rows)), 0)
    rich = np.where(rng.random(rows) < 1 / (1 + np.exp(1.6 - 0.7 * centred[1] - 0.5 * centred[0] - 1.0 * centred[2] - (gain > 0))), "yes", "no")
    table = pd.DataFrame(dict(age=age, work=work, weight=weight, schooling=schooling, status=status, job=job, relation=relation,
                              origin=origin, sex=sex, gain=gain, loss=loss, hours=hours, country=country, rich=rich))
    for name in ("work", "job"):
        table.loc[rng.random(rows) < 0.05, name] = np.nan
    return table


def fitting(a):
    table = census(a.census_rows, np.random.default_rng(a.seed))
    table.to_csv(a.cache / "census.csv", index=False)
    rows = []
    for label, part in [("as it is, 5 % of two columns missing", table), ("rows without missing cells", table.dropna())]:
        part.to_csv(a.cache / "census.csv", index=False)
        shutil.rmtree(a.cache / "census", ignore_errors=True)
        text, seconds = zhat(a, "fit", a.cache / "census.csv", "--out", a.cache / "census", "--seed", a.seed, "--json")
        found = json.loads(text)["test"]
        rows.append([label, str(len(part)), f"{found['log_likelihood']:.3f} ± {found['se_test']:.3f}", f"{seconds:.0f} s"])
    print("\nA table of 14 mixed columns, `zhat fit` without any setting\n")
    print_table(["", "rows", "test log-likelihood", "processor"], rows)
