"""The only maker of randomness: one object for each release, handed down from the fit.

What a release draws from is an argument of a method of `Noise`, as a value: a law, integer weights,
or a Gaussian in a ball. An audit hands in another maker with :func:`made_by` and sees all of it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import accumulate
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import AnyArray, FloatArray, IntArray, Positions
from dpbayes_sklearn.noise.discrete_gaussian import ball_gaussian
from dpbayes_sklearn.noise.discrete_laplace import TruncatedLaplace, truncated_laplace
from dpbayes_sklearn.noise.finite import Stopping, finite_draw, number_of_runs
from dpbayes_sklearn.noise.integers import (
    RandomSource,
    Seed,
    random_order,
    random_positions,
    random_source,
    segment_draw,
    uniform_below,
)
from dpbayes_sklearn.noise.law import NoiseLaw, add, draw

Weights: TypeAlias = Callable[[IntArray], npt.NDArray[np.uint64]]
"""Integer weights of candidates, shape (1, candidates), as a function of their scores."""


class Objective(Protocol):
    """A sum over records whose minimum is released: its gradient is perturbed, then the result."""

    @property
    def gradient_noise(self) -> NoiseLaw:
        """Noise of the gradient."""

    @property
    def jitter(self) -> NoiseLaw:
        """Noise of what is released, in steps."""

    @property
    def step(self) -> float:
        """Lattice of what is released."""

    def minimum(self, *noise: IntArray) -> FloatArray:
        """Return the minimum of the objective with this noise in its gradient, within a step."""


class Noise:
    """Draws everything that a release leaves to chance, exactly, from one source of bytes.

    >>> from fractions import Fraction
    >>> from dpbayes_sklearn.noise import DiscreteLaplace
    >>> law = DiscreteLaplace.of(Fraction(2), sizes=[3])
    >>> (noisy,) = Noise.of(0).add([np.array([10, 20, 30])], law)
    >>> noisy.shape
    (3,)
    """

    notes: list[dict[str, Any]] | None = None
    """Public records of the steps that it has answered, if a fit is to keep them."""

    def __init__(self, source: RandomSource | None = None) -> None:
        self._source = source or random_source()

    @staticmethod
    def of(random_state: Seed = None, stream: int = 0) -> Noise:
        """Return the noise of one release, by the parameter ``random_state`` of an estimator.

        Releases that are made with one seed and published together need a ``stream`` each.
        """
        return _MAKER.get()(random_source(random_state, stream))

    def add(self, arrays: Sequence[IntArray], law: NoiseLaw) -> tuple[AnyArray, ...]:
        """Return the arrays plus noise of the law, as :func:`~dpbayes_sklearn.noise.add` does."""
        return add(arrays, law, self._source)

    def draw(self, law: NoiseLaw, count: int) -> IntArray:
        """Return the noise of ``count`` releases alone, in steps of the law's grid."""
        return draw(law, count, self._source)

    def choose(self, weights: npt.NDArray[np.uint64]) -> npt.NDArray[np.intp]:
        """Return one index for each row of integer weights (..., J): P(j) = w_j / sum(w)."""
        return finite_draw(weights, self._source)

    def choose_by(self, scores: IntArray, weights: Weights, up: int, down: int) -> int:
        """Return one of the candidates, drawn by ``weights(scores)``.

        Between neighbours one score rises by ``up`` at most while others fall by ``down`` at most.
        """
        return int(self.choose(weights(scores))[0])

    def common(
        self, columns: Sequence[Mapping[str, int]], law: TruncatedLaplace
    ) -> tuple[tuple[str, ...], ...]:
        """Return, of every column, the texts whose count plus noise is above the noise's reach."""
        found = []
        for counts in columns:
            texts = sorted(counts)
            noisy = [counts[text] for text in texts] + self.truncated(law, len(texts))
            kept = zip(texts, (noisy > law.reach).tolist(), strict=True)
            found.append(tuple(text for text, is_kept in kept if is_kept))
        return tuple(found)

    def truncated(self, law: TruncatedLaplace, size: int) -> IntArray:
        """Return independent draws from a truncated Laplace law."""
        return truncated_laplace(law, size, self._source)

    def minimum(self, objective: Objective) -> FloatArray:
        """Return the minimum of a perturbed objective, with noise that hides where a search ends.

        What is returned is a multiple of the objective's step, or of a part of it.
        """
        law = objective.gradient_noise
        noise = self.add([np.zeros(n, np.int64) for n in law.sizes], law)
        steps = np.rint(objective.minimum(*noise) / objective.step).astype(np.int64)
        (released,) = self.add([steps], objective.jitter)
        return np.asarray(released * objective.step)

    def point(self, masses: Sequence[int], weights: Sequence[int]) -> tuple[int, int]:
        """Return a segment and an offset below its mass; ``weights`` are those of an offset."""
        place, ends = self.place(masses, weights), (0, *accumulate(masses))
        segment = bisect_right(ends, place) - 1
        return segment, place - ends[segment]

    def place(self, masses: Sequence[int], weights: Sequence[int]) -> int:
        """Return a unit of the mass of all segments, each with the weight of its segment."""
        segment, offset = segment_draw(masses, weights, self._source)
        return sum(masses[:segment]) + offset

    def ball(
        self, precision: FloatArray, linear: FloatArray, radius: float, n_draws: int
    ) -> FloatArray:
        """Return vectors with density proportional to exp(-w'Aw/2 + b'w) in a ball."""
        return ball_gaussian(precision, linear, radius, n_draws, self._source)

    def runs(self, stopping: Stopping) -> int:
        """Return how many runs a search makes."""
        return number_of_runs(stopping, self._source)

    def below(self, bound: int, count: int) -> npt.NDArray[np.unsignedinteger[Any]]:
        """Return uniform integers from 0 to bound - 1."""
        return uniform_below(bound, count, self._source)

    def positions(self, n: int, size: int) -> Positions:
        """Return ``size`` different positions out of 0, ..., n-1 in order, all sets alike."""
        return random_positions(n, size, self._source)

    def order(self, n: int) -> Positions:
        """Return 0, ..., n-1 in random order, all orders alike."""
        return random_order(n, self._source)

    def coins(self, count: int) -> FloatArray:
        """Return uniform numbers in [0, 1), multiples of 2**-53."""
        words = np.frombuffer(self._source(8 * count), np.uint64)
        return np.minimum(words / 2.0**64, 1 - 2.0**-53)

    def seed(self) -> int:
        """Return a seed of 32 bits."""
        return int.from_bytes(self._source(4), "little")


_MAKER: ContextVar[Callable[[RandomSource], Noise]] = ContextVar("maker of noise", default=Noise)


@contextmanager
def made_by(maker: Callable[[RandomSource], Noise]) -> Iterator[None]:
    """Let ``maker(source)`` make the noise of all releases inside a block, in this thread.

    For audits and tests: a subclass of `Noise` sees every law that is drawn from, and may answer
    what it likes. Simulations of public laws, which make a `Noise` of their own, are not concerned.
    """
    token = _MAKER.set(maker)
    try:
        yield
    finally:
        _MAKER.reset(token)
