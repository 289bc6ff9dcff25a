"""Figures of what columns add to predictions, and of odds ratios with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from dpbayes_sklearn._presenting import COLOURS, Drawn, check_matplotlib
from dpbayes_sklearn.base.published import Contributions, Effect
from dpbayes_sklearn.linear_model import BayesianLogisticRegression
from dpbayes_sklearn.logistic.posterior import OddsTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_LONGEST_BAR = 1.5  # Bars are cut off at this many times the largest effect.
_MOST_ROTATED = 6  # More labels than this are written at an angle.


class ContributionDisplay(Drawn):
    """What every column adds to the prediction of a record, or one column by its value.

    Everything is computed from the released model, and may be published with it.

    Parameters
    ----------
    shown : Contributions or Effect
        Of one record, or of one column.
    n_features : int, default=12
        Columns shown for a record: those that add most; the others are added up.
    class_index : int, default=-1
        Which class is shown for a record, from three classes on.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        What it is drawn on.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from dpbayes_sklearn import BayesianNaiveBayes
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 1000)
    >>> X = (rng.random((1000, 3)) < 0.2 + 0.6 * y[:, None]).astype(int)
    >>> model = BayesianNaiveBayes(classes=[0, 1], bounds=(0, 1), n_bins=2).fit(X, y)
    >>> one = ContributionDisplay.from_record(model, X[:1], ax=Figure().subplots())
    >>> curve = ContributionDisplay.from_feature(model, "x0", ax=Figure().subplots())
    >>> curve.shown.labels
    ('0', '1')
    """

    def __init__(
        self, shown: Contributions | Effect, n_features: int = 12, class_index: int = -1
    ) -> None:
        self.shown = shown
        self.n_features = n_features
        self.class_index = class_index

    @classmethod
    def from_record(
        cls,
        estimator: Any,
        X: Any,
        *,
        n_features: int = 12,
        class_index: int = -1,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the contributions of one record, an X of shape (1, n_features), as bars.

        The estimator is fitted and has ``contributions``; other parameters are as in the class.
        """
        check_matplotlib(f"{cls.__name__}.from_record")
        found = estimator.contributions(X)
        if len(found.values) != 1:
            raise ValueError(f"X must be one record. Got n_samples={len(found.values)} instead.")
        return cls(found, n_features, class_index).plot(ax)

    @classmethod
    def from_feature(
        cls, estimator: Any, feature: int | str, *, level: float = 0.95, ax: Axes | None = None
    ) -> Self:
        """Draw what one column, by name or number, adds by its value, with a band of a level.

        The estimator is fitted and has ``effect``.
        """
        check_matplotlib(f"{cls.__name__}.from_feature")
        return cls(estimator.effect(feature, level)).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on axes, or on those of a new figure, and return the display."""
        if isinstance(self.shown, Effect):
            self._draw_curve(self._axes(ax, (5.6, 3.8)), self.shown)
        else:
            self._draw_bars(self._axes(ax, (6.2, 4.2)), self.shown)
        return self

    def _draw_bars(self, ax: Axes, shown: Contributions) -> None:
        values, baseline = shown.values[0], shown.baseline
        if values.ndim == 2:
            values, baseline = values[:, self.class_index], baseline[self.class_index]
        order = np.argsort(-np.abs(values), kind="stable")
        most, rest = order[: self.n_features], order[self.n_features :]
        names = ["baseline", *(shown.names[j] for j in most)]
        bars = [float(baseline), *values[most]]
        if len(rest):
            names.append(f"{len(rest)} others")
            bars.append(float(values[rest].sum()))
        names.append("sum")
        bars.append(float(baseline + values.sum()))
        plain = [COLOURS[0] if bar >= 0 else COLOURS[1] for bar in bars]
        ax.barh(names, bars, color=[COLOURS[-1], *plain[1:-1], "0.25"])
        ax.invert_yaxis()
        ax.axvline(0, color="0.5", lw=1)
        ax.set(xlabel=shown.what)

    def _draw_curve(self, ax: Axes, shown: Effect) -> None:
        most = _LONGEST_BAR * max(float(np.abs(shown.value).max()), 0.5)
        ends = np.clip([shown.low, shown.high], -most, most)  # of a bin that is nearly empty
        lines = [np.atleast_2d(a) for a in (shown.value, *ends)]
        for number, (value, low, high) in enumerate(zip(*lines, strict=True)):
            colour = COLOURS[number % len(COLOURS)]
            if shown.labels:
                if shown.steps:
                    ax.step(shown.places, value, color=colour, lw=1.6, where="mid")
                bars: Any = {"fmt": "o", "color": colour, "lw": 1, "ms": 4}
                ax.errorbar(shown.places, value, [value - low, high - value], **bars)
            else:
                ax.plot(shown.places, value, color=colour, lw=1.6)
                ax.fill_between(shown.places, low, high, color=colour, alpha=0.2, lw=0)
        ax.axhline(0, color="0.5", lw=1, ls=(0, (4, 3)))
        ax.set(xlabel=shown.name, ylabel=f"added to the {shown.what}")
        if shown.labels:
            many = len(shown.labels) > _MOST_ROTATED
            slant: Any = {"rotation": 35, "ha": "right"} if many else {}
            ax.set_xticks(shown.places, shown.labels, **slant)


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

        ``level`` is the nominal coverage of the intervals; other options are of :meth:`plot`.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator)
        table = estimator.coefficients(level)
        rows = tuple(row for row in table.rows if row.name != "intercept")
        return cls(OddsTable(rows, level, table.no_intervals)).plot(ax, **plot_options)

    def plot(self, ax: Axes | None = None, *, color: str = COLOURS[0]) -> Self:
        """Draw one row for each effect on axes, or on those of a new figure."""
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
