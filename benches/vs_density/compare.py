#!/usr/bin/env python3
"""zhat and what a user would take instead, on the same splits for the same processor seconds; prints one table.

A row is a data set with a budget, a column a model. A cell is the mean test log-likelihood over the seeds of the split, in
nats per row of standardised data, its standard error over the seeds, in brackets the standard error over the test rows (mean
over the seeds), and the processor seconds that the whole process really used. Every model has one thread and the same rows.
`--choices` fits zhat's default and its neighbours that differ in one choice instead, and `--step` times a training step against
the PyTorch prototype's.
"""
import argparse, concurrent.futures, hashlib, json, os, pathlib, shutil, statistics, subprocess, sys

import density_peers

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PEERS = ["gmm", "kde", "nsf"]
# Features, batch and the preset of zhat with that many features.
STEP_SHAPES = [(6, 256, "power"), (21, 256, "hepmass"), (43, 128, "miniboone")]
# Negatives that zhat's gradient goes back through beside the data point: all of them, as the prototype's does, or so many drawn by their
# weights, as `zhat fit` does where it trains an energy.
DRAWN = [0, 3]
# What a choice is called, and the settings in which it differs from the default. An energy is trained by a criterion of its own.
CHOICES = {
    "the default": [],
    "one network": ["model.members=1"],
    "one network, stagewise": ["model.members=1", "model.waves=0", "model.conditioner=stagewise"],
    "spline head": ["model.head=spline"],
    "both heads": ["model.head=both"],
    "no waves": ["model.waves=0"],
    "no dropout": ["model.dropout=0"],
    "no mixtures beside": ["validation.stack-mixtures=false"],
    "mixture trained along": ["validation.stack-mixtures=false", "model.gaussian-mixture=true"],
    "not recalibrated": ["validation.recalibrate=false"],
    "standard units": ["data.marginals=standard"],
    "normal scores": ["data.marginals=gaussian"],
    "tilt trained (RNCE)": ["step.criterion=rnce"],
    "free energy (RNCE)": ["step.criterion=rnce", "model.energy-form=free"],
    "one Z for a row (SMC-RNCE)": ["step.criterion=smc-rnce", "model.normalisation=global"],
}


def target_directory():
    metadata = subprocess.run(["cargo", "metadata", "--format-version", "1", "--no-deps"], cwd=ROOT,
                              capture_output=True, check=True, text=True).stdout
    return pathlib.Path(json.loads(metadata)["target_directory"])


PROGRAM = target_directory() / "release" / "zhat"


def run(command):
    """The JSON document that a command prints, and the processor seconds of its whole process."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    child = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=environment)
    with concurrent.futures.ThreadPoolExecutor(1) as reader:
        errors = reader.submit(child.stderr.read)
        text = child.stdout.read()
        errors = errors.result()
    # wait4 gives the usage of this child alone, also when several run at the same time.
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{errors.strip()[-2000:]}")
    return json.loads(text), usage.ru_utime + usage.ru_stime


def short_hash(*contents):
    digest = hashlib.sha256()
    for content in contents:
        digest.update(content)
    return digest.hexdigest()[:12]


def version(model):
    """What a stored result depends on besides data, seed and seconds. zhat: the last commit that changed its source, with a hash
    of what is not committed. A competitor: its script."""
    if model != "zhat":
        return short_hash((HERE / "density_peers.py").read_bytes())
    source = ["--", "crates", "Cargo.toml", "Cargo.lock"]

    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=True).stdout

    commit = git("log", "-1", "--format=%h", *source).decode().strip()
    changes = git("diff", "HEAD", *source)
    return f"{commit}+{short_hash(changes)}" if changes else commit


def zhat_fit(directory, rows, seconds, seed, out, settings=()):
    """How `zhat fit` is called and what is read from its answer. The rows are in the order training, validation, test, and zhat cuts
    the last ones off, by shares that are rounded to rows: its parts are exactly the split's."""
    share = {part: rows[part] / rows["all"] for part in ("validation", "test")}
    shutil.rmtree(out, ignore_errors=True)
    answer, used = run([PROGRAM, "fit", directory / "all.npy", "--set", "data.split.order=last",
                        "--set", f"data.split.validation={share['validation']!r}", "--set", f"data.split.test={share['test']!r}",
                        "--seed", seed, "--threads", 1, "--processor-time", f"{seconds:g}s", "--out", out, "--json", "--quiet",
                        *[word for setting in settings for word in ("--set", setting)]])
    parts = [rows["train"], rows["validation"], rows["test"]]
    if answer["rows"] != parts:
        raise RuntimeError(f"zhat's parts have {answer['rows']} rows, the split's {parts}")
    test = answer["test"]
    trusted = answer["verdict"]["trusted"]
    atoms = sum(bool(kind.get("atoms")) for kind in json.loads((out / "model.json").read_text()).get("kinds", []))
    return dict(test=test["log_likelihood"], se=test["se_test"], base=test["proposal_log_likelihood"],
                base_se=test["proposal_se_test"], trusted=trusted, atoms=atoms, used=used)


def zhat_step(preset, batch, drawn):
    """How `zhat bench` is called for the masked, tilted, locally normalised step with the prototype's shapes: mixture head with 10
    components, conditioner of 2 blocks of 256, context 32, energy of 2 blocks of 64, 10 negatives; with so many of them drawn for the
    gradient, or all (0)."""
    settings = ["model.conditioner=masked", "model.energy-form=tilted", "model.normalisation=local", "model.head=mixture",
                "model.scales=exponential", "model.dropout=0.0", "model.context=32", "model.mixture-components=10",
                "model.proposal.width=256", "model.proposal.blocks=2", "model.energy.width=64", "model.energy.blocks=2",
                "model.energy.activation=elu", f"step.num-drawn={drawn}"]
    return [PROGRAM, "bench", "--preset", preset, "--batch", batch, "--negatives", 10, "--threads", 1, "--steps", 15, "--json",
            *[word for setting in settings for word in ("--set", setting)]]


def fit(model, directory, rows, seconds, seed, out, settings):
    if model == "zhat":
        return zhat_fit(directory, rows, seconds, seed, out, settings)
    answer, used = run([sys.executable, HERE / "density_peers.py", model, directory, f"{seconds:g}", seed])
    return dict(answer, used=used)


class Cache:
    """Results as JSON lines, so that an interrupted run goes on where it was."""

    def __init__(self, path):
        self.path, self.results = path, {}
        text = path.read_text() if path.exists() else ""
        # A last line without an end was cut off by an interruption.
        whole = text[:text.rfind("\n") + 1]
        if whole != text:
            path.write_text(whole)
        for record in map(json.loads, whole.splitlines()):
            self.results[self.key(record["job"])] = record["result"]

    @staticmethod
    def key(job):
        return json.dumps(job, sort_keys=True)

    def get(self, job):
        return self.results.get(self.key(job))

    def put(self, job, result):
        self.results[self.key(job)] = result
        with self.path.open("a") as file:
            file.write(json.dumps(dict(job=job, result=result)) + "\n")


def mean_and_error(values):
    """The error of a single value is unknown."""
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else None
    return statistics.fmean(values), error


def shown(values):
    mean, error = mean_and_error(values)
    return f"{mean:.3f}" + ("" if error is None else f" ± {error:.3f}")


def cell(results, value="test", error="se", with_seconds=True):
    if not results or None in results:
        return "failed" if results else "-"
    text = f"{shown([r[value] for r in results])} ({statistics.fmean(r[error] for r in results):.3f})"
    if with_seconds:
        text += f" {statistics.fmean(r['used'] for r in results):.0f} s"
    distrusted = sum(not r.get("trusted", True) for r in results)
    atoms = max(r.get("atoms", 0) for r in results)
    return text + (f", {distrusted} not trusted" if distrusted else "") + (f", atoms in {atoms} columns" if atoms else "")


def difference(found):
    """zhat minus the best of the competitors, seed by seed: the splits' own differences cancel."""
    complete = {m: r for m, r in found.items() if r and None not in r}
    peers = [m for m in PEERS if m in complete]
    if "zhat" not in complete or not peers:
        return "-"
    best = max(peers, key=lambda m: statistics.fmean(r["test"] for r in complete[m]))
    gaps = [ours["test"] - theirs["test"] for ours, theirs in zip(complete["zhat"], complete[best])]
    return f"{shown(gaps)} ({best})"


def print_table(header, rows):
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, ["-" * width for width in widths], *rows]:
        print("| " + " | ".join(text.ljust(width) for text, width in zip(row, widths)) + " |")


def splits(a):
    """Name, seed, directory, rows, hash and budgets of every split of every table."""
    sources = {name: name for name in a.sets}
    for given in a.data:
        name, _, path = given.partition("=")
        if not path or not pathlib.Path(path).is_file():
            sys.exit(f"--data {given}: write it as NAME=FILE, with a CSV or NPY file that exists")
        sources[name] = path
    for name, source in sources.items():
        for seed in range(a.seeds):
            directory = a.cache / "splits" / f"{name}-{seed}"
            rows = density_peers.split(source, str(directory), seed)
            data = f"{name} {short_hash((directory / 'all.npy').read_bytes())}"
            yield name, seed, directory, rows, data, [a.small_seconds] if rows["all"] < density_peers.SMALL else a.seconds


def fit_all(a, jobs):
    """Does the jobs that are not stored yet, each a description with a function and its arguments; the cache with all of them."""
    cache = Cache(a.cache / "results.jsonl")
    missing = [entry for entry in jobs if cache.get(entry[0]) is None]
    print(f"{len(jobs)} fits, {len(jobs) - len(missing)} of them stored in {cache.path}", file=sys.stderr)
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        running = {pool.submit(function, *arguments): job for job, function, arguments in missing}
        try:
            for number, done in enumerate(concurrent.futures.as_completed(running), 1):
                job = running[done]
                model = job.get("choice", job["model"])
                what = f"[{number}/{len(missing)}] {model}, {job['data']}, seed {job['seed']}, {job['seconds']:g} s:"
                try:
                    result = done.result()
                except (RuntimeError, json.JSONDecodeError) as error:
                    print(f"{what} failed\n{error}", file=sys.stderr, flush=True)
                    continue
                cache.put(job, result)
                print(f"{what} {result['test']:.3f} after {result['used']:.0f} s", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise
    return cache


def densities(a):
    versions = {model: version(model) for model in a.only}
    jobs, line_of = [], []
    for name, seed, directory, rows, data, budgets in splits(a):
        for seconds in budgets:
            for model in a.only:
                job = dict(model=model, version=versions[model], data=data, seed=seed, seconds=seconds)
                if model == "zhat" and a.settings:
                    job["settings"] = a.settings
                out = a.cache / "runs" / f"{name}-{seed}-{seconds:g}-{versions[model]}"
                jobs.append((job, fit, (model, directory, rows, seconds, seed, out, a.settings)))
                line_of.append((name, rows["all"], seconds))
    cache, lines = fit_all(a, jobs), {}
    for line, (job, *_) in zip(line_of, jobs):
        lines.setdefault(line, {}).setdefault(job["model"], []).append(cache.get(job))
    table, again = [], []
    for (name, rows, seconds), found in lines.items():
        base = cell(found.get("zhat"), "base", "base_se", False)
        columns = [cell(found.get("zhat")), base, *[cell(found.get(model)) for model in PEERS], difference(found)]
        table.append([f"{name}, {rows} rows", f"{seconds:g} s", *columns])
        for model in PEERS:
            values = [r["refit"] for r in found.get(model, []) if r and "refit" in r]
            if values:
                again.append(f"  {name}: {model} {shown(values)}")
    print_table(["data", "budget", "zhat", "its base", *PEERS, "zhat - best other"], table)
    if again:
        print("\nThe same choice fitted again to training and validation rows:", *again, sep="\n")
    return all(cache.get(job) is not None for job, *_ in jobs)


def choices(a):
    """What each choice of zhat's default is worth: the default and its neighbours, on the same split for the same time."""
    jobs, line_of, source = [], [], version("zhat")
    for name, seed, directory, rows, data, budgets in splits(a):
        for choice, settings in CHOICES.items():
            job = dict(model="zhat", version=source, choice=choice, settings=settings, data=data, seed=seed, seconds=budgets[0])
            out = a.cache / "runs" / f"{name}-{seed}-{budgets[0]:g}-choice-{len(jobs)}"
            jobs.append((job, zhat_fit, (directory, rows, budgets[0], seed, out, settings)))
            line_of.append((name, rows["all"], budgets[0]))
    cache, lines = fit_all(a, jobs), {}
    for line, (job, *_) in zip(line_of, jobs):
        lines.setdefault(line, {}).setdefault(job["choice"], []).append(cache.get(job))
    for (name, rows, seconds), found in lines.items():
        print(f"\n{name}, {rows} rows, {seconds:g} s")
        table = []
        for choice, results in found.items():
            complete = None not in results and None not in found["the default"]
            gaps = [ours["test"] - default["test"] for ours, default in zip(results, found["the default"])] if complete else None
            table.append([choice, " ".join(CHOICES[choice]), cell(results), shown(gaps) if gaps else "-"])
        print_table(["choice", "settings", "test nats a row", "minus the default"], table)
        if a.figure and None not in sum(found.values(), []):
            draw(found, f"{name}: test nats a row after {seconds:g} processor seconds", a.figure)
    return all(cache.get(job) is not None for job, *_ in jobs)


def draw(found, title, path):
    """A dot for every choice and split, and a line where the default is."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 0.3 * len(found) + 1.2), layout="constrained")
    for place, (choice, results) in enumerate(found.items()):
        axes.plot([r["test"] for r in results], [place] * len(results), "o", color="black" if place == 0 else "tab:blue")
    axes.axvline(statistics.fmean(r["test"] for r in found["the default"]), color="grey", linewidth=0.8)
    axes.set_yticks(range(len(found)), list(found))
    axes.invert_yaxis()
    axes.set_xlabel(title)
    figure.savefig(path, dpi=110)


def steps(a):
    rows = []
    for features, batch, preset in STEP_SHAPES:
        ours, theirs = {drawn: [] for drawn in DRAWN}, []
        for _ in range(a.rounds):
            for drawn, seconds in ours.items():
                found = run(zhat_step(preset, batch, drawn))[0]
                if (found["features"], found["batch"]) != (features, batch):
                    sys.exit(f"zhat bench measured {found['features']} features and a batch of {found['batch']}, not {features} and {batch}")
                seconds.append(found["median_seconds"])
            prototype = [sys.executable, HERE / "torch_local_tilted.py", "--steps-per-second", features, "--batch", batch]
            theirs.append(run(prototype)[0]["median_seconds"])
        for drawn, seconds in ours.items():
            ratios = [t / o for o, t in zip(seconds, theirs)]
            rows.append([f"D={features} B={batch}", f"{drawn} drawn" if drawn else "all", f"{statistics.median(seconds):.4f}",
                         f"{statistics.median(theirs):.4f}", f"{statistics.median(ratios):.2f}x ({min(ratios):.2f}-{max(ratios):.2f})"])
    print_table(["shapes", "negatives in zhat's gradient", "zhat s", "torch s", "ratio"], rows)
    return True


def main():
    def words(text):
        return [word for word in text.split(",") if word]

    def numbers(text):
        return [float(word) for word in words(text)]

    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seeds", type=int, default=3, help="splits of every data set (default 3)")
    p.add_argument("--seconds", type=numbers, default=[150.0, 600.0], help="budgets in processor seconds (default 150,600)")
    p.add_argument("--small-seconds", type=float, default=60.0, help="budget of tables below 1,000 rows (default 60)")
    p.add_argument("--sets", type=words, default=list(density_peers.BUILT_IN), help="scikit-learn's sets (default all four; '' for none)")
    p.add_argument("--data", action="append", default=[], metavar="NAME=FILE", help="one more table, CSV or NPY; may be repeated")
    p.add_argument("--only", type=words, default=["zhat", *PEERS], help="models to run (default zhat,gmm,kde,nsf)")
    p.add_argument("--set", action="append", default=[], dest="settings", metavar="NAME=VALUE", help="a setting of zhat's fits; may be repeated")
    p.add_argument("--jobs", type=int, default=1, help="fits at the same time, each with one thread (default 1)")
    p.add_argument("--cache", type=pathlib.Path, default=ROOT / "out" / "vs_density", help="where splits, runs and results are kept")
    p.add_argument("--choices", action="store_true", help="fit zhat's default and its neighbours that differ in one choice instead")
    p.add_argument("--figure", type=pathlib.Path, metavar="FILE", help="where --choices draws them (needs matplotlib)")
    p.add_argument("--step", action="store_true", help="time the training step against the PyTorch prototype's instead")
    p.add_argument("--rounds", type=int, default=3, help="rounds of --step (default 3)")
    a = p.parse_args()
    for option, given, known in [("--sets", a.sets, density_peers.BUILT_IN), ("--only", a.only, ["zhat", *PEERS])]:
        if unknown := [word for word in given if word not in known]:
            p.error(f"{option}: {unknown[0]} is none of {', '.join(known)}")
    if (a.step or "zhat" in a.only) and not PROGRAM.is_file():
        sys.exit(f"{PROGRAM} is not there: cargo build --release --workspace, or start this by run.sh")
    try:
        a.cache.mkdir(parents=True, exist_ok=True)
        complete = (steps if a.step else choices if a.choices else densities)(a)
    except RuntimeError as error:
        sys.exit(str(error))
    sys.exit(0 if complete else 1)


if __name__ == "__main__":
    main()
