"""Plans of releases from public facts alone: whatever cannot be released is refused uncharged.

Estimators, mechanisms, units, schemas, epsilons from 1e-6 to 1e4, deltas and up to 10**9 records
are drawn at random, to extremes. A plan may be refused with a reason; a fit that is charged has to
end. A few records are fitted as if there were up to 10**9 of them: where their number is public, it
is replaced between reading and planning, so plans, noise and inference are those of so many.
Besides, plans at the edges, where releases once failed after they were charged.
"""

from __future__ import annotations

import logging
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import dpbayes_sklearn as dp
from benchmarks.audit._cases import Case, Row, cases_of, refused, silent
from benchmarks.audit._models import person
from benchmarks.audit.tools.recording import planted
from dpbayes_sklearn.base.estimator import PrivateEstimator
from dpbayes_sklearn.bayesian_network import PrivateTree
from dpbayes_sklearn.categories.counts import ReleasedSimplex, SimplexCounts
from dpbayes_sklearn.categories.posterior import Dirichlet, SimplexPrior
from dpbayes_sklearn.columns.plans import ChoicePlan, choice_weights
from dpbayes_sklearn.counts.count_lattice import log_lattice_weight, log_row_weight
from dpbayes_sklearn.counts.dependence import TreeChoice
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.mechanisms import Laplace
from dpbayes_sklearn.noise import DiscreteLaplace, Noise, made_by
from dpbayes_sklearn.preprocessing import scalers
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.privacy.budget import PrivacyUnit
from dpbayes_sklearn.release import Facts

PLANS = 200
FEW, MANY = 30, 2000  # columns, or values of one
FEWER = {"regression": 200, "networks": FEW, "trees": FEW}  # Their work grows faster.
WIDE = 10


def run(scale: float) -> Iterator[Row]:
    """Try plans of every kind, most of them of few columns."""
    for kind in KINDS:
        yield tried(kind, max(1, round(PLANS * scale)), FEW)
        if (most := FEWER.get(kind, MANY)) > FEW:
            yield tried(kind, max(1, round(WIDE * scale)), most)
    what = "plans without data, every estimator and mechanism, up to 2,000 columns: failed"
    yield silent(what, sweep() if scale >= 1 else sweep(columns=(1, 30), sizes=(1, 10**9)))


def tried(kind: str, number: int, most: int) -> Row:
    """Return how many random plans fail after they were charged."""
    what = f"{number} plans of {kind}, up to {most} columns or values: failed"
    return silent(what, failures(random_plans(kind, number, most, seed=1)))


Generator = np.random.Generator
_ROWS = 40


class PlannedFit(NamedTuple):
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


def attempt(plan: PlannedFit) -> tuple[bool, Exception | None]:
    """Fit, and tell whether anything was charged, and what went wrong."""
    ledger = dp.BudgetAccountant(delta=0.999)
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


def failures(plans: Iterator[PlannedFit]) -> Iterator[str]:
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
        return dp.Interval(-end, end, bins=_many(rng, values) + 1)
    return dp.Categories(range(int([1, 2, _many(rng, values)][kind - 1])))


def _records(domains: list[Any], rng: Generator) -> npt.NDArray[Any]:
    """Return a few records, numbers of the declared domains."""
    return np.column_stack(
        [domain.decode(rng.integers(0, domain.n_values, _ROWS), rng) for domain in domains]
    )


def _columns(rng: Generator, most: float) -> list[Any]:
    width = _many(rng, most)
    kinds = [_column(rng, max(most / width, 3)) for _ in range(rng.integers(1, 4))]
    return [kinds[i] for i in rng.integers(0, len(kinds), width)]


def _schema(domains: list[Any], target: Any) -> dp.Schema:
    return dp.Schema({f"c{j}": domain for j, domain in enumerate(domains)}, target)


def regression(rng: Generator, most: float) -> PlannedFit:
    """Return a linear model."""
    domains, end = _columns(rng, most), _number(rng, -12, 12)
    target = dp.Interval(-end, end)
    model = dp.BayesianLinearRegression(
        mechanism=rng.choice(["laplace", "fourier", "gaussian", "sampler", "map", "auto"]),
        prior_precision=_number(rng, -9, 9),
        noise_variance=rng.choice([None, _number(rng, -9, 9)]),
        fit_intercept=bool(rng.random() < 0.7),
        inference=rng.choice(["plug_in", "noise_aware"]),
        schema=_schema(domains, target),
        **_common(rng),
    )
    return PlannedFit(model, _records(domains, rng), rng.uniform(-end, end, _ROWS), _many(rng, 1e9))


def classifier(rng: Generator, most: float) -> PlannedFit:
    """Return naive Bayes."""
    domains, classes = _columns(rng, most), dp.Categories(range(rng.integers(1, 6)))
    laplace = Laplace(noise=rng.choice(["auto", "joint", "independent"]))
    split = Laplace(budget_split=_number(rng, -6, 6))
    names = ["fourier", "gaussian", "sampler", "map", "auto"]
    model = dp.BayesianNaiveBayes(
        mechanism=rng.choice(np.array([laplace, split, *names], dtype=object)),
        alpha=_number(rng, -99, 12) if rng.random() < 0.2 else _number(rng, -3, 3),
        inference=rng.choice(["plug_in", "noise_aware", "adaptive"]),
        temperature=rng.choice(np.array(["auto", 1, 1e-9], dtype=object)),
        schema=_schema(domains, classes),
        **_common(rng, feature=True),
    )
    labels = rng.integers(0, classes.n_values, _ROWS)
    return PlannedFit(model, _records(domains, rng), labels, _many(rng, 1e9))


def network(rng: Generator, most: float) -> PlannedFit:
    """Return a network in which every feature has another one or the class as parents."""
    plan = classifier(rng, min(most, 30))
    names = [*plan.estimator.schema.columns]
    parents = {
        name: ["class", *names[max(j - 1, 0) : j]][: rng.integers(1, 3)]
        for j, name in enumerate(names)
    }
    options = plan.estimator.get_params(deep=False)
    return plan._replace(estimator=dp.BayesianNetworkClassifier(parents=parents, **options))


def one_variable(rng: Generator, most: float) -> PlannedFit:
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
        return PlannedFit(dp.BetaBinomial(**options), codes, n=n)
    return PlannedFit(dp.DirichletMultinomial(categories=k, **options), codes, n=n)


def preparation(rng: Generator, most: float) -> PlannedFit:
    """Return a transformer of numbers."""
    width = _many(rng, most)
    end = _number(rng, -100, 100)
    bounds = None if rng.random() < 0.3 else (-end, end)
    options = {"bounds": bounds, **_common(rng, delta=False)}
    which, q = rng.integers(0, 3), 0.5 * _number(rng, -12, 0)
    makers: list[Callable[[], Any]] = [
        lambda: scalers.PrivateStandardScaler(clip=_number(rng, -3, 9), **options),
        lambda: scalers.PrivateMinMaxScaler(quantiles=(0.5 - q, 0.5 + q), **options),
        lambda: scalers.PrivateKBinsDiscretizer(_many(rng, most) + 1, **options),
    ]
    model = makers[which]()
    return PlannedFit(model, rng.uniform(-end, end, (_ROWS, width)), n=None)


def selection(rng: Generator, most: float) -> PlannedFit:
    """Return a choice of columns."""
    domains, classes = _columns(rng, most), dp.Categories(range(rng.integers(1, 6)))
    k = "auto" if rng.random() < 0.5 else _many(rng, 2 * len(domains))
    model = PrivateSelectKBest(k, schema=_schema(domains, classes), **_common(rng, delta=False))
    labels = rng.integers(0, classes.n_values, _ROWS)
    return PlannedFit(model, _records(domains, rng), labels, _many(rng, 1e9))


def tree(rng: Generator, most: float) -> PlannedFit:
    """Return the choice of a tree."""
    domains, classes = _columns(rng, min(most, 40)), dp.Categories(range(rng.integers(1, 6)))
    model = PrivateTree(schema=_schema(domains, classes), **_common(rng, delta=False))
    return PlannedFit(model, _records(domains, rng), rng.integers(0, classes.n_values, _ROWS))


KINDS: dict[str, Callable[[Generator, float], PlannedFit]] = {
    "regression": regression,
    "classifiers": classifier,
    "networks": network,
    "one variable": one_variable,
    "preparation": preparation,
    "selection": selection,
    "trees": tree,
}
"""Makers of a random plan of at most so many columns, or categories."""


def random_plans(kind: str, number: int, most: float, seed: int = 0) -> Iterator[PlannedFit]:
    """Yield random plans of a kind."""
    for turn in range(number):
        plan = KINDS[kind](np.random.default_rng([seed, turn]), most)
        yield plan._replace(estimator=plan.estimator.set_params(random_state=turn))


_MECHANISMS = ("laplace", "gaussian", "auto", "fourier", "map", "sampler")
_KINDS = (dp.Interval(0, 1), dp.Categories([0, 1]), dp.Categories(range(5)))
_SWEPT = ((_KINDS[0],), (_KINDS[1],), (_KINDS[2],), _KINDS)


def _chained(epsilon: float, *, schema: dp.Schema, **options: Any) -> dp.BayesianNetworkClassifier:
    """Return a network in which every feature has the class and the one before it as parents."""
    names = [*schema.columns]
    parents = {name: ["class", *names[max(j - 1, 0) : j]] for j, name in enumerate(names)}
    return dp.BayesianNetworkClassifier(epsilon, parents=parents, schema=schema, **options)


def _described(schema: dp.Schema) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield makers of every estimator of a table, and their names; each takes an epsilon."""
    with_number, with_class = (_schema([*schema.columns.values()], end) for end in _KINDS[:2])
    for mechanism in _MECHANISMS:
        both = {"mechanism": mechanism, "delta": 1e-6}
        yield (
            f"linear {mechanism}",
            partial(dp.BayesianLinearRegression, schema=with_number, **both),
        )
        for model in (dp.BayesianLogisticRegression, dp.BayesianNaiveBayes, _chained):
            yield f"{model.__name__} {mechanism}", partial(model, schema=with_class, **both)
    yield "selection", lambda e: PrivateSelectKBest(3, epsilon=e, schema=with_class)
    yield "tree", partial(PrivateTree, schema=with_class)
    width = len(schema.columns)
    for mechanism in ("geometric", "laplace", "gaussian", "auto", "exponential", "hellinger"):
        both = {"mechanism": mechanism, "delta": 1e-6}
        yield f"proportion {mechanism}", partial(dp.BetaBinomial, **both)
        yield f"shares {mechanism}", partial(dp.DirichletMultinomial, categories=width + 1, **both)
    for prepared in (
        scalers.PrivateStandardScaler,
        scalers.PrivateMinMaxScaler,
        scalers.PrivateKBinsDiscretizer,
    ):
        yield prepared.__name__, lambda e, made=prepared: made(epsilon=e, bounds=(0, 1))
    yield "means", partial(dp.NormalMean, bounds=(0, 1))
    yield "life table", partial(dp.LifeTable, bounds=(0, 1), n_bins=width + 1)


def sweep(
    columns: tuple[int, ...] = (1, 30, 300, 2000),
    sizes: tuple[int, ...] = (1, 30, 54_875, 10**9),
    epsilons: tuple[float, ...] = (1e-6, 1e-3, 1.0, 1e4),
) -> Iterator[str]:
    """Say which plans fail, without any data, other than by being refused.

    All estimators and mechanisms, for columns that are numbers, of two values, of five, and mixed.
    """
    for kinds, width in product(_SWEPT, columns):
        schema = _schema([kinds[j % len(kinds)] for j in range(width)], None)
        for name, make in _described(schema):
            for n, epsilon in product(sizes, epsilons):
                try:
                    str(make(epsilon).plan(n, width))
                except ValueError:
                    continue
                except Exception as error:
                    what = f"{name} of {width} columns, n={n}, epsilon={epsilon:g}"
                    yield f"{type(error).__name__} ({error}) while planning {what}"


_OF_EACH_KIND = 6
_MOST_MEMORY = 350 * 2**20


def _line(n: int, **options: Any) -> PlannedFit:
    """Return a regression on three numbers and a column of two values."""
    number, sign = dp.Interval(0, 1), dp.Categories([0, 1])
    schema = dp.Schema({"a": number, "b": number, "c": number, "d": sign}, number)
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random((40, 3)), rng.integers(0, 2, 40)])
    return PlannedFit(dp.BayesianLinearRegression(schema=schema, **options), X, rng.random(40), n)


def _tables(sizes: list[int], n_classes: int, n: int | None, **options: Any) -> PlannedFit:
    """Return a naive Bayes model that takes its noise into account."""
    rng, domains = np.random.default_rng(0), [dp.Categories(range(size)) for size in sizes]
    columns = {f"c{j}": domain for j, domain in enumerate(domains)}
    schema = dp.Schema(columns, dp.Categories(range(n_classes)))
    X = np.column_stack([rng.integers(0, size, 40) for size in sizes])
    model = dp.BayesianNaiveBayes(schema=schema, inference="noise_aware", random_state=0, **options)
    return PlannedFit(model, X, rng.integers(0, n_classes, 40), n)


def _many_records(k: int) -> PrivacyUnit:
    return person(k, neighbours="add_remove")


GAUSSIAN: dict[str, Any] = {"delta": 1e-6, "mechanism": "gaussian"}
EDGES: dict[str, PlannedFit] = {
    "signs, many records": _line(54_875, epsilon=1.0, **GAUSSIAN),
    "signs, more records": _line(10**9, epsilon=1.0),
    "tiny pseudo-counts": _tables(
        [6, 7, 1, 4], 2, None, epsilon=0.06, alpha=1e-8, privacy_unit=_many_records(6176),
        **GAUSSIAN,
    ),
    "huge pseudo-counts": _tables(
        [8], 2, None, epsilon=2.5, mechanism=Laplace(noise="independent"), alpha=1e9,
        privacy_unit=_many_records(809_645),
    ),
    "shares that differ": _tables(
        [4, 2, 7], 2, 205, epsilon=0.01, mechanism=Laplace(budget_split=1e6)
    ),
    "nothing can change": _tables(
        [1, 1], 2, 40, epsilon=1.0, temperature=1, privacy_unit="feature", **GAUSSIAN
    ),
}  # fmt: skip
"""By name; none of them may fail after the charge, and none of these is refused."""


def edges(plan: PlannedFit) -> Iterator[str]:
    """Say what goes wrong with a plan that can be released."""
    _, error = attempt(plan)
    if error is not None:
        yield f"{type(error).__name__} ({error}): {plan}"


def weights_of_pseudo_counts() -> Iterator[str]:
    """Weigh counts by priors from the least to the greatest, on lattices of every step."""
    points = np.arange(4096)
    for alpha, step in product((1e-100, 1e-12, 1e-8, 1e-3, 1.0, 1e4, 1e9, 1e12), (1.0, 3.7, 1e5)):
        cell = log_lattice_weight(alpha, points, step)
        row = log_row_weight((alpha,) * 3, 0, int(points[-1]), step)
        if not (np.isfinite(cell).all() and np.isfinite(row).all()):
            yield f"counts of step {step:g} have no weights under pseudo-counts of {alpha:g}"


def too_many_candidates() -> Iterator[str]:
    """Ask for trees of which some cannot be chosen exactly."""
    for columns in (1024, 1025):
        choice = TreeChoice(Network.star([2] * columns, 2))
        planned = not refused(partial(ChoicePlan.of, choice, Budget(1)), ValueError)
        half = columns // 2
        scores = np.zeros(half * (columns - half), np.int64)
        if planned == refused(partial(choice_weights, scores, 1, 1.0), ValueError):
            yield f"a tree over {columns} features is {'not ' * planned}refused beforehand"


def memory_of_wide_noise() -> Iterator[str]:
    """Read two counts that are nothing but noise, of a secret sum."""
    law = DiscreteLaplace.of(Fraction(30_000), [2])
    tracemalloc.start()
    try:
        prior = SimplexPrior(Dirichlet([1.0, 1.0]), "noise_aware")
        prior.update(ReleasedSimplex(np.array([-9, -9]), None, (law,)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    if peak > _MOST_MEMORY:
        yield f"noise of scale 30,000 takes {peak >> 20} MB"


def plans() -> list[Case]:
    """Return the edges, and a few random plans of every kind."""
    known = [Case(name, partial(edges, plan)) for name, plan in EDGES.items()]
    others = cases_of(weights_of_pseudo_counts, too_many_candidates, memory_of_wide_noise)
    drawn = [Case(f"random {kind}", partial(_random, kind)) for kind in KINDS]
    return [*known, *others, *drawn]


def _random(kind: str) -> Iterator[str]:
    return failures(random_plans(kind, _OF_EACH_KIND, 8))
