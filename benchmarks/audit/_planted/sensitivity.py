"""Bugs of sensitivities and shares: a record is thought to move less than it does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn.mechanisms import Sampler, _moment_release, _split_release, fourier
from dpbayes_sklearn.mechanisms import map as map_module
from dpbayes_sklearn.mechanisms.exponential import Exponential
from dpbayes_sklearn.statistics import fourier as characters
from dpbayes_sklearn.statistics.categories import SimplexCounts
from dpbayes_sklearn.statistics.counts import CountTables
from dpbayes_sklearn.statistics.network import Network

Replacements = Iterator[tuple[Any, str, Any]]


@fault("sensitivity", "enumeration", "The sensitivity of the counts is too small by one")
def off_by_one() -> Replacements:
    real = CountTables.sensitivity
    yield CountTables, "sensitivity", lambda self, unit: real(self, unit) - 1


@fault(
    "sensitivity",
    "enumeration",
    "A record is thought to move the tables of its features, not that of its label",
)
def label_forgotten() -> Replacements:
    real = Network.tables_moved
    yield Network, "tables_moved", lambda self, unit: max(1, real(self, unit) - 1)


@fault(
    "sensitivity",
    "enumeration",
    "The sensitivity of one feature value is used where records are protected",
)
def one_feature_for_a_record() -> Replacements:
    real = Network.tables_moved
    yield Network, "tables_moved", lambda self, unit: real(self, "feature")


@fault("sensitivity", "enumeration", "A replaced record is thought to leave one row of counts only")
def one_row_for_two() -> Replacements:
    yield CountTables, "row_movement", lambda self, unit: 1


@fault("sensitivity", "enumeration", "Character sums are thought to move half as far")
def characters_move_half() -> Replacements:
    real = characters.character_movement
    yield characters, "character_movement", lambda *args: real(*args) // 2


@fault(
    "sensitivity",
    "enumeration",
    "The scale of the noise depends on which classes occur in the data",
)
def local_sensitivity_of_counts() -> Replacements:
    real = CountTables.sensitivity

    def local(self: CountTables, unit: str) -> int:
        return real(self, unit) - int((self.tables[-1] == 0).any())

    yield CountTables, "sensitivity", local


@fault(
    "sensitivity",
    "enumeration",
    "The exponential mechanism is scaled by the local sensitivity and not calibrated",
)
def local_sensitivity_of_scores() -> Replacements:
    yield Exponential, "_sensitivity", lambda self, c, budget, nominal: c.local_sensitivity()
    yield (
        Exponential,
        "_law",
        lambda self, c, budget: self._at_nominal(c, budget, float(budget.epsilon)),
    )


@fault(
    "sensitivity",
    "enumeration",
    "Replacing a record is thought to move counts of categories by one in all",
)
def one_count_for_two() -> Replacements:
    yield SimplexCounts, "sensitivity", lambda self, unit="record", cells=None: 1


@fault("sensitivity", "enumeration", "Any number of draws is made for the price of one")
def draws_that_cost_nothing() -> Replacements:
    real = Sampler.plan
    yield Sampler, "plan", lambda self, *args: real(Sampler(1, n_points=self.n_points), *args)


@fault("sensitivity", "enumeration", "A turn at a split is thought to lose half of what it does")
def half_a_turn() -> Replacements:
    real = _split_release.SplitGrid._worst
    yield _split_release.SplitGrid, "_worst", lambda *args: real(*args) / 2
    yield _split_release, "_split_loss", _split_release._split_loss.__wrapped__


@fault(
    "sensitivity", "enumeration", "The score of the MAP mechanism is thought to move a fifth as far"
)
def posterior_mass_moves_less() -> Replacements:
    real = map_module._mass_sensitivity
    yield map_module, "_mass_sensitivity", lambda *args: real(*args) / 5


@fault(
    "sensitivity",
    "enumeration",
    "Moments are thought to move half as far, as if bounds were centred once too often",
)
def moments_move_half() -> Replacements:
    real = fourier.whole_block
    yield (
        fourier,
        "whole_block",
        lambda d: replace(b := real(d), together=b.together / 2, each=-(-b.each // 2)),
    )


@fault(
    "sensitivity",
    "enumeration",
    "The steps of a regression together spend one and a half times epsilon",
)
def shares_above_one() -> Replacements:
    real = _moment_release.Shares.of.__func__

    def generous(cls: Any, *args: Any, **options: Any) -> Any:
        shares = real(cls, *args, **options)
        return shares._replace(model=shares.model + shares.epsilon / 2)

    yield _moment_release.Shares, "of", classmethod(generous)
