"""Figures as files, for a light page and for a dark one."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Picture", "draw"]

_INKED = ("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor")
_INK = {False: "#24292f", True: "#dde3ea"}


class Picture(NamedTuple):
    """One figure, as PNG on white and on the dark page of the report."""

    name: str
    text: str
    light: bytes
    dark: bytes


def draw(
    name: str, text: str, plot: Callable[[Axes], Any], size: tuple[float, float]
) -> Picture | None:
    """Return what ``plot(ax)`` draws, or None where matplotlib is not installed."""
    try:
        return Picture(name, text, _png(plot, size, False), _png(plot, size, True))
    except ImportError:
        return None


def _png(plot: Callable[[Axes], Any], size: tuple[float, float], dark: bool) -> bytes:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    style: Any = dict.fromkeys(_INKED, _INK[dark])
    paper = "none" if dark else "white"
    with rc_context({**style, "axes.facecolor": "none", "font.size": 10}):
        figure = Figure(figsize=size, layout="constrained", facecolor=paper)
        ax = figure.subplots()
        ax.spines[["top", "right"]].set_visible(False)
        plot(ax)
        page = BytesIO()
        figure.savefig(page, format="png", dpi=144)
    return page.getvalue()
