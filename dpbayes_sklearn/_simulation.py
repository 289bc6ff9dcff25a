"""Releases of simulated data, from public facts only: what planning is based on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from math import prod
from typing import Any, ClassVar

import numpy as np

from dpbayes_sklearn._discrete_classifier import DiscreteClassifier
from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.data.table import Table
from dpbayes_sklearn.laws.class_rows import RowNoise
from dpbayes_sklearn.linear_model import BayesianLinearRegression
from dpbayes_sklearn.mechanisms import Fourier, Laplace
from dpbayes_sklearn.mechanisms._joint_noise import noise_law
from dpbayes_sklearn.mechanisms._row_noise import with_row_noise
from dpbayes_sklearn.mechanisms.fourier import simulated_noise
from dpbayes_sklearn.noise.source import random_source
from dpbayes_sklearn.posteriors.ancestral import ancestral_sample
from dpbayes_sklearn.posteriors.dirichlet import DirichletPrior
from dpbayes_sklearn.posteriors.gaussian import GaussianPrior
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.schema import Categories, Schema
from dpbayes_sklearn.schema.resolution import declared_width
from dpbayes_sklearn.statistics.counts import CountTables, Tables
from dpbayes_sklearn.statistics.fourier import CharacterSums, tables_from_characters
from dpbayes_sklearn.statistics.moments import Moments

__all__ = ["LinearSimulation", "NetworkSimulation", "Simulation"]


_REPEATS = 40  # simulated data sets
_NOISES = 20_000  # at least so many noises of counts
_ROW_NOISES = 8_000  # of joint noise, which takes longer
_SPREAD = 0.3  # of a simulated target, on the scale of its bounds
_NOISE = 0.1  # standard deviation around a simulated regression, unless declared


class Simulation(ABC):
    """A mechanism run on data that were made up from the declared domains and the prior."""

    kind: ClassVar[str]
    of: ClassVar[str]

    def __init__(self, estimator: Any, n: int, n_features: int | None) -> None:
        self.estimator, self.n = estimator, n
        self.mechanism = estimator._resolve_mechanism()
        # a fixed generator: the same question has the same answer, and no secret is involved
        self.rng, self.source = np.random.default_rng(0), random_source(0)

    def errors(self) -> FloatArray:
        """Return absolute errors of what is released."""
        return self.after_inference()

    def after_inference(self) -> FloatArray:
        """Return absolute errors of the posterior means, against exact Bayes on the same data."""
        return np.concatenate([self._differences() for _ in range(_REPEATS)])

    def possible(self) -> bool:
        """Tell whether the mechanism can release at this epsilon at all."""
        try:
            self._differences()
        except ValueError:
            return False
        return True

    @abstractmethod
    def _differences(self) -> FloatArray:
        """Return the absolute errors for one simulated data set."""

    def _means(self, statistics: Any, prior: Any, budget: Budget) -> tuple[Any, Any]:
        """Return the released and the exact posterior mean."""
        self.mechanism.preflight(statistics, prior, budget)
        private = self.mechanism.release(statistics, prior, budget, self.source).posterior
        return private.mean(), prior.update(statistics.without_noise()).mean()


class NetworkSimulation(Simulation):
    """Data from the prior of a discrete network."""

    kind = "counts"
    of = "counts"

    def __init__(
        self, estimator: DiscreteClassifier, n: int, n_features: int | None = None
    ) -> None:
        super().__init__(estimator, n, n_features)
        self.network = estimator._network(estimator._declared_schema(n, n_features))
        self.prior = DirichletPrior(
            self.network, estimator._alphas(self.network), estimator.inference
        )
        self.budget = estimator._budget(estimator.privacy_unit)

    def errors(self) -> FloatArray:
        """Return the noise of released counts, which no data influence, or as the base does."""
        if self.budget.infinite:
            return np.zeros(1)
        if isinstance(self.mechanism, Laplace):
            nothing = CountTables(self.network, (), self.n)
            law = self.mechanism._row_law(nothing, self.budget)
            if law is not None:
                return self._row_noise(law)
            return self._laplace_noise(self.mechanism._count_scales(nothing, self.budget))
        if isinstance(self.mechanism, Fourier):
            return self._fourier_noise()
        return self.after_inference()

    def _laplace_noise(self, scales: Sequence[Fraction]) -> FloatArray:
        """Return noises of every table, as many as it has a share of all cells."""
        cells = np.array([prod(shape) for shape in self.network.shapes])
        points = np.ceil(_NOISES * cells / cells.sum()).astype(int).tolist()
        pairs = zip(scales, points, strict=True)
        return np.concatenate([_laplace_quantiles(float(scale), m) for scale, m in pairs])

    def _row_noise(self, law: RowNoise) -> FloatArray:
        """Return noises of all cells in many releases."""
        shapes = self.network.shapes
        repeats = 1 + _ROW_NOISES // sum(map(prod, shapes))
        nothing = tuple(np.zeros((repeats, *shape), np.int64) for shape in shapes)
        noisy = with_row_noise(CountTables(self.network, nothing, 0), law, random_source(0))
        return np.concatenate([np.abs(table).ravel() for table in noisy])

    def _fourier_noise(self) -> FloatArray:
        """Return noises of all cells in many releases, the public increment left out."""
        law = noise_law(self.mechanism.noise, CharacterSums(self.network, {}, self.n), self.budget)
        cells = sum(prod(shape) for shape in self.network.shapes)
        blocks = simulated_noise(self.network, law, 1 + _NOISES // cells)
        tables = tables_from_characters(self.network, blocks, 0)
        return np.concatenate([np.abs(table).ravel() for table in tables])

    def _differences(self) -> FloatArray:
        tables: Tables = tuple(
            self.rng.dirichlet(alpha, size=shape[:-1])
            for alpha, shape in zip(self.prior.alphas, self.network.shapes, strict=True)
        )
        drawn = ancestral_sample(self.network, tables, self.n, self.rng)
        records = drawn.astype(np.min_scalar_type(max(self.network.sizes)))
        counts = CountTables.count(self.network, [(records[:, :-1], records[:, -1])])
        means = zip(*self._means(counts, self.prior, self.budget), counts.tables, strict=True)
        return np.concatenate(
            [(np.abs(p - e) * t.sum(axis=-1, keepdims=True)).ravel() for p, e, t in means]
        )


def _laplace_quantiles(scale: float, points: int) -> FloatArray:
    """Return evenly spaced quantiles of the absolute value of integer Laplace noise."""
    if scale == 0:
        return np.zeros(points)
    beyond = 1 - (np.arange(points) + 0.5) / points
    reach: FloatArray = scale * np.log(2 / ((1 + np.exp(-1 / scale)) * beyond)) - 1
    return np.maximum(np.ceil(reach), 0.0)


class LinearSimulation(Simulation):
    """Features that are even over their domains, and a target that depends on all of them."""

    kind = "moments"
    of = "coefficients"

    def __init__(
        self, estimator: BayesianLinearRegression, n: int, n_features: int | None = None
    ) -> None:
        super().__init__(estimator, n, n_features)
        self.public = _declared_regression(estimator, n, n_features)
        self.design, self.scale = estimator._model(self.public)
        self.prior = GaussianPrior(
            self.design,
            estimator.prior_precision,
            estimator.noise_variance,
            estimator.inference,
            estimator.coef_bound,
        )
        self.budget = estimator._budget()

    def _differences(self) -> FloatArray:
        statistics = Moments(self.design, self._features(), np.empty(self.n), self.scale)
        statistics.y[:] = self._target(statistics.table)
        private, exact = self._means(statistics, self.prior, self.budget)
        differences: FloatArray = np.abs(private - exact)[1:]
        return differences

    def _features(self) -> Table:
        columns = [
            self.rng.choice(np.asarray(domain.values, object), self.n)
            if isinstance(domain, Categories)
            else self.rng.uniform(domain.low, domain.high, self.n)
            for domain in self.public.columns.values()
        ]
        return Table(np.stack(columns, axis=1))

    def _target(self, table: Table) -> FloatArray:
        width = self.design.width
        size = min(_SPREAD * (3 / width) ** 0.5, self.prior.precision**-0.5)
        weights = self.rng.normal(scale=size, size=width)
        noise = self.prior.noise_variance**0.5 if self.prior.noise_variance else _NOISE
        y: FloatArray = np.concatenate([x @ weights for _, x in self.design.chunks(table)])
        y += self.rng.normal(scale=noise, size=self.n)
        np.clip(y, -1, 1, out=y)
        return self.scale.centre + self.scale.half * y


def _declared_regression(
    estimator: BayesianLinearRegression, n: int, n_features: int | None
) -> Schema:
    if not estimator._declares_columns or estimator._declared_target() is None:
        raise ValueError(
            "Nothing can be told before the domains are declared: set bounds_X or schema, and "
            "bounds_y."
        )
    d = declared_width(estimator.schema, estimator.bounds_X, n_features)
    public, _ = estimator._public_schema(Table(np.broadcast_to(0.0, (n, d))), np.zeros(0))
    return public
