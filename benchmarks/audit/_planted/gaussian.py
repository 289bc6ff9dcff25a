"""Bugs of Gaussian noise and of its delta."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from benchmarks.audit._planted._fault import fault
from dpbayes_sklearn.mechanisms import Gaussian, Mechanism, gaussian
from dpbayes_sklearn.noise import discrete_gaussian
from dpbayes_sklearn.privacy import gaussian as calibration
from dpbayes_sklearn.privacy.composition import Spend
from dpbayes_sklearn.privacy.cost import Cost
from dpbayes_sklearn.privacy.ledger import Ledger
from dpbayes_sklearn.privacy.zcdp import zcdp_epsilon
from dpbayes_sklearn.statistics.counts import CountTables

Replacements = Iterator[tuple[Any, str, Any]]


@fault(
    "gaussian", "enumeration of Gaussian noise", "The standard deviation is five percent too small"
)
def five_percent_less() -> Replacements:
    real = gaussian.gaussian_variance
    less = Fraction(95, 100) ** 2
    yield gaussian, "gaussian_variance", lambda *args, **kw: real(*args, **kw) * less


@fault("gaussian", "attacks", "The sampler draws with a quarter of the variance it was given")
def quarter_of_the_variance() -> Replacements:
    real = discrete_gaussian._proposals
    yield discrete_gaussian, "_proposals", lambda variance, *rest: real(variance / 4, *rest)


@fault(
    "gaussian", "enumeration of Gaussian noise", "The class table is left out of the L2 sensitivity"
)
def class_table_forgotten() -> Replacements:
    real = CountTables.shifts
    yield CountTables, "shifts", lambda self, unit: {1: real(self, unit)[1] - 2}


@fault("gaussian", "enumeration of Gaussian noise", "The L2 sensitivity is taken for its square")
def not_squared() -> Replacements:
    real = CountTables.shifts
    yield CountTables, "shifts", lambda self, unit: {1: round(real(self, unit)[1] ** 0.5)}


@fault(
    "gaussian",
    "enumeration of Gaussian noise",
    "The conversion of zCDP is used the wrong way round",
)
def conversion_inverted() -> Replacements:
    yield calibration, "zcdp_rho", zcdp_epsilon


@fault("gaussian", "composition", "The ledger is told half of the zCDP of a release")
def half_of_rho() -> Replacements:
    real = gaussian.gaussian_rho
    yield gaussian, "gaussian_rho", lambda *args: real(*args) / 2


@fault(
    "gaussian", "replay of estimators", "The mechanism is handed twice the delta that was charged"
)
def delta_spent_twice() -> Replacements:
    real = Mechanism.release

    def generous(self: Any, statistics: Any, prior: Any, budget: Any, source: Any) -> Any:
        return real(self, statistics, prior, budget._replace(delta=2 * budget.delta), source)

    yield Mechanism, "release", generous


@fault("gaussian", "replay of estimators", "The delta of Gaussian noise is not charged")
def delta_not_charged() -> Replacements:
    real = Ledger.charge

    def pure(self: Any, spend: Spend, *rest: Any) -> Any:
        return real(self, Spend(Cost(spend.cost.epsilon), spend.rho), *rest)

    yield Ledger, "charge", pure


@fault("gaussian", "composition", "A learned temperature is paid neither by epsilon nor by rho")
def temperature_is_free() -> Replacements:
    yield Gaussian, "budget_for", lambda self, statistics, prior, budget: budget
