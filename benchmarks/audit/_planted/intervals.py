"""Bugs in what is published about uncertainty: intervals that do not hold, and false certainty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn.categories.counts import ReleasedSimplex
from dpbayes_sklearn.categories.noise_aware import ShareMoments
from dpbayes_sklearn.categories.posterior import Dirichlet, NoisyDirichlet, SimplexPrior
from dpbayes_sklearn.counts import plans
from dpbayes_sklearn.counts.temperature import DEFAULT
from dpbayes_sklearn.linear_model import BayesianLinearRegression

Replacements = Iterator[tuple[Any, str, Any]]


@fault(
    "intervals",
    "intervals",
    "A released posterior takes the median count for the exact one",
    "a proportion, geometric",
)
def median_plugged_in() -> Replacements:
    def taken(self: Any, belief: Any, inference: str = "plug_in") -> None:
        self.belief = belief
        self.inference = "median" if inference == "noise_aware" else inference

    yield SimplexPrior, "__init__", taken


@fault(
    "intervals",
    "intervals",
    "A posterior that was chosen at random is taken for the exact one",
    "a proportion, hellinger",
)
def choice_taken_as_exact() -> Replacements:
    def taken(self: Any, counts: Any, chosen: Any, log_likelihood: Any) -> Any:
        return self.update(ReleasedSimplex.exact(chosen))

    yield SimplexPrior, "choice", taken


@fault(
    "intervals",
    "intervals",
    "The variance of the exact count given the noisy one is left out",
    "a proportion, laplace",
)
def spread_left_out() -> Replacements:
    def central(laws: Any, counts: Any, n: float, alpha: Any) -> Any:
        mean = (alpha + (laws * counts).sum(axis=1)) / (alpha.sum() + n)
        return ShareMoments.of(mean, np.zeros_like(mean), float(alpha.sum()) + n)

    yield ShareMoments, "given_counts", staticmethod(central)


@fault(
    "intervals",
    "intervals",
    "A secret number of records is taken for known, and so are the counts",
    "a proportion, secret number",
)
def secret_size_taken_as_known() -> Replacements:
    real = ShareMoments.of.__func__  # type: ignore[attr-defined]

    def certain(cls: Any, mean: Any, variance: Any, total: float) -> Any:
        return real(cls, mean, np.zeros_like(variance), total)

    yield ShareMoments, "of", classmethod(certain)


@fault(
    "intervals",
    "intervals",
    "Every category has the precision of the whole, rare ones too",
    "rare categories",
)
def one_precision_for_all() -> Replacements:
    yield NoisyDirichlet, "marginals", Dirichlet.marginals


@fault(
    "intervals",
    "intervals",
    "Nominal errors of map and sampler are printed as 95 % intervals",
    "coefficients",
)
def nominal_intervals() -> Replacements:
    yield BayesianLinearRegression, "_why_no_intervals", lambda self: ""


@fault(
    "intervals",
    "intervals",
    "The temperature of small releases does not look at what the features share",
    "forty dependent columns",
)
def fixed_temperature() -> Replacements:
    yield plans, "default_tempering", lambda posterior: DEFAULT
