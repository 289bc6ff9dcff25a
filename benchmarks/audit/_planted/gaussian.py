"""Bugs of Gaussian noise and of its delta."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from benchmarks.audit._planted._fault import fault, with_cost
from dpbayes_sklearn.base import estimator
from dpbayes_sklearn.counts import draws, plans
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.noise import discrete_gaussian
from dpbayes_sklearn.privacy import gaussian as calibration
from dpbayes_sklearn.privacy.budget import Cost
from dpbayes_sklearn.privacy.composition import Spend, zcdp_epsilon
from dpbayes_sklearn.privacy.ledger import Ledger
from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.regression import gram, location
from dpbayes_sklearn.regression import plans as gaussian
from dpbayes_sklearn.regression.moments import GaussianBlock

Replacements = Iterator[tuple[Any, str, Any]]


@fault(
    "gaussian", "enumeration of Gaussian noise", "The standard deviation is five percent too small"
)
def five_percent_less() -> Replacements:
    real = calibration.gaussian_variance
    less = Fraction(95, 100) ** 2
    for module in (calibration, plans):
        yield module, "gaussian_variance", lambda *args, **kw: real(*args, **kw) * less


@fault(
    "gaussian",
    "attacks",
    "The sampler draws with a quarter of the variance it was given",
    "Gaussian()",
)
def quarter_of_the_variance() -> Replacements:
    real = discrete_gaussian._proposals
    yield discrete_gaussian, "_proposals", lambda variance, *rest: real(variance / 4, *rest)


@fault(
    "gaussian", "enumeration of Gaussian noise", "The class table is left out of the L2 sensitivity"
)
def class_table_forgotten() -> Replacements:
    real = CountTables.shifts

    def without(self: CountTables, unit: PrivacyUnit) -> dict[tuple[int, int], int]:
        shifts = Counter(real(self, unit))
        shifts[1, self.table_weights(unit)[-1]] -= 2
        return dict(+shifts)

    yield CountTables, "shifts", without


@fault("gaussian", "enumeration of Gaussian noise", "The L2 sensitivity is taken for its square")
def not_squared() -> Replacements:
    real = CountTables.shifts

    def root(self: CountTables, unit: PrivacyUnit) -> dict[tuple[int, int], int]:
        return {change: round(cells**0.5) for change, cells in real(self, unit).items()}

    yield CountTables, "shifts", root


@fault("gaussian", "enumeration of Gaussian noise", "The noise of a table is divided by its weight")
def weight_counted_twice() -> Replacements:
    real = CountTables.gaussian_law

    def sharper(self: CountTables, unit: PrivacyUnit, variance: Any) -> Any:
        law, weights = real(self, unit, variance), self.table_weights(unit)
        pairs = zip(law.parameters, weights, strict=True)
        return replace(law, parameters=tuple(s / w if w else s for s, w in pairs))

    yield CountTables, "gaussian_law", sharper


@fault("gaussian", "enumeration of Gaussian noise", "Weights are left out of the L2 sensitivity")
def weights_forgotten() -> Replacements:
    real = CountTables.shifts

    def plain(self: CountTables, unit: PrivacyUnit) -> dict[tuple[int, int], int]:
        return {(1, 1): sum(real(self, unit).values())}

    yield CountTables, "shifts", plain


@fault(
    "gaussian",
    "enumeration of Gaussian noise",
    "The conversion of zCDP is used the wrong way round",
)
def conversion_inverted() -> Replacements:
    yield calibration, "zcdp_rho", zcdp_epsilon
    yield calibration, "_least_variance", calibration._least_variance.__wrapped__  # no cache


@fault("gaussian", "composition", "The ledger is told half of the zCDP of a release")
def half_of_rho() -> Replacements:
    real = vars(plans)["gaussian_rho"]
    yield plans, "gaussian_rho", lambda *args: real(*args) / 2


@fault(
    "gaussian", "replay of estimators", "The mechanism is handed twice the delta that was charged"
)
def delta_spent_twice() -> Replacements:
    real = vars(estimator)["carry_out"]

    def generous(plan: Any, statistics: Any, noise: Any) -> Any:
        twice = plan.cost._replace(delta=2 * plan.cost.delta)
        return real(with_cost(plan, twice), statistics, noise)

    yield estimator, "carry_out", generous


@fault("gaussian", "replay of estimators", "The delta of Gaussian noise is not charged")
def delta_not_charged() -> Replacements:
    real = Ledger.charge

    def pure(self: Any, spend: Spend, *rest: Any) -> Any:
        return real(self, Spend(Cost(spend.cost.epsilon), spend.rho), *rest)

    yield Ledger, "charge", pure


@fault("gaussian", "composition", "A learned temperature is paid neither by epsilon nor by rho")
def temperature_is_free() -> Replacements:
    real = plans.plan

    def free(mechanism: Any, prior: Any, facts: Any, budget: Any) -> Any:
        made = real(mechanism, prior, facts, budget)
        tables = plans.tables_plan(mechanism, prior, facts, budget)
        return tables if made is made.tables else replace(made, tables=tables, cost=tables.cost)

    yield plans, "plan", free


@fault(
    "gaussian",
    "enumeration of Gaussian noise",
    "Products of a regression have 5 % less noise",
    "slope",
)
def products_with_less_noise() -> Replacements:
    real = gram.gaussian_gram

    def sharper(*public: Any) -> Any:
        block = real(*public)
        return replace(block, bound=block.bound * Fraction(361, 400))

    yield gaussian, "gaussian_gram", sharper


@fault(
    "gaussian",
    "enumeration of Gaussian noise",
    "The square of a number counts twice in the weights of its noise",
    "slope",
)
def squares_with_less_noise() -> Replacements:
    real = gram.gaussian_gram

    def sharper(*public: Any) -> Any:
        block = real(*public)
        square = {w for w, i, j in _entries(block) if i == j}
        weights = tuple(2 * w if w in square else w for w in block.weights)
        return replace(block, weights=weights)

    yield gaussian, "gaussian_gram", sharper


@fault(
    "gaussian",
    "enumeration of Gaussian noise",
    "What the weights of squares add to the change of a record is left out",
    "slope",
)
def squares_for_nothing() -> Replacements:
    real = gram._scaled
    free = 1 + gram._FOR_SQUARES

    def sharper(*public: Any) -> Any:
        block = real(*public)
        return replace(block, bound=block.bound / free)

    yield gram, "_scaled", sharper


@fault(
    "gaussian",
    "enumeration of Gaussian noise",
    "A replaced record counts as one that comes or goes in the products of a regression",
    "slope",
)
def replaced_counts_once() -> Replacements:
    real = gram.gaussian_gram

    def sharper(*public: Any) -> Any:
        block = real(*public)
        return replace(block, bound=block.alone)

    yield gaussian, "gaussian_gram", sharper


def _entries(block: Any) -> Any:
    each = [w for w, size in zip(block.weights, block.sizes, strict=True) for _ in range(size)]
    return zip(each, block.rows.tolist(), block.columns.tolist(), strict=True)


@fault(
    "gaussian",
    "enumeration of Gaussian noise",
    "Shells forget the one that a record leaves",
    "slope",
)
def one_shell() -> Replacements:
    real = location.shell_block

    def half(columns: int, shells: int) -> Any:
        block = real(columns, shells)
        return replace(block, together=block.together / 2)

    yield location, "shell_block", half


@fault(
    "gaussian", "enumeration of Gaussian noise", "A step draws with twice its share of rho", "slope"
)
def twice_its_share() -> Replacements:
    real = GaussianBlock.law
    yield GaussianBlock, "law", lambda self, rho, grid: real(self, 2 * rho, grid)


@fault(
    "gaussian",
    "enumeration of Gaussian noise",
    "Steps are composed for a tenth of epsilon more",
    "slope",
)
def composed_for_more() -> Replacements:
    real = gaussian.composed_rho
    yield gaussian, "composed_rho", lambda epsilon, *rest: real(epsilon * Fraction(11, 10), *rest)


@fault(
    "gaussian",
    "enumeration of Gaussian noise",
    "A turned split counts as half a turn in rho",
    "several draws",
)
def draws_for_a_quarter() -> Replacements:
    real = draws.release_rho
    yield draws, "release_rho", lambda *public: real(*public) / 4
