"""Record the laws that a fit really draws from, at its samplers, and answer as an earlier fit did.

The samplers are replaced in every module of the package that holds them, so that no list of callers
has to be kept. What a sampler is handed is what is drawn from, whatever was planned or charged.
A second fit along the answers of the first shows the laws of neighbouring data given the same past.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import accumulate
from typing import Any
from unittest import mock

import numpy as np

from dpbayes_sklearn.audit._parts import (
    Calibrated,
    ModeSearch,
    Placed,
    Scored,
    Texts,
    worst_of_choice,
)
from dpbayes_sklearn.audit._steps import Added, Ball, Choice, Mode, Step, seen_records
from dpbayes_sklearn.mechanisms import _temperature, permute_and_flip, quantiles, stable_histogram
from dpbayes_sklearn.model_selection import runs
from dpbayes_sklearn.noise import (
    ball_gaussian,
    finite,
    integers,
    truncated_laplace,
)
from dpbayes_sklearn.noise.law import add
from dpbayes_sklearn.regression import mode
from dpbayes_sklearn.regression.moments import Moments
from dpbayes_sklearn.regression.sensitivity import GaussianBlock

__all__ = ["Recording", "everywhere", "recorded"]


class Recording:
    """The steps of one fit, what they answered, and at which step each run of a search began."""

    def __init__(self, along: Recording | None = None) -> None:
        self.steps: list[Step] = []
        self.said: list[Any] = []
        self.runs: list[int] = []
        self._past = None if along is None else along.said
        self._leads = along is None or not along.steps  # bounds are the same for all that follow
        self._inner: list[Any] | None = None  # what is drawn inside a step that knows its records
        self._scores: tuple[Any, int] = np.zeros(1), 0
        self._levels: list[Any] = []
        self._bound: float | None = None

    def _answer(self, step: Step, draw: Callable[[], Any]) -> Any:
        """Note a step; return what was said at its place before, if it was of the same kind."""
        past, place = self._past, len(self.steps)
        known = past is not None and place < len(past) and past[place][0] is type(step)
        self.steps.append(step)
        said = past[place][1] if past is not None and known else draw()
        self.said.append((type(step), said))
        return said

    def _inside(self, draw: Callable[[], Any]) -> tuple[Any, list[Any]]:
        """Draw, and return what the samplers inside were handed."""
        self._inner = []
        try:
            return draw(), self._inner
        finally:
            self._inner = None

    def _added(self, real: Any, arrays: Any, law: Any, source: Any) -> Any:
        if self._inner is not None:
            noisy = real(arrays, law, source)
            self._inner.append((law, arrays, noisy))
            return noisy
        flat = np.concatenate([np.ravel(array) for array in arrays])
        if len(flat) != law.size:  # many at once: a simulation of a public law
            return real(arrays, law, source)
        step = Added(flat, law) if self._bound is None else Calibrated(flat, law, self._bound)
        self._bound = None
        noisy = self._answer(step, lambda: real(arrays, law, source))
        return tuple(np.reshape(own, np.shape(a)) for own, a in zip(noisy, arrays, strict=True))

    def _calibrated(self, real: Any, block: Any, rho: Any, grid: int) -> Any:
        law = real(block, rho, grid)
        self._bound = float(block.bound * grid**4 / (2 * law.parameters[0] * block.weights[0]))
        return law

    def _chosen(self, real: Any, weights: Any, source: Any) -> Any:
        rows = np.array(np.reshape(weights, (-1, np.shape(weights)[-1])))
        step = Choice(rows) if self._bound is None else Scored(rows, self._bound, *self._scores)
        self._bound = None
        return self._answer(step, lambda: real(weights, source))

    def _weighed(self, real: Any, scores: Any, sensitivity: int, epsilon: float) -> Any:
        most = sensitivity if self._leads else 0
        self._scores = scores, sensitivity
        self._bound = worst_of_choice(
            lambda s: real(s, sensitivity, epsilon), len(scores), most, most
        )
        return real(scores, sensitivity, epsilon)

    def _tempered(self, real: Any, losses: Any, epsilon: float, unit: Any) -> Any:
        most = losses.sensitivity(unit) if self._leads else 0
        self._scores = losses.sums, losses.sensitivity(unit)
        self._bound = worst_of_choice(
            lambda s: real(replace(losses, sums=-s), epsilon, unit),
            len(losses.sums),
            most,
            0 if unit.size_is_secret else most,
        )
        return real(losses, epsilon, unit)

    def _placed(self, real: Any, masses: Any, weights: Any, source: Any) -> Any:
        step = Placed(tuple(accumulate(masses)), tuple(weights), self._bound or 0.0)
        self._bound = None

        def place() -> int:
            segment, offset = real(masses, weights, source)
            return int((0, *step.ends)[segment] + offset)

        said = self._answer(step, place)
        segment = bisect_right(step.ends, said)
        return segment, said - (0, *step.ends)[segment]

    def _rated(self, real: Any, level: Any, epsilon: Any, unit: Any) -> Any:
        """Note what a level loses at the rate of its first question; all of them share it."""
        rate = real(level, epsilon, unit)
        if not any(level is seen for seen in self._levels):
            self._levels.append(level)
            self._bound = rate * float(level.sensitivity(unit))
        return rate

    def _in_ball(self, real: Any, A: Any, b: Any, radius: float, n: int, source: Any) -> Any:
        step = Ball(np.array(A), np.array(b), radius, n)
        return self._answer(step, lambda: real(A, b, radius, n, source))

    def _mode(self, real: Any, statistics: Any, window: Any, windows: Any, *rest: Any) -> Any:
        """Note the mode with the noise that was drawn for it, and where its search ended."""
        plan, _ = rest
        asked: list[Any] = []
        pulls = Moments.pulls

        def noted(self: Any, grid: int, w: Any, ws: Any, at: Any, limit: int) -> Any:
            asked.append(np.array(at))
            return pulls(self, grid, w, ws, at, limit)

        with mock.patch.object(Moments, "pulls", noted):
            said, drawn = self._inside(lambda: real(statistics, window, windows, *rest))
        (pull, _, (noise,)), (jitter, (steps,), _) = drawn
        records = seen_records(statistics, window, windows, plan.grid)
        mode = Mode(records, plan._replace(pull=pull, jitter=jitter))
        said = self._answer(mode, lambda: said)
        self._answer(ModeSearch(mode, noise, steps, asked[-1][-len(steps) :]), lambda: None)
        return said

    def _texts(self, real: Any, statistics: Any, law: Any, source: Any) -> Any:
        found, drawn = self._inside(lambda: real(statistics, law, source))
        columns = zip(drawn, statistics.columns, strict=True)
        step = Texts(tuple((own, tuple(sorted(counts.items()))) for own, counts in columns))
        return self._answer(step, lambda: found)

    def _truncated(self, real: Any, law: Any, size: int, source: Any) -> Any:
        if self._inner is not None:
            self._inner.append(law)
        return real(law, size, source)

    def _run(self, real: Any, *args: Any) -> Any:
        self.runs.append(len(self.steps))
        return real(*args)

    @contextmanager
    def _rehearsing(self) -> Iterator[None]:
        """Forget what is drawn inside a block: a rehearsal, which publishes nothing."""
        kept = len(self.steps), self._past
        self._past = None
        try:
            yield
        finally:
            del self.steps[kept[0] :], self.said[kept[0] :]
            self._past = kept[1]

    def _rehearsed(self, real: Any, *args: Any) -> Any:
        with self._rehearsing():
            return real(*args)


@contextmanager
def recorded(along: Recording | None = None) -> Iterator[Recording]:
    """Record a block; with another recording, every step answers what it did there."""
    own = Recording(along)
    samplers: tuple[tuple[Any, Any], ...] = (
        (add, own._added),
        (finite.finite_draw, own._chosen),
        (permute_and_flip.choice_weights, own._weighed),
        (_temperature.tempering_weights, own._tempered),
        (quantiles.rate, own._rated),
        (integers.segment_draw, own._placed),
        (ball_gaussian.ball_gaussian, own._in_ball),
        (truncated_laplace.truncated_laplace, own._truncated),
        (mode.perturbed_mode, own._mode),
        (stable_histogram.common_texts, own._texts),
        (runs.run, own._run),
        (getattr(runs, "rehearsed", own), own._rehearsed),
    )
    with ExitStack() as stack:
        for real, stand_in in samplers:
            everywhere(stack, real, stand_in)
        law = _Standing(GaussianBlock.law, own._calibrated)
        own_law = lambda block, rho, grid: law(block, rho, grid)  # noqa: E731  a method
        stack.enter_context(mock.patch.object(GaussianBlock, "law", own_law))
        yield own


def everywhere(stack: ExitStack, real: Any, stand_in: Any, modules: Any = None) -> None:
    """Replace a function, under all of its names, by ``stand_in(real, *arguments)``."""
    package = __name__.partition(".")[0] + "."
    for module in modules or [m for name, m in [*sys.modules.items()] if name.startswith(package)]:
        for name, value in [*vars(module).items()]:
            if value is real:
                stack.enter_context(mock.patch.object(module, name, _Standing(real, stand_in)))


class _Standing:
    """A stand-in that knows what it stands for."""

    def __init__(self, real: Any, stand_in: Any) -> None:
        self._real, self._stand_in = real, stand_in

    def __call__(self, *arguments: Any) -> Any:
        return self._stand_in(self._real, *arguments)
