"""Prior and posterior distributions of each parameter of a fitted estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import singledispatch
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.stats import beta, norm

from dpbayes_sklearn._coefficients import CoefficientTable, coefficient_table
from dpbayes_sklearn._discrete_classifier import DiscreteClassifier
from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.conjugate import BetaBinomial, DirichletMultinomial
from dpbayes_sklearn.display.informative import informative_features
from dpbayes_sklearn.linear_model import BayesianLinearRegression
from dpbayes_sklearn.naive_bayes import BayesianNaiveBayes
from dpbayes_sklearn.posteriors.categories import Beta, Dirichlet
from dpbayes_sklearn.schema import Categories, Domain

__all__ = ["Law", "Marginals", "marginals", "simplex_laws"]

_DRAWS = 2000
_FEATURES = 12  # the most informative ones that are shown


class Law(Protocol):
    """A distribution of one number, such as a frozen one of ``scipy.stats``."""

    def mean(self) -> Any:
        """Return the expectation."""

    def interval(self, confidence: float) -> Any:
        """Return the ends of the interval with equal tails."""


class Marginals(NamedTuple):
    """Laws of the parameters by name, and what kind of number they are about."""

    posterior: Mapping[str, Law]
    prior: Mapping[str, Law] | None
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
class Estimate:
    """A number whose error is not known."""

    value: float

    def mean(self) -> float:
        """Return the number."""
        return self.value

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return no ends: both are NaN."""
        return np.nan, np.nan


def simplex_laws(belief: Dirichlet, names: list[str]) -> dict[str, Law]:
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
    before = coefficient_table(estimator.schema_, design, start, spread, scale.half, 0.0, 0.95)
    posterior, prior = map(_coefficient_laws, (estimator.coefficients(), before))
    return Marginals(posterior, prior, "coefficient, in the units of the data")


def _coefficient_laws(table: CoefficientTable) -> dict[str, Law]:
    """Return the law of every slope; of a table without intervals, the estimates."""
    rows = [row for row in table.rows if row.name != "intercept"]
    if table.no_intervals:
        return {row.name: Estimate(row.estimate) for row in rows}
    return {row.name: norm(row.estimate, row.sd) for row in rows}


@marginals.register
def _(estimator: BayesianNaiveBayes, column: str | None = None) -> Marginals:
    if column is not None:
        return _of_a_table(estimator, column)
    found = informative_features(estimator, _FEATURES)
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
    drawn = estimator.posterior_.sample(rng, _DRAWS)[node]
    alpha = estimator._alphas(network)[node]
    posterior, prior = {}, {}
    for cell in np.ndindex(network.shapes[node]):
        values = [_values(domains[u])[v] for u, v in zip(network.families[node], cell, strict=True)]
        given = [f"{titles[u]} {v}" for u, v in zip(network.parents[node], values, strict=False)]
        name = f"{titles[node]} {values[-1]}" + (" | " + ", ".join(given) if given else "")
        posterior[name] = Draws(drawn[(slice(None), *cell)])
        prior[name] = beta(alpha[cell[-1]], alpha.sum() - alpha[cell[-1]])
    return Marginals(posterior, prior, "probability")


def _refuse(estimator: Any, column: str | None) -> None:
    if column is not None:
        raise ValueError(f"{type(estimator).__name__} has no tables of columns: leave column out.")


def _values(domain: Domain) -> list[str]:
    """Return a name of every code of a domain."""
    if isinstance(domain, Categories):
        return [str(value) for value in domain.values]
    bins = domain.n_values - domain.marks_missing
    edges = np.linspace(domain.low, domain.high, bins + 1)
    if domain.edges is not None:
        edges = np.array([-np.inf, *domain.edges, np.inf])
    missing = ["missing"] if domain.marks_missing else []
    if domain.n_integers == domain.bins:
        return [f"{domain.low + code:g}" for code in range(bins)] + missing
    return [f"{a:.4g} to {b:.4g}" for a, b in pairwise(edges)] + missing
