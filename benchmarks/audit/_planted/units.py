"""Bugs about who is protected: persons of several records, and secret numbers of records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn import linear_model
from dpbayes_sklearn.base import estimator, parameters
from dpbayes_sklearn.base.classifier import DiscreteClassifier
from dpbayes_sklearn.base.estimator import PrivateEstimator
from dpbayes_sklearn.base.supervised import SupervisedEstimator
from dpbayes_sklearn.categories import plans as of_categories
from dpbayes_sklearn.counts import plans, predict, splits
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.data import persons
from dpbayes_sklearn.model_selection import runs
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.regression.gram import GaussianGram, GramMatrix
from dpbayes_sklearn.regression.moments import Block, Moments
from dpbayes_sklearn.release import RecordCount, SizePlan, carry_out

Replacements = Iterator[tuple[Any, str, Any]]
WORLDS, REPLAY = "enumeration of units", "replay of units"


@fault("units", WORLDS, "All records of a person are thought to move what one of them does")
def persons_of_one_record() -> Replacements:
    yield PrivacyUnit, "n_changed", property(lambda self: 1 if self.size_is_secret else 2)


@fault(
    "units",
    WORLDS,
    "A record that comes is thought to move less than its tables",
    "parents=((1,), ())",
)
def halved_twice() -> Replacements:
    real = CountTables.sensitivity
    yield (
        CountTables,
        "sensitivity",
        lambda self, unit: real(self, unit) // (1 + unit.size_is_secret),
    )


@fault(
    "units", WORLDS, "A table of one cell is thought to hold a public number", "parents=((1,), ())"
)
def one_cell_is_public() -> Replacements:
    real = Network.tables_changed
    public = PrivacyUnit("record")
    yield Network, "tables_changed", lambda self, unit: max(1, real(self, public))


@fault(
    "units",
    WORLDS,
    "Draws are certified for one record of a person",
    "Sampler(n_points=33), person (2 records), Network",
)
def draws_for_one_record() -> Replacements:
    real = splits.network_loss
    yield (
        splits,
        "network_loss",
        lambda network, losses, unit: real(network, losses, unit) / unit.max_records**2,
    )


@fault(
    "units",
    WORLDS,
    "A choice among posteriors spends epsilon on each record of a person",
    "exponential",
)
def choices_for_one_record() -> Replacements:
    yield of_categories, "per_record", lambda budget: budget._replace(unit=PrivacyUnit("record"))


@fault(
    "units",
    WORLDS,
    "Sums of a regression are protected for one record of a person",
    "laplace, person (2 records), MomentDomain",
)
def moments_of_one_record() -> Replacements:
    real = Block.protecting
    yield Block, "protecting", lambda self, unit: replace(real(self, unit), times=1)


@fault(
    "units",
    WORLDS,
    "The matrix of a record that comes is thought to move by half of its square",
    "gaussian, record, add_remove, MomentDomain",
)
def half_a_matrix() -> Replacements:
    real = GramMatrix.bound.fget
    yield GramMatrix, "bound", property(lambda self: real(self) / 2)


@fault(
    "units",
    WORLDS,
    "Gaussian sums are protected for one record of a person",
    "gaussian, person (2 records), add_remove, MomentDomain",
)
def gaussian_sums_of_one_record() -> Replacements:
    real = Block.gaussian
    yield GaussianGram, "protecting", lambda self, unit: self
    yield Block, "gaussian", lambda self: real(replace(self, times=1))


@fault(
    "units",
    WORLDS,
    "Gaussian counts are calibrated to shifts of one",
    "gaussian, person (2 records), Network",
)
def gaussian_shifts_of_one() -> Replacements:
    real = CountTables.shifts

    def of_one(self: CountTables, unit: PrivacyUnit) -> dict[tuple[int, int], int]:
        return {(1, weight): cells for (_, weight), cells in real(self, unit).items()}

    yield CountTables, "shifts", of_one


@fault(
    "units", WORLDS, "A posterior of one variable shows the secret number of records", "geometric"
)
def simplex_shows_n() -> Replacements:
    real = of_categories.ReleasedSimplex

    def telling(self: Any, statistics: Any, noise: Any) -> Any:
        release = released(self, statistics, noise)
        return release if not isinstance(release, real) else replace(release, n=statistics.n)

    released = of_categories.NoisyCounts.release
    yield of_categories.NoisyCounts, "release", telling


@fault("units", REPLAY, "The exact number of records is used after another was released")
def exact_number_used() -> Replacements:
    real = plans.LearnsTemperature.release

    def exact(self: Any, statistics: Any, noise: Any) -> Any:
        facts = replace(self.tables.facts, n=statistics.n)
        return real(replace(self, tables=replace(self.tables, facts=facts)), statistics, noise)

    yield plans.LearnsTemperature, "release", exact


@fault("units", "leak walk of units", "A model remembers how many records there were")
def number_is_kept() -> Replacements:
    real = PrivateEstimator._read

    def told(self: Any, *args: Any, **options: Any) -> Any:
        given = real(self, *args, **options)
        self._size = given.statistics.n
        return given

    yield PrivateEstimator, "_read", told


@fault("units", "leak walk of units", "A model remembers whose records counted")
def persons_are_kept() -> Replacements:
    real = estimator.records_that_count

    def remembering(self: Any, records: Any, groups: Any, *rest: Any) -> Any:
        self._whose = groups
        return real(records, groups, self._unit)

    yield PrivateEstimator, "_protected", remembering


@fault(
    "units",
    REPLAY,
    "Records without a target are left out although the number of records is public",
    "BayesianNaiveBayes",
)
def targets_are_missed() -> Replacements:
    yield SupervisedEstimator, "_leaves_out", True


@fault(
    "units",
    REPLAY,
    "A regression divides by the exact number of records",
    "BayesianLinearRegression",
)
def regression_by_exact_number() -> Replacements:
    yield Moments, "n", property(lambda self: self.records.n)


@fault("units", REPLAY, "Bins follow from the exact number of records")
def bins_by_exact_number() -> Replacements:
    # a rule so sharp that one record more makes other bins
    real = DiscreteClassifier._settle

    def sharp(self: Any, declared: Any, domains: Any, table: Any, n: int) -> Any:
        return real(self, declared, domains, table, 10 if table.n_rows % 2 else 10**6)

    yield DiscreteClassifier, "_settle", sharp


@fault("units", REPLAY, "A person is thought to change the number of records by one")
def number_of_one_record() -> Replacements:
    yield RecordCount, "sensitivity", lambda self, unit: 1


@fault("units", REPLAY, "The number of records is released without a charge")
def number_for_free() -> Replacements:
    real = PrivateEstimator._charged

    def free(self: Any, plan: Any, statistics: Any, *rest: Any) -> Any:
        if not isinstance(plan, SizePlan):
            return real(self, plan, statistics, *rest)
        return carry_out(plan, statistics, Noise(np.random.default_rng().bytes))

    yield PrivateEstimator, "_charged", free


@fault("units", REPLAY, "The guarantee names only what was spent after the number of records")
def number_left_out_of_the_guarantee() -> Replacements:
    yield estimator, "_spending", lambda budget, first, release: release


@fault("units", REPLAY, "All records of a person count, however many there are")
def surplus_counts() -> Replacements:
    yield parameters, "counted_records", lambda labels, most, source: np.arange(len(labels))


@fault("units", REPLAY, "Which records of a person count depends on the order of all labels")
def surplus_by_others() -> Replacements:
    def wrong(labels: Any, most: int, source: Any) -> Any:
        positions = np.flatnonzero(~np.isnan(labels))
        _, person = np.unique(labels[positions], return_inverse=True)
        order = np.lexsort(((positions * 7919 + 13) % 101, person))
        first = np.r_[True, np.diff(person[order]) > 0]
        place = np.arange(len(order)) - np.maximum.accumulate(
            np.where(first, np.arange(len(order)), 0)
        )
        return np.sort(positions[order[place < most]])

    yield parameters, "counted_records", wrong


@fault("units", REPLAY, "Every record without a label counts as a person of its own")
def nobody_is_everybody() -> Replacements:
    real = parameters.counted_records

    def all_of_them(labels: Any, most: int, source: Any) -> Any:
        return np.sort(np.r_[real(labels, most, source), np.flatnonzero(np.isnan(labels))])

    yield parameters, "counted_records", all_of_them


@fault(
    "units",
    REPLAY,
    "Labels of persons are compared as numpy's texts, without trailing NULs",
    "similar labels",
)
def labels_without_nuls() -> Replacements:
    yield persons, "_codes", lambda labels: np.unique(labels.astype(str), return_inverse=True)[1]


@fault(
    "units",
    REPLAY,
    "The loss of a record is rounded differently at odd positions",
    "evidence by position",
)
def losses_by_position() -> Replacements:
    real = predict.StarScores.__call__

    def rounded(scores: Any, codes: Any) -> Any:
        total = real(scores, codes)
        total[1::2] = (total[1::2] + 2**20) - 2**20  # a product of matrices may round so
        return total

    yield predict.StarScores, "__call__", rounded


@fault(
    "units",
    REPLAY,
    "Evidence is added up with a rounding that depends on the order",
    "evidence by position",
)
def sums_by_position() -> Replacements:
    yield predict, "exact_in_sums", lambda terms, starts, constants: (terms, constants)


@fault(
    "units",
    REPLAY,
    "A regression is scored with a product that rounds by position",
    "predictions by position",
)
def products_by_position() -> Replacements:
    real = linear_model.means_by_row

    def rounded(model: Any, table: Any) -> Any:
        total = real(model, table)
        total[1::2] = (total[1::2] + 64) - 64
        return total

    yield linear_model, "means_by_row", rounded


@fault("units", REPLAY, "A search holds out records, and not persons", "split persons")
def persons_on_both_sides() -> Replacements:
    real = runs.coins_of
    yield runs, "coins_of", lambda labels, source: real(np.arange(len(labels)), source)
