"""The density of arrays and frames: what comes in comes back, and the program has the same bits."""

import copy
import json
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import STEPS

import zhat


def command(*arguments):
    """The program of the wheel."""
    return subprocess.run([sys.executable, "-m", "zhat", *map(str, arguments)], capture_output=True, text=True)


def test_scores_are_densities_and_draws_are_like_the_data(fitted, numbers):
    scores = fitted.score_samples(numbers)
    assert scores.shape == (1200,) and scores.dtype == np.float64
    assert fitted.score(numbers) == pytest.approx(scores.mean())
    draws = fitted.sample(3000)
    assert draws.shape == (3000, 2)
    # The standard error of a correlation of 0.86 over 3,000 draws is 0.005; the model was trained for 40 steps.
    assert np.corrcoef(draws.T)[0, 1] == pytest.approx(np.corrcoef(numbers.T)[0, 1], abs=0.15)


def test_the_density_integrates_to_one(fitted):
    grid = np.linspace(-6, 6, 121)
    rows = np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2)
    assert np.exp(fitted.score_samples(rows)).sum() * 0.1**2 == pytest.approx(1, abs=0.02)


def test_the_program_has_the_same_bits(fitted, numbers, tmp_path):
    np.save(tmp_path / "rows.npy", numbers)
    out = tmp_path / "run"
    done = command("fit", tmp_path / "rows.npy", "--steps", STEPS, "--out", out, "--quiet")
    assert done.returncode == 0, done.stderr
    of_program = zhat.Density.load(out)
    assert np.array_equal(of_program.score_samples(numbers), fitted.score_samples(numbers))
    assert of_program.results_["test"] == fitted.results_["test"]
    # And the other way round: a model of Python is scored by the program.
    saved = fitted.save(tmp_path / "saved")
    scores = tmp_path / "scores.npy"
    assert command("score", saved, tmp_path / "rows.npy", "--out", scores).returncode == 0
    assert np.array_equal(np.load(scores).ravel(), fitted.score_samples(numbers))
    refused = command("evaluate", saved)
    assert refused.returncode == 2 and "in memory" in refused.stderr


def test_a_frame_and_its_file_have_the_same_bits(frame, fitted_frame, tmp_path):
    frame.to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / "run"
    said = ["--kind", "region=categorical"]
    done = command("fit", tmp_path / "rows.csv", "--steps", STEPS, "--out", out, "--quiet", *said)
    assert done.returncode == 0, done.stderr
    of_program = zhat.Density.load(out)
    ours, theirs = fitted_frame.score_samples(frame), of_program.score_samples(frame)
    assert np.array_equal(ours, theirs)


def test_a_device_that_is_not_built_in_names_its_feature(numbers):
    with pytest.raises(ValueError, match="device is cuda, but must be cpu: this build has no cuda"):
        zhat.Density(steps=STEPS, device="cuda").fit(numbers)
    with pytest.raises(ValueError, match="one of cpu, vulkan"):
        zhat.Density(steps=STEPS, device="gpu").fit(numbers)


def test_threads_change_nothing(fitted, numbers):
    one = zhat.Density(steps=STEPS, n_jobs=1).fit(numbers)
    assert np.array_equal(one.score_samples(numbers), fitted.score_samples(numbers))


def test_frames_come_back_with_names_and_types(frame, fitted_frame):
    draws = fitted_frame.sample(50)
    assert list(draws.columns) == list(frame.columns)
    assert draws.dtypes.astype(str).to_dict() == frame.dtypes.astype(str).to_dict()
    assert set(draws["word"]) <= {"tall", "short", "other"}
    assert draws["region"].cat.categories[:3].tolist() == ["north", "east", "west"]
    assert (draws["weight"] == draws["weight"].round(1)).all() and draws["height"].nunique() == 50
    assert draws["born"].between("1985-01-01", "2020-01-01").all()
    given = fitted_frame.sample(20, given={"region": "north", "children": 2})
    assert (given["region"] == "north").all() and (given["children"] == 2).all()


def test_holes_are_filled_and_nothing_else_changes(frame, fitted_frame):
    filled = fitted_frame.impute(frame)
    assert not filled.isna().any().any()
    assert filled.dtypes.astype(str).to_dict() == frame.dtypes.astype(str).to_dict()
    untouched = frame.notna()
    for name in frame:
        assert (filled[name][untouched[name]] == frame[name][untouched[name]]).all(), name
    found = fitted_frame.impute(frame, fill="draw", copies=3, quantiles=[0.1, 0.9])
    assert len(found.filled) == 3
    assert found.quantiles[0.1]["weight"][3] <= found.quantiles[0.9]["weight"][3]
    assert np.isnan(found.effective_sample_size[0]) and found.effective_sample_size[3] > 1


def test_columns_explain_a_row(frame, fitted_frame, fitted, numbers):
    parts = fitted.explain(numbers[:20])
    assert np.allclose(parts.sum(1), fitted.score_samples(numbers[:20]), atol=1e-4)
    whole = frame.dropna().iloc[:5]
    assert list(fitted_frame.explain(whole).columns) == list(frame.columns)
    assert (fitted_frame.explain(whole).index == whole.index).all()


def test_evaluate_judges_own_and_other_rows(fitted, numbers):
    found = fitted.evaluate(particles=2000, estimates=4)
    assert found["log_likelihood"] == pytest.approx(fitted.log_likelihood_, abs=0.01)
    assert set(found["verdict"]) >= {"trusted"}
    assert fitted.evaluate(numbers[:100], particles=2000, estimates=4)["rows"] == 100


def test_a_pickled_model_has_the_same_bits(fitted_frame, frame):
    for again in (pickle.loads(pickle.dumps(fitted_frame)), copy.deepcopy(fitted_frame)):
        assert np.array_equal(again.score_samples(frame), fitted_frame.score_samples(frame))
        assert again.sample(5).equals(fitted_frame.sample(5))
    with pytest.raises(ValueError, match="give them as X"):
        again.resume()


def test_a_saved_model_remembers_types(fitted_frame, frame, tmp_path):
    again = zhat.Density.load(fitted_frame.save(tmp_path / "model"))
    assert again.sample(5).dtypes.astype(str).to_dict() == frame.dtypes.astype(str).to_dict()
    assert again.report(tmp_path / "page.html", frame).read_text().startswith("<!")
    with pytest.raises(ValueError, match="not empty"):
        fitted_frame.save(tmp_path / "model")


def test_errors_name_row_and_column(numbers, fitted):
    bad = numbers.copy()
    bad[41, 1] = np.inf
    with pytest.raises(ValueError, match=r"row index 41, column 2 \(column_2\).*infinite"):
        zhat.Density(steps=5).fit(bad)
    with pytest.raises(ValueError, match=r"row index 41, column 2"):
        fitted.score_samples(bad)
    with pytest.raises(ValueError, match=r"row index 41, column 2"):
        fitted.score_samples(bad.astype(np.float32))
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="column lag has values of type timedelta"):
        zhat.Density().fit(pd.DataFrame({"a": numbers[:, 0], "lag": pd.to_timedelta(numbers[:, 1])}))
    with pytest.raises(ValueError, match="num-steps|steps"):
        zhat.Density(training={"num-steps": -1}).fit(numbers)
    with pytest.raises(ValueError, match="no-such"):
        zhat.Density(training={"no-such": 1}).fit(numbers)
    with pytest.raises(ValueError, match="holds a run|not there|no config"):
        zhat.Density.load("/nonexistent")


INTERRUPTED = """
import _thread, signal, threading, time, numpy as np, zhat
# What runs in the background of a shell ignores it, and would not end.
signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(1)
first = rng.normal(size=1200)
X = np.column_stack([first, 0.5 * first + 0.3 * rng.normal(size=1200)])
# It would not end by itself.
density = zhat.Density(steps=1_000_000, training={"checkpoint-every": 20, "patience": 0})
def seconds_to_stop(work):
    struck = []
    def strike():
        struck.append(time.monotonic())
        _thread.interrupt_main()
    threading.Timer(2, strike).start()
    try:
        work()
    except KeyboardInterrupt:
        return time.monotonic() - struck[0]
    raise SystemExit("it was not interrupted")
print(min(seconds_to_stop(work) for work in (lambda: density.fit(X), density.resume, density.resume)))
# What was learnt is kept.
density.resume(max_time=0)
print(density.results_["steps"])
print(density.score(X))
"""


def test_ctrl_c_stops_soon_keeps_what_was_learnt_and_resumes():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    seconds, steps, score = map(float, done.stdout.split())
    assert 0 < steps < 1_000_000
    assert np.isfinite(score)
    # The quickest of three: the machine may be busy with something else.
    assert seconds < 1


def test_a_resumed_fit_ends_in_the_same_bits(numbers, tmp_path):
    settings = dict(steps=120, training={"checkpoint-every": 10})
    whole = zhat.Density(**settings).fit(numbers)

    class Stop(Exception):
        pass

    density = zhat.Density(**settings)
    told = []

    def stop(event):
        told.append(event)
        if event["event"] == "validation":
            raise Stop

    density._told = stop
    with pytest.raises(Stop):
        density.fit(numbers)
    del density._told
    density.resume()
    assert np.array_equal(density.score_samples(numbers), whole.score_samples(numbers))


def test_settings_have_the_names_of_the_program(numbers):
    density = zhat.Density(steps=20, training={"batch_size": 64}, model={"proposal.width": 32}).fit(numbers)
    config = (density.run_dir_ / "config.toml").read_text()
    assert "batch-size = 64" in config and "width = 32" in config


def test_import_is_quick_and_asks_for_nothing():
    code = (
        "import sys, time; start = time.perf_counter(); import zhat; took = time.perf_counter() - start;"
        "print(took, *[name for name in ('sklearn', 'pandas', 'torch', 'numpy') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split()
    assert len(found) == 1 and float(found[0]) < 0.3


def test_the_command_is_the_program():
    done = command("--version")
    assert done.returncode == 0 and done.stdout.startswith("zhat ")
    assert command("fit", "nothing.csv").returncode == 2


def test_progress_is_a_line_every_so_often(numbers, capfd):
    zhat.Density(steps=30, verbose=1).fit(numbers)
    assert "zhat: step" in capfd.readouterr().err


def test_pictures(fitted, fitted_frame, frame):
    page = fitted_frame._repr_html_()
    assert "region" in page and "categorical" in page and "<svg" in page and "nats a row" in page
    assert "zhat.Density" in fitted._repr_mimebundle_()["text/html"]
    assert "iframe" in fitted.report()._repr_html_()
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    assert fitted.plot_validation().get_xlabel() == "step"
    assert fitted_frame.plot_marginals(frame).size >= len(frame.columns)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_other_frames_come_back_as_they_were(library, frame):
    module = pytest.importorskip(library)
    plain = frame.drop(columns="member")
    if library == "polars":
        table = module.from_pandas(plain) if _has("pyarrow") else module.DataFrame({n: plain[n].tolist() for n in plain})
    else:
        table = module.Table.from_pandas(plain, preserve_index=False)
    density = zhat.Density(steps=STEPS).fit(table)
    draws, filled = density.sample(10), density.impute(table)
    assert type(draws) is type(table) and type(filled) is type(table)
    assert draws.schema == table.schema or library == "pyarrow"
    names = table.columns if library == "polars" else table.column_names
    assert (draws.columns if library == "polars" else draws.column_names) == names
    nulls = filled.null_count().sum_horizontal()[0] if library == "polars" else sum(c.null_count for c in filled.columns)
    assert nulls == 0
    assert np.isfinite(density.score_samples(table)).all()


def _has(name):
    try:
        __import__(name)
    except ImportError:
        return False
    return True


def test_seconds_of_a_fit_can_be_said(numbers):
    start = time.monotonic()
    density = zhat.Density(time=2).fit(numbers)
    assert time.monotonic() - start < 60
    assert density.results_["steps"] > 0
    assert json.loads(json.dumps(density.results_))
