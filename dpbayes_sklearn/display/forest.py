"""A forest plot: odds ratios of a logistic regression with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from dpbayes_sklearn.display._axes import COLOURS, Drawn, check_matplotlib
from dpbayes_sklearn.linear_model import BayesianLogisticRegression
from dpbayes_sklearn.logistic.coefficients import OddsTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ForestDisplay"]


class ForestDisplay(Drawn):
    """Odds ratios on a logarithmic axis; a band shows which part of an interval privacy adds.

    Parameters
    ----------
    table : OddsTable
        From ``BayesianLogisticRegression.coefficients()``.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from dpbayes_sklearn import BayesianLogisticRegression, ForestDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (5000, 2))
    >>> y = rng.random(5000) < 1 / (1 + np.exp(-X[:, 0]))
    >>> model = BayesianLogisticRegression(
    ...     effects="linear", intervals=True, bounds=(-1, 1), classes=[False, True], random_state=0
    ... )
    >>> display = ForestDisplay.from_estimator(model.fit(X, y))
    >>> [row.name for row in display.table.rows]
    ['x0', 'x1']
    """

    def __init__(self, table: OddsTable) -> None:
        self.table = table

    @classmethod
    def from_estimator(
        cls,
        estimator: BayesianLogisticRegression,
        ax: Axes | None = None,
        *,
        level: float = 0.95,
        **plot_options: Any,
    ) -> Self:
        """Draw the odds ratios of a fitted logistic regression; the intercept is left out.

        Parameters
        ----------
        estimator : BayesianLogisticRegression
            Fitted.
        ax : matplotlib Axes, optional
            Where to draw; a figure of its own if left out.
        level : float, default=0.95
            Nominal coverage of the intervals.
        **plot_options
            Passed to :meth:`plot`.

        Returns
        -------
        ForestDisplay
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator)
        table = estimator.coefficients(level)
        rows = tuple(row for row in table.rows if row.name != "intercept")
        return cls(OddsTable(rows, level, table.no_intervals)).plot(ax, **plot_options)

    def plot(self, ax: Axes | None = None, *, color: str = COLOURS[0]) -> Self:
        """Draw one row for each effect; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a figure of its own if left out.
        color : matplotlib colour

        Returns
        -------
        self
        """
        rows, level = self.table.rows, self.table.level
        ax = self._axes(ax, (6.8, 1.3 + 0.32 * len(rows)))
        y, estimates = np.arange(len(rows)), np.array([row.estimate for row in rows])
        ax.axvline(1.0, color="0.5", lw=0.8, zorder=0)
        if not self.table.no_intervals:
            ends = np.array([(row.odds_ratio_low, row.odds_ratio_high) for row in rows])
            reach = ndtri(0.5 + level / 2) * np.array([row.sampling_sd for row in rows])
            inner = np.exp([estimates - reach, estimates + reach])
            ax.hlines(y, *ends.T, color=color, lw=7, alpha=0.28, label=f"{level:.0%} interval")
            ax.hlines(y, *inner, color=color, lw=2.4, label="without the privacy noise")
        ax.plot(np.exp(estimates), y, "o", color=color, ms=5.5)
        ax.set_xscale("log")
        ax.set_yticks(y, [row.name for row in rows])
        ax.set_ylim(len(rows) - 0.4, -0.6)
        ax.set_xlabel("odds ratio")
        ax.grid(axis="x", alpha=0.35, lw=0.7)
        ax.set_axisbelow(True)
        if not self.table.no_intervals:
            ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        return self
