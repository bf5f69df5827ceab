#!/usr/bin/env python3
"""zhat beside scikit-learn where cells are missing and where a column is predicted; prints a table for each part.

Filling: a table as `builtin:mixed` with cells missing completely at random, by zhat and by IterativeImputer (trees), KNNImputer and the mean or
mode. Holes: what they cost the density. Census: how long a wide mixed table takes. Predicting: the density of one column of a CSV file given all
others, by zhat, by gradient boosting with a normal of constant variance, and by gradient boosting of quantiles. One thread each; what it used of
the processor stands beside every figure.
"""
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse, pathlib, sys

from census import fitting
from common import ROOT, built
from filling import filling
from holes import holes
from predicting import predicting


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000, help="rows of the mixed table to learn to fill from; 0 to leave it out")
    parser.add_argument("--test-rows", type=int, default=1_000, help="rows of it to fill")
    parser.add_argument("--missing", type=float, default=0.3, help="share of the cells that are missing")
    parser.add_argument("--density-rows", type=int, default=20_000, help="rows of the mixed table whose density is learnt; 0 to leave it out")
    parser.add_argument("--census-rows", type=int, default=30_000, help="rows of the wide mixed table; 0 to leave it out")
    parser.add_argument("--data", action="append", default=[], metavar="NAME=FILE", help="a CSV file of which a column is predicted")
    parser.add_argument("--target", help="that column; the last, if not given (columns without names are c1, c2, ...)")
    parser.add_argument("--most-rows", type=int, default=50_000, help="rows of it, at most")
    parser.add_argument("--seconds", type=float, default=150, help="processor seconds of zhat's fits")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=pathlib.Path, default=ROOT / "out" / "vs_imputers", help="where tables and runs are kept")
    parser.add_argument("--program", type=pathlib.Path, help="the program, if not the one that cargo built")
    a = parser.parse_args()
    a.program = a.program or built()
    a.cache.mkdir(parents=True, exist_ok=True)
    for given in a.data:
        if not pathlib.Path(given.partition("=")[2]).is_file():
            sys.exit(f"--data {given}: write it as NAME=FILE, with a CSV file that exists")
    if a.rows > 0:
        filling(a)
    if a.density_rows > 0:
        holes(a)
    if a.census_rows > 0:
        fitting(a)
    for given in a.data:
        name, _, path = given.partition("=")
        predicting(a, name, path)


if __name__ == "__main__":
    main()
