"""Diagnostics of chains and of weights by ArviZ and by zhat's example `diagnose`, to six digits."""

import pathlib
import subprocess
import sys

import arviz as az
import numpy as np

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "target/release/examples/diagnose"


def autoregressive(rng, rho, chains, draws):
    x = np.zeros((chains, draws))
    x[:, 0] = rng.normal(size=chains)
    for t in range(1, draws):
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1 - rho * rho) * rng.normal(size=chains)
    return x


def cases(rng):
    for rho in (-0.5, 0.0, 0.5, 0.95):
        yield f"autoregressive, {rho}", autoregressive(rng, rho, 4, 1000)
    yield "odd number of draws", autoregressive(rng, 0.3, 3, 501)
    yield "one chain", autoregressive(rng, 0.7, 1, 400)
    yield "heavy tails", rng.standard_cauchy(size=(4, 800))
    yield "ties", np.round(autoregressive(rng, 0.6, 4, 600))
    yield "one chain apart", autoregressive(rng, 0.2, 4, 500) + np.array([[0], [0], [0], [2.0]])
    yield "one chain wide", autoregressive(rng, 0.2, 4, 500) * np.array([[1], [1], [1], [3.0]])


def ours(kind, values):
    text = "\n".join(",".join(repr(float(x)) for x in row) for row in values)
    ran = subprocess.run([PROGRAM, kind], input=text, capture_output=True, text=True, check=True)
    return [float(x) for x in ran.stdout.split()]


def main():
    rng = np.random.default_rng(7)
    worst = 0.0
    names = ["R-hat (rank)", "R-hat (split)", "ESS bulk", "ESS tail", "ESS mean"]
    print(f"{'':28}" + "".join(f"{name:>16}" for name in names) + f"{'largest error':>16}")
    for name, x in cases(rng):
        theirs = [
            az.rhat(x, method="rank"),
            az.rhat(x, method="split"),
            az.ess(x, method="bulk"),
            az.ess(x, method="tail"),
            az.ess(x, method="mean"),
        ]
        theirs = [float(figure) for figure in theirs]
        found = ours("chains", x)
        pairs = list(zip(found, theirs, strict=True))
        if len(x) == 1:
            # ArviZ has no R-hat of one chain; split in two, zhat has.
            assert all(np.isnan(b) for _, b in pairs[:2])
            pairs = pairs[2:]
        error = max(abs(a / b - 1) for a, b in pairs)
        worst = float(np.maximum(worst, error))
        print(f"{name:28}" + "".join(f"{figure:16.6f}" for figure in found) + f"{error:16.1e}")
    for name, scale, number in [("weights, light", 0.3, 1000), ("weights, heavy", 2.0, 1000), ("many", 1.0, 20000)]:
        log_w = scale * rng.normal(size=number)
        _, theirs = az.psislw(log_w.copy())
        [found] = ours("weights", log_w[None, :])
        error = abs(found - float(theirs))
        worst = float(np.maximum(worst, error))
        print(f"{'k-hat, ' + name:28}{found:16.6f}{'':64}{error:16.1e}")
    print(f"largest relative difference {worst:.1e}")
    return 0 if worst < 1e-6 else 1


sys.exit(main())
