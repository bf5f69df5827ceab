"""Progress of a fit: a picture in a notebook, a line every few seconds elsewhere."""

from __future__ import annotations

import json
import sys
import time
from typing import Any, Callable

#: Seconds from one line to the next.
EVERY = 5.0
#: Seconds from one picture to the next.
DRAWN_EVERY = 0.5


def listener(verbose: int, told: Callable[[dict], None]) -> Callable[[str], None]:
    """What the library calls with every event, as JSON."""
    shown: Any = None
    if verbose:
        shown = _Picture() if _in_notebook() else _Lines()
    return _Listener(told, shown)


def _in_notebook() -> bool:
    try:
        shell = sys.modules["IPython"].get_ipython()
    except (KeyError, AttributeError):
        return False
    return shell is not None and shell.__class__.__name__ == "ZMQInteractiveShell"


class _Listener:
    def __init__(self, told: Callable[[dict], None], shown: Any):
        self.told, self.shown = told, shown

    def __call__(self, text: str) -> None:
        event = json.loads(text)
        self.told(event)
        if self.shown is not None:
            self.shown.on(event)

    def close(self) -> None:
        if self.shown is not None:
            self.shown.close()


class _Lines:
    """A line to standard error every few seconds, and at every validation that is the best so far."""

    def __init__(self, stream: Any = None, every: float = EVERY):
        self.stream, self.every, self.last = stream or sys.stderr, every, time.monotonic() - every
        self.validation = ""

    def on(self, event: dict) -> None:
        kind = event["event"]
        if kind == "validation":
            self.validation = f", validation {event['log_likelihood']:.3f}" + ("*" if event["best"] else "")
        elif kind in ("step", "cross-validation") and time.monotonic() - self.last >= self.every:
            self.last = time.monotonic()
            what = "cross-validation, step" if kind == "cross-validation" else "step"
            left = f", left out {event['log_likelihood']:.3f}" if kind == "cross-validation" else self.validation
            loss = f", loss {event['loss']:.3f}" if "loss" in event else ""
            print(f"zhat: {what} {event['step']} of {event['steps']}{loss}{left}", file=self.stream, flush=True)
        elif kind == "evaluating":
            print(f"zhat: evaluating{self.validation}", file=self.stream, flush=True)

    def close(self) -> None:
        pass


class _Picture:
    """A bar and the validation curve, drawn over and over in a notebook."""

    def __init__(self) -> None:
        from IPython.display import display

        self.curve: list[tuple[float, float]] = []
        self.text, self.share, self.last = "preparing", 0.0, 0.0
        self.handle = display(_Html(self._html()), display_id=True)

    def on(self, event: dict) -> None:
        kind = event["event"]
        if kind in ("step", "cross-validation"):
            self.share = event["step"] / max(event["steps"], 1)
            what = "step" if kind == "step" else "cross-validation, step"
            self.text = f"{what} {event['step']} of {event['steps']}"
        if kind in ("validation", "cross-validation"):
            self.curve.append((event["step"], event["log_likelihood"]))
        if kind == "evaluating":
            self.text = "evaluating"
        if kind == "evaluating" or time.monotonic() - self.last > DRAWN_EVERY:
            self.last = time.monotonic()
            self.handle.update(_Html(self._html()))

    def close(self) -> None:
        self.handle.update(_Html(self._html()))

    def _html(self) -> str:
        from zhat._html import curve

        bar = (
            '<div style="width:320px;background:#ddd;height:8px;border-radius:4px">'
            f'<div style="width:{100 * self.share:.0f}%;background:#3b6ea5;height:8px;border-radius:4px"></div></div>'
        )
        return f"<div>{self.text}{bar}{curve(self.curve)}</div>"


class _Html:
    def __init__(self, text: str):
        self.text = text

    def _repr_html_(self) -> str:
        return self.text
