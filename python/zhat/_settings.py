"""Parameters of an estimator as settings of the library: sections of a TOML file, and what has a parameter of its own."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

#: Sections of settings, each a parameter that takes a dict.
SECTIONS = ("data", "model", "step", "training", "validation", "evaluation")

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(name: str, value: Any) -> float | None:
    """A time: seconds, or text such as ``"90s"``, ``"10m"``, ``"2h"``."""
    if value is None:
        return None
    if isinstance(value, str):
        found = re.fullmatch(r"\s*([0-9.]+)\s*([smh]?)\s*", value)
        if not found:
            raise ValueError(f"{name} is {value!r}, but must be a number of seconds, or such as '90s', '10m' or '2h'")
        value = float(found[1]) * _UNITS[found[2]]
    value = float(value)
    if not value >= 0:
        raise ValueError(f"{name} is {value}, but must not be negative")
    return value


def nested(settings: Any) -> Any:
    """Names as the TOML has them, with hyphens; names of columns stay as they are. ``{"num_steps": 5}`` is ``num-steps``."""
    if not isinstance(settings, dict):
        return settings.item() if isinstance(settings, np.generic) else settings
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if value is None:
            continue
        at = found
        *path, last = str(name).replace("_", "-").split(".")
        for part in path:
            at = at.setdefault(part, {})
        if last in ("kinds", "dequantise"):
            at[last] = dict(value)
        elif isinstance(value, dict) and isinstance(at.get(last), dict):
            at[last].update(nested(value))
        else:
            at[last] = nested(value)
    return found


def wanted(estimator: Any, source: str, said: dict[str, str]) -> str:
    """What is asked of a fit, as JSON."""
    settings = {}
    for section in SECTIONS:
        given = getattr(estimator, section)
        if given is not None:
            if not isinstance(given, dict):
                raise ValueError(f"{section} is {given!r}, but must be a dict of settings (zhat config {section})")
            settings[section] = nested(given)
    kinds = {**said, **settings.get("data", {}).get("kinds", {}), **dict(estimator.kinds or {})}
    if kinds:
        settings.setdefault("data", {})["kinds"] = kinds
    asked = {
        "source": source,
        "preset": estimator.preset,
        "criterion": estimator.criterion,
        "steps": _whole("steps", estimator.steps, 1),
        "patience": _whole("patience", estimator.patience, 0),
        "time": seconds("time", estimator.time),
        "max_time": seconds("max_time", estimator.max_time),
        "settings": settings or None,
    }
    if asked["time"] is not None and asked["steps"] is not None:
        raise ValueError("time and steps: the number of steps is chosen for the time; give one of them")
    return json.dumps({name: value for name, value in asked.items() if value is not None})


def of_data(asked: dict, name: str, value: Any) -> None:
    """Says which columns have a role of their own; not where the parameter ``data`` says it too."""
    data = asked.setdefault("settings", {}).setdefault("data", {})
    if data.get(name):
        raise ValueError(f"data: {name} is {data[name]!r}, and fit is told of it too; say it in one place")
    data[name] = value


def _whole(name: str, value: Any, least: int) -> int | None:
    if value is None:
        return None
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} is {value!r}, but must be a whole number, at least {least}")
    return int(value)


def threads(n_jobs: int | None) -> int:
    """As many as there are cores for None and -1."""
    import os

    if n_jobs is None or n_jobs == -1:
        return 0
    if n_jobs == 0:
        raise ValueError("n_jobs is 0, but must be a number of threads, or -1 or None for all cores")
    return int(n_jobs) if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))


def seed(random_state: Any) -> int:
    """A seed of the library; the same whole number gives the same bits as ``zhat --seed``."""
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"random_state is {random_state}, but must not be negative")
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**32))
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(2**31 - 1))


class Sections:
    """Parameters of :class:`zhat.Density` that are sections of settings, each of which is a parameter too."""

    def get_params(self, deep=True):
        """Parameters by name; with ``deep`` also the settings of sections, such as ``training__batch_size``."""
        found = super().get_params(deep=False)
        if deep:
            for section in SECTIONS:
                if isinstance(found.get(section), dict):
                    for name, value in found[section].items():
                        found[f"{section}__{str(name).replace('-', '_')}"] = value
        return found

    def set_params(self, **params):
        """Sets parameters; ``training__batch_size=64`` sets one setting of a section."""
        own = {}
        for name, value in params.items():
            section, _, setting = name.partition("__")
            if setting and section in SECTIONS:
                kept = {known.replace("-", "_"): old for known, old in (getattr(self, section) or {}).items()}
                kept[setting.replace("__", ".").replace("-", "_")] = value
                setattr(self, section, kept)
            else:
                own[name] = value
        return super().set_params(**own)
