"""Figures of predictions: reliability of probabilities, coverage of intervals, contributions."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.stats import norm
from sklearn.utils.validation import check_consistent_length

from dpbayes_sklearn._presenting import COLOURS, Drawn, check_matplotlib
from dpbayes_sklearn._typing import AnyArray, FloatArray
from dpbayes_sklearn.base.published import Contributions, Effect

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_LONGEST_BAR = 1.5  # Bars are cut off at this many times the largest effect.
_MOST_ROTATED = 6  # More labels than this are written at an angle.


class ReliabilityCurve(NamedTuple):
    """Mean confidence, accuracy and number of records of every group of predictions.

    ``low`` and ``high`` are the ends of an interval of the accuracy, if it has one of its own.
    """

    confidence: FloatArray
    accuracy: FloatArray
    n_records: AnyArray
    low: FloatArray | None = None
    high: FloatArray | None = None


def reliability_curve(
    confidence: npt.ArrayLike, right: npt.ArrayLike, n_groups: int = 10
) -> ReliabilityCurve:
    """Group predictions of like confidence, equally many in each, and compare with accuracy.

    Parameters
    ----------
    confidence : array-like of shape (n_samples,)
        Probability of the predicted class.
    right : array-like of bool of shape (n_samples,)
        Whether it was the true one.
    n_groups : int, default=10

    Examples
    --------
    >>> reliability_curve([0.6, 0.7, 0.9, 1.0], [True, False, True, True], n_groups=2)
    ReliabilityCurve(confidence=array([0.65, 0.95]), accuracy=array([0.5, 1. ]), ...)
    """
    stated, hit = np.asarray(confidence, np.float64), np.asarray(right, np.float64)
    order = np.argsort(stated, kind="stable")
    groups = [group for group in np.array_split(order, n_groups) if len(group)]
    return ReliabilityCurve(
        np.array([stated[group].mean() for group in groups]),
        np.array([hit[group].mean() for group in groups]),
        np.array([len(group) for group in groups]),
    )


class _Calibration(Drawn):
    """A curve against the diagonal, drawn from an estimator or from its predictions."""

    label: str | None
    line_: Line2D

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        label: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Predict and draw.

        Parameters
        ----------
        estimator : fitted classifier, or regression whose ``predict`` has ``return_std``
        X, y : records that it was not fitted to, with their classes or targets
        label : str, optional
            The name of the estimator if left out.
        ax : matplotlib Axes, optional
        **options
            See :meth:`from_predictions` and :meth:`plot`.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        named = type(estimator).__name__ if label is None else label
        return cls.from_predictions(
            y, **cls._predicted(estimator, X), label=named, ax=ax, **options
        )

    @classmethod
    @abstractmethod
    def from_predictions(cls, y_true: npt.ArrayLike, *args: Any, **options: Any) -> Self:
        """Draw precomputed predictions."""

    @staticmethod
    @abstractmethod
    def _predicted(estimator: Any, X: Any) -> dict[str, Any]:
        """Return predictions as :meth:`from_predictions` takes them."""

    def _finish(self, ax: Axes, x: FloatArray, y: FloatArray, color: str, low: float) -> None:
        """Draw the curve and its ideal, the diagonal; axes already drawn on are never cut."""
        style: Any = {"color": color, "ms": 5, "lw": 1.6, "label": self.label}
        (self.line_,) = ax.plot(x, y, "o-", **style)
        low = max(0.0, min(low, ax.get_xlim()[0]))
        ax.axline((0, 0), slope=1, color="0.5", lw=1, ls=(0, (4, 3)), zorder=0)
        ax.set(xlim=(low, 1.02), ylim=(low, 1.02), aspect="equal")
        ax.grid(alpha=0.35, lw=0.7)
        ax.set_axisbelow(True)
        if self.label is not None:
            ax.legend(frameon=False, loc="upper left")


class ReliabilityDisplay(_Calibration):
    """Accuracy among records with similar confidence, for any number of classes.

    On the diagonal predicted probabilities are calibrated; below it predictions are overconfident.
    From an estimator or from predictions the figure is computed without noise: use public records,
    or do not publish it. From a private evaluation it may be published.

    Parameters
    ----------
    curve : ReliabilityCurve
    label : str, optional
        Name in the legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        What it is drawn on.
    line_ : matplotlib Line2D
        The curve.
    calibration_error_ : float
        Mean distance between confidence and accuracy over the groups.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_breast_cancer
    >>> from dpbayes_sklearn import BayesianNaiveBayes
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BayesianNaiveBayes(
    ...     epsilon=2.0, classes=[0, 1], bounds=(X.min(0), X.max(0)), n_bins=4, random_state=0
    ... ).fit(X[::2], y[::2])
    >>> display = ReliabilityDisplay.from_estimator(
    ...     model, X[1::2], y[1::2], ax=Figure().subplots()
    ... )
    >>> display.calibration_error_ < 0.2
    True
    """

    def __init__(self, curve: ReliabilityCurve, label: str | None = None) -> None:
        self.curve = curve
        self.label = label

    @staticmethod
    def _predicted(estimator: Any, X: Any) -> dict[str, Any]:
        return {"y_prob": estimator.predict_proba(X), "classes": estimator.classes_}

    @classmethod
    def from_predictions(
        cls,
        y_true: npt.ArrayLike,
        y_prob: npt.ArrayLike,
        *,
        classes: npt.ArrayLike,
        n_groups: int = 10,
        label: str | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> Self:
        """Draw precomputed predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
        y_prob : array-like of shape (n_samples, n_classes)
        classes : array-like of shape (n_classes,)
            What the columns of ``y_prob`` are about.
        n_groups : int, default=10
            Groups of equally many records.
        label, ax, **plot_options
            See :meth:`plot`.
        """
        truth, chances = np.asarray(y_true), np.asarray(y_prob, np.float64)
        check_consistent_length(truth, chances)
        right = np.asarray(classes)[chances.argmax(axis=1)] == truth
        curve = reliability_curve(chances.max(axis=1), right, n_groups)
        return cls(curve, label).plot(ax, **plot_options)

    @classmethod
    def from_evaluation(
        cls,
        evaluation: Any,
        *,
        label: str | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the calibration curve of a private evaluation, with its intervals.

        It is an ``Evaluation`` of :func:`~dpbayes_sklearn.metrics.private_score` with
        "calibration_curve". Bins whose records are hidden by the noise are left out.
        """
        found = evaluation["calibration_curve"]
        clear = (found.high - found.low < 1) & (found.n_records > 0)
        stated, accuracy, low, high, n = (column[clear] for column in found)
        return cls(ReliabilityCurve(stated, accuracy, n, low, high), label).plot(ax, **plot_options)

    def plot(self, ax: Axes | None = None, *, color: str = COLOURS[0]) -> Self:
        """Draw the curve with two standard errors of every accuracy, or with its intervals."""
        ax = self._axes(ax, (4.8, 4.6))
        stated, accuracy, n, low_end, high_end = self.curve
        gaps = np.abs(stated - accuracy)
        self.calibration_error_ = float(np.average(gaps, weights=n)) if len(n) else np.nan
        error = np.tile(2 * np.sqrt(accuracy * (1 - accuracy) / n), (2, 1))
        if low_end is not None and high_end is not None:
            error = np.maximum([accuracy - low_end, high_end - accuracy], 0.0)
        ax.errorbar(stated, accuracy, error, fmt="none", color=color, alpha=0.5, lw=1.2)
        low = min([1.0, *stated, *(accuracy - error[0])])
        self._finish(ax, stated, accuracy, color, low - 0.03)
        ax.set(xlabel="stated probability", ylabel="share that is right")
        return self


# Nominal levels of intervals whose coverage is drawn.
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


class CoverageDisplay(_Calibration):
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
    >>> model = BayesianLinearRegression(3.0, bounds_X=(0, 1), bounds_y=(-2, 3), random_state=0)
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

    @staticmethod
    def _predicted(estimator: Any, X: Any) -> dict[str, Any]:
        return dict(zip(("mean", "std"), estimator.predict(X, return_std=True), strict=True))

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
        """Draw precomputed predictions, each an array of shape (n_samples,); see :meth:`plot`."""
        return cls(LEVELS, coverage_curve(y_true, mean, std), label).plot(ax, **plot_options)

    def plot(self, ax: Axes | None = None, *, color: str = COLOURS[0]) -> Self:
        """Draw the curve on axes, or on those of a new figure, and return the display."""
        ax = self._axes(ax, (4.8, 4.6))
        self._finish(ax, self.levels, self.coverage, color, 0.0)
        ax.set(xlabel="stated level of the interval", ylabel="share of targets within it")
        return self


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
