"""scikit-learn's own conventions."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

import zhat

#: What a check expects that a density does not do, and why.
FEW = "it fits 10 to 16 rows, and a density needs at least 20, and two for each column"
EXPECTED = {
    "check_n_features_in_after_fitting": FEW,
    "check_classifier_data_not_an_array": FEW,
    "check_fit2d_1feature": FEW,
    "check_sample_weights_pandas_series": FEW,
    "check_sample_weights_not_an_array": FEW,
    "check_sample_weights_shape": FEW,
    "check_sample_weights_not_overwritten": FEW,
    "check_sample_weight_equivalence_on_dense_data": FEW + "; and rows are split and drawn by row, so that copies are weights up to chance only",
}


def checks_of(estimator):
    """Every check of scikit-learn for an estimator, those that are expected to fail marked."""
    try:
        return estimator_checks.estimator_checks_generator(estimator, expected_failed_checks=EXPECTED, mark="skip")
    except (AttributeError, TypeError):
        return estimator_checks.check_estimator(estimator, generate_only=True)


@pytest.mark.parametrize(
    "estimator",
    [
        zhat.Density(steps=2),
        zhat.AnomalyDetector(zhat.Density(steps=2)),
        zhat.Imputer(zhat.Density(steps=2), particles=60),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_check_estimator(estimator):
    failed = {}
    for instance, check in checks_of(estimator):
        name = check.func.__name__ if hasattr(check, "func") else getattr(check, "__name__", str(check))
        try:
            check(instance)
        except Exception as error:  # noqa: BLE001
            if "SkipTest" in type(error).__name__ or name in EXPECTED:
                continue
            failed[name] = f"{type(error).__name__}: {error}"
    assert not failed, "\n".join(f"{name}: {error}" for name, error in failed.items())


def test_it_works_in_a_pipeline_a_grid_and_a_cross_validation(numbers):
    X = numbers[:200]
    pipeline = make_pipeline(StandardScaler(), zhat.Density(steps=5)).fit(X)
    assert np.isfinite(pipeline.score(X))
    grid = GridSearchCV(zhat.Density(), {"steps": [3, 30], "training__learning_rate": [1e-3]}, cv=2).fit(X)
    assert grid.best_params_["steps"] in (3, 30)
    assert len(cross_val_score(zhat.Density(steps=5), X, cv=2)) == 2


def test_single_settings_are_parameters():
    density = zhat.Density().set_params(training__batch_size=64, model__proposal__width=32, steps=7)
    assert density.training == {"batch_size": 64} and density.model == {"proposal.width": 32}
    assert density.get_params()["training__batch_size"] == 64
    assert clone(density).get_params() == density.get_params()


def test_strange_rows_are_found(numbers):
    detector = zhat.AnomalyDetector(zhat.Density(steps=40), contamination=0.05).fit(numbers)
    assert detector.labels_.mean() == pytest.approx(0.05, abs=0.005)
    found = detector.predict(np.array([[0.0, 0.0], [3.0, -3.0]]))
    assert found.tolist() == [1, -1]
    assert detector.decision_function([[3.0, -3.0]])[0] < 0
    with pytest.raises(ValueError, match="contamination"):
        zhat.AnomalyDetector(contamination=2.0).fit(numbers)


def test_strange_rows_that_lie_together_are_not_learnt(numbers):
    rng = np.random.default_rng(3)
    crowd = np.array([4.0, -4.0]) + 0.1 * rng.normal(size=(60, 2))
    rows = np.vstack([numbers, crowd])
    fit = lambda trim: zhat.AnomalyDetector(zhat.Density(steps=200), contamination=0.1, trim=trim).fit(rows)
    trimmed, all_of_them = fit(True), fit(False)
    assert (trimmed.predict(crowd) == -1).mean() > 0.95
    # Without it they are a cluster like any other.
    assert (all_of_them.predict(crowd) == -1).mean() < 0.5


def test_an_imputer_fills_what_another_estimator_cannot_take(numbers):
    from sklearn.linear_model import LinearRegression

    holed = numbers.copy()
    holed[::7, 1] = np.nan
    imputer = zhat.Imputer(zhat.Density(steps=60), particles=60)
    filled = imputer.fit_transform(holed)
    assert np.isfinite(filled).all()
    # The mean of the column is off by 0.58 on average; the density knows the other column.
    error = np.abs(filled[::7, 1] - numbers[::7, 1]).mean()
    assert error < np.abs(numbers[::7, 1]).mean()
    assert np.isfinite(make_pipeline(imputer, LinearRegression()).fit(holed, numbers[:, 0]).predict(holed)).all()
