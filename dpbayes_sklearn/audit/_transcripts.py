"""Releases in several steps, where later ones may use what earlier ones said.

What was said is a transcript. It is made once, with real noise; then every data set is released
along the same transcript, and the law of each of its steps is read. The loss of a transcript is
the sum over its steps. All that comes out at the end must be the same for all data sets, because
the transcript is.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from contextlib import ExitStack
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np

from dpbayes_sklearn.audit._reading import NO_NOISE, Recorder
from dpbayes_sklearn.audit._steps import Added, Ball, Choice, Fixed, Mode, Point, Step, seen_records
from dpbayes_sklearn.mechanisms import Mechanism, quantiles
from dpbayes_sklearn.noise import DiscreteGaussian, DiscreteLaplace, MatrixNoise, NoiseLaw, SupNorm
from dpbayes_sklearn.noise import noise as drawing
from dpbayes_sklearn.noise.source import RandomSource
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.regression import mode, step_noise

__all__ = ["Transcript"]


class Transcript:
    """What one release said, step by step, and the laws of any data set along it."""

    def __init__(
        self, mechanism: Mechanism, statistics: Any, prior: Any, budget: Budget, seed: RandomSource
    ) -> None:
        self._public = mechanism, prior, budget
        self._seed: RandomSource | None = seed
        self._said: list[Any] = []
        self.laws(statistics)
        self._seed = None

    def laws(self, statistics: Any) -> list[Step]:
        """Return the laws of a data set along this transcript; first what carries no noise."""
        mechanism, prior, budget = self._public
        with ExitStack() as stack:
            steps = stack.enter_context(_Steps(self._said, self._seed))
            posterior = mechanism.release(statistics, prior, budget, NO_NOISE).posterior
        what = [type(law).__name__ for law in steps.laws]
        return [Fixed(pickle.dumps([what, posterior])), *steps.laws]


class _Steps:
    """Stands in for the steps of one release: notes their laws, answers from the transcript."""

    def __init__(self, said: list[Any], seed: RandomSource | None) -> None:
        self.laws: list[Step] = []
        self._said, self._seed = said, seed
        self._add_noise = step_noise.add_noise
        self._ball = vars(drawing)["ball_gaussian"]
        self._mode = mode.perturbed_mode
        self._point = quantiles.point_of
        self._choice = vars(drawing)["finite_draw"]
        self._patches: Sequence[Any] = (
            mock.patch.object(step_noise, "add_noise", self.noise),
            mock.patch.object(drawing, "ball_gaussian", self.ball),
            mock.patch.object(mode, "perturbed_mode", self.mode),
            mock.patch.object(quantiles, "point_of", self.point),
            mock.patch.object(drawing, "finite_draw", self.choice),
        )

    def __enter__(self) -> _Steps:
        for patch in self._patches:
            patch.start()
        return self

    def __exit__(self, *exception: object) -> None:
        for patch in self._patches:
            patch.stop()

    def noise(
        self, sums: Any, block: Any, grid: int, epsilon: Fraction, noise: drawing.Noise
    ) -> Any:
        """Stand in for noisy sums."""
        if noise is not NO_NOISE:  # a simulation of the public noise law
            return self._add_noise(sums, block, grid, epsilon, noise)
        with Recorder().installed() as recorder:
            noiseless, _ = self._add_noise(sums, block, grid, epsilon, NO_NOISE)
        centre = np.rint(np.asarray(noiseless) * grid**2).astype(np.int64)
        drawn = {*recorder.scales}
        scale = drawn.pop() if len(drawn) == 1 else Fraction(0)
        law: NoiseLaw = DiscreteLaplace.of(scale, [len(centre)])
        if recorder.is_gaussian:
            with Recorder(marks=1).installed() as marking:
                marked, _ = self._add_noise(sums, block, grid, epsilon, NO_NOISE)
            names = marking.names(np.rint(np.asarray(marked) * grid**2) - centre)
            own = tuple(marking.scales[name] for name in names.tolist())
            law = DiscreteGaussian(own, (1,) * len(own))
        elif recorder.boxes:
            law = SupNorm(scale, tuple(side for _, side in recorder.boxes.values()))
        elif recorder.matrices:
            law = MatrixNoise(scale, recorder.matrices[0])
        self.laws.append(Added(centre, law))
        return self._answer(
            lambda seed: self._add_noise(sums, block, grid, epsilon, drawing.Noise(seed)),
            ("sums", len(centre)),
        )

    def ball(self, precision: Any, linear: Any, radius: float, n: int, source: Any) -> Any:
        """Stand in for draws from a ball."""
        self.laws.append(Ball(np.array(precision), np.array(linear), float(radius), n))
        return self._answer(
            lambda seed: self._ball(precision, linear, radius, n, seed), ("draws", len(linear))
        )

    def mode(self, statistics: Any, window: Any, windows: Any, plan: Any, noise: Any) -> Any:
        """Stand in for a perturbed mode."""
        self.laws.append(Mode(seen_records(statistics, window, windows, plan.grid), plan))
        return self._answer(
            lambda seed: self._mode(statistics, window, windows, plan, drawing.Noise(seed)),
            ("mode", len(plan.ridge)),
        )

    def point(self, law: Any, noise: Any) -> Any:
        """Stand in for a point of a lattice."""
        self.laws.append(Point(law))
        return self._answer(lambda seed: self._point(law, drawing.Noise(seed)), ("point", 1))

    def choice(self, weights: Any, source: Any) -> Any:
        """Stand in for a choice among candidates."""
        self.laws.append(Choice(np.array(weights)))
        kind = ("choice", weights.shape[-1])
        return self._answer(lambda seed: self._choice(weights, seed), kind)

    def _answer(self, draw: Any, kind: tuple[str, int]) -> Any:
        if self._seed is not None:
            self._said.append((kind, draw(self._seed)))
        step = len(self.laws) - 1
        if step >= len(self._said) or self._said[step][0] != kind:
            raise ValueError("Which steps a release takes depends on the data.")
        return self._said[step][1]
