"""Coverage of the intervals of a regression: figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from scipy.stats import norm
from sklearn.utils.validation import check_consistent_length

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.display._axes import COLOURS, Drawn, against_diagonal, check_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CoverageDisplay", "coverage_curve"]

LEVELS = np.array([0.05, *np.arange(0.1, 0.91, 0.1), 0.95, 0.99])


def coverage_curve(
    y_true: npt.ArrayLike, mean: npt.ArrayLike, std: npt.ArrayLike, levels: npt.ArrayLike = LEVELS
) -> FloatArray:
    """Return the share of targets within mean ± z std, where z has the level between -z and z.

    Examples
    --------
    >>> coverage_curve([0.0, 1.0, 3.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.5, 0.95])
    array([0.3333..., 0.6666...])
    """
    truth, centre, spread = (np.asarray(a, np.float64) for a in (y_true, mean, std))
    check_consistent_length(truth, centre, spread)
    half_widths = norm.ppf((1 + np.asarray(levels, np.float64)) / 2)
    distance = np.abs(truth - centre)
    return np.array([(distance <= z * spread).mean() for z in half_widths])


class CoverageDisplay(Drawn):
    """Share of targets within prediction intervals, by the level of the interval.

    On the diagonal intervals have their stated coverage; below it they are too narrow. The figure
    is computed without noise: use public records, or do not publish it.

    Parameters
    ----------
    levels : array-like of shape (n_levels,)
        Stated probabilities of the intervals.
    coverage : array-like of shape (n_levels,)
        Shares of targets within them.
    label : str, optional
        Name in the legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        What it is drawn on.
    line_ : matplotlib Line2D
        The curve.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from dpbayes_sklearn import BayesianLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1, (4000, 2))
    >>> y = X @ [2.0, -1.0] + rng.normal(0, 0.3, 4000)
    >>> model = BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(-2, 3), random_state=0)
    >>> model = model.fit(X[:2000], y[:2000])
    >>> display = CoverageDisplay.from_estimator(
    ...     model, X[2000:], y[2000:], ax=Figure().subplots()
    ... )
    >>> bool(abs(display.coverage[-2] - 0.95) < 0.06)
    True
    """

    def __init__(
        self, levels: npt.ArrayLike, coverage: npt.ArrayLike, label: str | None = None
    ) -> None:
        self.levels = np.asarray(levels, np.float64)
        self.coverage = np.asarray(coverage, np.float64)
        self.label = label

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        label: str | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> Self:
        """Predict with standard deviations and draw.

        Parameters
        ----------
        estimator : fitted regression whose ``predict`` has ``return_std``
        X, y : records that it was not fitted to, with their targets
        label : str, optional
            The name of the estimator if left out.
        ax : matplotlib Axes, optional
        **plot_options
            See :meth:`plot`.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        mean, std = estimator.predict(X, return_std=True)
        named = type(estimator).__name__ if label is None else label
        return cls.from_predictions(y, mean, std, label=named, ax=ax, **plot_options)

    @classmethod
    def from_predictions(
        cls,
        y_true: npt.ArrayLike,
        mean: npt.ArrayLike,
        std: npt.ArrayLike,
        *,
        label: str | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> Self:
        """Draw precomputed predictions.

        Parameters
        ----------
        y_true, mean, std : array-like of shape (n_samples,)
        label : str, optional
        ax : matplotlib Axes, optional
        **plot_options
            See :meth:`plot`.
        """
        return cls(LEVELS, coverage_curve(y_true, mean, std), label).plot(ax, **plot_options)

    def plot(self, ax: Axes | None = None, *, color: str = COLOURS[0]) -> Self:
        """Draw the curve; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a figure of its own if left out.
        color : matplotlib colour

        Returns
        -------
        self
        """
        ax = self._axes(ax, (4.8, 4.6))
        style: Any = {"color": color, "ms": 5, "lw": 1.6, "label": self.label}
        (self.line_,) = ax.plot(self.levels, self.coverage, "o-", **style)
        ax.set(xlabel="stated level of the interval", ylabel="share of targets within it")
        against_diagonal(ax, 0.0, self.label)
        return self
