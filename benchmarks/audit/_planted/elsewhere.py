"""Small slips in places that no other list of faults has: a factor, a sign, a share, a limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.audit._planted._slip import constant, slip, slip_of_parts, times
from dpbayes_sklearn.base import estimator, parameters
from dpbayes_sklearn.columns import plans, quantiles
from dpbayes_sklearn.columns.texts import TextCounts
from dpbayes_sklearn.counts import dependence, draws, splits
from dpbayes_sklearn.counts import plans as counts
from dpbayes_sklearn.counts.dependence import ColumnChoice
from dpbayes_sklearn.counts.temperature import LossSums
from dpbayes_sklearn.model_selection import pipelines, runs, search
from dpbayes_sklearn.noise.law import laplace_scale
from dpbayes_sklearn.noise.truncated_laplace import TruncatedLaplace
from dpbayes_sklearn.query import PosteriorQuerySession
from dpbayes_sklearn.release import RecordCount

TENTH = Fraction(11, 10)

variance_of_counts = slip_of_parts(
    "Gaussian noise of counts has a tenth less variance",
    "counts, gaussian, record",
    (counts, "gaussian_variance", times(1 / TENTH)),
)
variance_beside_nothing = slip_of_parts(
    "Gaussian noise is calibrated as if no temperature were chosen",
    "counts, gaussian, record",
    (counts, "gaussian_variance", lambda real: lambda *a, pure, **o: real(*a, pure=0, **o)),
)
rho_of_temperature = slip_of_parts(
    "The zCDP of the choice of a temperature is left out",
    "counts, gaussian, record",
    (counts, "_followed_by", lambda real: lambda c, e: real(c, e)._replace(rho=c.rho)),
)


def _greedy(real: Any) -> Any:
    def plan(mechanism: Any, prior: Any, facts: Any, budget: Any) -> Any:
        made = real(mechanism, prior, facts, budget)
        tables = counts.tables_plan(mechanism, prior, facts, budget)
        return made if made is made.tables else replace(made, tables=tables)

    return plan


tables_take_all = slip_of_parts(
    "Tables take all of epsilon, and the temperature its share besides",
    "counts, laplace, record",
    (counts, "plan", _greedy),
)
temperature_takes_more = slip_of_parts(
    "The temperature is chosen with twice its share",
    "counts, laplace, record",
    (counts, "tempering_weights", lambda real: lambda lo, e, unit: real(lo, 2 * e, unit)),
)
spread_of_losses = slip_of_parts(
    "Losses that all rise are thought to lie within half of the largest",
    "counts, laplace, record, add_remove",
    (LossSums, "spread", lambda real: lambda self, unit: real(self, unit) // 2),
)
clip_of_losses = slip_of_parts(
    "Losses of records reach twice as far as is thought",
    "counts, Laplace(), record",
    (LossSums, "sensitivity", lambda real: lambda self, unit: real(self, unit) // 2),
)
size_for_nothing = slip_of_parts(
    "What is left after the number of records is the whole budget",
    "counts, laplace, record, add_remove",
    (
        estimator.PrivateEstimator,
        "_shares",
        lambda real: lambda self, budget: (real(self, budget)[0], budget),
    ),
)
rho_of_size = slip_of_parts(
    "The promised rho leaves out the number of records",
    "counts, gaussian, record, add_remove",
    (estimator, "_spending", lambda real: lambda budget, first, release: release),
)
one_draw_is_priced = slip_of_parts(
    "Several draws of tables have the loss of one",
    "counts, Sampler(n_samples=3), record",
    (
        draws,
        "sampler_law",
        lambda real: lambda m, *args: real(type(m)(1, omega=m.omega), *args),
    ),
)
sides_of_texts = slip_of_parts(
    "The delta of a text is not shared by what comes and what goes",
    "schema, record",
    (TextCounts, "law", lambda real: _one_side),
)


def _one_side(self: Any, unit: Any, epsilon: Fraction, delta: Fraction) -> Any:
    scale = laplace_scale(unit.n_changed * self.n_columns, epsilon)
    return TruncatedLaplace.calibrated(scale, delta / self.n_columns, unit.max_records)


sides_of_the_median = slip_of_parts(
    "Quantiles beside a median have the share of the median, too",
    "PrivateMinMaxScaler",
    (
        quantiles.OuterQuantiles,
        "_sides",
        lambda real: property(lambda self: _all_of_it(real.fget(self))),
    ),
)
spread_takes_all = slip_of_parts(
    "The spread of a column has the share of its median, too",
    "PrivateStandardScaler",
    (
        quantiles.CentreAndSpread,
        "levels",
        lambda real: property(lambda self: _all_of_it(real.fget(self))),
    ),
)


def _all_of_it(levels: Any) -> Any:
    return [levels[0], replace(levels[1], share=Fraction(1))]


rate_of_a_person = slip_of_parts(
    "Ranks are protected for one record of a person",
    "PrivateKBinsDiscretizer, quantile, person (2 records)",
    (plans, "rate", lambda real: lambda level, e, unit: real(level, 2 * e, unit)),
)
one_choice_less = slip_of_parts(
    "Choices of columns share epsilon as if there were one less",
    "columns, record",
    (
        ColumnChoice,
        "shares",
        lambda real: property(lambda self: tuple(2 * share for share in real.fget(self))),
    ),
)
question_is_free = slip_of_parts(
    "The question whether there is a tree costs half of its share",
    "tree, record",
    (
        dependence.TreeChoice,
        "shares",
        lambda real: property(lambda self: tuple(_doubled(real.fget(self)))),
    ),
)


def _doubled(shares: Any) -> Iterator[Fraction]:
    for place, share in enumerate(shares):
        yield share if place else 2 * share


choice_without_two = slip_of_parts(
    "Scores that rise and fall are thought to differ by one sensitivity",
    "columns, record",
    (
        plans,
        "choice_weights",
        lambda real: lambda scores, delta, e: real(scores, delta, 2 * e),
    ),
)
price_of_geometric = slip_of_parts(
    "Geometric stopping costs twice a run",
    "search, geometric, 0.0",
    (search, "PRICE", constant({"geometric": 2, "logarithmic": 2})),
)
price_of_logarithmic = slip_of_parts(
    "Logarithmic stopping costs one run and a half",
    "search, logarithmic, 0.0",
    (search, "PRICE", constant({"geometric": 3, "logarithmic": Fraction(3, 2)})),
)
shape_of_stopping = slip_of_parts(
    "With a delta, all stopping is priced as logarithmic",
    "search, geometric, 0.001",
    (search, "run_rho", lambda real: lambda e, d, eta, inverse, mean: real(e, d, 0, inverse, mean)),
)
rho_of_scores = slip_of_parts(
    "Gaussian noise of a score has the variance of half of its square",
    "search, geometric, 0.001",
    (runs, "representable_variance", times(Fraction(1, 2))),
)
points_below_nothing = slip_of_parts(
    "Large errors of a regression earn less than nothing",
    "search, geometric, 0.0",
    (runs, "LARGEST_ERROR", constant(Fraction(1, 4))),
    (runs, "points", lambda real: _unclipped),
)


def _unclipped(model: Any, X: Any, y: Any) -> Any:
    if not hasattr(model.schema_.target, "high"):
        classes = model.schema_.classes
        return (classes.encode(model._predict_by_row(X)) == classes.encode(y)).astype(np.int64)
    largest = float(runs.LARGEST_ERROR) * (model.schema_.target.high - model.schema_.target.low)
    error = (model._predict_by_row(X) - np.asarray(y, float)) / largest
    return np.floor(runs.POINTS * (1 - error**2)).astype(np.int64)


queries_promise_less = slip_of_parts(
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


size_of_a_person = slip_of_parts(
    "The number of records hides one record of a person",
    "counts, laplace, person (2 records), add_remove",
    (
        RecordCount,
        "sensitivity",
        lambda real: lambda self, unit: int(unit.size_is_secret),
    ),
)
one_record_too_many = slip(
    "One record more than is declared counts",
    "replay of units",
    "person",
    (parameters, "counted_records", lambda real: lambda labels, most: real(labels, most + 1)),
)

unclipped_losses = slip_of_parts(
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


both_ends_of_a_range = slip_of_parts(
    "Both ends of a bounded range have the whole share",
    "PrivateMinMaxScaler, bounded",
    (
        quantiles.OuterQuantiles,
        "levels",
        lambda real: property(
            lambda self: [replace(x, share=Fraction(1)) for x in real.fget(self)]
        ),
    ),
)
exact_number_held_out = slip_of_parts(
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


classes_of_scores = slip_of_parts(
    "Scores of columns are protected as for two values and two classes",
    "wide columns",
    (
        dependence,
        "dependence_sensitivity",
        lambda real: lambda n, values, classes: real(n, min(values, 2), min(classes, 2)),
    ),
)
draws_of_a_feature = slip_of_parts(
    "A feature is thought to turn one split, however many values it has",
    "deep, feature",
    (splits, "node_losses", lambda real: lambda turning, adding: _shallow(turning, adding)),
    (splits, "_node_loss", lambda real: real.__wrapped__),  # not from its cache
    (splits, "_node_rho", lambda real: real.__wrapped__),
)


def _shallow(turning: Any, adding: Any) -> tuple[float, float]:
    return float(np.max(turning, initial=0.0)), 2 * float(np.max(adding, initial=0.0))


steps_of_a_run = slip_of_parts(
    "The last step of a pipeline has the epsilon of the whole run",
    "search, geometric, 0.0",
    (pipelines, "step_epsilons", lambda real: lambda steps, e: _last_has_all(real(steps, e), e)),
)


def _last_has_all(epsilons: dict[str, Any], whole: Any) -> dict[str, Any]:
    *_, last = epsilons
    return {**epsilons, last: whole}
