"""A fitted density as a notebook shows it."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

_BLUE = "#3b6ea5"


class Page:
    """A page of HTML, which a notebook shows in a frame."""

    def __init__(self, html: str):
        self.html = html

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self.html)}" style="width:100%;height:700px;border:0"></iframe>'

    def save(self, path: Any) -> None:
        """Writes the page."""
        from pathlib import Path

        Path(path).write_text(self.html)


def curve(points: list[tuple[float, float]], width: int = 320, height: int = 90) -> str:
    """A line through points, as a small picture."""
    points = [(x, y) for x, y in points if np.isfinite(y)]
    if len(points) < 2:
        return ""
    xs, ys = np.array([x for x, _ in points]), np.array([y for _, y in points])
    # The first steps are far below the rest, which is what one wants to see.
    low, high = np.quantile(ys, 0.1) if len(ys) > 9 else ys.min(), ys.max()
    span = (high - low) or 1.0
    left = (xs - xs.min()) / ((xs.max() - xs.min()) or 1.0) * (width - 8) + 4
    top = height - 16 - np.clip((ys - low) / span, -0.1, 1) * (height - 24)
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(left, top))
    return (
        f'<svg width="{width}" height="{height}" style="display:block">'
        f'<polyline points="{line}" fill="none" stroke="{_BLUE}" stroke-width="1.5"/>'
        f'<text x="4" y="{height - 2}" font-size="10" fill="#555">validation log-likelihood, up to {high:.3f} nats a row</text></svg>'
    )


def bars(values: np.ndarray, width: int = 90, height: int = 20) -> str:
    """A small histogram."""
    values = values[np.isfinite(values)]
    if not len(values):
        return ""
    counts, _ = np.histogram(np.clip(values, *np.quantile(values, [0.005, 0.995])), bins=20)
    each = width / len(counts)
    made = "".join(
        f'<rect x="{at * each:.1f}" y="{height - height * count / counts.max():.1f}" width="{each - 0.5:.1f}" '
        f'height="{height * count / counts.max():.1f}" fill="{_BLUE}"/>'
        for at, count in enumerate(counts)
    )
    return f'<svg width="{width}" height="{height}">{made}</svg>'


def card(density: Any) -> str:
    """Kinds, likelihood with errors, verdict, and small pictures."""
    results = density.results_
    rows = []
    draws = _draws(density)
    known = {found["name"]: found for found in density.kinds_}
    names = list(known) or density._columns
    for name in names:
        found = known.get(name, {"kind": "continuous"})
        picture = bars(draws[:, density._columns.index(name)]) if draws is not None and name in density._columns else ""
        kind = "not modelled" if name not in density._columns else found["kind"]
        missing = found.get("missing", 0)
        rows.append(
            f"<tr><td style='text-align:left'>{html.escape(str(name))}</td><td style='text-align:left'>{kind}</td>"
            f"<td>{missing or ''}</td><td>{picture}</td></tr>"
        )
    head = "<tr><th>column</th><th>kind</th><th>missing</th><th>draws</th></tr>"
    if not results:
        return f"<div><b>zhat.Density</b><table>{head}{''.join(rows)}</table></div>"
    test, verdict = results["test"], results["verdict"]
    if test["rows"]:
        likelihood = (
            f"test log-likelihood <b>{_figure(test['log_likelihood'])}</b> ± {_figure(test['se_test'])} (rows) "
            f"± {_figure(test['se_log_z'])} (log Z) nats a row"
        )
    else:
        likelihood = "no test rows"
    points = [(line["step"], line["validation"]) for line in density.history_ if line.get("validation") is not None]
    if not points and results.get("cross_validation"):
        found = results["cross_validation"].get("curve", [])
        points = [(at["step"], at["log_likelihood"]) for at in found if at.get("log_likelihood") is not None]
    train, validation, tested = results["rows"]
    return (
        f"<div><b>zhat.Density</b>, {train} + {validation} + {tested} rows, {results['criterion']}, "
        f"{results['seconds']:.1f} s<br>{likelihood}<br>{_verdict(verdict)}"
        f"{curve(points)}<table>{head}{''.join(rows)}</table></div>"
    )


def _verdict(verdict: dict) -> str:
    reasons = "; ".join(html.escape(str(reason)) for reason in verdict.get("reasons", []))
    checks = verdict.get("checks") or []
    passed = f" ({sum(check['passed'] for check in checks)} of {len(checks)} checks passed)" if checks else ""
    if not verdict.get("trusted", True):
        return f"<span style='color:#b03020'>the likelihood is not to be trusted{passed}: {reasons}</span>"
    if verdict.get("fits") is False:
        return f"<span style='color:#a06a00'>the likelihood can be trusted, but draws are not like the data{passed}: {reasons}</span>"
    return f"<span style='color:#2a7a2a'>the likelihood can be trusted{passed}</span>"


def _figure(value: float | None) -> str:
    return "none" if value is None else f"{value:.4f}"


def _draws(density: Any) -> np.ndarray | None:
    """A thousand draws, made once."""
    from zhat._given import draws

    if getattr(density, "_drawn", None) is None or density._drawn[0] is not density._home:
        try:
            density._drawn = (density._home, draws(density, None, 1000))
        except (ValueError, RuntimeError):
            return None
    return density._drawn[1]
