"""Pictures on matplotlib axes."""

from __future__ import annotations

from typing import Any

import numpy as np


def validation(density: Any, ax: Any = None) -> Any:
    """The validation curve."""
    import matplotlib.pyplot as plt

    ax = plt.subplots()[1] if ax is None else ax
    lines = [line for line in density.history_ if line.get("validation") is not None]
    if lines:
        ax.plot([line["step"] for line in lines], [line["validation"] for line in lines], marker=".")
    elif density.results_.get("cross_validation"):
        points = density.results_["cross_validation"]["curve"]
        ax.plot([point["step"] for point in points], [point["log_likelihood"] for point in points], marker=".")
    ax.set_xlabel("step")
    ax.set_ylabel("log-likelihood of rows kept back, nats a row")
    return ax


def marginals(density: Any, X: Any, n_samples: int, axes: Any) -> Any:
    """A histogram for each column of the model."""
    import matplotlib.pyplot as plt

    from zhat._given import draws as draws_of

    draws = draws_of(density, X, n_samples)
    names, known = density._columns, {found["name"]: found for found in density.kinds_}
    if axes is None:
        across = min(4, len(names))
        down = -(-len(names) // across)
        axes = plt.subplots(down, across, figsize=(3 * across, 2.4 * down), squeeze=False)[1]
    axes = np.asarray(axes)
    rows = None
    if X is not None:
        table = density._read(X, reset=False)
        rows = {column[0]: column for column in table.columns}
    for place, (name, ax) in enumerate(zip(names, axes.ravel())):
        found = known.get(name, {})
        if found.get("kind") == "categorical":
            levels = found["levels"]
            ax.bar(range(len(levels)), np.bincount(draws[:, place].astype(int), minlength=len(levels)) / len(draws), alpha=0.6)
            ax.set_xticks(range(len(levels)), levels, rotation=45)
        else:
            low, high = np.quantile(draws[:, place], [0.002, 0.998])
            bins = np.linspace(low, high, 40) if high > low else 10
            ax.hist(draws[:, place], bins=bins, density=True, alpha=0.6, label="draws")
            if rows is not None and rows[name][1] == "number":
                values = np.asarray(rows[name][2], dtype=float)
                ax.hist(values[np.isfinite(values)], bins=bins, density=True, histtype="step", color="black", label="data")
        ax.set_title(name, fontsize=9)
    return axes
