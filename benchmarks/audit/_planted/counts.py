"""Bugs of counts: what a record changes in them, what draws and a temperature cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np

from benchmarks.audit._planted._fault import Faults, at, changed, returns, times, uncached
from dpbayes_sklearn.categories.counts import ReleasedSimplex, ShareMoments
from dpbayes_sklearn.categories.posterior import Dirichlet
from dpbayes_sklearn.counts.plans import tables_plan
from dpbayes_sklearn.counts.temperature import Tempering
from dpbayes_sklearn.data.records import with_target
from dpbayes_sklearn.mechanisms import Laplace, Sampler
from dpbayes_sklearn.noise import DiscreteLaplace
from dpbayes_sklearn.papers.candidates import ScoredCandidates
from dpbayes_sklearn.privacy.budget import FEATURE, RECORD
from dpbayes_sklearn.privacy.composition import zcdp_epsilon

FAULTS = Faults("counts")
COUNTS, GAUSSIAN, PARTS = "enumeration of counts", "enumeration of Gaussian noise", "parts"
HALF, TENTH = Fraction(1, 2), Fraction(11, 10)
SHIFTS = "counts.tables.CountTables.shifts"
CHANGED = "counts.network.Network.tables_changed"

FAULTS.rows(COUNTS, {
    "The sensitivity of the counts is too small by one":
        at("counts.tables.CountTables.sensitivity", lambda real, *args: real(*args) - 1),
    "A record is thought to move the tables of its features, not that of its label":
        at(CHANGED, lambda real, *args: max(1, real(*args) - 1)),
    "The sensitivity of one feature value is used where records are protected":
        at(CHANGED, lambda real, network, unit: real(network, FEATURE)),
    "A replaced record is thought to leave one row of counts only":
        at("counts.tables.CountTables.class_row_sensitivity", returns(1)),
    "Character sums are thought to move half as far":
        at("counts.fourier.l1_sensitivity", lambda real, *a: real(*a) // 2, "fourier, Network"),
    "Replacing a record is thought to move counts of categories by one in all":
        at("categories.counts.SimplexCounts.sensitivity", returns(1), "geometric"),
    "The exponential mechanism is scaled by the local sensitivity and not calibrated":
        at("papers.choices._law", lambda _, mechanism, each, budget: ScoredCandidates(
               each, each.local_sensitivity(), float(budget.epsilon) / 2, "hellinger"
           ), "exponential"),
    "Weights of the draws are rounded to eight bits":
        at("counts.splits.integer_weights", lambda real, logs: np.rint(
               255 * (w := real(logs).astype(float)) / w.max(axis=-1, keepdims=True)
           ).astype(np.uint64), "MAP(n_points"),
    "Any number of draws is made for the price of one":
        at("counts.dirichlet.sampler_law",
           lambda real, m, *args: real(Sampler(1, n_points=m.n_points), *args), "n_samples=2"),
    "A turn at a split is thought to lose half of what it does":
        at("counts.splits.SplitGrid._worst", times(0.5), "Sampler(n_points=33)")
        .also("counts.splits._node_loss", uncached),
    "The score of the MAP mechanism is thought to move a fifth as far":
        at("counts.dirichlet._mass_sensitivity", times(0.2), "MAP(score"),
    "Any character sum is thought to move by 1, and not by 2":
        at("counts.fourier.sup_sensitivity", lambda real, *args: max(1, real(*args) // 2),
           "fourier, Network"),
    "A table of one cell, which has no noise, holds the records that have a class":
        at("counts.plans.with_public_cells", lambda _, tables, *rest: tables,
           "Network(sizes=(1, 2, 2)"),
    "A feature is thought to move its own table, not its child's":
        at(CHANGED, lambda real, *a: real(*a) if a[-1] == RECORD else min(1, real(*a)),
           "unit=feature, Network(sizes=(2, 2, 2), parents=((2,), (0,)"),
    "All counts but the last are thought to move by 1 together":
        at("categories.counts.SimplexCounts.sensitivity",
           lambda real, self, unit=RECORD, cells=None: min(
               real(self, unit, cells), 10**9 if cells is None else 1
           ), "laplace_improved"),
})  # fmt: skip
FAULTS.rows(PARTS, {
    "A life table counts an event once more among those who are there at the end":
        at("categories.life_tables._cells", lambda real, shard, encoder, time, event, cells: (
               (found := real(shard, encoder, time, event, cells))
               + np.eye(cells.total, dtype=int)[-1] * found[1]
           ), "life table, record"),
    "A life table leaves out records without an event, whose number is public":
        at("survival.LifeTable._skips_missing", True, "life table, record")
        .also("categories.life_tables._cells", lambda real, shard, encoder, time, event, cells:
              real(with_target(shard, event.is_known(shard.target)), encoder, time, event, cells)),
    "Noise of a life table is calibrated to half of what a record changes":
        at("categories.counts.SimplexCounts.sensitivity", lambda real, *a: max(real(*a) // 2, 1),
           "life table, record"),
})  # fmt: skip
FAULTS.rows(GAUSSIAN, {
    "The standard deviation is five percent too small":
        at("privacy.gaussian.gaussian_variance", times(Fraction(95, 100) ** 2)),
    "The L2 sensitivity is taken for its square":
        at(SHIFTS, lambda real, *a: {c: round(n**0.5) for c, n in real(*a).items()}),
    "Weights are left out of the L2 sensitivity":
        at(SHIFTS, lambda real, *a: {(1, 1): sum(real(*a).values())}),
    "The conversion of zCDP is used the wrong way round":
        at("privacy.gaussian.zcdp_rho", lambda _, *args: zcdp_epsilon(*args))
        .also("privacy.gaussian._least_variance", uncached),
    "A turned split counts as half a turn in rho":
        at("counts.dirichlet.release_rho", times(0.25), "several draws"),
})  # fmt: skip
FAULTS.rows("composition", {
    "The ledger is told half of the zCDP of a release":
        at("counts.plans.gaussian_rho", lambda real, *args: real(*args) / 2),
})  # fmt: skip
FAULTS.rows("draws added up", {
    "The zCDP of a draw from tables is w²/16 instead of w²/8":
        at("counts.splits._node_rho", lambda real, *public: tuple(rho / 2 for rho in real(*public)),
           "tables"),
    "The zCDP of k records of a person is k times that of one":
        at("counts.dirichlet.release_rho",
           lambda real, *public: real(*public) / public[-1].max_records, "tables"),
})  # fmt: skip
FAULTS.rows(PARTS, {
    "Gaussian noise of counts has a tenth less variance":
        at("privacy.gaussian.gaussian_variance", times(1 / TENTH), "counts, gaussian, record"),
    "Gaussian noise is calibrated as if no temperature were chosen":
        at("privacy.gaussian.gaussian_variance", lambda real, *a, pure, **o: real(*a, pure=0, **o),
           "counts, gaussian, record"),
    "The zCDP of the choice of a temperature is left out":
        at("counts.plans.composed", lambda real, costs: real(costs)._replace(rho=costs[0].rho),
           "counts, gaussian, record"),
    "Tables take all of epsilon, and the temperature its share besides":
        at("counts.plans.plan", lambda real, *public: (
               plan if (plan := real(*public)) is plan.tables
               else replace(plan, tables=tables_plan(*public))
           ), "counts, laplace, record"),
    "The temperature is chosen with twice its share":
        at("counts.plans.tempering_weights", lambda real, lo, e, unit: real(lo, 2 * e, unit),
           "counts, laplace, record"),
    "Losses that all rise are thought to lie within half of the largest":
        at("counts.temperature.LossSums.spread", lambda real, *args: real(*args) // 2,
           "counts, laplace, record, add_remove"),
    "Losses of records reach twice as far as is thought":
        at("counts.temperature.LossSums.sensitivity", lambda real, *args: real(*args) // 2,
           "counts, Laplace(), record"),
    "Several draws of tables have the loss of one":
        at("counts.dirichlet.sampler_law",
           lambda real, m, *args: real(Sampler(1, omega=m.omega), *args),
           "counts, Sampler(n_samples=3), record"),
    "A loss counts up to twice its bound":
        at("counts.temperature.LossSums.of", changed(sums=lambda sums: 2 * sums),
           "counts, Laplace(), record"),
    "Sums of losses exceed a released number of records":
        at("counts.temperature.LossSums.at_most", lambda _, self, n: self, "beyond"),
    "Turns at a split exceed a released number of records":
        at("counts.plans.draw_tables",
           lambda real, tables, law, grid, n, noise, most=None: real(tables, law, grid, n, noise),
           "beyond"),
    "More is charged than the steps of a plan cost":
        at("counts.plans.composed", lambda real, costs: real([*costs, costs[0]]),
           "counts, laplace, record"),
    "A feature is thought to turn one split, however many values it has":
        at("counts.splits.node_losses", lambda _, turning, adding: (
               float(np.max(turning, initial=0.0)),
               2 * float(np.max(adding, initial=0.0)),
           ), "deep, feature")
        .also(("counts.splits._node_loss", "counts.splits._node_rho"), uncached),
})  # fmt: skip
FAULTS.rows("intervals", {
    "A posterior that was chosen at random is taken for the exact one":
        at("categories.posterior.SimplexPrior.choice",
           lambda _, self, counts, chosen, log_likelihood: self.update(
               ReleasedSimplex.exact(chosen)
           ), "a proportion, hellinger"),
    "A secret number of records is taken for known, and so are the counts":
        at("categories.counts.ShareMoments.of",
           lambda real, cls, mean, variance, total: real(cls, mean, 0 * variance, total),
           "a proportion, secret number"),
    "Every category has the precision of the whole, rare ones too":
        at("categories.posterior.NoisyDirichlet.marginals",
           lambda _, self: Dirichlet.marginals(self), "rare categories"),
    "The temperature of small releases is a quarter":
        at("counts.plans.default_tempering", returns(Tempering(0.25)), "small tables"),
})  # fmt: skip


@FAULTS.row(COUNTS, "counts.plans.NoisyTables.release")
def _(real, self, statistics, noise):
    """The scale of the noise depends on which classes occur in the data."""
    if (statistics.tables[-1] == 0).any():
        more = self.cost._replace(epsilon=self.cost.epsilon * TENTH)
        self = tables_plan(Laplace(), self.prior, self.facts, more)
    return real(self, statistics, noise)


@FAULTS.row(GAUSSIAN, SHIFTS)
def _(real, self, unit):
    """The class table is left out of the L2 sensitivity."""
    shifts = Counter(real(self, unit))
    shifts[1, self.table_weights(unit)[-1]] -= 2
    return dict(+shifts)


@FAULTS.row(GAUSSIAN, "counts.tables.CountTables.gaussian_law")
def _(real, self, unit, variance):
    """The noise of a table is divided by its weight."""
    law, weights = real(self, unit, variance), self.table_weights(unit)
    pairs = zip(law.parameters, weights, strict=True)
    return replace(law, parameters=tuple(s / w if w else s for s, w in pairs))


@FAULTS.row("composition", "counts.plans.plan")
def _(real, *public):
    """A learned temperature is paid neither by epsilon nor by rho."""
    made, tables = real(*public), tables_plan(*public)
    return tables if made is made.tables else replace(made, tables=tables, cost=tables.cost)


@FAULTS.row("draws added up", "counts.plans.plan", "a delta of tables")
def _(real, mechanism, prior, facts, budget):
    """The delta of a sampler is charged only if draws alone need more than all of epsilon."""
    plan = real(mechanism, prior, facts, budget)
    if not isinstance(mechanism, Sampler) or plan.tables.law.loss > budget.epsilon:
        return plan
    return replace(plan, cost=plan.cost._replace(delta=Fraction(0)))


@FAULTS.row("draws added up", "counts.plans.LearnsTemperature.promise", "planned once")
def _(real, self, released):
    """A sampler plans with a delta for the charge and without one for the release."""
    tables = self.tables
    pure = tables.cost._replace(delta=Fraction(0))
    again = tables_plan(Sampler(tables.n_draws), tables.prior, tables.facts, pure)
    return again.promise(released)


@FAULTS.row("intervals", "categories.posterior.SimplexPrior.__init__", "a proportion, geometric")
def _(_, self, belief, inference="plug_in"):
    """A released posterior takes the median count for the exact one."""
    self.belief = belief
    self.inference = "median" if inference == "noise_aware" else inference


@FAULTS.row("intervals", "categories.counts.ShareMoments.given_counts", "proportion, laplace")
def _(_, cls, laws, counts, n, alpha):
    """The variance of the exact count given the noisy one is left out."""
    mean = (alpha + (laws * counts).sum(axis=1)) / (alpha.sum() + n)
    return ShareMoments.of(mean, np.zeros_like(mean), float(alpha.sum()) + n)


@FAULTS.row(PARTS, "release.added", "counts, Laplace(), record")
def _(real, exact, law, noise):
    """Noise is drawn from a wider law than a plan shows."""
    wider = isinstance(law, DiscreteLaplace)
    return real(
        exact, replace(law, scales=tuple(2 * b for b in law.scales)) if wider else law, noise
    )


@FAULTS.row(PARTS, "release.StepPlan.release", "counts, laplace, record")
def _(real, self, statistics, noise):
    """A plan draws something that none of its steps says."""
    noise.add([np.zeros(1, np.int64)], DiscreteLaplace.of(Fraction(1), [1]))
    return real(self, statistics, noise)


@FAULTS.row(PARTS, "release.StepPlan.release", "counts, laplace, record")
def _(real, self, statistics, noise):
    """A plan makes steps of its own when it releases."""
    return real(replace(self), statistics, noise)
