"""What the estimators share: tables of any kind, and for those that stand on a density the fit of it."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, clone


class TakesTables:
    """Numbers, words and missing cells are welcome."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _more_tags(self):
        return {"allow_nan": True, "X_types": ["2darray", "categorical", "string"]}


class OnDensity(TakesTables, BaseEstimator):
    """An estimator whose ``density_`` does the work; it has parameters ``density`` and ``random_state``."""

    def _fit_density(self, X: Any, sample_weight: Any) -> None:
        from zhat._density import Density

        density = Density(random_state=self.random_state) if self.density is None else clone(self.density)
        self.density_ = density.fit(X, sample_weight=sample_weight)
        self.n_features_in_ = self.density_.n_features_in_
        if hasattr(self.density_, "feature_names_in_"):
            self.feature_names_in_ = self.density_.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
