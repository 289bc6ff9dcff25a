"""Bugs of private preparation: ranges, bins, texts, selection and trees that tell too much."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from benchmarks.audit._planted._fault import Faults, at, changed, keeps
from dpbayes_sklearn.columns.quantiles import BinEdges, Level, SortedColumns
from dpbayes_sklearn.counts.dependence import QUESTION_SHARE
from dpbayes_sklearn.noise.discrete_laplace import TruncatedLaplace
from dpbayes_sklearn.noise.law import laplace_scale

FAULTS = Faults("columns")
COLUMNS, TEXTS = "enumeration of preparation", "enumeration of texts"
WORLDS, REPLAY = "enumeration of units of preparation", "replay of units of preparation"
KEPT, PARTS = "replay of preparation", "parts"
QUANTILES = "columns.quantiles"
COLUMNWISE = "preprocessing.columns.ColumnwiseTransformer"
LEARNED = "preprocessing.learned_schema.FrameDomains._statistics"
CALIBRATED, COMMON = "noise.discrete_laplace.TruncatedLaplace.calibrated", "noise.Noise.common"
ONE = Fraction(1)
EPSILON_12 = "quantiles, epsilon=12"


def _all_of_it(real, self):
    """Give the second level all of what the levels share."""
    levels = real(self)
    return [levels[0], replace(levels[1], share=ONE)]


def _text_law(sides=None, of_epsilon=None, of_delta=None):
    """Share the budget of texts by other numbers of sides and columns."""

    def law(_, self, unit, epsilon, delta):
        columns = self.n_columns
        scale = laplace_scale(unit.n_changed * (of_epsilon or columns), epsilon)
        both = (sides or unit.n_changed // unit.max_records) * (of_delta or columns)
        return TruncatedLaplace.calibrated(scale, delta / both, unit.max_records)

    return law


FAULTS.rows(COLUMNS, {
    "A replaced record is thought to change one part of a level":
        at(f"{QUANTILES}._disjoint", lambda _, share, parts: Level(share, ONE, ONE), EPSILON_12),
    "Every level of a column takes the whole budget of the column":
        at("columns.plans.rate",
           lambda _, level, epsilon, unit: float(epsilon / level.sensitivity(unit)),
           "CentreAndSpread"),
    "A range and the edges within it each take the whole budget of the column":
        at(f"{QUANTILES}._with_part", lambda _, choose, part: choose, "RangeAndEdges"),
    "Every column takes the whole budget of the fit":
        at(f"{QUANTILES}.QuantileQuestions.n_columns", 1, EPSILON_12),
    "A quantile is weighted as if ranks were twice as far apart":
        at("columns.ranks.decay", lambda real, exponent: real(2 * exponent), EPSILON_12),
    "Every choice of a column takes the whole budget":
        at("columns.plans.choice_weights", lambda real, scores, far, e: real(scores, far, 2 * e),
           "k=2"),
    "Scores of columns are thought to change half as far":
        at("counts.dependence.dependence_sensitivity", lambda real, *a: real(*a) // 2, "k=2"),
    "Naive Bayes is compared with the sum of a tree's scores, not with their mean":
        at("counts.dependence.EdgeScores._mean_of_the_best_tree",
           lambda real, self: real(self) * (len(self.scores) - 1), "Alike"),
})  # fmt: skip
FAULTS.rows(TEXTS, {
    "Both texts of a replaced record take the whole delta":
        at(CALIBRATED, lambda real, cls, scale, delta, *step: real(cls, scale, 2 * delta, *step)),
    "A text is published at the reach of its noise already":
        at(COMMON, lambda _, self, columns, law: tuple(
               tuple(t for t, z in zip(sorted(c), self.truncated(law, len(c)), strict=True)
                     if c[t] + z >= law.reach)
               for c in columns
           )),
    "A replaced record is thought to change one text only":
        at("columns.plans.laplace_scale", lambda real, moved, epsilon: real(moved // 2, epsilon)),
})  # fmt: skip
FAULTS.rows(WORLDS, {
    "Quantiles are protected for one record of a person":
        at(f"{QUANTILES}.Level.sensitivity", lambda _, self, unit: getattr(
               self, {"replace": "replaced"}.get(unit.neighbours, "moved")
           )),
    "A record that comes is thought to move a quantile by half a rank":
        at(f"{QUANTILES}._disjoint", lambda _, share, parts: Level(share, 2 * ONE, ONE / 2)),
    "A text is published if it hides one record of a person":
        at(CALIBRATED, lambda real, cls, scale, delta, *step: real(cls, scale, delta),
           "texts, person (2 records)"),
})  # fmt: skip
FAULTS.rows(REPLAY, {
    "Scores of columns are thought to change by one record of a person":
        at("counts.dependence.ColumnScores.sensitivity",
           lambda real, self, unit: -(-real(self, unit) // unit.max_records),
           "PrivateSelectKBest(k=1"),
    "A record that comes is thought to change an edge half as far":
        at("counts.dependence.EdgeScores.sensitivity",
           lambda real, self, unit: real(self, unit) // (1 + unit.size_is_secret), "PrivateTree"),
    "Which quantiles can be found follows from the exact number of records":
        at(f"{COLUMNWISE}._public_schema",
           lambda real, self, records, n: real(self, records, records.n)),
    "A transformer refuses an empty table, where one record is a secret":
        at("preprocessing.columns.read_records",
           lambda real, *args, **options: real(*args, **{**options, "may_be_empty": False})),
    "The scores of the edges are kept as an attribute":
        at("bayesian_network.PrivateTree._statistics", keeps(scores_=lambda found: found.scores),
           "PrivateTree"),
    "A transformer counts all records of a person":
        at(f"{COLUMNWISE}._protected", lambda _, self, records, *rest: (records, ())),
})  # fmt: skip
FAULTS.rows(PARTS, {
    "The delta of a schema is not charged":
        at("columns.plans.FramePlan.of",
           changed(cost=lambda cost: cost._replace(delta=Fraction(0))), "schema, record"),
    "Every column of texts has the whole delta":
        at("columns.plans.TextCounts.law", _text_law(of_delta=1), "schema, record"),
    "Every column of texts takes the whole epsilon":
        at("columns.plans.TextCounts.law", _text_law(of_epsilon=1), "schema, record"),
    "The delta of a text is not shared by what comes and what goes":
        at("columns.plans.TextCounts.law", _text_law(sides=1), "schema, record"),
    "Numbers of a learned schema take all of epsilon":
        at("columns.plans.shares", lambda real, n, texts, budget: (
               (both := real(n, texts, budget))[0]._replace(epsilon=budget.epsilon),
               both[1],
           ), "schema, record"),
    "The edges of a tree share all of epsilon":
        at("counts.dependence.TreeChoice.shares", lambda real, self: (
               (QUESTION_SHARE, *[ONE / (len(s) - 1)] * (len(s) - 1)) if (s := real(self)) else ()
           ), "tree, record"),
    "The question whether there is a tree costs half of its share":
        at("counts.dependence.TreeChoice.shares",
           lambda real, self: tuple(s if i else 2 * s for i, s in enumerate(real(self))),
           "tree, record"),
    "Choices of columns share epsilon as if there were one less":
        at("counts.dependence.ColumnChoice.shares",
           lambda real, self: tuple(2 * share for share in real(self)), "columns, record"),
    "Scores that rise and fall are thought to differ by one sensitivity":
        at("columns.plans.choice_weights", lambda real, scores, far, e: real(scores, far, 2 * e),
           "columns, record"),
    "Scores of columns are protected as for two values and two classes":
        at("counts.dependence.dependence_sensitivity",
           lambda real, n, values, classes: real(n, min(values, 2), min(classes, 2)),
           "wide columns"),
    "Quantiles beside a median have the share of the median, too":
        at(f"{QUANTILES}.OuterQuantiles._sides", _all_of_it, "PrivateMinMaxScaler"),
    "The spread of a column has the share of its median, too":
        at(f"{QUANTILES}.CentreAndSpread.levels", _all_of_it, "PrivateStandardScaler"),
    "Both ends of a bounded range have the whole share":
        at(f"{QUANTILES}.OuterQuantiles.levels",
           lambda real, self: [replace(level, share=ONE) for level in real(self)],
           "PrivateMinMaxScaler, bounded"),
    "Ranks are protected for one record of a person":
        at("columns.plans.rate", lambda real, level, e, unit: real(level, 2 * e, unit),
           "PrivateKBinsDiscretizer, quantile, person (2 records)"),
})  # fmt: skip
FAULTS.rows(KEPT, {
    "The scores of the columns are kept as an attribute":
        at("feature_selection.PrivateSelectKBest._statistics",
           keeps(scores_=lambda found: found.scores), "PrivateSelectKBest"),
    "A transformer keeps the smallest value of every column":
        at(f"{COLUMNWISE}._statistics", keeps(lowest_=lambda found: [
               np.append(found.column(j), 0.0)[0] for j in range(found.n_columns)
           ])),
    "A schema keeps the number of different texts":
        at(LEARNED, keeps(n_texts_=lambda found: [*map(len, found.texts.columns)]),
           "Schema.learn, bins=None"),
})  # fmt: skip
FAULTS.rows("leak walk", {
    "A transformer keeps the columns that it has sorted":
        at(f"{COLUMNWISE}._statistics",
           keeps(_sorted=lambda found: [found.column(j) for j in range(found.n_columns)])),
    "A schema keeps the counts of texts":
        at(LEARNED, keeps(_counts=lambda found: [
               np.array([*column.values()]) for column in found.texts.columns
           ])),
})  # fmt: skip
FAULTS.rows("plans", {
    "A tree over too many features is refused in the middle of its release":
        at("columns.plans.MAX_POINTS", 10**9, "too many candidates"),
})  # fmt: skip


@FAULTS.row(REPLAY, f"{QUANTILES}.RangeAndEdges.ask", "FrameDomains(bins=4")
def _(real, self, column, choose):
    """The edges of bins are looked for between the smallest and the largest record."""
    if not len(column):
        return real(self, column, choose)
    low, high = float(column[0]), float(column[-1]) + 1
    return low, *BinEdges(self.n_bins, (low, high)).ask(column, choose), high


@FAULTS.row(COLUMNS, "columns.ranks.Ranks.law", EPSILON_12)
def _(real, self, rate):
    """The lattice of a quantile begins at the smallest record."""
    return tuple(
        replace(part, masses=[0, *part.masses[1:]], weights=[1, *part.weights[1:]])
        if len(part.weights) > 1
        else part
        for part in real(self, rate)
    )


@FAULTS.row(KEPT, f"{COLUMNWISE}._public_schema")
def _(real, self, records, n):
    """How many bins a column gets depends on its records."""
    public, conditions = real(self, records, n)
    return public._replace(n=len(SortedColumns(records).column(0))), conditions


@FAULTS.row(TEXTS, COMMON)
def _(real, self, columns, law):
    """Texts that nobody shares are published without noise."""
    found = zip(columns, real(self, columns, law), strict=True)
    return tuple(
        tuple(t for t in sorted(counts) if t in kept or counts[t] == 1) for counts, kept in found
    )
