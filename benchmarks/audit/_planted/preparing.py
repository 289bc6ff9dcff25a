"""Bugs of private preparation: ranges, bins and selection that tell more than they claim."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn.bayesian_network import PrivateTree
from dpbayes_sklearn.columns import lattice, plans, quantiles, texts
from dpbayes_sklearn.columns.quantiles import SortedColumns
from dpbayes_sklearn.counts import dependence
from dpbayes_sklearn.counts.dependence import EdgeScores
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.noise import Noise, truncated_laplace
from dpbayes_sklearn.noise.truncated_laplace import TruncatedLaplace
from dpbayes_sklearn.preprocessing import columns
from dpbayes_sklearn.preprocessing.columns import ColumnwiseTransformer
from dpbayes_sklearn.preprocessing.learned_schema import FrameDomains

Replacements = Iterator[tuple[Any, str, Any]]
WORLDS, REPLAY = "enumeration of units of preparation", "replay of units of preparation"
_ONE = {"replace": "replaced", "add_remove": "moved"}


@fault(
    "preparing",
    "enumeration of preparation",
    "A replaced record is thought to change one part of a level",
    "quantiles, epsilon=12",
)
def one_part_of_two() -> Replacements:
    yield (
        quantiles,
        "_disjoint",
        lambda share, fractions: quantiles.Level(share, Fraction(1), Fraction(1)),
    )


@fault(
    "preparing",
    "enumeration of preparation",
    "Every level of a column takes the whole budget of the column",
    "CentreAndSpread",
)
def levels_do_not_share() -> Replacements:
    yield plans, "rate", lambda level, epsilon, unit: float(epsilon / level.sensitivity(unit))


@fault(
    "preparing",
    "enumeration of preparation",
    "A range and the edges within it each take the whole budget of the column",
    "RangeAndEdges",
)
def range_beside_edges() -> Replacements:
    yield quantiles, "_with_part", lambda choose, part: choose


@fault(
    "preparing",
    REPLAY,
    "The edges of bins are looked for between the smallest and the largest record",
    "FrameDomains(bins=4",
)
def range_of_the_records() -> Replacements:
    real = quantiles.RangeAndEdges.ask

    def ask(self: Any, column: Any, choose: Any) -> tuple[float, ...]:
        if not len(column):
            return real(self, column, choose)
        edges = plans.BinEdges(self.n_bins, (float(column[0]), float(column[-1]) + 1))
        return float(column[0]), *edges.ask(column, choose), float(column[-1]) + 1

    yield quantiles.RangeAndEdges, "ask", ask


@fault(
    "preparing",
    "enumeration of preparation",
    "Every column takes the whole budget of the fit",
    "quantiles, epsilon=12",
)
def columns_do_not_share() -> Replacements:
    yield quantiles.QuantileQuestions, "n_columns", 1


@fault(
    "preparing",
    "enumeration of preparation",
    "The lattice of a quantile begins at the smallest record",
    "quantiles, epsilon=12",
)
def lattice_from_the_data() -> Replacements:
    real = lattice.Ranks.law

    def law(self: lattice.Ranks, rate: float) -> lattice.RankLaw:
        return tuple(
            replace(part, masses=[0, *part.masses[1:]], weights=[1, *part.weights[1:]])
            if len(part.weights) > 1
            else part
            for part in real(self, rate)
        )

    yield lattice.Ranks, "law", law


@fault(
    "preparing",
    "enumeration of preparation",
    "A quantile is weighted as if ranks were twice as far apart",
    "quantiles, epsilon=12",
)
def twice_the_rate() -> Replacements:
    real = lattice.decay
    yield lattice, "decay", lambda exponent: real(2 * exponent)


@fault(
    "preparing",
    "enumeration of preparation",
    "Every choice of a column takes the whole budget",
    "k=2",
)
def choices_do_not_share() -> Replacements:
    real = plans.choice_weights
    yield plans, "choice_weights", lambda scores, far, eps: real(scores, far, 2 * eps)


@fault(
    "preparing",
    "enumeration of preparation",
    "Scores of columns are thought to change half as far",
    "k=2",
)
def scores_change_half() -> Replacements:
    real = dependence.dependence_sensitivity
    yield dependence, "dependence_sensitivity", lambda *facts: real(*facts) // 2


@fault(
    "preparing",
    "enumeration of preparation",
    "Naive Bayes is compared with the sum of a tree's scores, not with their mean",
    "Alike",
)
def sum_of_a_tree() -> Replacements:
    real = EdgeScores._mean_of_the_best_tree

    def total(self: EdgeScores) -> int:
        return real(self) * (len(self.scores) - 1)

    yield EdgeScores, "_mean_of_the_best_tree", total


@fault(
    "preparing",
    "replay of units of preparation",
    "The scores of the edges are kept as an attribute",
    "PrivateTree",
)
def edge_scores_are_kept() -> Replacements:
    real = PrivateTree._statistics

    def statistics(self: Any, public: Any, records: Any) -> Any:
        found = real(self, public, records)
        self.scores_ = found.scores
        return found

    yield PrivateTree, "_statistics", statistics


@fault(
    "preparing",
    "replay of preparation",
    "The scores of the columns are kept as an attribute",
    "PrivateSelectKBest",
)
def scores_are_kept() -> Replacements:
    real = PrivateSelectKBest._statistics

    def statistics(self: Any, public: Any, records: Any) -> Any:
        found = real(self, public, records)
        self.scores_ = found.scores
        return found

    yield PrivateSelectKBest, "_statistics", statistics


@fault(
    "preparing", "replay of preparation", "A transformer keeps the smallest value of every column"
)
def minimum_is_kept() -> Replacements:
    def statistics(self: Any, public: Any, records: Any) -> SortedColumns:
        found = SortedColumns(records)
        self.lowest_ = [np.append(found.column(j), 0.0)[0] for j in range(found.n_columns)]
        return found

    yield ColumnwiseTransformer, "_statistics", statistics


@fault("preparing", "leak walk", "A transformer keeps the columns that it has sorted")
def columns_are_kept() -> Replacements:
    def statistics(self: Any, public: Any, records: Any) -> SortedColumns:
        found = SortedColumns(records)
        self._sorted = [found.column(j) for j in range(found.n_columns)]
        return found

    yield ColumnwiseTransformer, "_statistics", statistics


@fault("preparing", "replay of preparation", "How many bins a column gets depends on its records")
def bins_from_the_data() -> Replacements:
    real = ColumnwiseTransformer._public_schema

    def public_schema(self: Any, records: Any, n: int) -> Any:
        public, conditions = real(self, records, n)
        return public._replace(n=len(SortedColumns(records).column(0))), conditions

    yield ColumnwiseTransformer, "_public_schema", public_schema


@fault("preparing", "enumeration of texts", "Both texts of a replaced record take the whole delta")
def texts_do_not_share_delta() -> Replacements:
    real = TruncatedLaplace.calibrated
    yield TruncatedLaplace, "calibrated", lambda scale, delta, step=1: real(scale, 2 * delta, step)


@fault("preparing", "enumeration of texts", "A replaced record is thought to change one text only")
def one_text_of_two() -> Replacements:
    real = texts.laplace_scale
    yield texts, "laplace_scale", lambda changed, epsilon: real(changed // 2, epsilon)


@fault("preparing", "enumeration of texts", "A text is published at the reach of its noise already")
def published_at_the_reach() -> Replacements:
    def early(self: Any, columns: Any, law: TruncatedLaplace) -> Any:
        noisy = [(c, zip(sorted(c), self.truncated(law, len(c)), strict=True)) for c in columns]
        return tuple(tuple(t for t, z in zs if c[t] + z >= law.reach) for c, zs in noisy)

    yield Noise, "common", early


@fault("preparing", "enumeration of texts", "Texts that nobody shares are published without noise")
def single_texts_are_told() -> Replacements:
    real = Noise.common

    def told(self: Any, columns: Any, law: TruncatedLaplace) -> Any:
        found = zip(columns, real(self, columns, law), strict=True)
        return tuple(
            tuple(t for t in sorted(counts) if t in kept or counts[t] == 1)
            for counts, kept in found
        )

    yield Noise, "common", told


@fault("preparing", "sampler laws", "The noise of a text is not cut off")
def noise_of_texts_is_not_cut() -> Replacements:
    yield (
        truncated_laplace,
        "_unlimited",
        lambda law, count, source: truncated_laplace.discrete_laplace(law.scale, count, source),
    )


@fault("preparing", "sampler laws", "Even noise of a text is not thinned out")
def even_noise_is_kept() -> Replacements:
    yield truncated_laplace, "bernoulli_exp", lambda x, t, source: np.ones(len(x), bool)


@fault(
    "preparing",
    "replay of preparation",
    "A schema keeps the number of different texts",
    "Schema.learn, bins=None",
)
def number_of_texts_is_kept() -> Replacements:
    real = FrameDomains._statistics

    def statistics(self: Any, public: Any, records: Any) -> Any:
        found = real(self, public, records)
        self.n_texts_ = [len(column) for column in found.texts.columns]
        return found

    yield FrameDomains, "_statistics", statistics


@fault(
    "preparing",
    "parts",
    "The delta of a schema is not charged",
    "schema, record",
)
def delta_is_not_charged() -> Replacements:
    real = plans.FramePlan.of

    def free(*public: Any) -> Any:
        plan = real(*public)
        return replace(plan, cost=plan.cost._replace(delta=Fraction(0)))

    yield plans.FramePlan, "of", free


@fault("preparing", "leak walk", "A schema keeps the counts of texts")
def counts_of_texts_are_kept() -> Replacements:
    real = FrameDomains._statistics

    def statistics(self: Any, public: Any, records: Any) -> Any:
        found = real(self, public, records)
        self._counts = [np.array([*column.values()]) for column in found.texts.columns]
        return found

    yield FrameDomains, "_statistics", statistics


@fault("preparing", WORLDS, "Quantiles are protected for one record of a person")
def quantiles_of_one_record() -> Replacements:
    yield quantiles.Level, "sensitivity", lambda self, unit: getattr(self, _ONE[unit.neighbours])


@fault("preparing", WORLDS, "A record that comes is thought to move a quantile by half a rank")
def half_a_rank() -> Replacements:
    yield (
        quantiles,
        "_disjoint",
        lambda share, fractions: quantiles.Level(share, Fraction(2), Fraction(1, 2)),
    )


@fault(
    "preparing",
    WORLDS,
    "A text is published if it hides one record of a person",
    "texts, person (2 records)",
)
def threshold_for_one_record() -> Replacements:
    real = TruncatedLaplace.calibrated
    yield texts.TruncatedLaplace, "calibrated", lambda scale, delta, step=1: real(scale, delta)


@fault(
    "preparing",
    REPLAY,
    "Scores of columns are thought to change by one record of a person",
    "PrivateSelectKBest(k=1",
)
def scores_of_one_record() -> Replacements:
    real = dependence.ColumnScores.sensitivity
    yield (
        dependence.ColumnScores,
        "sensitivity",
        lambda self, unit: -(-real(self, unit) // unit.max_records),
    )


@fault(
    "preparing",
    REPLAY,
    "A record that comes is thought to change an edge half as far",
    "PrivateTree",
)
def edges_change_half() -> Replacements:
    real = dependence.EdgeScores.sensitivity
    yield (
        dependence.EdgeScores,
        "sensitivity",
        lambda self, unit: real(self, unit) // (1 + unit.size_is_secret),
    )


@fault("preparing", REPLAY, "Which quantiles can be found follows from the exact number of records")
def quantiles_by_exact_number() -> Replacements:
    real = ColumnwiseTransformer._public_schema
    yield (
        ColumnwiseTransformer,
        "_public_schema",
        lambda self, records, n: real(self, records, records.n),
    )


@fault("preparing", REPLAY, "A transformer refuses an empty table, where one record is a secret")
def empty_is_refused() -> Replacements:
    real = columns.read_unlabelled
    yield (
        columns,
        "read_unlabelled",
        lambda self, X, *, reset, may_be_empty: real(self, X, reset=reset),
    )


@fault("preparing", REPLAY, "A transformer counts all records of a person")
def transformers_count_all() -> Replacements:
    yield ColumnwiseTransformer, "_protected", lambda self, records, *_: (records, ())
