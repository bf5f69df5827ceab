"""Columns that are given, and rows that count more than others."""

import pickle

import numpy as np
import pytest
from test_density import command

import zhat


@pytest.fixture(scope="module")
def pairs():
    """``y`` follows ``x`` with a spread of 0.3; ``x`` itself is far from where a density of it would look."""
    rng = np.random.default_rng(4)
    x = rng.uniform(-2, 2, 1500)
    return np.column_stack([1.5 * x + 0.3 * rng.normal(size=1500), x])


@pytest.fixture(scope="module")
def conditional(pairs):
    return zhat.Density(steps=150).fit(pairs, given=[1])


@pytest.fixture(scope="module")
def conditional_frame(frame):
    return zhat.Density(steps=40).fit(frame, given=["word", "children"])


def test_scores_are_those_of_one_column_given_the_other(conditional, pairs):
    assert conditional.given_ == ["column_2"]
    truth = -0.5 * ((pairs[:, 0] - 1.5 * pairs[:, 1]) / 0.3) ** 2 - np.log(0.3 * np.sqrt(2 * np.pi))
    # A joint density would be lower by log 4, and one of the columns in the wrong order by far more.
    assert conditional.score(pairs) == pytest.approx(truth.mean(), abs=0.25)
    for x in (-1.5, 0.0, 1.0):
        y = np.linspace(-6, 6, 2401)
        scores = conditional.score_samples(np.column_stack([y, np.full_like(y, x)]))
        assert np.exp(scores).sum() * 0.005 == pytest.approx(1, abs=0.02)
    # Single precision takes no other way.
    assert np.allclose(conditional.score_samples(pairs.astype(np.float32)), conditional.score_samples(pairs), atol=1e-3)
    assert np.isnan(conditional.score_samples([[0.0, np.nan]])).all()
    assert conditional.explain(pairs[:7]).shape == (7, 1)
    assert np.allclose(conditional.explain(pairs[:7])[:, 0], conditional.score_samples(pairs[:7]), atol=1e-4)


def test_draws_are_made_for_every_given_row(conditional, conditional_frame, frame):
    draws = conditional.sample(400, given_rows=[[-1.5], [1.5]])
    assert (draws[:400, 1] == -1.5).all() and (draws[400:, 1] == 1.5).all()
    assert draws[:400, 0].mean() == pytest.approx(-2.25, abs=0.2) and draws[400:, 0].mean() == pytest.approx(2.25, abs=0.2)
    # All columns, of which one is missing, are the same thing.
    assert np.array_equal(conditional.sample(400, given_rows=[[np.nan, -1.5], [np.nan, 1.5]]), draws)
    assert np.abs(conditional.sample(200, given={1: 1.0})[:, 0].mean() - 1.5) < 0.2
    rows = frame[["children", "word"]].iloc[10:13]
    drawn = conditional_frame.sample(5, given_rows=rows)
    assert list(drawn.columns) == list(frame.columns) and drawn.index.tolist() == np.repeat(rows.index, 5).tolist()
    assert drawn.dtypes.astype(str).to_dict() == frame.dtypes.astype(str).to_dict()
    assert drawn["word"].tolist() == np.repeat(rows["word"], 5).tolist()
    assert drawn["children"].tolist() == np.repeat(rows["children"], 5).tolist()
    assert not drawn.isna().any().any()


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_given_rows_come_in_any_frame_and_draws_go_out_in_it(library, frame):
    pytest.importorskip(library)
    plain = frame[["height", "children", "word"]]
    if library == "polars":
        import polars

        table = polars.from_dict({name: plain[name].tolist() for name in plain})
        rows = table.select(["word", "children"])[10:13]
        values = lambda drawn, name: drawn[name].to_list()
    else:
        import pyarrow

        table = pyarrow.table({name: plain[name].tolist() for name in plain})
        rows = table.select(["word", "children"]).slice(10, 3)
        values = lambda drawn, name: drawn.column(name).to_pylist()
    density = zhat.Density(steps=30).fit(table, given=["children", "word"])
    drawn = density.sample(5, given_rows=rows)
    assert type(drawn) is type(table) and drawn.shape == (15, 3)
    assert drawn.schema == table.schema
    assert values(drawn, "word") == np.repeat(plain["word"][10:13], 5).tolist()
    assert values(drawn, "children") == np.repeat(plain["children"][10:13], 5).tolist()
    assert np.isfinite(values(drawn, "height")).all()


def test_what_is_given_must_be_there(conditional, conditional_frame, pairs, frame):
    with pytest.raises(ValueError, match="without column_2.*value for each of column_2"):
        conditional.sample(3)
    with pytest.raises(ValueError, match="without children"):
        conditional_frame.sample(3, given={"word": "tall"})
    with pytest.raises(ValueError, match="without column children"):
        conditional_frame.sample(3, given_rows=frame[["word"]])
    with pytest.raises(ValueError, match="row index 1, column column_2: the cell is missing"):
        conditional.sample(3, given_rows=[[1.0], [np.nan]])
    with pytest.raises(ValueError, match="given_rows has 3 columns"):
        conditional.sample(3, given_rows=[[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="leave one of them out"):
        conditional.sample(3, given={1: 2.0}, given_rows=[[1.0]])
    with pytest.raises(ValueError, match="nosuch"):
        zhat.Density(steps=2).fit(frame, given="nosuch")
    with pytest.raises(ValueError, match="all columns are given"):
        zhat.Density(steps=2).fit(pairs, given=[0, 1])
    with pytest.raises(ValueError, match="say it in one place"):
        zhat.Density(steps=2, data={"given": ["column_1"]}).fit(pairs, given=[1])
    with pytest.raises(ValueError, match="is given, and row"):
        zhat.Density(steps=2).fit(frame, given=["region"])


def test_predictions_are_judged_and_holes_filled(conditional, conditional_frame, frame, pairs):
    found = conditional.evaluate(particles=500, estimates=2)
    assert found["log_likelihood"] == pytest.approx(conditional.log_likelihood_, abs=0.01)
    (target,) = found["predictive"]["targets"]
    # The CRPS of a normal of spread 0.3 is 0.169.
    assert target["column"] == "column_1" and 0.15 < target["crps"] < 0.22
    assert conditional.evaluate(pairs[:50], particles=500, estimates=2)["predictive"]["rows"] == 50
    filled = conditional.impute([[np.nan, 1.0]])
    assert filled[0, 1] == 1.0 and filled[0, 0] == pytest.approx(1.5, abs=0.2)
    assert not conditional_frame.impute(frame).isna().any().any()
    assert "not modelled" not in conditional._repr_html_() and "<rect" in conditional._repr_html_()


def test_given_and_weights_are_kept_with_the_model(pairs, frame, conditional_frame, tmp_path):
    weights = np.where(pairs[:, 1] > 0, 3.0, 1.0)
    density = zhat.Density(steps=10).fit(pairs, sample_weight=weights, given=[1])
    for again in (pickle.loads(pickle.dumps(density)), zhat.Density.load(density.save(tmp_path / "both"))):
        assert again.given_ == ["column_2"] and again.n_features_in_ == 2
        assert np.array_equal(again.score_samples(pairs), density.score_samples(pairs))
        with pytest.raises(ValueError, match="give them as sample_weight"):
            again.resume(pairs)
        assert again.report(tmp_path / "page.html", pairs, sample_weight=weights).is_file()
    assert density.evaluate(particles=500, estimates=2) == density.evaluate(sample_weight=weights, particles=500, estimates=2)
    with pytest.raises(ValueError, match="the fit had none"):
        conditional_frame.resume(frame, sample_weight=np.ones(len(frame)))
    density.resume(steps=12)


def test_the_program_has_the_same_bits(frame, tmp_path):
    weights = np.arange(len(frame)) % 4 + 0.5
    ours = zhat.Density(steps=20).fit(frame, sample_weight=weights, given=["children", "height"])
    frame.assign(sample_weight=weights).to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / "run"
    said = ["--kind", "region=categorical", "--weight", "sample_weight", "--given", "children,height"]
    done = command("fit", tmp_path / "rows.csv", "--steps", 20, "--out", out, "--quiet", *said)
    assert done.returncode == 0, done.stderr
    theirs = zhat.Density.load(out)
    assert theirs.results_["test"] == ours.results_["test"]
    scored = frame.assign(sample_weight=weights)
    assert np.array_equal(theirs.score_samples(scored), ours.score_samples(frame))


def test_rows_count_by_their_weights():
    rng = np.random.default_rng(5)
    upper = np.arange(3000) % 2 == 1
    X = np.column_stack([np.where(upper, 4.0, -4.0) + rng.normal(size=3000), rng.normal(size=3000)])
    weights = np.where(upper, 3.0, 1.0)
    training = {"batch-size": 128, "validation-every": 150, "checkpoint-every": 150}
    density = zhat.Density(
        steps=300, patience=0, training=training, model={"proposal.width": 32}, validation={"cross-validate-below": 0}
    ).fit(X, sample_weight=weights)
    assert density.sample(2).shape == (2, 2), "weights are no part of the model"
    # A half of the rows and three quarters of the weight.
    line = np.column_stack([np.arange(0, 10, 0.01), np.full(1000, np.nan)])
    assert np.exp(density.score_samples(line)).sum() * 0.01 == pytest.approx(0.75, abs=0.05)
    assert np.allclose(density.score_samples(X.astype(np.float32)), density.score_samples(X), atol=1e-3)

    # Means are those of each row as often as its weight says, and errors those of effective rows.
    some = {"particles": 500, "estimates": 2, "cross_check": False}
    weighed = density.evaluate(X[:300], sample_weight=weights[:300], **some)
    twice = density.evaluate(np.repeat(X[:300], weights[:300].astype(int), axis=0), **some)
    assert weighed["log_likelihood"] == pytest.approx(twice["log_likelihood"], abs=1e-9)
    assert weighed["effective_rows"] == pytest.approx(weights[:300].sum() ** 2 / (weights[:300] ** 2).sum())


def test_equal_weights_are_none(numbers):
    # The mixture beside the head counts every row once, and is left out where there are weights.
    model = {"gaussian-mixture": False}
    plain = zhat.Density(steps=10, model=model).fit(numbers[:300])
    equal = zhat.Density(steps=10, model=model).fit(numbers[:300], sample_weight=np.full(300, 2.5))
    assert np.allclose(equal.score_samples(numbers), plain.score_samples(numbers), atol=1e-4)


def test_weights_are_checked_by_row(numbers):
    def fit(weights):
        zhat.Density(steps=2).fit(numbers, sample_weight=weights)

    weights = np.ones(len(numbers))
    weights[17] = -1
    with pytest.raises(ValueError, match="sample_weight, row index 17.*-1"):
        fit(weights)
    weights[17] = np.nan
    with pytest.raises(ValueError, match="row index 17.*nan"):
        fit(weights)
    with pytest.raises(ValueError, match="all weights are zero"):
        fit(np.zeros(len(numbers)))
    with pytest.raises(ValueError, match="7 numbers, and X has 1200 rows"):
        fit(np.ones(7))
    with pytest.raises(ValueError, match="2 dimensions"):
        fit(np.ones((len(numbers), 2)))


def test_weights_come_as_lists_and_series_and_stay_as_they_are(numbers):
    # What scikit-learn's own checks ask, of enough rows for a density.
    pd = pytest.importorskip("pandas")
    weights = np.ones(60)
    weights[0] = 10.0
    kept = weights.copy()
    scores = [zhat.Density(steps=2).fit(numbers[:60], sample_weight=given).score(numbers) for given in (weights, list(kept), pd.Series(kept))]
    assert np.array_equal(weights, kept) and len(set(scores)) == 1


def test_strange_rows_are_a_share_of_the_weight(numbers):
    weights = np.where(numbers[:, 0] > 0, 2.0, 0.5)
    detector = zhat.AnomalyDetector(zhat.Density(steps=20), contamination=0.1).fit(numbers, sample_weight=weights)
    strange = detector.decision_scores_ >= -detector.offset_
    assert weights[strange].sum() / weights.sum() == pytest.approx(0.1, abs=0.003)
    filled = zhat.Imputer(zhat.Density(steps=5), particles=60).fit(numbers, sample_weight=weights).transform([[0.0, np.nan]])
    assert np.isfinite(filled).all()
