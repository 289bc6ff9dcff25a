"""Adaptive sequences of releases that a ledger accepts: their exact delta is within the ceiling.

An adversary who looks at every result before the next release is chosen, against a ledger.

Two neighbours are fixed, and every release is a mechanism of which the exact law on either is
known: randomised response, a rare result that points to one of them, a Gaussian seen in a few bins,
and a release that fails with a probability of delta. After each result the adversary takes what
does most harm among all releases that the real ledger accepts at that moment; the last one is of
each kind the largest that is accepted. The delta of the whole, at the ceiling's epsilon, is the
sum over all sequences of results of (p - exp(epsilon) q)+, which is maximised from the leaves up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache, partial
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from benchmarks.audit._cases import Case, Row
from benchmarks.audit.tools.recording import planted
from benchmarks.audit.tools.steps import gaussian_delta
from dpbayes_sklearn import BudgetAccountant, BudgetError
from dpbayes_sklearn.privacy.composition import Filter

SHARES = (0.1, 0.25, 0.38, 0.55, 0.7)


def run(scale: float) -> Iterator[Row]:
    """Two releases from a long menu and three from a short one, and a ledger that is no filter."""
    shares = SHARES[:: max(1, round(1 / scale))] if scale < 1 else SHARES
    for epsilon, delta in CEILINGS:
        for composition in ("sum", "zcdp"):
            ceiling = f"({epsilon:g}, {delta:g}), {composition}"
            for depth, taken in ((2, shares), (3, (0.38,))):
                adversary = Adversary(epsilon, delta, composition, taken)
                found = adversary.largest_delta(depth) / delta
                what = f"{ceiling}: {depth} releases, menu of {len(adversary.menu)}"
                yield Row(what, f"{found:.3f} delta", "<= 1", found <= 1 + 1e-9)
        with planted((Filter, "for_sums", property(lambda rule: rule.ceiling))):
            found = Adversary(epsilon, delta, "zcdp").largest_delta(2) / delta
        what = f"({epsilon:g}, {delta:g}): either of two filters, each with all of delta"
        yield Row(what, f"{found:.3f} delta", "> 1", found > 1)


CEILINGS = ((1.0, 1e-6), (0.5, 1e-3))
_ORDERS = np.geomspace(1.01, 500, 250)
_ROUNDING = 1.001  # Factor for a largest divergence that lies between two orders.
_CLOSE = 1.001  # Ratio at which the search for the largest accepted release ends.


class ChargedRelease(NamedTuple):
    """What is charged, and the probabilities of its results on either neighbour."""

    epsilon: float | None
    delta: float
    rho: float | None
    results: tuple[tuple[float, float], ...]


def response(epsilon: float) -> ChargedRelease:
    """Return randomised response."""
    honest = 1 / (1 + math.exp(-epsilon))
    return ChargedRelease(epsilon, 0.0, None, ((honest, 1 - honest), (1 - honest, honest)))


def rare(likely: float, epsilon: float) -> ChargedRelease:
    """Return a release with a rare result that is exp(epsilon) times as likely on one neighbour."""
    other = likely * math.exp(-epsilon)
    rho = _rho(np.array(likely), np.array(epsilon)).item() * _ROUNDING
    return ChargedRelease(epsilon, 0.0, rho, ((likely, other), (1 - likely, 1 - other)))


def swapped(release: ChargedRelease) -> ChargedRelease:
    """Return the same with the neighbours exchanged."""
    return release._replace(results=tuple((q, p) for p, q in release.results))


def failing(epsilon: float, delta: float) -> ChargedRelease:
    """Return randomised response that with probability delta tells which neighbour it was."""
    fair = [((1 - delta) * p, (1 - delta) * q) for p, q in response(epsilon).results]
    return ChargedRelease(epsilon, delta, None, ((delta, 0.0), (0.0, delta), *fair))


def gaussian(rho: float) -> ChargedRelease:
    """Return Gaussian noise, of which five bins are looked at."""
    distance, edges = math.sqrt(2 * rho), np.array([-np.inf, -2.0, 0.0, 2.0, 4.0, np.inf])
    p, q = (np.diff(ndtr(edges - shift)) for shift in (distance, 0.0))
    return ChargedRelease(None, 0.0, rho, tuple(zip(p.tolist(), q.tolist(), strict=True)))


def _rho(likely: np.ndarray, loss: np.ndarray) -> np.ndarray:
    """Return the zCDP of rare results, in either direction: the largest divergence over order."""
    order = _ORDERS[(slice(None),) + (None,) * likely.ndim]
    p, q = likely, likely * np.exp(-loss)
    pairs = ((p, q), (q, p))
    found = []
    for one, other in pairs:
        rise = order * np.log(one) + (1 - order) * np.log(other)
        rest = order * np.log1p(-one) + (1 - order) * np.log1p(-other)
        found.append(np.logaddexp(rise, rest) / (order - 1) / order)
    return np.asarray(np.max(found, axis=(0, 1)))


@lru_cache(maxsize=1)
def _rare_laws() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return probabilities, losses and the zCDP of many rare results."""
    likely, loss = np.meshgrid(np.geomspace(1e-8, 0.5, 120), np.geomspace(0.02, 3, 80))
    return likely, loss, _rho(likely, loss) * _ROUNDING


class Adversary:
    """The best strategy against a new ledger of this ceiling and composition.

    ``shares`` of the ceiling are what releases but the last one cost.
    """

    def __init__(
        self, epsilon: float, delta: float, composition: str, shares: Sequence[float] = (0.38,)
    ) -> None:
        self.epsilon, self.delta, self.composition = epsilon, delta, composition
        self._last = cache(self._last_releases)
        self._ledger = cache(self._spent)
        epsilons = [share * epsilon for share in shares]
        hot = [rare(likely, e) for e in epsilons for likely in (0.02, 0.3)]
        self.menu = [
            *map(response, epsilons),
            *hot,
            *map(swapped, hot),
            *(release._replace(rho=None) for release in hot),
            *(failing(e, share * delta) for e in epsilons for share in (0.05, 0.5)),
            *(gaussian(e * epsilon / 40) for e in epsilons),
        ]

    def largest_delta(self, depth: int) -> float:
        """Return the largest delta that so many releases reach."""
        return self._best((), 1.0, 1.0, depth)

    def _best(self, history: tuple[ChargedRelease, ...], p: float, q: float, depth: int) -> float:
        """Return the most that a result with probabilities p and q contributes to delta."""
        contributed = max(p - math.exp(self.epsilon) * q, 0.0)
        if p <= 0 or q <= 0 or not depth:
            return contributed
        threshold = self.epsilon - math.log(p / q)
        last = max((p * gain(threshold) for gain in self._last(history)), default=0.0)
        return max(contributed, last, self._best_of_menu(history, p, q, depth))

    def _best_of_menu(
        self, history: tuple[ChargedRelease, ...], p: float, q: float, depth: int
    ) -> float:
        best = 0.0
        for release in self.menu if depth > 1 else ():
            longer = (*history, release)
            if self._ledger(longer) is not None:
                parts = (self._best(longer, p * a, q * b, depth - 1) for a, b in release.results)
                best = max(best, sum(parts))
        return best

    def _spent(self, history: tuple[ChargedRelease, ...]) -> BudgetAccountant | None:
        """Return a ledger with these releases, or None where it refuses one of them."""
        ledger = BudgetAccountant(self.epsilon, self.delta, composition=self.composition)
        for release in history:
            try:
                ledger.spend(release.epsilon, release.delta, rho=release.rho)
            except BudgetError:
                return None
        return ledger

    def _last_releases(self, history: tuple[ChargedRelease, ...]) -> list[Callable[[float], float]]:
        """Return, of the largest releases of each kind, delta at a threshold of the loss."""
        ledger = self._ledger(history)
        if ledger is None:
            return []
        epsilon = _largest(lambda e: _accepts(ledger, epsilon=e), self.epsilon)
        failure = _largest(lambda d: _accepts(ledger, epsilon=0, delta=d), self.delta)
        beside = _largest(lambda d: _accepts(ledger, epsilon=epsilon, delta=d), self.delta)
        rho = _largest(lambda r: _accepts(ledger, rho=r), self.epsilon)
        gains = [partial(_failing_gain, epsilon, beside), partial(_failing_gain, 0.0, failure)]
        return [*gains, *((partial(_concentrated_gain, rho),) if rho else ())]


def _largest(accepted: Callable[[float], bool], most: float) -> float:
    """Return about the largest number up to ``most`` that is accepted, 0 if there is none."""
    if accepted(most):
        return most
    low, high = most / 2**14, most
    if not accepted(low):
        return 0.0
    while high > low * _CLOSE:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if accepted(middle) else (low, middle)
    return low


def _accepts(ledger: BudgetAccountant, **spend: float) -> bool:
    if not any(spend.values()):
        return False
    try:
        return ledger.check(**spend)
    except BudgetError:
        return False


def _failing_gain(epsilon: float, delta: float, threshold: float) -> float:
    """Return delta at a threshold of randomised response that may fail."""
    pairs = failing(epsilon, delta).results
    return sum(max(p - math.exp(threshold) * q, 0.0) for p, q in pairs)


def _concentrated_gain(rho: float, threshold: float) -> float:
    """Return the largest delta at a threshold of Gaussian noise and of rare results."""
    likely, loss, cost = _rare_laws()
    found = np.where(cost <= rho, likely * -np.expm1(np.minimum(threshold - loss, 0.0)), 0.0)
    return max(gaussian_delta(math.sqrt(2 * rho), threshold), float(found.max()))


def adversaries() -> list[Case]:
    """Let results decide the second of two releases, against both kinds of ledgers."""
    return [
        Case(f"{composition} {epsilon:g} {delta:g}", partial(_broken, epsilon, delta, composition))
        for epsilon, delta in CEILINGS
        for composition in ("sum", "zcdp")
    ]


def _broken(epsilon: float, delta: float, composition: str) -> Iterator[str]:
    found = Adversary(epsilon, delta, composition).largest_delta(2)
    if found > delta * (1 + 1e-9):
        yield f"results decide what is spent next: delta {found:.4g}, ceiling {delta:g}"
    if found < 0.5 * delta:
        yield f"the adversary reaches a delta of {found:.3g} only"
