r"""Audit a mechanism by the exact log likelihood ratio of what it releases.

A release is run once, to see what it draws from; each of its noise steps is then drawn many times,
by the production sampler. Of one step with laws p and p' on two neighbouring data sets, no event
tells more than :math:`\log p(x) - \log p'(x) \ge t` (Neyman and Pearson), so the outcomes are
ordered by this ratio, which is known in closed form, and only the threshold t is learned. A step
whose samples do not follow its law is judged by its samples.

Steps that depend on what earlier ones released are all taken along the same transcript, that of the
first data set: given the transcript, each step must keep to its own share of epsilon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import FloatArray
from dpbayes_sklearn.audit._densities import halved, log_ratio
from dpbayes_sklearn.audit._steps import Added, Ball, Choice, Mode, Step, seen_records
from dpbayes_sklearn.audit.statistical import EpsilonBound, bound_from_outcomes
from dpbayes_sklearn.mechanisms import Mechanism
from dpbayes_sklearn.noise import noise as drawing
from dpbayes_sklearn.noise.source import random_source
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.regression import mode, step_noise

__all__ = ["Drawn", "audit_ratios", "drawn_steps", "log_ratios"]

_BATCH = 20_000


@dataclass(frozen=True)
class Drawn:
    """One noise step of a release on one data set.

    Attributes
    ----------
    step : Step
        The law that it draws from.
    draw : callable
        From a number of runs and whether to draw with half the noise, to that many outcomes;
        those of noise are in steps of its grid.
    share : Fraction or None
        Its part of epsilon, where a release has several.
    """

    step: Step
    draw: Callable[[int, bool], npt.NDArray[Any]]
    share: Fraction | None = None


def drawn_steps(
    mechanism: Mechanism,
    statistics: Any,
    prior: Any,
    budget: Budget,
    transcript: list[Any] | None = None,
    random_state: int | None = None,
) -> tuple[list[Drawn], list[Any]]:
    """Release once; return the noise steps, and the transcript of what they answered.

    With a ``transcript`` the steps answer what it says.
    """
    watch = _Watch(random_source(random_state), transcript)
    with watch.installed():
        mechanism.release(statistics, prior, budget, drawing.Noise(watch.source))
    return watch.steps, watch.said


def log_ratios(
    here: Sequence[Drawn], there: Sequence[Drawn], runs: int, sharper: bool = False
) -> FloatArray:
    """Return log p(x)/p'(x) of all steps together, x drawn on the first data set."""
    if [type(d.step) for d in here] != [type(d.step) for d in there]:
        raise ValueError("Which steps a release takes depends on the data.")
    total = np.zeros(runs)
    for mine, theirs in zip(here, there, strict=True):
        total += np.concatenate(
            [
                _log_ratio(mine.step, theirs.step, mine.draw(min(_BATCH, runs - start), sharper))
                for start in range(0, runs, _BATCH)
            ]
        )
    return total


def audit_ratios(
    here: Sequence[Drawn],
    there: Sequence[Drawn],
    runs: int,
    sharper: bool = False,
    delta: float = 0.0,
) -> EpsilonBound:
    """Bound the epsilon that goes with ``delta`` from below by the ratios of both sides.

    ``sharper`` plants half the noise, which an audit with any power must see.

    Examples
    --------
    >>> from dpbayes_sklearn.mechanisms import Geometric
    >>> from dpbayes_sklearn.categories.posterior import Beta, SimplexPrior
    >>> from dpbayes_sklearn.categories.counts import SimplexCounts
    >>> sides = [
    ...     drawn_steps(Geometric(), SimplexCounts(np.array(x)), SimplexPrior(Beta(1, 1)),
    ...                 Budget(Fraction(1)), random_state=0)[0]
    ...     for x in ([3, 2], [2, 3])
    ... ]
    >>> 0.8 < audit_ratios(*sides, 20_000).epsilon <= 1 < audit_ratios(*sides, 20_000, True).epsilon
    True
    """
    first = log_ratios(here, there, runs, sharper)
    second = -log_ratios(there, here, runs, sharper)
    return bound_from_outcomes(first, second, delta=delta)


def _log_ratio(one: Any, other: Any, outcomes: npt.NDArray[Any]) -> FloatArray:
    return _RATIOS[type(one)](one, other, outcomes)


def _noise_ratio(one: Added, other: Added, outcomes: npt.NDArray[Any]) -> FloatArray:
    grid = one.law.grid
    return log_ratio(one.law, outcomes - one.centre * grid, (one.centre - other.centre) * grid)


def _choice_ratio(one: Choice, other: Choice, outcomes: npt.NDArray[Any]) -> FloatArray:
    ratios = one._log_law - other._log_law
    return np.asarray(ratios[np.arange(len(ratios)), outcomes].sum(axis=1))


def _ball_ratio(one: Ball, other: Ball, outcomes: npt.NDArray[Any]) -> FloatArray:
    """Return the difference of the exponents; normalisations shift all ratios alike."""
    curvature, slope = other.precision - one.precision, one.linear - other.linear
    return np.asarray(
        0.5 * np.einsum("ri,ij,rj->r", outcomes, curvature, outcomes) + outcomes @ slope
    )


def _mode_ratio(one: Mode, other: Mode, outcomes: npt.NDArray[Any]) -> FloatArray:
    """Return the difference of the log densities of the minimum without the noise of the search."""
    return one.log_density(outcomes) - other.log_density(outcomes)


_RATIOS: dict[type[Step], Callable[..., FloatArray]] = {
    Added: _noise_ratio,
    Choice: _choice_ratio,
    Ball: _ball_ratio,
    Mode: _mode_ratio,
}


class _Watch:
    """Stands at every noise step of a release: notes its law and how to draw from it again."""

    def __init__(self, source: Any, transcript: list[Any] | None) -> None:
        self.source = source
        self.steps: list[Drawn] = []
        self.said: list[Any] = [] if transcript is None else transcript
        self._first = transcript is None
        self._share: Fraction | None = None

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Replace what mechanisms draw with."""
        with ExitStack() as stack:
            for module, name, stand_in in (
                (drawing, "add", self._added),
                (step_noise, "add_noise", self._shared),
                (drawing, "finite_draw", self._chosen),
                (drawing, "ball_gaussian", self._in_ball),
                (mode, "perturbed_mode", self._perturbed),
            ):
                real = getattr(module, name)
                stack.enter_context(mock.patch.object(module, name, _Standing(real, stand_in)))
            yield

    def _answer(self, draw: Callable[[], Any]) -> Any:
        if self._first:
            self.said.append(draw())
        return self.said[len(self.steps) - 1]

    def _shared(self, real: Any, sums: Any, block: Any, grid: int, part: Any, noise: Any) -> Any:
        self._share = Fraction(part)
        try:
            return real(sums, block, grid, part, noise)
        finally:
            self._share = None

    def _added(self, real: Any, arrays: Any, law: Any, source: Any) -> Any:
        if source is not self.source:  # a simulation of the public noise law
            return real(arrays, law, source)
        flat = np.concatenate([np.ravel(a) for a in arrays])

        def draw(runs: int, sharper: bool) -> npt.NDArray[Any]:
            many = [np.broadcast_to(a, (runs, *np.shape(a))) for a in arrays]
            noisy = real(many, halved(law) if sharper else law, self.source)
            rows = np.hstack([np.reshape(part, (runs, -1)) for part in noisy])
            return np.asarray(np.rint(rows * law.grid), np.int64)

        self.steps.append(Drawn(Added(flat, law), draw, self._share))
        return self._answer(lambda: real(arrays, law, source))

    def _chosen(self, real: Any, weights: Any, source: Any) -> Any:
        rows = np.reshape(weights, (-1, np.shape(weights)[-1]))

        def draw(runs: int, sharper: bool) -> npt.NDArray[Any]:
            own = _squared(rows) if sharper else rows
            return np.asarray(real(np.broadcast_to(own, (runs, *own.shape)), self.source))

        self.steps.append(Drawn(Choice(np.array(rows)), draw, self._share))
        return self._answer(lambda: real(weights, source))

    def _in_ball(self, real: Any, A: Any, b: Any, radius: float, n: int, source: Any) -> Any:
        def draw(runs: int, sharper: bool) -> npt.NDArray[Any]:
            times = 2 if sharper else 1
            return np.asarray(real(times * A, times * b, radius, runs, self.source))

        self.steps.append(Drawn(Ball(np.array(A), np.array(b), radius, n), draw, self._share))
        return self._answer(lambda: real(A, b, radius, n, source))

    def _perturbed(
        self, real: Any, statistics: Any, window: Any, windows: Any, plan: Any, noise: Any
    ) -> Any:
        first = 0 if statistics.design.intercept else 1

        def draw(runs: int, sharper: bool) -> npt.NDArray[Any]:
            own = plan._replace(pull=halved(plan.pull)) if sharper else plan
            found = [real(statistics, window, windows, own, noise) for _ in range(runs)]
            return np.array(found)[:, first:]

        records = seen_records(statistics, window, windows, plan.grid)
        self.steps.append(Drawn(Mode(records, plan), draw, self._share))
        return self._answer(lambda: real(statistics, window, windows, plan, noise))


@dataclass(frozen=True)
class _Standing:
    """A stand-in that knows what it stands for."""

    real: Any
    stand_in: Any

    def __call__(self, *arguments: Any) -> Any:
        return self.stand_in(self.real, *arguments)


def _squared(weights: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return weights of the squared probabilities: all log ratios are doubled."""
    shares = weights.astype(np.float64) / weights.max(axis=-1, keepdims=True)
    return np.asarray(np.maximum(np.rint(shares**2 * 2.0**40), 1), np.uint64)
