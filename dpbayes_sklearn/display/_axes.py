"""Create axes without touching pyplot's global state."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["COLOURS", "MARKERS", "Drawn", "against_diagonal", "check_matplotlib", "tidy"]

# colour-blind-safe palette, on white and on black
COLOURS = ("#2f7fc1", "#e08a1e", "#1f9e89", "#c75d9b", "#8a6fd1", "#7d8794")
MARKERS = ("o", "s", "^", "D", "v", "P")


def check_matplotlib(caller: str) -> None:
    """Raise an error that names what to install if matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError(
            f"{caller} needs matplotlib. Install it with pip install 'dpbayes_sklearn[plot]'."
        ) from None


class Drawn:
    """A display with the axes that it is drawn on."""

    ax_: Axes
    figure_: Figure | SubFigure

    def _axes(self, ax: Axes | None, size: tuple[float, float]) -> Axes:
        """Return the caller's axes, or those of a new figure, and remember them."""
        check_matplotlib(f"{type(self).__name__}.plot")
        if ax is None:
            ax = _new_axes(size)
        self.ax_, self.figure_ = ax, ax.figure
        return ax

    def _repr_png_(self) -> bytes | None:
        """Show the figure in a notebook, unless pyplot does."""
        figure = getattr(self, "figure_", None)
        if figure is None or figure.canvas.manager is not None:
            return None
        from io import BytesIO

        page = BytesIO()
        figure.savefig(page, format="png", dpi=110)
        return page.getvalue()


def _new_axes(size: tuple[float, float]) -> Axes:
    """Return axes of a figure of pyplot's if the caller uses it, so that ``plt.show()`` works."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        return tidy(pyplot.figure(figsize=size, layout="constrained").subplots())
    from matplotlib.figure import Figure

    return tidy(Figure(figsize=size, layout="constrained").subplots())


def tidy(ax: Axes) -> Axes:
    """Remove unneeded lines from the axes."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def against_diagonal(ax: Axes, low: float, label: str | None) -> None:
    """Finish a curve whose ideal is the diagonal of equal axes from ``low`` to 1."""
    ax.axline((0, 0), slope=1, color="0.5", lw=1, ls=(0, (4, 3)), zorder=0)
    ax.set(xlim=(low, 1.02), ylim=(low, 1.02), aspect="equal")
    ax.grid(alpha=0.35, lw=0.7)
    ax.set_axisbelow(True)
    if label is not None:
        ax.legend(frameon=False, loc="upper left")
