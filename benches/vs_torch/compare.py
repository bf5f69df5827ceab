#!/usr/bin/env python3
"""Runs the PyTorch peer and `zhat bench` in turns and prints the ratios of their seconds per step.

Both train the same networks with the same criterion on the same shapes, with 2 threads. A round runs zhat, PyTorch with
2 threads, zhat again, and PyTorch as 2 processes of 1 thread; a ratio compares two neighbours, so that both saw the same
machine. The table gives the median ratio over the rounds, and the smallest and largest.
"""
import argparse, json, pathlib, statistics, subprocess, sys

HERE = pathlib.Path(__file__).resolve().parent
SHAPES = [("power", 6, 512, 0.1), ("miniboone", 43, 32, 0.5), ("miniboone", 43, 128, 0.5)]
CRITERIA = ["rnce", "smc-rnce"]


def target_directory():
    metadata = subprocess.run(["cargo", "metadata", "--format-version", "1", "--no-deps"],
                              capture_output=True, check=True, text=True).stdout
    return pathlib.Path(json.loads(metadata)["target_directory"])


def run(command):
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    a = parser.parse_args()
    program = target_directory() / "release" / "zhat"
    print(f"{'shapes':24} {'criterion':9} {'zhat s':>8} {'torch s':>8} {'ratio':>20} {'2 proc s':>8} {'ratio':>20} "
          f"{'GEMM':>5} {'MB':>4} {'MB torch':>8}")
    for preset, features, batch, dropout in SHAPES:
        for criterion in CRITERIA:
            zhat = [str(program), "bench", "--preset", preset, "--criterion", criterion, "--batch", str(batch),
                    "--threads", "2", "--steps", str(a.steps), "--json"]
            torch = [sys.executable, str(HERE / "torch_ar_ebm.py"), "--features", str(features), "--batch", str(batch),
                     "--dropout", str(dropout), "--criterion", criterion, "--steps", str(a.steps)]
            seconds, shares, peers, ratios = [], [], ([], []), ([], [])
            for _ in range(a.rounds):
                for which, extra in enumerate([[], ["--processes", "2"]]):
                    ours, theirs = run(zhat), run(torch + extra)
                    seconds.append(ours["median_seconds"])
                    shares.append(ours["gemm_share"])
                    peers[which].append(theirs["median_seconds"])
                    ratios[which].append(theirs["median_seconds"] / ours["median_seconds"])
                    if which == 0:
                        memory = theirs["peak_memory_mb"]
            shown = [f"{statistics.median(r):.2f}x ({min(r):.2f}-{max(r):.2f})" for r in ratios]
            print(f"{f'{preset} D={features} B={batch}':24} {criterion:9} {statistics.median(seconds):8.3f} "
                  f"{statistics.median(peers[0]):8.3f} {shown[0]:>20} {statistics.median(peers[1]):8.3f} {shown[1]:>20} "
                  f"{statistics.median(shares):5.0%} {ours['peak_memory_mb']:4.0f} {memory:8.0f}", flush=True)


if __name__ == "__main__":
    main()
