"""A density as a notebook shows it, and its pictures."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted


class Shown:
    """What :class:`zhat.Density` has of it."""

    def plot_validation(self, ax: Any = None) -> Any:
        """The log-likelihood of validation rows step by step, on matplotlib axes."""
        from zhat._plots import validation

        check_is_fitted(self, "results_")
        return validation(self, ax)

    def plot_marginals(self, X: Any = None, *, n_samples: int = 2000, axes: Any = None) -> Any:
        """Every column of draws, beside that of ``X`` where it is given, on matplotlib axes."""
        from zhat._plots import marginals

        check_is_fitted(self, "results_")
        return marginals(self, X, n_samples, axes)

    def _repr_html_(self):
        if not hasattr(self, "results_"):
            return super()._repr_html_()
        from zhat._html import card

        return card(self)

    def _repr_mimebundle_(self, **kwargs):
        if not hasattr(self, "results_"):
            return super()._repr_mimebundle_(**kwargs)
        return {"text/plain": repr(self), "text/html": self._repr_html_()}
