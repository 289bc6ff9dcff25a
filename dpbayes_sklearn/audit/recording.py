"""Noise that notes the law of every step of a fit, and answers as an earlier fit did.

What `Noise` is handed is what is drawn from, whatever was planned or charged. A second fit along
the answers of the first shows the laws of neighbouring data given the same past: the loss of a
release in several steps, of which later ones use what earlier ones said, is the sum over steps.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from functools import singledispatch
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn._typing import FloatArray, IntArray
from dpbayes_sklearn.audit._parts import (
    Calibrated,
    ModeSearch,
    ScoredChoice,
    Texts,
    worst_of_choice,
)
from dpbayes_sklearn.audit._steps import (
    Added,
    Ball,
    Choice,
    Fixed,
    LogisticMode,
    Mode,
    Placed,
    StepLaw,
    seen_records,
    weighed_records,
)
from dpbayes_sklearn.audit._universes import released
from dpbayes_sklearn.logistic.mode import LogisticLoss
from dpbayes_sklearn.noise import Noise, NoiseLaw
from dpbayes_sklearn.noise.discrete_laplace import TruncatedLaplace
from dpbayes_sklearn.noise.integers import RandomSource, random_source
from dpbayes_sklearn.noise.noise import Objective, Weights
from dpbayes_sklearn.privacy.budget import Budget
from dpbayes_sklearn.regression.mode import RobustLoss


class Recording:
    """The steps of one fit, what they answered, and at which step each run of a search began.

    Parameters
    ----------
    along : Recording, optional
        Every step answers what it did there, if it is of the same kind.

    Examples
    --------
    >>> from dpbayes_sklearn import BetaBinomial
    >>> from dpbayes_sklearn.noise import made_by
    >>> recording = Recording()
    >>> with made_by(recording.noise):
    ...     model = BetaBinomial().fit([True, False, True])
    >>> [(step.centre.tolist(), type(step.law).__name__) for step in recording.steps]
    [([2, 1], 'ZeroSum')]
    """

    def __init__(self, along: Recording | None = None) -> None:
        self.steps: list[StepLaw] = []
        self.said: list[tuple[type[StepLaw], Any]] = []
        self.runs: list[int] = []
        self._past = None if along is None else along.said
        self.leads = along is None or not along.steps  # bounds are the same for all that follow
        self.declared: float | None = None  # what the next step loses at its declared sensitivity
        self._owners: list[Noise] = []

    def noise(self, source: RandomSource | None = None) -> Noise:
        """Return noise that this recording listens to."""
        return _Recorder(self, source)

    def bound(self) -> float | None:
        """Return what is declared about the next step, once."""
        declared, self.declared = self.declared, None
        return declared

    def answer(self, step: StepLaw, draw: Callable[[], Any], owner: Noise, start: int) -> Any:
        """Note a step; return what was said at its place before, if it was of the same kind."""
        past, place = self._past, len(self.steps)
        known = past is not None and place < len(past) and past[place][0] is type(step)
        since = self._owners[start:]
        if since and owner not in since:  # others drew since it was made: it is that of a run
            self.runs.append(start)
        self._owners.append(owner)
        self.steps.append(step)
        said = past[place][1] if past is not None and known else draw()
        self.said.append((type(step), said))
        return said


class _Recorder(Noise):
    """The noise of one release."""

    def __init__(self, log: Recording, source: RandomSource | None) -> None:
        super().__init__(source)
        self._log, self._start = log, len(log.steps)
        self._inside: list[Any] | None = None  # what is drawn for a step that knows its records

    def _answer(self, step: StepLaw, draw: Callable[[], Any]) -> Any:
        return self._log.answer(step, draw, self, self._start)

    def add(self, arrays: Sequence[IntArray], law: NoiseLaw) -> tuple[npt.NDArray[Any], ...]:
        """Note what noise is added to."""
        if self._inside is not None:
            noisy = super().add(arrays, law)
            self._inside.append((law, arrays, noisy))
            return noisy
        flat = np.concatenate([np.ravel(array) for array in arrays])
        declared = self._log.bound()
        step = Added(flat, law) if declared is None else Calibrated(flat, law, declared)
        noisy = self._answer(step, lambda: Noise.add(self, arrays, law))
        if sum(map(np.size, noisy)) != flat.size:
            raise ValueError("Which steps a release takes depends on the data.")
        return tuple(np.reshape(own, np.shape(a)) for own, a in zip(noisy, arrays, strict=True))

    def choose(self, weights: npt.NDArray[np.uint64]) -> npt.NDArray[np.intp]:
        """Note the weights."""
        drawn = self._answer(Choice(_rows(weights)), lambda: Noise.choose(self, weights))
        return np.asarray(drawn)

    def choose_by(self, scores: IntArray, weights: Weights, up: int, down: int) -> int:
        """Note the weights, and what they lose at worst."""
        own = weights(scores)
        bound = worst_of_choice(weights, len(scores), up, down) if self._log.leads else 0.0
        step = ScoredChoice(_rows(own), bound, scores, max(up, down))
        return int(self._answer(step, lambda: Noise.choose(self, own))[0])

    def place(self, masses: Sequence[int], weights: Sequence[int]) -> int:
        """Note the segments."""
        step = Placed(tuple(accumulate(masses)), tuple(weights), self._log.bound() or 0.0)
        return int(self._answer(step, lambda: Noise.place(self, masses, weights)))

    def ball(
        self, precision: FloatArray, linear: FloatArray, radius: float, n_draws: int
    ) -> FloatArray:
        """Note the Gaussian."""
        step = Ball(np.array(precision), np.array(linear), float(radius), n_draws)
        drawn = self._answer(step, lambda: Noise.ball(self, precision, linear, radius, n_draws))
        return np.asarray(drawn)

    def common(
        self, columns: Sequence[Mapping[str, int]], law: TruncatedLaplace
    ) -> tuple[tuple[str, ...], ...]:
        """Note the counts of texts."""
        step = Texts(tuple((law, tuple(sorted(counts.items()))) for counts in columns))
        found: tuple[tuple[str, ...], ...] = self._answer(
            step, lambda: Noise.common(self, columns, law)
        )
        return found

    def minimum(self, objective: Objective) -> FloatArray:
        """Note the records, the noise that was drawn, and where the search ended."""
        seen, self._inside = _Ended(objective), []
        try:
            released = super().minimum(seen)
            (gradient_noise, _, drawn), (jitter, (steps,), _) = self._inside
        finally:
            self._inside = None
        mode = mode_of(objective, gradient_noise, jitter)
        released = np.asarray(self._answer(mode, lambda: released))
        found = ModeSearch(mode, np.concatenate(drawn), steps, seen.found)
        self._answer(found, lambda: None)
        return released


class _Ended:
    """An objective that remembers where its search ended."""

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self.gradient_noise, self.jitter, self.step = (
            objective.gradient_noise,
            objective.jitter,
            objective.step,
        )

    def minimum(self, *noise: npt.NDArray[Any]) -> FloatArray:
        """Search."""
        self.found = self._objective.minimum(*noise)
        return self.found


@singledispatch
def mode_of(objective: Any, gradient_noise: NoiseLaw, jitter: NoiseLaw) -> Mode | LogisticMode:
    """Return the step of an objective with the noise that was drawn for it."""
    raise TypeError(f"No step is known for {type(objective).__name__}.")


@mode_of.register
def _(objective: RobustLoss, gradient_noise: NoiseLaw, jitter: NoiseLaw) -> Mode:
    statistics, window, windows, plan = vars(objective).values()
    records = seen_records(statistics, window, windows, plan.grid)
    return Mode(records, plan._replace(gradient_noise=gradient_noise, jitter=jitter), objective)


@mode_of.register
def _(objective: LogisticLoss, gradient_noise: NoiseLaw, jitter: NoiseLaw) -> LogisticMode:
    plan = objective.plan._replace(gradient_noise=gradient_noise, jitter=jitter)  # type: ignore[arg-type]
    return LogisticMode(weighed_records(objective.records), plan, objective)


def _rows(weights: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    return np.array(np.reshape(weights, (-1, np.shape(weights)[-1])))


class Transcript:
    """What one release said, step by step, and the laws of any data set along it.

    It is made once, with real noise. All that comes out at the end must be the same for all data
    sets, because the transcript is.
    """

    def __init__(
        self, mechanism: Any, statistics: Any, prior: Any, budget: Budget, seed: int
    ) -> None:
        self._public = mechanism, prior, budget
        self._said = Recording()
        released(mechanism, statistics, prior, budget, self._said.noise(random_source(seed)))

    def laws(self, statistics: Any) -> list[StepLaw]:
        """Return the laws of a data set along this transcript; first what carries no noise."""
        (mechanism, prior, budget), own = self._public, Recording(self._said)
        posterior = released(mechanism, statistics, prior, budget, own.noise())
        kinds, same = ([(type(s), s.n_answers) for s in log.steps] for log in (own, self._said))
        if kinds != same:
            raise ValueError("Which steps a release takes depends on the data.")
        return [Fixed(pickle.dumps([[kind.__name__ for kind, _ in kinds], posterior])), *own.steps]
