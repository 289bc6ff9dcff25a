"""Figures of score against epsilon, by cross-validation."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import cross_val_score

from dpbayes_sklearn._presenting import COLOURS, MARKERS, Drawn, check_matplotlib, progress
from dpbayes_sklearn.exceptions import PrivacyLeakWarning
from dpbayes_sklearn.mechanisms import Mechanism, resolve_mechanism
from dpbayes_sklearn.privacy.budget import at_least

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

FoldScores = Mapping[str, Mapping[float, Sequence[float]]]
"""For every mechanism and epsilon the scores of the folds."""

# Budgets at which utility is measured unless others are given.
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)

_BANDS = ("fill_between", "errorbar", None)  # How the spread of repetitions can be drawn.


class PrivacyUtilityCurve(NamedTuple):
    """Scores of the folds for every mechanism and epsilon, and the mean one without privacy."""

    scores: FoldScores
    baseline: float


def privacy_utility_curve(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    epsilons: Sequence[float] = EPSILONS,
    mechanisms: Sequence[str | Mechanism] | None = None,
    cv: Any = None,
    scoring: Any = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> PrivacyUtilityCurve:
    """Cross-validate an estimator at every epsilon and mechanism.

    The scores are computed without noise: use public or synthetic data, or do not publish the
    result. An accountant of the estimator is charged for every fit.

    Parameters
    ----------
    estimator : estimator of this library, or a pipeline that ends in one
    X, y : data
    epsilons : sequence of float, default=(0.1, 0.3, 1, 3, 10)
    mechanisms : sequence of str or Mechanism, optional
        By default all that the estimator has but "auto"; those that need a delta only with one.
    cv, scoring, n_jobs
        As in :func:`sklearn.model_selection.cross_val_score`.
    verbose : bool, default=False
        Show a progress bar, if tqdm is installed.

    Returns
    -------
    PrivacyUtilityCurve
        ``(scores, baseline)``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dpbayes_sklearn import BayesianNaiveBayes
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BayesianNaiveBayes(bounds=(0, 8), n_bins=8, classes=[0, 1, 2])
    >>> curve = privacy_utility_curve(model, X, y, epsilons=[1, 100], mechanisms=["laplace"])
    >>> {epsilon: len(folds) for epsilon, folds in curve.scores["laplace"].items()}
    {1: 5, 100: 5}
    >>> curve.baseline > 0.9
    True
    """
    prefix = _where(estimator)

    def scores(**parameters: Any) -> list[float]:
        named = {prefix + name: value for name, value in parameters.items()}
        candidate = clone(estimator).set_params(**named)
        folds = cross_val_score(candidate, X, y, cv=cv, scoring=scoring, n_jobs=n_jobs)
        return [float(score) for score in folds]

    chosen = {_label(m): m for m in mechanisms or _all_mechanisms(estimator, prefix)}
    result: dict[str, dict[float, list[float]]] = {label: {} for label in chosen}
    baseline = float(np.mean(scores(epsilon=math.inf)))
    with warnings.catch_warnings():  # every leak was warned of by the fits above
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        steps = [(label, epsilon) for label in chosen for epsilon in epsilons]
        for label, epsilon in progress(steps, "cross-validation", verbose=verbose):
            result[label][epsilon] = scores(mechanism=chosen[label], epsilon=epsilon)
    return PrivacyUtilityCurve(result, baseline)


def _where(estimator: Any) -> str:
    """Return what stands before ``epsilon`` in the names of the parameters."""
    names: list[str] = [*estimator.get_params()]
    found = [
        prefix
        for prefix in (name.removesuffix("epsilon") for name in names if name.endswith("epsilon"))
        if prefix + "mechanism" in names
    ]
    if not found:
        raise ValueError(
            f"{type(estimator).__name__} has no parameters epsilon and mechanism. Give an "
            "estimator of dpbayes_sklearn, or a pipeline that ends in one."
        )
    return min(found, key=len)


def _all_mechanisms(estimator: Any, prefix: str) -> list[str]:
    """Return the names of all mechanisms but "auto"; those that need a delta if there is one."""
    model = estimator.get_params()[prefix.removesuffix("__")] if prefix else estimator
    names, _ = type(model)._parameter_constraints["mechanism"]
    pure = not model.get_params().get("delta", 0)
    left_out = {n for n in names.options if pure and resolve_mechanism(n).needs_delta} | {"auto"}
    return sorted(names.options - left_out, key=lambda name: (name != "laplace", name))


def _label(mechanism: str | Mechanism) -> str:
    return mechanism if isinstance(mechanism, str) else repr(mechanism)


class PrivacyUtilityDisplay(Drawn):
    """Curves of score against epsilon, one per mechanism, with the non-private score.

    Create it with :meth:`from_estimator` or :meth:`from_results`, which also draw it. The scores
    are computed without noise: use public or synthetic data, or do not publish the figure.

    Parameters
    ----------
    scores : mapping of str to mapping of float to sequence of float
        For every mechanism and epsilon the scores of the folds.
    baseline : float, optional
        Mean score without privacy.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        What it is drawn on.
    lines_ : dict of str to matplotlib Line2D
        The curve of every mechanism.
    bands_ : dict of str to matplotlib artist
        One standard deviation of the folds on each side of every curve.
    baseline_ : matplotlib Line2D or None
        The non-private score.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> display = PrivacyUtilityDisplay.from_results(
    ...     {"laplace": {0.1: [0.5, 0.6], 1.0: [0.8, 0.9]}}, baseline=0.95, ax=Figure().subplots()
    ... )
    >>> display.lines_["laplace"].get_ydata().tolist()
    [0.55, 0.85]
    >>> print(display.table())
    epsilon       0.1       1     inf
    laplace     0.550   0.850   0.950
    """

    def __init__(self, scores: FoldScores, baseline: float | None = None) -> None:
        self.scores = scores
        self.baseline = baseline

    @classmethod
    def from_results(
        cls,
        scores: FoldScores,
        baseline: float | None = None,
        *,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> Self:
        """Draw precomputed scores, such as those of ``privacy_utility_curve``; see :meth:`plot`."""
        return cls(scores, baseline).plot(ax, **plot_options)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        epsilons: Sequence[float] = EPSILONS,
        mechanisms: Sequence[str | Mechanism] | None = None,
        cv: Any = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> Self:
        """Cross-validate the estimator at every epsilon and mechanism, and draw the scores.

        Parameters
        ----------
        estimator, X, y, epsilons, mechanisms, cv, scoring, n_jobs, verbose
            As in :func:`dpbayes_sklearn.display.privacy_utility_curve`.
        ax : matplotlib Axes, optional
        **plot_options
            See :meth:`plot`.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")  # before hours of work
        curve = privacy_utility_curve(
            estimator,
            X,
            y,
            epsilons=epsilons,
            mechanisms=mechanisms,
            cv=cv,
            scoring=scoring,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        plot_options.setdefault("ylabel", _name_of_score(estimator, scoring))
        return cls.from_results(*curve, ax=ax, **plot_options)

    def table(self) -> str:
        """Return the mean scores as text, one line per mechanism."""
        epsilons = sorted({e for curve in self.scores.values() for e in curve})
        heads = ["epsilon", *(at_least(e) for e in epsilons)]
        rows = [
            [name, *(f"{np.mean(curve[e]):.3f}" if e in curve else "" for e in epsilons)]
            for name, curve in self.scores.items()
        ]
        if self.baseline is not None:
            heads.append("inf")
            rows = [[*row, f"{self.baseline:.3f}"] for row in rows]
        width = max(len(name) for name, *_ in [heads, *rows]) + 2
        lines = (f"{name:{width}}" + "".join(f"{c:>8}" for c in r) for name, *r in [heads, *rows])
        return "\n".join(lines)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        ylabel: str = "score",
        std_display_style: str | None = "fill_between",
        line_kw: Mapping[str, Any] | None = None,
    ) -> Self:
        """Draw the curves; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a figure of its own if left out.
        ylabel : str, default="score"
        std_display_style : {"fill_between", "errorbar", None}, default="fill_between"
            How to show one standard deviation of the folds.
        line_kw : dict, optional
            Options of every curve, for ``Axes.plot``.

        Returns
        -------
        self
        """
        if std_display_style not in _BANDS:
            raise ValueError(
                f"The 'std_display_style' parameter of {type(self).__name__}.plot must be one of "
                f"{_BANDS}. Got {std_display_style!r} instead."
            )
        ax = self._axes(ax, (6.4, 4.2))
        self.lines_: dict[str, Line2D] = {}
        self.bands_: dict[str, Any] = {}
        styles = zip(cycle(COLOURS), cycle(MARKERS), self.scores.items(), strict=False)
        for colour, marker, (mechanism, curve) in styles:
            epsilons = sorted(curve)
            means = np.array([np.mean(curve[e]) for e in epsilons])
            spread = np.array([np.std(curve[e]) for e in epsilons])
            look = {"color": colour, "marker": marker, "ms": 5, "lw": 1.8, **(line_kw or {})}
            (line,) = ax.plot(epsilons, means, label=mechanism, **look)
            self.lines_[mechanism] = line
            if std_display_style == "fill_between":
                self.bands_[mechanism] = ax.fill_between(
                    epsilons, means - spread, means + spread, alpha=0.1, lw=0, color=colour
                )
            elif std_display_style == "errorbar":
                self.bands_[mechanism] = ax.errorbar(
                    epsilons, means, spread, fmt="none", capsize=3, color=colour
                )
        self._finish(ax, ylabel)
        return self

    def _finish(self, ax: Axes, ylabel: str) -> None:
        from matplotlib import rcParams

        self.baseline_: Line2D | None = None
        if self.baseline is not None:
            self.baseline_ = ax.axhline(
                self.baseline, color=rcParams["text.color"], ls=(0, (4, 3)), lw=1, alpha=0.7,
                label="no privacy",
            )  # fmt: skip
        ax.set(xscale="log", xlabel="privacy budget ε (smaller is more private)", ylabel=ylabel)
        ticks = sorted({e for curve in self.scores.values() for e in curve})
        ax.set_xticks(ticks, [at_least(e) for e in ticks])
        ax.minorticks_off()
        ax.grid(axis="y", alpha=0.35, lw=0.7)
        ax.set_axisbelow(True)
        ax.legend(frameon=False, loc="best")


def _name_of_score(estimator: Any, scoring: Any) -> str:
    if isinstance(scoring, str):
        return scoring.replace("_", " ")
    if is_classifier(estimator):
        return "accuracy"
    return "R²" if is_regressor(estimator) else "score"
