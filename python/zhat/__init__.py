"""Densities of tables, and contrastive estimation of unnormalised models, in Rust.

>>> import zhat
>>> zhat.contrast("rnce", log_p=[[0.0, 0.0, 0.0, 0.0]], log_q=[[0.0, 0.0, 0.0, 0.0]])
array([[0.25, 0.25, 0.25, 0.25]])

What is here is imported when it is first used: ``import zhat`` needs neither scikit-learn nor PyTorch.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["AnomalyDetector", "Density", "Imputer", "TableWarning", "contrast", "log_z", "methods", "torch"]

_PLACES = {
    "AnomalyDetector": "zhat._anomaly",
    "Density": "zhat._density",
    "Imputer": "zhat._imputer",
    "TableWarning": "zhat._density",
    "contrast": "zhat._contrast",
    "methods": "zhat._contrast",
}
_MODULES = {"log_z", "torch"}


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        found = getattr(importlib.import_module(_PLACES[name]), name)
    elif name in _MODULES:
        found = importlib.import_module(f"zhat.{name}")
    elif name == "__version__":
        from importlib.metadata import version

        found = version("zhat")
    else:
        raise AttributeError(f"module 'zhat' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
