#!/usr/bin/env python3
"""zhat from Python beside the program: processor seconds of the same fit with its page, and memory that a frame of a million rows takes.

    pip install . pandas && python benches/vs_program/compare.py

Both are of the environment that runs this, where `pip install .` puts the package and the program.
"""
import argparse, json, os, pathlib, statistics, subprocess, sys, tempfile

import numpy as np

STEPS, ROWS, COLUMNS = 400, 20_000, 6
# Networks as small as those of the small frame, so that what differs is the rows.
SAME = dict(
    steps=3, n_jobs=1, random_state=0,
    model={"members": 1, "proposal": {"width": 64, "blocks": 2}},
    validation={"stack-mixtures": False, "rows": 2000}, training={"batch-size": 256},
)


def run(command):
    """What a command prints, and the processor seconds of its whole process."""
    child = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    text = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed")
    return text, usage.ru_utime + usage.ru_stime


def by_python(rows, out):
    """Fits and draws the page as the program does, and prints the processor seconds of that, without those of imports."""
    import time

    import sklearn.utils  # noqa: F401  zhat imports it when it is first needed.
    import zhat

    density = zhat.Density(steps=STEPS, n_jobs=1, random_state=0, out=out)
    started = time.process_time()
    density.fit(np.load(rows)).report()
    print(time.process_time() - started)


def status(key):
    line = next(line for line in open("/proc/self/status") if line.startswith(key))
    return int(line.split()[1]) / 1024


def frame(rows):
    """Megabytes of a frame, and by how many more than before the peak of a fit of it is."""
    import pandas as pd

    import zhat

    table = pd.DataFrame(np.random.default_rng(0).normal(size=(rows, COLUMNS)), columns=list("abcdef"))
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # The peak from here on.
    before = status("VmRSS")
    zhat.Density(**SAME).fit(table)
    print(json.dumps([table.memory_usage(index=False).sum() / 2**20, status("VmHWM") - before]))


def compare(pairs):
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        rows, itself = directory / "rows.npy", [sys.executable, __file__]
        x = np.random.default_rng(0).normal(size=(ROWS, COLUMNS)).cumsum(axis=1)
        np.save(rows, x.astype(np.float32))
        program, ratios = pathlib.Path(sys.executable).parent / "zhat", []
        for pair in range(pairs):
            ours, theirs = directory / f"python-{pair}", directory / f"program-{pair}"
            _, of_program = run([program, "fit", rows, "--steps", STEPS, "--threads", 1, "--seed", 0, "--quiet", "--out", theirs])
            of_python = float(run([*itself, "--python", rows, ours])[0].split()[-1])
            sums = [json.loads((run / "model.json").read_text())["weights_sha256"] for run in (ours, theirs)]
            ratios.append(of_python / of_program)
            same = "the same weights" if sums[0] == sums[1] else "OTHER WEIGHTS"
            print(f"fit and page: Python {of_python:.1f} s, program {of_program:.1f} s of the processor, {ratios[-1]:.3f}; {same}", flush=True)
        print(f"median {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
        found = [json.loads(run([*itself, "--frame", rows])[0]) for rows in (20_000, 1_000_000)]
        for size, more in found:
            print(f"a frame of {size:.1f} MB: a fit takes {more:.0f} MB more than there were")
        added = (found[1][1] - found[0][1]) / (found[1][0] - found[0][0])
        print(f"so what the rows of the large one take is {added:.2f} of its size; the rest is networks and their tiles")


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--pairs", type=int, default=3, help="fits by both (default 3)")
    p.add_argument("--python", nargs=2, help=argparse.SUPPRESS)
    p.add_argument("--frame", type=int, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.python:
        by_python(*a.python)
    elif a.frame:
        frame(a.frame)
    else:
        compare(a.pairs)
