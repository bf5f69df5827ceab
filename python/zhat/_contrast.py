"""The weights of every contrast, on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from zhat import _zhat


def methods() -> list[str]:
    """Names of the methods that :func:`contrast` knows.

    >>> import zhat
    >>> zhat.methods()[:4]
    ['ml-is', 'nce', 'rnce', 'p-rnce']
    """
    return list(_zhat.methods())


def contrast(method: str, *, log_p: Any, log_q: Any = None) -> np.ndarray:
    """The weights ``w_j`` of the candidates ``x_0 .. x_J`` of every row; ``x_0`` is the data point, or where the chain is.

    They are constants. The gradient of every method is that of
    ``mean(-log_p[:, 0] + sum_j w_j * log_p[:, j])``, so a loss in PyTorch or JAX is one line more.

    Parameters
    ----------
    method : one of :func:`methods`.
    log_p : ``log p~(x_j)``, of shape (rows, candidates); minus infinity outside the support of the model.
    log_q : what is subtracted from it to give ``log w~``, of the same shape: ``log q(x_j)`` for the methods with a
        proposal that does not depend on the state (ml-is, nce, rnce, p-rnce, snl); for those of pairs
        ``log q(x_j | x_0) - log q(x_0 | x_j)``, with 0 in the first column. Nothing where that is 0, as for a random walk.

    Examples
    --------
    Two candidates beside the data point; the second is out of reach:

    >>> import numpy as np, zhat
    >>> log_p = np.array([[0.0, np.log(3.0), -np.inf]])
    >>> zhat.contrast("rnce", log_p=log_p, log_q=np.zeros((1, 3))).round(4)
    array([[0.25, 0.75, 0.  ]])
    >>> zhat.contrast("mh-cnce", log_p=log_p).round(4)
    array([[0.5, 0.5, 0. ]])
    """
    log_p = np.asarray(log_p, dtype=np.float64)
    if log_p.ndim != 2:
        raise ValueError(f"log_p has {log_p.ndim} dimensions, but must have two: rows and candidates")
    if log_q is None:
        if method in ("ml-is", "nce", "rnce", "p-rnce", "snl"):
            raise ValueError(f"{method} needs log_q, the log-density of the proposal at every candidate")
        log_q = np.zeros_like(log_p)
    return _zhat.weights(method, log_p, np.asarray(log_q, dtype=np.float64))
