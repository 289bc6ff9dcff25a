"""Releases for random public facts: whatever cannot be released is refused before the charge.

Nothing but public numbers is varied, to extremes, so a fit that is charged has to end. A few
records are fitted as if there were up to 10**9 of them: where their number is public, it is
replaced between reading and planning, so plans, noise and inference are those of so many.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    BayesianNetworkClassifier,
    BetaBinomial,
    BudgetAccountant,
    Categories,
    DirichletMultinomial,
    Interval,
    Schema,
)
from dpbayes_sklearn.audit.planting import planted
from dpbayes_sklearn.base.estimator import PrivateEstimator
from dpbayes_sklearn.bayesian_network import PrivateTree
from dpbayes_sklearn.categories.counts import SimplexCounts
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.mechanisms import Laplace
from dpbayes_sklearn.noise import Noise, made_by
from dpbayes_sklearn.preprocessing import (
    PrivateKBinsDiscretizer,
    PrivateMinMaxScaler,
    PrivateStandardScaler,
)
from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.release import Facts

__all__ = ["KINDS", "Plan", "attempt", "failures", "random_plans"]

Generator = np.random.Generator
_ROWS = 40


class Plan(NamedTuple):
    """An estimator, a few records of its declared domains, and the number that is believed."""

    estimator: Any
    X: Any
    y: Any = None
    n: int | None = None

    def __str__(self) -> str:
        model = self.estimator
        shown = {
            name: value
            for name, value in model.get_params(deep=False).items()
            if name not in {"accountant", "schema", "random_state"}
        }
        return f"{type(model).__name__} of {np.shape(self.X)}, n={self.n}, {shown}"


@contextmanager
def believing(n: int | None) -> Iterator[None]:
    """Let fits believe that there are n records, where that number is public."""
    real = PrivateEstimator._sized

    def sized(self: Any, read: Any, budget: Any, *rest: Any) -> Any:
        if n is None or budget.unit.size_is_secret:
            return real(self, read, budget, *rest)
        given, left = real(self, lambda fitted, _: read(fitted, Facts(n)), budget, *rest)
        return given._replace(statistics=_of_size(given.statistics, n)), left

    with planted((PrivateEstimator, "_sized", sized)), made_by(_OfRows):
        yield


class _OfRows(Noise):
    """Draws positions among the records that there are."""

    def positions(self, n: int, size: int) -> Any:
        """Return some of the rows."""
        return np.unique(super().positions(n, size) % _ROWS)


def _of_size(statistics: Any, n: int) -> Any:
    """Return statistics of n records, all of them in the first cell of every table."""
    if isinstance(statistics, SimplexCounts):
        return SimplexCounts(np.append(n, np.zeros(statistics.n_categories - 1, np.int64)))
    if isinstance(statistics, CountTables):
        tables = tuple(np.zeros(table.shape, np.int64) for table in statistics.tables)
        for table in tables:
            table.flat[0] = n
        statistics = replace(statistics, tables=tables)
    sized = getattr(statistics, "sized", None)
    return statistics if sized is None else sized(Facts(n, ()))


def attempt(plan: Plan) -> tuple[bool, Exception | None]:
    """Fit, and tell whether anything was charged, and what went wrong."""
    ledger = BudgetAccountant(delta=0.999)
    estimator = plan.estimator.set_params(accountant=ledger)
    records = (plan.X,) if plan.y is None else (plan.X, plan.y)
    with warnings.catch_warnings(), believing(plan.n):
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        try:
            estimator.fit(*records)
        except Exception as error:
            return len(ledger) > 0, error
        finally:
            logging.disable(logging.NOTSET)
    return True, None


def failures(plans: Iterator[Plan]) -> Iterator[str]:
    """Say which plans fail after they were charged, or are refused without a reason."""
    for plan in plans:
        charged, error = attempt(plan)
        if error is not None and (charged or not isinstance(error, ValueError)):
            when = "after" if charged else "before"
            yield f"{type(error).__name__} ({error}) {when} the charge: {plan}"


def _number(rng: Generator, low: float, high: float) -> float:
    return float(10 ** rng.uniform(low, high))


def _many(rng: Generator, most: float) -> int:
    return int(_number(rng, 0, np.log10(most)))


def _protection(rng: Generator, feature: bool = False) -> dict[str, Any]:
    unit = str(rng.choice(["record", "person", *["feature"] * feature]))
    neighbours = "replace" if unit == "feature" else str(rng.choice(["replace", "add_remove"]))
    most = _ROWS if neighbours == "replace" else 1e6
    k = _many(rng, most) if unit == "person" else 1
    stated = {"by_construction": unit == "person"}  # nobody is asked for groups here
    return {"privacy_unit": PrivacyUnit(unit, max_records=k, neighbours=neighbours, **stated)}


def _common(rng: Generator, delta: bool = True, feature: bool = False) -> dict[str, Any]:
    options = {"epsilon": _number(rng, -6, 4), **_protection(rng, feature)}
    some = 0.0 if rng.random() < 0.2 else _number(rng, -12, -0.1)
    return {**options, "delta": some} if delta else options


def _column(rng: Generator, values: float) -> Any:
    kind = rng.integers(0, 4)
    if kind == 0:
        end = _number(rng, -12, 12)
        return Interval(-end, end, bins=_many(rng, values) + 1)
    return Categories(range(int([1, 2, _many(rng, values)][kind - 1])))


def _records(domains: list[Any], rng: Generator) -> npt.NDArray[Any]:
    """Return a few records, numbers of the declared domains."""
    return np.column_stack(
        [domain.decode(rng.integers(0, domain.n_values, _ROWS), rng) for domain in domains]
    )


def _columns(rng: Generator, most: float) -> list[Any]:
    width = _many(rng, most)
    kinds = [_column(rng, max(most / width, 3)) for _ in range(rng.integers(1, 4))]
    return [kinds[i] for i in rng.integers(0, len(kinds), width)]


def _schema(domains: list[Any], target: Any) -> Schema:
    return Schema({f"c{j}": domain for j, domain in enumerate(domains)}, target)


def regression(rng: Generator, most: float) -> Plan:
    """Return a linear model."""
    domains, end = _columns(rng, most), _number(rng, -12, 12)
    target = Interval(-end, end)
    model = BayesianLinearRegression(
        mechanism=rng.choice(["laplace", "fourier", "gaussian", "sampler", "map", "auto"]),
        prior_precision=_number(rng, -9, 9),
        noise_variance=rng.choice([None, _number(rng, -9, 9)]),
        fit_intercept=bool(rng.random() < 0.7),
        inference=rng.choice(["plug_in", "noise_aware"]),
        schema=_schema(domains, target),
        **_common(rng),
    )
    return Plan(model, _records(domains, rng), rng.uniform(-end, end, _ROWS), _many(rng, 1e9))


def classifier(rng: Generator, most: float) -> Plan:
    """Return naive Bayes."""
    domains, classes = _columns(rng, most), Categories(range(rng.integers(1, 6)))
    laplace = Laplace(noise=rng.choice(["auto", "joint", "independent"]))
    split = Laplace(budget_split=_number(rng, -6, 6))
    names = ["fourier", "gaussian", "sampler", "map", "auto"]
    model = BayesianNaiveBayes(
        mechanism=rng.choice(np.array([laplace, split, *names], dtype=object)),
        alpha=_number(rng, -99, 12) if rng.random() < 0.2 else _number(rng, -3, 3),
        inference=rng.choice(["plug_in", "noise_aware", "adaptive"]),
        temperature=rng.choice(np.array(["auto", 1, 1e-9], dtype=object)),
        schema=_schema(domains, classes),
        **_common(rng, feature=True),
    )
    labels = rng.integers(0, classes.n_values, _ROWS)
    return Plan(model, _records(domains, rng), labels, _many(rng, 1e9))


def network(rng: Generator, most: float) -> Plan:
    """Return a network in which every feature has another one or the class as parents."""
    plan = classifier(rng, min(most, 30))
    names = [*plan.estimator.schema.columns]
    parents = {
        name: ["class", *names[max(j - 1, 0) : j]][: rng.integers(1, 3)]
        for j, name in enumerate(names)
    }
    options = plan.estimator.get_params(deep=False)
    return plan._replace(estimator=BayesianNetworkClassifier(parents=parents, **options))


def one_variable(rng: Generator, most: float) -> Plan:
    """Return the posterior of a proportion, or of the probabilities of categories."""
    noisy = ["geometric", "laplace", "gaussian", "auto"]
    finite = ["laplace_improved", "exponential", "hellinger", "local"]
    few = rng.random() < 0.3
    k = 2 if rng.random() < 0.5 else _many(rng, 3 if few else most) + 1
    options = {
        "mechanism": rng.choice(finite if few else noisy),
        "inference": rng.choice(["plug_in", "noise_aware"]),
        "prior": [_number(rng, -3, 6) for _ in range(k)],
        **_common(rng),
    }
    n = _many(rng, 20 if few else 1e9)
    codes = rng.integers(0, k, _ROWS)
    if k == 2:
        return Plan(BetaBinomial(**options), codes, n=n)
    return Plan(DirichletMultinomial(categories=k, **options), codes, n=n)


def preparation(rng: Generator, most: float) -> Plan:
    """Return a transformer of numbers."""
    width = _many(rng, most)
    end = _number(rng, -100, 100)
    bounds = None if rng.random() < 0.3 else (-end, end)
    options = {"bounds": bounds, **_common(rng, delta=False)}
    which = rng.integers(0, 3)
    q = 0.5 * _number(rng, -12, 0)
    model = (
        PrivateStandardScaler(clip=_number(rng, -3, 9), **options)
        if which == 0
        else PrivateMinMaxScaler(quantiles=(0.5 - q, 0.5 + q), **options)
        if which == 1
        else PrivateKBinsDiscretizer(_many(rng, most) + 1, **options)
    )
    return Plan(model, rng.uniform(-end, end, (_ROWS, width)), n=None)


def selection(rng: Generator, most: float) -> Plan:
    """Return a choice of columns."""
    domains, classes = _columns(rng, most), Categories(range(rng.integers(1, 6)))
    k = "auto" if rng.random() < 0.5 else _many(rng, 2 * len(domains))
    model = PrivateSelectKBest(k, schema=_schema(domains, classes), **_common(rng, delta=False))
    labels = rng.integers(0, classes.n_values, _ROWS)
    return Plan(model, _records(domains, rng), labels, _many(rng, 1e9))


def tree(rng: Generator, most: float) -> Plan:
    """Return the choice of a tree."""
    domains, classes = _columns(rng, min(most, 40)), Categories(range(rng.integers(1, 6)))
    model = PrivateTree(schema=_schema(domains, classes), **_common(rng, delta=False))
    return Plan(model, _records(domains, rng), rng.integers(0, classes.n_values, _ROWS))


KINDS: dict[str, Callable[[Generator, float], Plan]] = {
    "regression": regression,
    "classifiers": classifier,
    "networks": network,
    "one variable": one_variable,
    "preparation": preparation,
    "selection": selection,
    "trees": tree,
}
"""Makers of a random plan of at most so many columns, or categories."""


def random_plans(kind: str, number: int, most: float, seed: int = 0) -> Iterator[Plan]:
    """Yield random plans of a kind."""
    for turn in range(number):
        plan = KINDS[kind](np.random.default_rng([seed, turn]), most)
        yield plan._replace(estimator=plan.estimator.set_params(random_state=turn))
