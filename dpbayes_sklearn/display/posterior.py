"""Figures of a released posterior and its prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.display._axes import COLOURS, Drawn, check_matplotlib
from dpbayes_sklearn.display.marginals import Law, marginals, simplex_laws
from dpbayes_sklearn.posteriors.categories import Dirichlet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PosteriorDisplay"]


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
        posterior: Mapping[str, Law],
        prior: Mapping[str, Law] | None = None,
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

    def _density(self, ax: Axes, prior: Mapping[str, Law] | None, level: float, color: str) -> None:
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

    def _rows(self, ax: Axes, prior: Mapping[str, Law] | None, level: float, color: str) -> None:
        """Draw the intervals of many parameters, the first on top."""
        names = [*self.posterior]
        y = np.arange(len(names))
        if prior is not None:
            before = np.array([_ends(prior[name], level) for name in names])
            ax.hlines(y, *before.T, color="0.5", alpha=0.3, lw=8, label=f"prior, {level:.0%}")
        after = np.array([self.intervals_[name] for name in names])
        label = None
        if np.isnan(after).any():
            label = "released estimate, without an interval"
        else:
            ax.hlines(y, *after.T, color=color, lw=2.2, label=f"released posterior, {level:.0%}")
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


def _ends(law: Law, level: float) -> tuple[float, float]:
    low, high = law.interval(level)
    return float(low), float(high)
