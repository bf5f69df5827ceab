"""Missing cells filled by a density, as a scikit-learn transformer."""

from __future__ import annotations

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from zhat._estimator import OnDensity
from zhat._table import read


class Imputer(TransformerMixin, OnDensity):
    """Fills missing cells from the density of the table, given what is observed of each row.

    Parameters
    ----------
    density : Density, optional
        The density that is fitted; the default one where there is none.
    fill : {"mean", "median", "draw"}, default "mean"
        What a missing cell is filled with; of words the mean is the likeliest.
    particles : int, default 500
        Draws behind every row with a missing cell.
    random_state : int, RandomState or None, default 0
        Seed of draws, and of the fit.

    Examples
    --------
    >>> import numpy as np, zhat
    >>> X = np.random.default_rng(0).normal(size=(300, 1)) @ [[1.0, 2.0]]
    >>> X += 0.1 * np.random.default_rng(1).normal(size=X.shape)
    >>> X[0, 1] = np.nan
    >>> filled = zhat.Imputer(zhat.Density(steps=50)).fit_transform(X)
    >>> bool(abs(filled[0, 1] - 2 * X[0, 0]) < 1)
    True
    """

    def __init__(self, density=None, *, fill="mean", particles=500, random_state=0):
        self.density = density
        self.fill = fill
        self.particles = particles
        self.random_state = random_state

    def fit(self, X, y=None, sample_weight=None):
        """Fits the density, of rows as often as ``sample_weight`` says; ``y`` is ignored."""
        table = read(X, type(self).__name__)
        for place, name in enumerate(table.names):
            if table.missing(place).all():
                raise ValueError(f"column {name}: every cell is missing, so there is nothing to fill it with. Leave it out.")
        self._fit_density(X, sample_weight)
        return self

    def transform(self, X):
        """``X`` with its missing cells filled; what is not missing stays as it is."""
        check_is_fitted(self, "density_")
        return self.density_.impute(X, fill=self.fill, particles=self.particles, random_state=self.random_state)

    def get_feature_names_out(self, input_features=None):
        """The columns, which stay as they are."""
        check_is_fitted(self, "density_")
        own = getattr(self, "feature_names_in_", None)
        if input_features is not None:
            input_features = np.asarray(input_features, dtype=object)
            if own is not None and not np.array_equal(input_features, own):
                raise ValueError("input_features is not equal to feature_names_in_")
            if len(input_features) != self.n_features_in_:
                raise ValueError("input_features should have length equal to number of features")
            return input_features
        return own if own is not None else np.array([f"x{place}" for place in range(self.n_features_in_)], dtype=object)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
