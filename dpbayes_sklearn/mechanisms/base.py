"""The one boundary that private data cross."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from dpbayes_sklearn._helpful import HelpfulEstimator
from dpbayes_sklearn.noise.source import RandomSource
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.privacy.guarantee import PrivacyGuarantee

__all__ = ["Mechanism", "Release"]

P = TypeVar("P")


@dataclass(frozen=True)
class Release(Generic[P]):
    """What leaves a mechanism: a posterior and the promise it was released under."""

    posterior: P
    guarantee: PrivacyGuarantee


class SensitiveStatistics(Protocol):
    """Exact statistics of private data, which know what kind of thing they are."""

    kind: str

    def without_noise(self) -> Any:
        """Return the released form of these statistics when no privacy is asked for."""


class Mechanism(HelpfulEstimator):
    """A way to turn exact statistics into a private posterior.

    A mechanism for statistics of kind ``"counts"`` has a method ``_release_counts(statistics,
    prior, budget, source)`` that returns a posterior; likewise for every other kind. All of them
    are called from :meth:`release` and from nowhere else. Options are constructor parameters, so
    an estimator's ``mechanism__option`` reaches them in a grid search.
    """

    walks_splits: ClassVar[bool] = False
    """Whether a many-valued variable costs one level of a tree of splits per doubling."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    @classmethod
    def name(cls) -> str:
        """Name of the mechanism: that of the module it lives in."""
        return cls.__module__.rpartition(".")[2]

    @classmethod
    def supports(cls, kind: str) -> bool:
        """Tell whether statistics of this kind can be released."""
        return hasattr(cls, f"_release_{kind}")

    def preflight(self, statistics: SensitiveStatistics, prior: Any, budget: Budget) -> None:
        """Refuse, from public quantities only, what :meth:`release` could not do.

        Called before anything is charged. A kind with something to check has a method
        ``_preflight_<kind>(statistics, prior, budget)``.
        """
        if not self.supports(statistics.kind):
            raise ValueError(
                f"The {self.name()} mechanism cannot release {statistics.kind} statistics."
            )
        check = getattr(self, f"_preflight_{statistics.kind}", None)
        if check is not None and not budget.infinite:
            check(statistics, prior, budget)

    def release(
        self, statistics: SensitiveStatistics, prior: Any, budget: Budget, source: RandomSource
    ) -> Release[Any]:
        """Release a posterior under ``budget``; the statistics are not kept."""
        if budget.infinite:
            posterior = prior.update(statistics.without_noise())
        else:
            posterior = getattr(self, f"_release_{statistics.kind}")(
                statistics, prior, budget, source
            )
        conditions = self._conditions(statistics.kind)
        return Release(posterior, PrivacyGuarantee.of(budget, self.name(), conditions))

    def _conditions(self, kind: str) -> Iterable[str]:
        """Assumptions about releases of this kind that a reader of the guarantee must know."""
        return ()
