"""Small slips in places that no other list of faults has: a factor, a sign, a share, a limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.audit._planted._fault import Fault
from dpbayes_sklearn import _estimator, _protection
from dpbayes_sklearn.laws.scales import laplace_scale
from dpbayes_sklearn.laws.truncated_laplace import TruncatedLaplace
from dpbayes_sklearn.mechanisms import (
    Gaussian,
    Sampler,
    _coefficient_draws,
    _location,
    _perturbed_mode,
    _split_release,
    _temperature,
    base,
    fourier,
    gaussian,
    permute_and_flip,
    quantiles,
    size,
)
from dpbayes_sklearn.model_selection import runs, search
from dpbayes_sklearn.privacy.accountant import BudgetAccountant
from dpbayes_sklearn.query import PosteriorQuerySession
from dpbayes_sklearn.statistics import (
    choices,
    dependence,
    gram_matrix,
    moment_blocks,
    moment_sums,
    moments,
)
from dpbayes_sklearn.statistics.choices import ColumnChoice
from dpbayes_sklearn.statistics.gaussian_gram import GaussianGram
from dpbayes_sklearn.statistics.quantiles import plans
from dpbayes_sklearn.statistics.temperature import LossSums
from dpbayes_sklearn.statistics.texts import TextCounts


def _slip(
    name: str, layer: str, case: str, *changes: tuple[Any, str, Callable[[Any], Any] | Any]
) -> Fault:
    """Return a fault that replaces attributes by functions of what they were."""

    def replacements() -> Iterator[tuple[Any, str, Any]]:
        for owner, attribute, change in changes:
            yield owner, attribute, change(vars(owner)[attribute])

    return Fault("elsewhere", name, layer, replacements, case)


def _times(factor: Any) -> Callable[[Any], Any]:
    """Multiply what a function returns."""
    return lambda real: lambda *args, **options: factor * real(*args, **options)


def _is(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


def _parts(name: str, case: str, *changes: Any) -> Fault:
    return _slip(name, "parts", case, *changes)


TENTH = Fraction(11, 10)

rho_of_steps = _parts(
    "All steps of a regression may have a tenth more rho",
    "regression, gaussian, record",
    (gaussian, "composed_rho", _times(TENTH)),
)
variance_of_counts = _parts(
    "Gaussian noise of counts has a tenth less variance",
    "counts, gaussian, record",
    (gaussian, "gaussian_variance", _times(1 / TENTH)),
)
variance_beside_nothing = _parts(
    "Gaussian noise is calibrated as if no temperature were chosen",
    "counts, gaussian, record",
    (gaussian, "gaussian_variance", lambda real: lambda *a, pure, **o: real(*a, pure=0, **o)),
)
rho_of_temperature = _parts(
    "The zCDP of the choice of a temperature is left out",
    "counts, gaussian, record",
    (Gaussian, "cost", lambda real: _without_pure(real)),
)


def _without_pure(real: Any) -> Any:
    def cost(self: Any, statistics: Any, prior: Any, budget: Any) -> Any:
        found = real(self, statistics, prior, budget)
        pure = Fraction(self.budget_for(statistics, prior, budget).pure)
        return found._replace(rho=found.rho - pure**2 / 2)

    return cost


tables_take_all = _parts(
    "Tables take all of epsilon, and the temperature its share besides",
    "counts, laplace, record",
    (base, "table_budget", lambda real: lambda t, n, budget: budget),
)
temperature_takes_more = _parts(
    "The temperature is chosen with twice its share",
    "counts, laplace, record",
    (_temperature, "choice_weights", lambda real: lambda lo, e, unit: real(lo, 2 * e, unit)),
)
spread_of_losses = _parts(
    "Losses that all rise are thought to lie within half of the largest",
    "counts, laplace, record, add_remove",
    (LossSums, "spread", lambda real: lambda self, unit: real(self, unit) // 2),
)
clip_of_losses = _parts(
    "Losses of records reach twice as far as is thought",
    "counts, Laplace(), record",
    (LossSums, "sensitivity", lambda real: lambda self, unit: real(self, unit) // 2),
)
size_for_nothing = _parts(
    "What is left after the number of records is the whole budget",
    "counts, laplace, record, add_remove",
    (
        _estimator.PrivateEstimator,
        "_shares",
        lambda real: lambda self, budget: (real(self, budget)[0], budget),
    ),
)
rho_of_size = _parts(
    "The promised rho leaves out the number of records",
    "counts, gaussian, record, add_remove",
    (_estimator, "_spending", lambda real: lambda budget, rest, release: release),
)
half_of_rho_charged = _parts(
    "Half of the rho of a release is charged",
    "regression, gaussian, record",
    (
        BudgetAccountant,
        "spend",
        lambda real: (
            lambda self, e=None, d=0, label="", *, rho=None, **o: real(
                self, e, d, label, rho=None if rho is None else rho / 2, **o
            )
        ),
    ),
)
one_draw_is_priced = _parts(
    "Several draws of tables have the loss of one",
    "counts, Sampler(n_samples=3), record",
    (
        Sampler,
        "plan",
        lambda real: lambda self, *args: real(type(self)(1, omega=self.omega), *args),
    ),
)
one_draw_of_coefficients = _parts(
    "Each of several draws of coefficients has the whole loss",
    "regression, Sampler(n_samples=3), record",
    (_coefficient_draws, "loss_of_a_draw", lambda real: lambda e, d, n: real(e, d, 1)),
)
draws_beside_a_mode = _parts(
    "Draws around a mode have the mode's half, too",
    "regression, Sampler(n_samples=3), record",
    (
        _coefficient_draws,
        "loss_of_a_draw",
        lambda real: lambda e, d, n: real(2 * e, d, n),
    ),
)
wide_residuals = _parts(
    "Residuals of a draw are clipped to twice their limit",
    "regression, Sampler(n_samples=3), record",
    (_coefficient_draws, "_place", lambda real: lambda *args: _wider(real(*args))),
    (_coefficient_draws, "score_range", lambda real: lambda limit, reach: real(limit / 2, reach)),
)


def _wider(place: Any) -> Any:
    return place._replace(limit=2 * place.limit)


one_record_of_a_draw = _parts(
    "Draws are weighed for one record of a person",
    "regression, Sampler(n_samples=3), person",
    (
        _coefficient_draws,
        "score_range",
        lambda real: lambda limit, reach: real(limit, reach) / 2,
    ),
)
mode_takes_all = _parts(
    "A mode has its volume and its search besides its pulls",
    "regression, map, record",
    (_perturbed_mode, "_VOLUME", _is(Fraction(1, 10**6))),
    (
        _perturbed_mode,
        "least_ridge",
        lambda real: lambda squares, e, unit: real(squares, e * Fraction(10**6, 8), unit),
    ),
)
jitter_of_a_step = _parts(
    "The noise of a mode hides one of the two roundings",
    "regression, map, record",
    (
        _perturbed_mode,
        "plan_mode",
        lambda real: lambda *args: _with_less_jitter(real(*args)),
    ),
)


def _with_less_jitter(plan: Any) -> Any:
    return plan._replace(jitter=replace(plan.jitter, scale=plan.jitter.scale / 16))


ridge_of_a_person = _parts(
    "The ridge of a mode hides one record of a person",
    "regression, map, person (2 records)",
    (
        _perturbed_mode,
        "least_ridge",
        lambda real: lambda squares, e, unit: real(squares, e * unit.max_records, unit),
    ),
)
pulls_of_a_person = _parts(
    "The noise of pulls hides one record of a person",
    "regression, map, person (2 records)",
    (
        _perturbed_mode,
        "plan_mode",
        lambda real: lambda d, n, p, e, unit: _half_pull(real(d, n, p, e, unit)),
    ),
)


def _half_pull(plan: Any) -> Any:
    return plan._replace(pull=replace(plan.pull, scale=plan.pull.scale / 2))


wide_pulls = _parts(
    "Records pull with twice the limit",
    "regression, map, record",
    (
        moments.Moments,
        "pulls",
        lambda real: lambda self, g, w, ws, c, limit: real(self, g, w, ws, c, 2 * limit),
    ),
)
shells_take_all = _parts(
    "Shells take the share of the means, too",
    "regression, laplace, record",
    (_location, "_TARGET_MEAN", _is(Fraction(3, 5))),
    (
        _location.Steps,
        "shells",
        lambda real: lambda self, c, n, share: real(self, c, n, share * Fraction(5, 2)),
    ),
)
shells_move_once = _parts(
    "A record is thought to change one shell of a column",
    "regression, laplace, record",
    (
        _location,
        "shell_block",
        lambda real: lambda c, s: replace(real(c, s), together=real(c, s).together / 2),
    ),
)
residuals_not_clipped = _parts(
    "Residuals count up to twice their bound",
    "regression, laplace, record",
    (
        moments.Moments,
        "squared_residuals",
        lambda real: lambda self, m, g, e: (4 * real(self, m, g, e)[0], real(self, m, g, e)[1]),
    ),
)
target_block_of_one = _parts(
    "The target is thought to move from 0 to 1",
    "regression, laplace, record",
    (
        _location,
        "target_block",
        lambda real: lambda: replace(real(), together=Fraction(1), each=np.array([1])),
    ),
)
gram_of_a_person = _parts(
    "A person changes squared sums by as many times, not by its square",
    "regression, gaussian, person (2 records)",
    (
        GaussianGram,
        "protecting",
        lambda real: (
            lambda self, unit: replace(
                real(self, unit), bound=real(self, unit).bound / unit.max_records
            )
        ),
    ),
)
block_of_a_person = _parts(
    "Squares of sums are those of one record of a person",
    "regression, gaussian, person (2 records)",
    (
        moment_blocks.Block,
        "squared",
        lambda real: property(lambda self: real.fget(self) / self.times),
    ),
)
sides_of_texts = _parts(
    "The delta of a text is not shared by what comes and what goes",
    "schema, record",
    (TextCounts, "law", lambda real: _one_side),
)


def _one_side(self: Any, unit: Any, epsilon: Fraction, delta: Fraction) -> Any:
    scale = laplace_scale(unit.moves * self.n_columns, epsilon)
    return TruncatedLaplace.calibrated(scale, delta / self.n_columns, unit.max_records)


sides_of_the_median = _parts(
    "Quantiles beside a median have the share of the median, too",
    "PrivateMinMaxScaler",
    (
        plans.OuterQuantiles,
        "_sides",
        lambda real: property(lambda self: _all_of_it(real.fget(self))),
    ),
)
spread_takes_all = _parts(
    "The spread of a column has the share of its median, too",
    "PrivateStandardScaler",
    (
        plans.CentreAndSpread,
        "levels",
        lambda real: property(lambda self: _all_of_it(real.fget(self))),
    ),
)


def _all_of_it(levels: Any) -> Any:
    return [levels[0], replace(levels[1], share=Fraction(1))]


rate_of_a_person = _parts(
    "Ranks are protected for one record of a person",
    "PrivateKBinsDiscretizer, quantile, person (2 records)",
    (quantiles, "rate", lambda real: lambda level, e, unit: real(level, 2 * e, unit)),
)
one_choice_less = _parts(
    "Choices of columns share epsilon as if there were one less",
    "columns, record",
    (
        ColumnChoice,
        "shares",
        lambda real: property(lambda self: tuple(2 * share for share in real.fget(self))),
    ),
)
question_is_free = _parts(
    "The question whether there is a tree costs half of its share",
    "tree, record",
    (
        choices.TreeChoice,
        "shares",
        lambda real: property(lambda self: tuple(_doubled(real.fget(self)))),
    ),
)


def _doubled(shares: Any) -> Iterator[Fraction]:
    for place, share in enumerate(shares):
        yield share if place else 2 * share


choice_without_two = _parts(
    "Scores that rise and fall are thought to differ by one sensitivity",
    "columns, record",
    (
        permute_and_flip,
        "choice_weights",
        lambda real: lambda scores, delta, e: real(scores, delta, 2 * e),
    ),
)
price_of_geometric = _parts(
    "Geometric stopping costs twice a run",
    "search, geometric, 0.0",
    (search, "PRICE", _is({"geometric": 2, "logarithmic": 2})),
)
price_of_logarithmic = _parts(
    "Logarithmic stopping costs one run and a half",
    "search, logarithmic, 0.0",
    (search, "PRICE", _is({"geometric": 3, "logarithmic": Fraction(3, 2)})),
)
shape_of_stopping = _parts(
    "With a delta, all stopping is priced as logarithmic",
    "search, geometric, 0.001",
    (search, "run_rho", lambda real: lambda e, d, eta, inverse, mean: real(e, d, 0, inverse, mean)),
)
rho_of_scores = _parts(
    "Gaussian noise of a score has the variance of half of its square",
    "search, geometric, 0.001",
    (runs, "representable_variance", _times(Fraction(1, 2))),
)
points_below_nothing = _parts(
    "Large errors of a regression earn less than nothing",
    "search, geometric, 0.0",
    (runs, "LARGEST_ERROR", _is(Fraction(1, 4))),
    (runs, "points", lambda real: _unclipped),
)


def _unclipped(model: Any, X: Any, y: Any) -> Any:
    if not hasattr(model.schema_.target, "high"):
        classes = model.schema_.classes
        return (classes.encode(model._predict_by_row(X)) == classes.encode(y)).astype(np.int64)
    largest = float(runs.LARGEST_ERROR) * (model.schema_.target.high - model.schema_.target.low)
    error = (model._predict_by_row(X) - np.asarray(y, float)) / largest
    return np.floor(runs.POINTS * (1 - error**2)).astype(np.int64)


queries_promise_less = _parts(
    "A session promises one query less than it has answered",
    "session, record",
    (
        PosteriorQuerySession,
        "guarantee",
        lambda real: lambda self, delta=0.0: _one_query_less(self, real, delta),
    ),
)


def _one_query_less(session: Any, real: Any, delta: float) -> Any:
    session._queries -= 1
    try:
        return real(session, delta)
    finally:
        session._queries += 1


size_of_a_person = _parts(
    "The number of records hides one record of a person",
    "counts, laplace, person (2 records), add_remove",
    (
        size.RecordCount,
        "sensitivity",
        lambda real: lambda self, unit: int(unit.size_is_secret),
    ),
)
one_record_too_many = _slip(
    "One record more than is declared counts",
    "replay of units",
    "person",
    (_protection, "counted_records", lambda real: lambda labels, most: real(labels, most + 1)),
)

unclipped_losses = _parts(
    "A loss counts up to twice its bound",
    "counts, Laplace(), record",
    (
        LossSums,
        "of",
        lambda real: classmethod(lambda cls, *args: _twice_the_losses(real.__func__(cls, *args))),
    ),
)


def _twice_the_losses(losses: Any) -> Any:
    return replace(losses, sums=2 * losses.sums)


both_ends_of_a_range = _parts(
    "Both ends of a bounded range have the whole share",
    "PrivateMinMaxScaler, bounded",
    (
        plans.OuterQuantiles,
        "levels",
        lambda real: property(
            lambda self: [replace(x, share=Fraction(1)) for x in real.fget(self)]
        ),
    ),
)
exact_number_of_residuals = _slip(
    "Residuals are divided by the exact number of records",
    "replay of units",
    "BayesianLinearRegression",
    (
        moments.Moments,
        "squared_residuals",
        lambda real: lambda self, m, g, e: real(replace(self, size=None), m, g, e),
    ),
)
exact_number_held_out = _parts(
    "A score is divided by the exact number of records held out",
    "search of nobody knows how many",
    (
        search.PrivateSearchCV,
        "_protected",
        lambda real: lambda self, *args: _of_known_size(*real(self, *args)),
    ),
)


def _of_known_size(split: Any, promises: Any) -> Any:
    return split._replace(n_test=None), promises


classes_of_scores = _parts(
    "Scores of columns are protected as for two values and two classes",
    "wide columns",
    (
        dependence,
        "dependence_sensitivity",
        lambda real: lambda n, values, classes: real(n, min(values, 2), min(classes, 2)),
    ),
)
fixed_part_of_a_norm = _parts(
    "Constant and levels have no part in the norm of a matrix",
    "levels, laplace",
    (gram_matrix.GramMatrix, "bound", lambda real: property(lambda self: self.limit)),
)
alone_in_a_gram = _parts(
    "A record that comes is thought to change Gaussian sums half as far",
    "regression, gaussian, record, add_remove",
    (
        GaussianGram,
        "protecting",
        lambda real: lambda self, unit: real(replace(self, alone=self.alone / 4), unit),
    ),
)
alone_in_a_block = _parts(
    "A record that comes is thought to change one product of each row",
    "regression, fourier, record, add_remove",
    (
        fourier,
        "whole_block",
        lambda real: lambda design: replace(real(design), alone=len(design.features) + 2),
    ),
)
counted_twice = _parts(
    "The first record of a table is in the sums twice",
    "regression, laplace, record",
    (moment_sums, "gram", lambda real: lambda shard, *a, **o: _with_first(real, shard, a, o)),
)


def _with_first(real: Any, shard: Any, args: Any, options: Any) -> Any:
    first = shard._replace(table=shard.table.rows(slice(0, 1)), target=shard.target[:1])
    return real(shard, *args, **options) + real(first, *args, **options)


draws_of_a_feature = _parts(
    "A feature is thought to turn one split, however many values it has",
    "deep, feature",
    (_split_release, "node_losses", lambda real: lambda turning, adding: _shallow(turning, adding)),
)


def _shallow(turning: Any, adding: Any) -> tuple[float, float]:
    return float(np.max(turning, initial=0.0)), 2 * float(np.max(adding, initial=0.0))
