"""Releases of simulated data, from public facts and guesses only, for planning."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, ndtr

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.base.classifier import DiscreteClassifier
from dpbayes_sklearn.convex.coefficients import named_contrasts
from dpbayes_sklearn.convex.posterior import GaussianPosterior
from dpbayes_sklearn.convex.records import LinearRecords
from dpbayes_sklearn.counts.plans import CountPlan, TablesPlan
from dpbayes_sklearn.counts.posterior import ancestral_sample
from dpbayes_sklearn.counts.tables import CountTables, Tables
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.linear_model import BayesianLinearRegression, BayesianLogisticRegression
from dpbayes_sklearn.logistic.blocks import even_nodes
from dpbayes_sklearn.logistic.curvature import Curvature
from dpbayes_sklearn.logistic.ordered import OrderedPosterior
from dpbayes_sklearn.logistic.posterior import LogisticPosterior, answer_by_row
from dpbayes_sklearn.logistic.record_sums import LabelledRecords
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.noise.integers import random_source
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.regression.inference import update
from dpbayes_sklearn.regression.moments import exact_moments
from dpbayes_sklearn.release import Facts
from dpbayes_sklearn.schema import Categories, Interval, Schema

_REPEATS = 40  # This many data sets are simulated.
_FEW_REPEATS = 12  # This many data sets are simulated where a median suffices.
_NOISES = 40_000  # At least this many noises of counts are drawn.

_LOG_ODDS = 1.5  # Standard deviation of simulated log odds: an area under the curve of about 0.8.
_SOME_RECORDS = 4000  # Log odds are compared for this many records of a data set.
_EXPLAINED = 0.5  # Simulated features explain this share of the target's variance.
_UNIFORM_SD = 12**-0.5  # Standard deviation of a uniform variable, in widths of its range.
# Standard deviation of columns that fill little of their bounds, in the same unit.
_NARROW_SD = 0.01
# From this standard deviation on, values are simulated as uniform, not as normal.
_NEARLY_UNIFORM_SD = 0.22


class Simulation(ABC):
    """A mechanism run on data that were made up from the declared domains and the prior."""

    of: ClassVar[str]

    def __init__(self, estimator: Any, n: int, n_features: int | None) -> None:
        self.estimator, self.n = estimator, n
        # a fixed generator: the same question has the same answer, and no secret is involved
        self.rng, self.noise = np.random.default_rng(0), Noise(random_source(0))

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


class NetworkSimulation(Simulation):
    """Data from the prior of a discrete network."""

    of = "counts"

    def __init__(
        self, estimator: DiscreteClassifier, n: int, n_features: int | None = None
    ) -> None:
        super().__init__(estimator, n, n_features)
        self.public = estimator._declared_schema(n, n_features)
        self.prior = estimator._prior(self.public)
        self.network = self.prior.network

    @cached_property
    def tables(self) -> TablesPlan:
        """The plan of the tables: of the temperature only its share of epsilon matters."""
        _, budget = self.estimator._shares(self.estimator._budget())
        plan: CountPlan = self.estimator._plan(self.prior, Facts(self.n), budget)
        return plan.tables

    def errors(self) -> FloatArray:
        """Return the noise of released counts, which no data influence, or as the base does."""
        errors = self.tables.simulated_errors(_NOISES)
        return self.after_inference() if errors is None else np.ravel(errors)

    def _differences(self) -> FloatArray:
        tables: Tables = tuple(
            self.rng.dirichlet(alpha, size=shape[:-1])
            for alpha, shape in zip(self.prior.alphas, self.network.shapes, strict=True)
        )
        drawn = ancestral_sample(self.network, tables, self.n, self.rng)
        records = drawn.astype(np.min_scalar_type(max(self.network.sizes)))
        counts = CountTables.count(self.network, [(records[:, :-1], drawn[:, -1])])
        exact = self.prior.update(counts.without_noise())
        both = self.tables.release(counts, self.noise), exact
        means = zip(*(posterior.mean() for posterior in both), counts.tables, strict=True)
        return np.concatenate(
            [(np.abs(p - e) * t.sum(axis=-1, keepdims=True)).ravel() for p, e, t in means]
        )


@dataclass(frozen=True)
class Spread:
    """A guess of how the data spread, made without looking at them.

    Parameters
    ----------
    columns : dict or float
        Standard deviations of the numeric columns by their names, in units of the data, and of
        columns of categories the shares of their values in order (equal if left out); or one
        number: the standard deviation of all numeric columns in widths of their bounds.
    target : float
        Standard deviation of the target: in units of the data, or in widths of its bounds if
        ``columns`` is a number.
    correlation : float in [0, 1), default=0.0
        Of every two numeric columns.

    Examples
    --------
    >>> guess = Spread({"age": 15, "stay": 2}, target=2000)
    >>> narrow = Spread(0.05, target=0.1)
    """

    columns: Mapping[str, float | Sequence[float]] | float
    target: float
    correlation: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.correlation < 1:
            raise ValueError(f"correlation must be in [0, 1). Got {self.correlation!r} instead.")
        numbers = self.columns.values() if isinstance(self.columns, Mapping) else [self.columns]
        for value in [*numbers, self.target]:
            each = np.asarray(value, dtype=float)
            if not (np.isfinite(each).all() and each.size and (each > 0).all()):
                raise ValueError(f"Spreads and shares must be positive. Got {value!r} instead.")

    def of_column(self, name: str, domain: Interval) -> float:
        """Return the standard deviation of a numeric column."""
        if not isinstance(self.columns, Mapping):
            return self.columns * (domain.high - domain.low)
        value = self.columns[name]
        if isinstance(value, Sequence):
            raise ValueError(f"The spread of column {name!r} must be one number.")
        return float(value)

    def shares(self, name: str, domain: Categories) -> FloatArray:
        """Return the shares of categories."""
        given = self.columns.get(name) if isinstance(self.columns, Mapping) else None
        shares = np.ones(domain.n_values) if given is None else np.asarray(given, dtype=float)
        if shares.shape != (domain.n_values,):
            raise ValueError(f"Column {name!r} needs one share for each of its values.")
        return np.asarray(shares / shares.sum())

    def check(self, schema: Schema) -> None:
        """Refuse names that the schema does not have, or that are missing."""
        if not isinstance(self.columns, Mapping):
            return
        numbers = {name for name, domain in schema.columns.items() if domain.is_numeric}
        unknown, missing = set(self.columns) - set(schema.columns), numbers - set(self.columns)
        if unknown or missing:
            raise ValueError(
                "The columns of spread must name all numeric columns of the model, and only its "
                f"columns. Unknown: {sorted(map(str, unknown))}; missing: "
                f"{sorted(map(str, missing))}."
            )


USUAL = Spread(1 / 6, target=0.1)
"""What is compared with if nothing is known."""


def extremes(schema: Schema) -> tuple[Spread, Spread]:
    """Return the ends of what is likely: data that fill their bounds, and data that hardly do.

    At the second end every column of categories has a value with a share of one percent.
    """
    narrow: dict[str, float | Sequence[float]] = {}
    for name, domain in schema.columns.items():
        if isinstance(domain, Categories):
            others = max(domain.n_values - 1, 1)
            narrow[str(name)] = [0.99 / others] * (domain.n_values - 1) + [0.01]
        else:
            narrow[str(name)] = _NARROW_SD * (domain.high - domain.low)
    target = schema.target_bounds
    return Spread(_UNIFORM_SD, target=0.05), Spread(narrow, target=0.2 * (target.high - target.low))


class _GuessedColumns(Simulation):
    """Columns of a guessed spread."""

    public: Schema
    spread: Spread = USUAL

    def _features(self) -> Table:
        rho, common = self.spread.correlation, self.rng.normal(size=self.n)
        columns: list[FloatArray | IntArray] = []
        for name, domain in self.public.columns.items():
            if isinstance(domain, Categories):
                shares = self.spread.shares(str(name), domain)
                columns.append(self.rng.choice(domain.n_values, self.n, p=shares))
                continue
            own = self.rng.normal(size=self.n)
            z = np.sqrt(rho) * common + np.sqrt(1 - rho) * own
            columns.append(self._number(z, domain, self.spread.of_column(str(name), domain)))
        return Table(np.stack(columns, axis=1))

    def _number(self, z: FloatArray, domain: Interval, sd: float) -> FloatArray:
        """Return normal or even values of this standard deviation, somewhere within the bounds."""
        width = domain.high - domain.low
        even = sd > _NEARLY_UNIFORM_SD * width
        values = 12**0.5 * (ndtr(z) - 0.5) if even else z
        room = max(width / 2 - 3 * sd, 0.0)
        centre = domain.middle + self.rng.uniform(-room, room)
        return np.asarray(np.clip(centre + sd * values, domain.low, domain.high))


class LinearSimulation(_GuessedColumns):
    """Columns of a guessed spread, and a target that they explain to a half."""

    of: ClassVar[str] = "coefficients"

    def __init__(
        self,
        estimator: BayesianLinearRegression,
        n: int,
        n_features: int | None = None,
        spread: Spread = USUAL,
    ) -> None:
        super().__init__(estimator, n, n_features)
        public = estimator._declared_schema(n, n_features)
        spread.check(public)
        self.spread, self.public = spread, _numbered(public)
        self.prior = estimator._prior(self.public)
        self.design, self.scale = self.prior.design, estimator._scale_of(self.public)
        _, self.budget = estimator._shares(estimator._budget())
        self._names, self._contrasts = named_contrasts(public, estimator._prior(public).design)
        self._deviations: list[FloatArray] = []

    def by_name(self) -> dict[str, float]:
        """Return the mean absolute error of every row of the table, in units of the data.

        The intercept is left out: its error depends on where the columns lie.
        """
        means = np.mean(self._deviations, axis=0)
        return dict(zip(self._names[1:], map(float, means[1:]), strict=True))

    def prediction_error(self) -> float:
        """Return how far the noise moves predictions, over the spread of exact ones."""
        return float(np.median([self._moved() for _ in range(_FEW_REPEATS)]))

    def _moved(self) -> float:
        """Return the same for one simulated data set."""
        table = self._features()
        private, exact = self._both(table)
        x = np.concatenate([chunk.copy() for _, chunk in self.design.chunks(table)])
        moved = x @ (private.believed[0] - exact.mean())[1:]
        return float(moved.std() / max((x @ exact.mean()[1:]).std(), 1e-300))

    def _both(self, table: Table) -> tuple[GaussianPosterior, GaussianPosterior]:
        records = LocalRecords([(table, self._target(table))])
        statistics = LinearRecords(self.design, self.scale, records)
        plan = self.estimator._plan(self.prior, Facts(self.n), self.budget)
        private = plan.release(statistics, self.noise)
        return private, update(self.prior, exact_moments(statistics))

    def _differences(self) -> FloatArray:
        private, exact = self._both(self._features())
        gaps = np.abs(self._contrasts @ (private.believed[0] - exact.mean()))
        self._deviations.append(gaps * self.scale.half)
        return np.asarray(np.abs(private.mean() - exact.mean())[1:])

    def _target(self, table: Table) -> FloatArray:
        x = np.concatenate([chunk.copy() for _, chunk in self.design.chunks(table)])
        k, sds = self.design.n_values, x.std(axis=0)
        sds[self.design.levels] = (np.sqrt(k - 1) / k)[self.design.levels]  # also for rare ones
        explained = x @ (self.rng.normal(size=len(sds)) / np.maximum(sds, 1e-9))
        explained -= explained.mean()
        bounds = self.public.target_bounds
        width = 1.0 if isinstance(self.spread.columns, Mapping) else bounds.high - bounds.low
        total = self.spread.target * width / self.scale.half
        rest = (1 - _EXPLAINED) * total**2
        if self.prior.noise_variance is not None:
            rest = min(self.prior.noise_variance, (1 - 1e-6) * total**2)
        y = explained * (np.sqrt(total**2 - rest) / max(explained.std(), 1e-12))
        y += self.rng.normal(scale=np.sqrt(rest), size=self.n)
        np.clip(y, -1, 1, out=y)
        return np.asarray(self.scale.centre + self.scale.half * y)


class LogisticSimulation(_GuessedColumns):
    """Columns of the usual spread, and log odds of a usual spread that all of them add to."""

    of: ClassVar[str] = "log odds"

    def __init__(
        self, estimator: BayesianLogisticRegression, n: int, n_features: int | None = None
    ) -> None:
        super().__init__(estimator, n, n_features)
        self.public = _numbered(estimator._declared_schema(n, n_features))
        prior = estimator._prior(self.public)
        self.blocks, self.n_classes, self.has_cuts = prior.blocks, prior.n_classes, prior.has_cuts
        _, budget = estimator._shares(estimator._budget())
        self._budgets = budget, Budget(math.inf, unit=budget.unit)
        self._plan_of = partial(estimator._plan, prior, Facts(n))

    @cached_property
    def _plans(self) -> tuple[Any, ...]:
        """The private plan and the exact one, unless a mechanism cannot release."""
        return tuple(map(self._plan_of, self._budgets))

    def after_inference(self) -> FloatArray:
        """Return the errors of the log odds of some records of every simulated data set."""
        return np.concatenate([self._differences() for _ in range(_FEW_REPEATS)])

    def _differences(self) -> FloatArray:
        private, exact = self._predictions()
        return np.asarray(np.abs(private - exact)[:_SOME_RECORDS].ravel())

    def _predictions(self) -> tuple[FloatArray, FloatArray]:
        """Return the log odds of a simulated data set's records, private and exact."""
        table, classes = self._features(), Categories(range(self.n_classes))
        z = self._log_odds(table, self._true())
        centred = (z - z.mean(axis=0)) * (_LOG_ODDS / max(float(z.std()), 1e-12))
        if self.has_cuts:
            hidden = (centred + self.rng.logistic(size=self.n)).argsort().argsort()
            y = hidden * self.n_classes // self.n
        elif self.n_classes > 2:
            y = (centred + self.rng.gumbel(size=centred.shape)).argmax(axis=1)
        else:
            y = (self.rng.random(self.n) < expit(centred)).astype(np.int64)
        records = LabelledRecords(self.blocks, classes, LocalRecords([(table, y)]))
        released = (plan.release(records, self.noise) for plan in self._plans)
        private, exact = (self._log_odds(table, each) for each in released)
        return private, exact

    def _true(self) -> LogisticPosterior:
        """Return effects of all columns alike, not scaled yet."""
        p, others = self.blocks.parameters, 1 if self.has_cuts else self.n_classes - 1
        shape = (others, p) if others > 1 else (p,)
        nodes, effects = even_nodes(len(self.blocks.numbers)), self.rng.normal(size=shape)
        nothing = np.zeros(shape)
        return LogisticPosterior(effects, nodes, 1 + nothing, nothing, 1.0, *Curvature.none())

    def _log_odds(self, table: Table, effects: LogisticPosterior) -> FloatArray:
        if isinstance(effects, OrderedPosterior):  # of a higher class
            effects = effects.plain
        return np.asarray(answer_by_row(self.blocks, effects, np.asarray, table))


def _numbered(schema: Schema) -> Schema:
    """Return the schema with categories 0, 1, ...: numbers are read much faster than objects."""
    columns = {
        name: domain if domain.is_numeric else Categories(range(domain.n_values))
        for name, domain in schema.columns.items()
    }
    return replace(schema, columns=columns)
