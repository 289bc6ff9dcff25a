"""The base class of mechanisms, whose ``release`` is the only way from data to public values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, ClassVar, NoReturn, Protocol

from dpbayes_sklearn._sklearn_compat import HelpfulEstimator
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.privacy.guarantee import PrivacyGuarantee
from dpbayes_sklearn.privacy.unit import PrivacyUnit
from dpbayes_sklearn.regression.moments import Moments
from dpbayes_sklearn.regression.posterior import GaussianPosterior, GaussianPrior
from dpbayes_sklearn.release import Facts, Plan, Release

__all__ = ["Mechanism", "Release"]


class Adapter(Plan[Any, Any]):
    """Plan of a mechanism with methods of its own; goes when every subject makes plans."""

    parts: Any
    guarantee: PrivacyGuarantee

    def __init__(self, of: Mechanism, prior: Any, cost: Budget, facts: Facts) -> None:
        object.__setattr__(self, "cost", cost)
        object.__setattr__(self, "mechanism", of.name())
        object.__setattr__(self, "conditions", ())
        object.__setattr__(self, "parts", (of, prior, facts))

    def release(self, statistics: Any, noise: Noise) -> Any:
        """Let the mechanism release."""
        of, prior, facts = self.parts
        release = of.release(sized(statistics, facts), prior, self.cost, noise)
        object.__setattr__(self, "guarantee", release.guarantee)
        return release.posterior

    def promise(self, released: Any) -> PrivacyGuarantee:
        """Return the guarantee of the release."""
        return self.guarantee


def adapted(
    mechanism: Mechanism, statistics: Any, prior: Any, facts: Facts, budget: Budget
) -> Adapter:
    """Return the plan of a mechanism, refusing what it could not do."""
    known = sized(statistics, facts)
    chosen = mechanism.chosen(known, prior, budget)
    chosen.preflight(known, prior, budget)
    return Adapter(chosen, prior, chosen.cost(known, prior, budget), facts)


def sized(statistics: Any, facts: Facts) -> Any:
    """Return the statistics with a released number of records for the exact one."""
    return statistics.sized(facts) if facts.laws else statistics


class SensitiveStatistics(Protocol):
    """Exact statistics of private data, with their kind."""

    kind: str

    @property
    def n(self) -> int:
        """Number of records."""

    def without_noise(self) -> Any:
        """Return the released form of these statistics when no privacy is asked for."""


class Mechanism(HelpfulEstimator):
    """A way to turn exact statistics into a private posterior.

    Options are constructor parameters, so an estimator's ``mechanism__option`` reaches them in a
    grid search. What a mechanism does with counts, categories and columns is a plan of theirs; for
    moments it overrides ``_release_moments``, which is called from :meth:`release` only.
    """

    walks_splits: ClassVar[bool] = False
    """Whether a many-valued variable costs one level of a tree of splits per doubling."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    needs_delta: ClassVar[bool] = False
    """Whether a release must have a delta above zero."""

    knows_rho: ClassVar[bool] = False
    """Whether a release with a delta also has a known zCDP, which composes better."""

    @property
    def spends_delta(self) -> bool:
        """Whether a release spends the delta that it is given; others are purely private."""
        return self.needs_delta

    @classmethod
    def name(cls) -> str:
        """Name of the mechanism: that of its class, in lower case."""
        return re.sub("(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()

    @classmethod
    def supports(cls, kind: str) -> bool:
        """Tell whether statistics of this kind can be released."""
        own: dict[str, tuple[object, object]] = {
            "moments": (cls._release_moments, Mechanism._release_moments),
        }
        mine, nobodys = own.get(kind, (None, None))
        return mine is not nobodys

    def preflight(self, statistics: SensitiveStatistics, prior: Any, budget: Budget) -> None:
        """Refuse, from public quantities only, what :meth:`release` could not do.

        Called before anything is charged.
        """
        if not self.supports(statistics.kind):
            self._refuse(statistics.kind)
        if not budget.infinite:
            checks: dict[str, Callable[..., None]] = {
                "moments": self._preflight_moments,
            }
            if statistics.kind in checks:
                checks[statistics.kind](statistics, prior, budget)

    def chosen(self, statistics: SensitiveStatistics, prior: Any, budget: Budget) -> Mechanism:
        """Return the mechanism that releases, chosen from public quantities: this one."""
        return self

    def cost(self, statistics: SensitiveStatistics, prior: Any, budget: Budget) -> Budget:
        """Return what :meth:`release` spends of a budget, from public quantities only.

        That is epsilon, delta unless the mechanism is purely private, and zCDP where it is known.
        """
        return budget if self.spends_delta else budget._replace(delta=Fraction(0))

    def release(
        self, statistics: SensitiveStatistics, prior: Any, budget: Budget, noise: Noise
    ) -> Release[Any]:
        """Release a posterior under ``budget``; the statistics are not kept."""
        if statistics.kind == "moments":
            moments: Any = statistics
            statistics = moments.protecting(budget.unit)
        if budget.infinite:
            exact = statistics.without_noise()
            posterior = exact if prior is None else prior.update(exact)
        else:
            releases: dict[str, Callable[..., Any]] = {
                "moments": self._release_moments,
            }
            posterior = releases[statistics.kind](statistics, prior, budget, noise)
        conditions = self._conditions(statistics.kind, prior, budget.unit)
        cost = self.cost(statistics, prior, budget)
        return Release(posterior, PrivacyGuarantee.of(cost, self.name(), conditions))

    def _refuse(self, kind: str) -> NoReturn:
        raise ValueError(f"The {self.name()} mechanism cannot release {kind} statistics.")

    def _preflight_moments(
        self, statistics: Moments, prior: GaussianPrior, budget: Budget
    ) -> None: ...

    def _release_moments(
        self, statistics: Moments, prior: GaussianPrior, budget: Budget, noise: Noise
    ) -> GaussianPosterior:
        self._refuse("moments")

    def _conditions(self, kind: str, prior: Any, unit: PrivacyUnit) -> Iterable[str]:
        """Assumptions about releases of this kind that a reader of the guarantee must know."""
        return ()
