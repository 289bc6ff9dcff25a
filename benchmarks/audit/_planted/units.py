"""Bugs about who is protected: persons of several records, secret numbers, places of records."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.audit._planted._fault import Faults, at, changed, returns
from dpbayes_sklearn.categories.counts import ReleasedSimplex
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.noise.integers import random_positions
from dpbayes_sklearn.privacy.budget import RECORD, PrivacyUnit
from dpbayes_sklearn.release import Facts, SizePlan, carry_out, drawn_sample

FAULTS = Faults("units")
WORLDS, REPLAY, ORDER = "enumeration of units", "replay of units", "order of records"
COUNTED, POSITIONS = "data.persons.counted_records", "noise.noise.random_positions"
COINS, BLOCK = "model_selection.runs.coins_of", "regression.moments.Block"
RECORDS = PrivacyUnit("record")

FAULTS.rows(WORLDS, {
    "All records of a person are thought to move what one of them does":
        at("privacy.budget.PrivacyUnit.n_changed", lambda _, unit: 1 if unit.size_is_secret else 2),
    "A record that comes is thought to move less than its tables":
        at("counts.tables.CountTables.sensitivity",
           lambda real, self, unit: real(self, unit) // (1 + unit.size_is_secret),
           "parents=((1,), ())"),
    "A table of one cell is thought to hold a public number":
        at("counts.network.Network.tables_changed",
           lambda real, self, unit: max(1, real(self, RECORDS)), "parents=((1,), ())"),
    "Draws are certified for one record of a person":
        at("counts.splits.network_loss",
           lambda real, network, losses, unit: real(network, losses, unit) / unit.max_records**2,
           "Sampler(n_points=33), person (2 records), Network"),
    "A choice among posteriors spends epsilon on each record of a person":
        at("papers.choices.per_record", lambda _, budget: budget._replace(unit=RECORDS),
           "exponential"),
    "Sums of a regression are protected for one record of a person":
        at(f"{BLOCK}.protecting", changed(times=1), "laplace, person (2 records), MomentUniverse"),
    "The matrix of a record that comes is thought to move by half of its square":
        at("regression.gram.GramMatrix.protecting", lambda real, self, unit: replace(
               real(self, unit), bound=self.bound / 2
           ), "laplace, record, add_remove, MomentUniverse"),
    "Gaussian sums are protected for one record of a person":
        at("regression.gram.GaussianGram.protecting", lambda _, self, unit: self,
           "gaussian, person (2 records), add_remove, MomentUniverse"),
    "Gaussian counts are calibrated to shifts of one":
        at("counts.tables.CountTables.shifts",
           lambda real, *args: {(1, w): cells for (_, w), cells in real(*args).items()},
           "gaussian, person (2 records), Network"),
})  # fmt: skip
FAULTS.rows(WORLDS, {
    "A record that is replaced costs what one that comes does, however much both weigh":
        at("privacy.budget.Copies.steps", lambda _, self: 1, "weighted tables"),
    "Noise is that of records that weigh one":
        at("privacy.budget.Copies.counted", lambda real, self: real(self._replace(most=1)),
           "weighted tables"),
    "Weights are not clipped":
        at("base.estimator.copies_of",
           lambda real, weights, n, most, *rest: real(weights, n, 10**6, *rest), "weighted tables"),
    "Weights are relative to those of others":
        at("base.estimator.copies_of", lambda real, weights, n, most, *rest: real(
               np.nan_to_num(weights) * n / max(np.nansum(np.abs(weights)), 1), n, most, *rest
           ), "weighted"),
    "A record without a class takes a hundred others out of the tables":
        at("counts.tables.CountTables.among", lambda real, self, n: real(
               replace(self, tables=tuple(np.maximum(
                   t - 100 * (n - int(self.tables[-1].sum())), 0) for t in self.tables)), n
           ), "missing targets"),
    "The total weight is public, like the number of records":
        at("base.estimator.PrivateEstimator._sized",
           lambda real, self, read, budget, *rest: (read(self, None), budget), "weighted tables"),
})  # fmt: skip
FAULTS.rows(REPLAY, {
    "Records without a target are left out although the number of records is public":
        at("base.supervised.SupervisedEstimator._leaves_out", True, "BayesianNaiveBayes"),
    "A regression divides by the exact number of records":
        at("convex.mode.ModePlan.release", lambda real, self, statistics, noise: real(
               replace(self, facts=Facts(statistics.n)), statistics, noise
           ), "BayesianLinearRegression"),
    "Bins follow from the exact number of records":
        at("base.classifier.DiscreteClassifier._settle",
           lambda real, self, declared, domains, table, n: real(
               self, declared, domains, table, 10 if table.n_rows % 2 else 10**6
           )),
    "A person is thought to change the number of records by one":
        at("release.RecordCount.sensitivity", returns(1)),
    "The guarantee names only what was spent after the number of records":
        at("base.estimator.spending", lambda _, budget, rest, release: release),
    "All records of a person count, however many there are":
        at(COUNTED, lambda _, labels, *rest: np.arange(len(labels))),
    "One record more than is declared counts":
        at(COUNTED, lambda real, labels, most, *noise: real(labels, most + 1, *noise), "person"),
    "Every record without a label counts as a person of its own":
        at(COUNTED, lambda real, labels, *rest: np.sort(
               np.r_[real(labels, *rest), np.flatnonzero(np.isnan(labels))]
           )),
    "Labels of persons are compared as numpy's texts, without trailing NULs":
        at("data.persons.codes_of",
           lambda _, labels: np.unique(labels.astype(str), return_inverse=True)[1],
           "similar labels"),
    "Evidence is added up with a rounding that depends on the order":
        at("counts.predict.exact_in_sums", lambda _, terms, starts, constants: (terms, constants),
           "evidence by position"),
    "A search holds out records, and not persons":
        at("model_selection.runs.codes_of", lambda _, labels: np.arange(len(labels)),
           "split persons")
        .also(COINS, lambda real, labels, noise: real(np.arange(len(labels)), noise)),
})  # fmt: skip
FAULTS.rows("parts", {
    "What is left after the number of records is the whole budget":
        at("base.estimator.PrivateEstimator._shares",
           lambda real, self, budget: (real(self, budget)[0], budget),
           "counts, laplace, record, add_remove"),
    "The promised rho leaves out the number of records":
        at("base.estimator.spending", lambda _, budget, rest, release: release,
           "counts, gaussian, record, add_remove"),
    "The number of records hides one record of a person":
        at("release.RecordCount.sensitivity", lambda _, self, unit: int(unit.size_is_secret),
           "counts, laplace, person (2 records), add_remove"),
    "An empty table is told without noise":
        at("release.SizePlan.release", lambda real, self, statistics, noise: (
               real(self, statistics, noise) if statistics.n else Facts(1, (self.law,))
           ), "empty"),
})  # fmt: skip


def _by_place(_, n, every, unit, noise):
    """Ask every s-th record."""
    return None if every == 1 or unit.size_is_secret else np.arange(0, n, every)


FAULTS.rows(ORDER, {
    "A temperature is learned from every s-th record":
        at("counts.plans.drawn_sample", _by_place, "sorted: temperature"),
    "A temperature of persons is learned from every s-th record":
        at("counts.plans.drawn_sample", lambda real, n, every, unit, noise: (
               _by_place(real, n, every, unit, noise)
               if unit.name == "person"
               else real(n, every, unit, noise)
           ), "places: temperature, in memory, person"),
    "Every s-th record is asked, from a random one on":
        at(POSITIONS,
           lambda _, n, size, source: source(1)[0] % (n // size) + n // size * np.arange(size),
           "places: temperature"),
    "A sample is a block of records that are next to each other":
        at(POSITIONS, lambda _, n, size, source: np.sort(
               (int.from_bytes(source(8), "big") % n + np.arange(size)) % n
           ), "places: temp"),
    "The first records are sampled more often than others":
        at(POSITIONS, lambda _, n, size, source: random_positions(max(n // 2, size), size, source),
           "places: temperature"),
    "Of a sample only the records in the first block are added up":
        at("data.records.LocalRecords.total", lambda real, self, ask, at=None: real(
               self, ask, None if at is None else np.arange(len(at))
           ), "places: temp"),
    "A sample is drawn where the number of records is secret":
        at("counts.plans.drawn_sample",
           lambda _, n, every, unit, noise: drawn_sample(n, every, RECORD, noise), "add_remove"),
    "A search holds out the last records":
        at(POSITIONS, lambda _, n, size, __: np.arange(n - size, n), "places: held out, record"),
    "Coins of persons are tossed with a public seed":
        at(COINS, lambda real, labels, _: real(labels, Noise(np.random.default_rng(7).bytes)),
           "places: held out, person"),
    "Of a person the records count that are listed first":
        at("noise.noise.random_order", lambda _, n, source: np.arange(n), "places: surplus"),
})  # fmt: skip


@FAULTS.row(ORDER, "data.dask.PartitionedRecords.total", "places: temperature, dask, person")
def _(real, self, ask, at=None):
    """Samples of persons are those of every s-th record, on dask alone."""
    if at is not None:
        at = np.linspace(0, self.n, len(at), endpoint=False).astype(np.intp)
    return real(self, ask, at)


@FAULTS.row(WORLDS, "categories.plans.NoisyCounts.release", "geometric")
def _(real, self, statistics, noise):
    """A posterior of one variable shows the secret number of records."""
    release = real(self, statistics, noise)
    told = isinstance(release, ReleasedSimplex)
    return replace(release, n=statistics.n) if told else release


@FAULTS.row(REPLAY, "counts.plans.LearnsTemperature.release")
def _(real, self, statistics, noise):
    """The exact number of records is used after another was released."""
    facts = replace(self.tables.facts, n=statistics.n)
    return real(replace(self, tables=replace(self.tables, facts=facts)), statistics, noise)


@FAULTS.row("leak walk of units", "base.estimator.PrivateEstimator._read")
def _(real, self, *args, **options):
    """A model remembers how many records there were."""
    given = real(self, *args, **options)
    self._size = given.statistics.n
    return given


@FAULTS.row("leak walk of units", "base.estimator.PrivateEstimator._protected")
def _(real, self, records, groups, *rest):
    """A model remembers whose records counted."""
    self._whose = groups
    return real(self, records, groups, *rest)


@FAULTS.row(REPLAY, "base.estimator.PrivateEstimator._charged")
def _(real, self, plan, statistics, *rest):
    """The number of records is released without a charge."""
    if not isinstance(plan, SizePlan):
        return real(self, plan, statistics, *rest)
    return carry_out(plan, statistics, Noise(np.random.default_rng().bytes))


@FAULTS.row(REPLAY, COUNTED)
def _(_, labels, most, noise):
    """Which records of a person count depends on the order of all labels."""
    positions = np.flatnonzero(~np.isnan(labels))
    _, person = np.unique(labels[positions], return_inverse=True)
    order = np.lexsort(((positions * 7919 + 13) % 101, person))
    first = np.r_[True, np.diff(person[order]) > 0]
    each = np.arange(len(order))
    place = each - np.maximum.accumulate(np.where(first, each, 0))
    return np.sort(positions[order[place < most]])


@FAULTS.row(REPLAY, "counts.predict.StarScores.__call__", "evidence by position")
def _(real, scores, codes):
    """The loss of a record is rounded differently at odd positions."""
    total = real(scores, codes)
    total[1::2] = (total[1::2] + 2**20) - 2**20  # a product of matrices may round so
    return total


@FAULTS.row(REPLAY, "linear_model.means_by_row", "predictions by position")
def _(real, model, table):
    """A regression is scored with a product that rounds by position."""
    total = real(model, table)
    total[1::2] = (total[1::2] + 64) - 64
    return total
