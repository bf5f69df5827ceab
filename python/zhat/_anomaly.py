"""Strange rows by their density, as scikit-learn and pyod have it."""

from __future__ import annotations

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from zhat import _settings, _weights
from zhat._estimator import OnDensity
from zhat._table import read
from zhat._usual import chosen, usual_rows


class AnomalyDetector(OutlierMixin, OnDensity):
    """Rows with a low density are strange.

    Parameters
    ----------
    density : Density, optional
        The density that is fitted; the default one where there is none.
    contamination : float in (0, 0.5], default 0.1
        Share of the training rows that are strange: below its quantile of their log-densities rows are called so.
    trim : bool, default True
        Whether rows of that share, the strangest by an isolation forest, are left out of what the density is fitted to. A density that is
        fitted to strange rows that lie together learns where they are, and calls them usual. Where the training rows are known to be usual, False learns
        from all of them.
    random_state : int, RandomState or None, default 0
        Seed of the fit.

    Attributes
    ----------
    density_ : Density
        The fitted density.
    offset_ : float
        Log-density below which a row is strange.
    decision_scores_ : array
        Strangeness of the training rows (minus their log-densities), the largest strangest, as pyod has it.
    labels_ : array
        1 for the strange ones among them, as pyod has it.

    Examples
    --------
    >>> import numpy as np, zhat
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> detector = zhat.AnomalyDetector(zhat.Density(steps=30)).fit(X)
    >>> detector.predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    def __init__(self, density=None, *, contamination=0.1, trim=True, random_state=0):
        self.density = density
        self.contamination = contamination
        self.trim = trim
        self.random_state = random_state

    def fit(self, X, y=None, sample_weight=None):
        """Fits the density and finds the threshold, of rows as often as ``sample_weight`` says; ``y`` is ignored."""
        if not (isinstance(self.contamination, (int, float, np.number)) and 0 < self.contamination <= 0.5):
            raise ValueError(f"contamination is {self.contamination!r}, but must be above 0 and at most 0.5")
        table = read(X, type(self).__name__)
        weights = _weights.checked(sample_weight, table.rows)
        rows = usual_rows(table, self.contamination, weights, _settings.seed(self.random_state)) if self.trim else None
        if rows is None:
            self._fit_density(X, weights)
        else:
            self._fit_density(chosen(X, table.schema.kind, rows), None if weights is None else weights[rows])
        log_density = self._log_density(X)
        self.decision_scores_ = -log_density
        self.offset_ = _weights.quantile(log_density, self.contamination, weights)
        self.labels_ = (log_density < self.offset_).astype(int)
        return self

    def _log_density(self, X):
        # A row of which nothing is observed is as strange as nothing at all.
        return np.nan_to_num(self.density_.score_samples(X), nan=0.0)

    def score_samples(self, X):
        """The log-density of every row: the lower, the stranger."""
        check_is_fitted(self, "density_")
        return self._log_density(X)

    def decision_function(self, X):
        """The log-density less the threshold: below 0 is strange."""
        return self.score_samples(X) - self.offset_

    def predict(self, X):
        """-1 for strange rows, 1 for the others."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def explain(self, X):
        """The log-density of each column given those before it: the lowest say what makes a row strange."""
        check_is_fitted(self, "density_")
        return self.density_.explain(X)
