"""Figures of a released posterior and its prior, and of odds ratios with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np
from scipy.special import ndtri
from scipy.stats import beta, norm
from sklearn.utils.validation import check_is_fitted

from dpbayes_sklearn._presenting import COLOURS, Drawn, check_matplotlib
from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.base.classifier import DiscreteClassifier
from dpbayes_sklearn.categories.posterior import Beta, Dirichlet
from dpbayes_sklearn.conjugate import BetaBinomial, DirichletMultinomial
from dpbayes_sklearn.convex.coefficients import CoefficientTable, coefficient_table
from dpbayes_sklearn.convex.design import Windows
from dpbayes_sklearn.convex.posterior import GaussianPosterior
from dpbayes_sklearn.convex.slopes import Slopes
from dpbayes_sklearn.count_regression import BayesianCountRegression
from dpbayes_sklearn.counts.adaptive_cells import mutual_information
from dpbayes_sklearn.linear_model import BayesianLinearRegression, BayesianLogisticRegression
from dpbayes_sklearn.logistic.posterior import OddsTable
from dpbayes_sklearn.naive_bayes import BayesianNaiveBayes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Features are ordered by information from this many draws of the posterior.
_INFORMATION_DRAWS = 400

_DENSITY_DRAWS = 2000  # Densities are drawn from this many draws of the posterior.
_SHOWN_FEATURES = 12  # This many features are shown: the most informative ones.


def informative_features(model: BayesianNaiveBayes, n_features: int) -> dict[str, FloatArray]:
    """Return posterior draws of I(feature; class) in nats, for the most informative features.

    They are chosen by ``feature_importances_`` and sorted by the mean of their draws.
    """
    names = [*model.schema_.columns]
    chosen = np.argsort(-model.feature_importances_, kind="stable")[:n_features]
    rng = np.random.default_rng(0)  # what is released may be looked at with any
    *tables, classes = model.posterior_.sample(rng, _INFORMATION_DRAWS)
    draws = {
        names[j]: np.array(
            [mutual_information(*pair) for pair in zip(classes, tables[j], strict=True)]
        )
        for j in chosen
    }
    return dict(sorted(draws.items(), key=lambda item: -item[1].mean()))


class MarginalLaw(Protocol):
    """A distribution of one number, such as a frozen one of ``scipy.stats``."""

    def mean(self) -> Any:
        """Return the expectation."""

    def interval(self, confidence: float) -> Any:
        """Return the ends of the interval with equal tails."""


class Marginals(NamedTuple):
    """Laws of the parameters by name, and what kind of number they are about."""

    posterior: Mapping[str, MarginalLaw]
    prior: Mapping[str, MarginalLaw] | None
    quantity: str


@dataclass(frozen=True)
class Draws:
    """A law that is known by draws from it."""

    draws: FloatArray

    def mean(self) -> float:
        """Return the mean of the draws."""
        return float(self.draws.mean())

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return two quantiles of the draws."""
        low, high = np.quantile(self.draws, [(1 - confidence) / 2, (1 + confidence) / 2])
        return float(low), float(high)


@dataclass(frozen=True)
class Slope:
    """A coefficient of a regression with its interval, if it has one."""

    model: BayesianLinearRegression
    name: str

    def mean(self) -> float:
        """Return the estimate."""
        return self.model.coefficients()[self.name].estimate

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the ends of the table; NaN if it has none."""
        row = self.model.coefficients(confidence)[self.name]
        return (row.low, row.high) if row.identified else (np.nan, np.nan)


def simplex_laws(belief: Dirichlet, names: list[str]) -> dict[str, MarginalLaw]:
    """Laws of every probability on its own; of a Beta, the first alone."""
    shown = names[:1] if isinstance(belief, Beta) else names
    return {name: beta(a, b) for name, (a, b) in zip(shown, belief.marginals(), strict=False)}


@singledispatch
def marginals(estimator: Any, column: str | None = None) -> Marginals:
    """Return the laws of a fitted estimator's parameters."""
    raise TypeError(
        "PosteriorDisplay shows fitted BetaBinomial, DirichletMultinomial, "
        "BayesianLinearRegression, BayesianNaiveBayes and BayesianNetworkClassifier. "
        f"Got {type(estimator).__name__} instead."
    )


@marginals.register(BetaBinomial)
@marginals.register(DirichletMultinomial)
def _(estimator: Any, column: str | None = None) -> Marginals:
    _refuse(estimator, column)
    names = [str(value) for value in estimator.categories_.values]
    if isinstance(estimator, BetaBinomial):
        names = ["probability of a one", ""]
    laws = (estimator.posterior_, estimator._belief(estimator.categories_))
    posterior, prior = (simplex_laws(belief, names) for belief in laws)
    return Marginals(posterior, prior, "probability")


@marginals.register
def _(estimator: BayesianLinearRegression, column: str | None = None) -> Marginals:
    _refuse(estimator, column)
    design, scale = estimator._design, estimator._scale
    variances = 1 / (estimator.prior_precision * np.where(design.signs, 2.0, 1.0))
    start = np.zeros(design.width + 1)
    spread = np.diag([0.0, *variances])  # the prior of the intercept is flat: it has no row
    slopes, windows = Slopes.of(start, spread, design), Windows.whole(design.width)
    belief = GaussianPosterior(start, spread, 1.0, slopes, windows, None)
    before = coefficient_table(estimator.schema_, design, belief, scale.half, 0.0, 0.95)
    rows = [row for row in before.rows if row.name != "intercept"]
    prior = {row.name: norm(row.estimate, row.sd) for row in rows}
    posterior = {row.name: Slope(estimator, row.name) for row in rows}
    return Marginals(posterior, prior, "coefficient, in the units of the data")


@marginals.register
def _(estimator: BayesianNaiveBayes, column: str | None = None) -> Marginals:
    if column is not None:
        return _of_a_table(estimator, column)
    found = informative_features(estimator, _SHOWN_FEATURES)
    laws = {name: Draws(draws) for name, draws in found.items()}
    return Marginals(laws, None, "mutual information with the class (nats)")


@marginals.register(DiscreteClassifier)
def _of_a_table(estimator: DiscreteClassifier, column: str | None = None) -> Marginals:
    network, schema = estimator.posterior_.network, estimator.schema_
    titles = [*schema.columns, "class"]
    if column is not None and column not in titles:
        raise ValueError(f"column must be one of {titles}. Got {column!r} instead.")
    node = network.target if column is None else titles.index(column)
    domains = [*schema.columns.values(), schema.classes]
    rng = np.random.default_rng(0)  # what is released may be looked at with any
    drawn = estimator.posterior_.sample(rng, _DENSITY_DRAWS)[node]
    alpha = estimator._alphas(network)[node]
    posterior, prior = {}, {}
    for cell in np.ndindex(network.shapes[node]):
        values = [
            domains[u].names_of_codes()[v]
            for u, v in zip(network.families[node], cell, strict=True)
        ]
        given = [f"{titles[u]} {v}" for u, v in zip(network.parents[node], values, strict=False)]
        name = f"{titles[node]} {values[-1]}" + (" | " + ", ".join(given) if given else "")
        posterior[name] = Draws(drawn[(slice(None), *cell)])
        prior[name] = beta(alpha[cell[-1]], alpha.sum() - alpha[cell[-1]])
    return Marginals(posterior, prior, "probability")


def _refuse(estimator: Any, column: str | None) -> None:
    if column is not None:
        raise ValueError(f"{type(estimator).__name__} has no tables of columns: leave column out.")


class PosteriorDisplay(Drawn):
    """Credible intervals of a released posterior and of the prior.

    A single parameter is drawn as a density; several parameters are drawn as one row each. Create
    it with :meth:`from_estimator` or :meth:`from_posterior`, which also draw it. It depends only on
    the release, so it has no privacy cost.

    Parameters
    ----------
    posterior : mapping of str to law
        For every parameter a law with ``mean()`` and ``interval(confidence)``, such as a frozen
        distribution of ``scipy.stats``.
    prior : mapping of str to law, optional
        The same before the data.
    quantity : str, default="probability"
        What the parameters are.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        What it is drawn on.
    means_ : dict of str to float
        Posterior means.
    intervals_ : dict of str to (float, float)
        Credible intervals of the posterior; NaN where the error of an estimate is not known.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from dpbayes_sklearn import BetaBinomial
    >>> model = BetaBinomial(epsilon=1.0, random_state=0).fit([1] * 300 + [0] * 700)
    >>> display = PosteriorDisplay.from_estimator(model, ax=Figure().subplots())
    >>> low, high = display.intervals_["probability of a one"]
    >>> 0.25 < low < high < 0.35
    True
    """

    def __init__(
        self,
        posterior: Mapping[str, MarginalLaw],
        prior: Mapping[str, MarginalLaw] | None = None,
        *,
        quantity: str = "probability",
    ) -> None:
        self.posterior = posterior
        self.prior = prior
        self.quantity = quantity

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        column: str | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the posterior of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator of this library
        column : str, optional
            For a classifier: the column whose probabilities given its parents are shown, or
            "class". By default, naive Bayes shows the mutual information of its most informative
            features with the class, and a network shows the probabilities of the classes.
        ax : matplotlib Axes, optional
        **plot_options
            See :meth:`plot`.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator)
        posterior, prior, quantity = marginals(estimator, column)
        return cls(posterior, prior, quantity=quantity).plot(ax, **plot_options)

    @classmethod
    def from_posterior(
        cls,
        posterior: Dirichlet,
        prior: Dirichlet | None = None,
        *,
        names: Sequence[str] | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> Self:
        """Draw a Beta or Dirichlet law.

        Parameters
        ----------
        posterior : Beta or Dirichlet
            Such as ``posterior_`` of :class:`BetaBinomial` and :class:`DirichletMultinomial`.
        prior : Beta or Dirichlet, optional
        names : sequence of str, optional
            One for each category.
        ax : matplotlib Axes, optional
        **plot_options
            See :meth:`plot`.
        """
        size = len(posterior.concentration)
        called = [str(i) for i in range(size)] if names is None else [str(name) for name in names]
        if len(called) != size:
            raise ValueError(f"names must have {size} entries. Got {len(called)} instead.")
        before = None if prior is None else simplex_laws(prior, called)
        return cls(simplex_laws(posterior, called), before).plot(ax, **plot_options)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        level: float = 0.95,
        show_prior: bool = True,
        color: str = COLOURS[0],
    ) -> Self:
        """Draw means and credible intervals; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a figure of its own if left out.
        level : float, default=0.95
            Probability of the intervals.
        show_prior : bool, default=True
        color : matplotlib colour
            Of the posterior.

        Returns
        -------
        self
        """
        if not 0 < level < 1:
            raise ValueError(
                f"The 'level' parameter of {type(self).__name__}.plot must be a float in the "
                f"range (0, 1). Got {level!r} instead."
            )
        rows = len(self.posterior)
        ax = self._axes(ax, (6.4, 3.4 if rows == 1 else 1.2 + 0.32 * rows))
        self.means_ = {name: float(law.mean()) for name, law in self.posterior.items()}
        self.intervals_ = {name: _ends(law, level) for name, law in self.posterior.items()}
        prior = self.prior if show_prior else None
        laws = [*self.posterior.values(), *(prior or {}).values()]
        if rows == 1 and all(hasattr(law, "pdf") for law in laws):
            self._density(ax, prior, level, color)
        else:
            self._rows(ax, prior, level, color)
        ax.set_xlabel(self.quantity if rows > 1 else next(iter(self.posterior)))
        return self

    def _density(
        self, ax: Axes, prior: Mapping[str, MarginalLaw] | None, level: float, color: str
    ) -> None:
        """Draw the densities of one parameter."""
        ((name, law),) = self.posterior.items()
        density: Any = law
        low, high = self.intervals_[name]
        x = _around(density)
        if prior is not None:
            before: Any = prior[name]
            ax.fill_between(x, before.pdf(x), color="0.5", alpha=0.3, lw=0, label="prior")
        ax.plot(x, density.pdf(x), color=color, lw=1.8, label="released posterior")
        inside = x[(x >= low) & (x <= high)]
        shade: Any = {"color": color, "alpha": 0.25, "lw": 0, "label": f"{level:.0%} interval"}
        ax.fill_between(inside, density.pdf(inside), **shade)
        ax.set(ylim=(0, 1.12 * density.pdf(inside).max()), ylabel="density")
        ax.legend(frameon=False)

    def _rows(
        self, ax: Axes, prior: Mapping[str, MarginalLaw] | None, level: float, color: str
    ) -> None:
        """Draw the intervals of many parameters, the first on top."""
        names = [*self.posterior]
        y = np.arange(len(names))
        if prior is not None:
            before = np.array([_ends(prior[name], level) for name in names])
            ax.hlines(y, *before.T, color="0.5", alpha=0.3, lw=8, label=f"prior, {level:.0%}")
        after = np.array([self.intervals_[name] for name in names])
        known = ~np.isnan(after).any(axis=1)
        label = None if known.all() else "released estimate, without an interval"
        if known.any():
            ends = after[known].T
            ax.hlines(
                y[known], *ends, color=color, lw=2.2, label=f"released posterior, {level:.0%}"
            )
        means = [self.means_[name] for name in names]
        ax.plot(means, y, "o", color=color, ms=5.5, label=label)
        ax.set_yticks(y, names)
        ax.set_ylim(len(names) - 0.4, -0.6)
        if self.quantity.startswith("coefficient"):
            ax.axvline(0, color="0.5", lw=0.8, zorder=0)
        elif self.quantity.startswith("mutual information"):
            ax.set_xlim(left=0)
        ax.grid(axis="x", alpha=0.35, lw=0.7)
        ax.set_axisbelow(True)
        ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def _around(law: Any) -> FloatArray:
    """Return points that all of the law lies between, inside its support."""
    low, high = _ends(law, 0.9999)
    margin = 0.6 * (high - low)
    first, last = law.support()
    return np.linspace(max(low - margin, first), min(high + margin, last), 802)[1:-1]


def _ends(law: MarginalLaw, level: float) -> tuple[float, float]:
    low, high = law.interval(level)
    return float(low), float(high)


class ForestDisplay(Drawn):
    """Coefficients with intervals; a band shows which part of an interval privacy adds.

    Odds and rate ratios have a logarithmic axis. What is not identified has a name alone.

    Parameters
    ----------
    table : CoefficientTable or OddsTable
        From ``coefficients()`` of a linear or logistic regression, or of one of counts.

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

    def __init__(self, table: CoefficientTable) -> None:
        self.table = table

    @classmethod
    def from_estimator(
        cls,
        estimator: BayesianLinearRegression | BayesianLogisticRegression | BayesianCountRegression,
        ax: Axes | None = None,
        *,
        level: float = 0.95,
        **plot_options: Any,
    ) -> Self:
        """Draw the coefficients of a fitted regression; the intercept is left out.

        ``level`` is the nominal coverage of the intervals; other options are of :meth:`plot`.
        """
        check_matplotlib(f"{cls.__name__}.from_estimator")
        drawn = BayesianLinearRegression, BayesianLogisticRegression, BayesianCountRegression
        if not isinstance(estimator, drawn):
            raise TypeError(
                f"{cls.__name__} draws coefficients: estimator must be a BayesianLinearRegression, "
                "a BayesianLogisticRegression or a BayesianCountRegression. "
                f"Got {type(estimator).__name__} instead."
            )
        check_is_fitted(estimator)
        table = estimator.coefficients(level)
        rows = tuple(row for row in table.rows if row.name != "intercept")
        return cls(replace(table, rows=rows)).plot(ax, **plot_options)

    def plot(self, ax: Axes | None = None, *, color: str = COLOURS[0]) -> Self:
        """Draw one row for each effect on axes, or on those of a new figure."""
        from matplotlib.ticker import LogLocator

        rows, level = self.table.rows, self.table.level
        ax = self._axes(ax, (6.8, 1.3 + 0.32 * len(rows)))
        of = np.exp if (odds := isinstance(self.table, OddsTable)) else np.asarray
        y, estimates = np.arange(len(rows)), np.array([row.estimate for row in rows])
        ax.axvline(float(of(0.0)), color="0.5", lw=0.8, zorder=0)
        if not self.table.no_intervals:
            ends = np.array([(row.low, row.high) for row in rows]).reshape(-1, 2)
            known = np.isfinite(ends).all(axis=1)
            reach = ndtri(0.5 + level / 2) * np.array([row.sampling_sd for row in rows])[known]
            inner = estimates[known] - reach, estimates[known] + reach
            label = f"{level:.0%} interval"
            ax.hlines(y[known], *of(ends[known].T), color=color, lw=7, alpha=0.28, label=label)
            ax.hlines(y[known], *of(inner), color=color, lw=2.4, label="without the privacy noise")
        ax.plot(of(estimates), y, "o", color=color, ms=5.5)
        if odds:
            ax.set_xscale("log", subs=[])
            ax.xaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
            ax.xaxis.set_major_formatter("{x:g}")
        ax.set_yticks(y, [row.name for row in rows])
        ax.set_ylim(len(rows) - 0.4, -0.6)
        ratio = "rate ratio" if "rate ratio" in self.table.heads else "odds ratio"
        ax.set_xlabel(ratio if odds else "coefficient")
        ax.grid(axis="x", alpha=0.35, lw=0.7)
        ax.set_axisbelow(True)
        if not self.table.no_intervals:
            ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        return self
