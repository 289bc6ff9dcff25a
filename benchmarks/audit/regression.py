"""Statistical audit of linear regression, step by step: the target, the moments, the residuals.

A regression is released in several steps, each with a share of epsilon. For every step the worst
neighbours are looked for among all records of a small world: those whose laws lose most. Then the
step is drawn many times on both sides and judged by the exact log likelihood ratio of the law that
it draws from. No step may lose more than its share, and if its noise is halved it must be seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.audit._table import Row
from dpbayes_sklearn._messages import progress
from dpbayes_sklearn.audit._densities import halved
from dpbayes_sklearn.audit._domains import MomentDomain
from dpbayes_sklearn.audit._steps import Added
from dpbayes_sklearn.audit.ratios import Drawn, audit_ratios, drawn_steps
from dpbayes_sklearn.mechanisms import MAP, Fourier, Laplace, Mechanism, Sampler
from dpbayes_sklearn.noise import add
from dpbayes_sklearn.noise.source import random_source
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.regression.design import Design
from dpbayes_sklearn.regression.gram import GramMatrix
from dpbayes_sklearn.regression.posterior import GaussianPrior
from dpbayes_sklearn.schema import Interval

__all__ = ["CASES", "Case", "run"]

RUNS = {"noise": 200_000, "draws": 400_000}
Worst = tuple[Drawn, Drawn]


@dataclass(frozen=True)
class Case:
    """A release of ``others`` equal records and one more, which neighbours replace."""

    mechanism: Mechanism
    domain: MomentDomain
    other: tuple[float, ...]
    others: int
    epsilon: Fraction
    prior: GaussianPrior
    two_stages: bool = False

    def __str__(self) -> str:
        return self.mechanism.name() + (" in two stages" if self.two_stages else "")

    def worst_steps(self) -> list[Worst]:
        """Return every noise step at the pair of neighbours whose laws lose most there."""
        among = [self.domain.records.index(self.other)] * self.others
        sides: list[Sequence[Drawn]] = []
        transcript: list[Any] | None = None
        for record in range(len(self.domain.records)):
            data = self.domain.statistics([*among, record])
            drawn, transcript = drawn_steps(
                self.mechanism, data, self.prior, Budget(self.epsilon), transcript, record
            )
            # a mode is no sum plus noise: the layer "parts" has its proof
            sides.append([one for one in drawn if one.share is not None or not self.two_stages])
        return [
            max(combinations(steps, 2), key=lambda pair: (_loss(*pair), _entries(*pair)))
            for steps in zip(*sides, strict=True)
        ]

    def shares(self, worst: Sequence[Worst]) -> list[float]:
        """Return the part of epsilon of every step; draws have what the others leave."""
        known = [pair[0].share for pair in worst]
        left = self.epsilon - sum(share or 0 for share in known)
        return [float(left if share is None else share) for share in known]

    def reached(self, worst: Sequence[Worst]) -> list[float]:
        """Return what the worst neighbours of every step lose; it can be less than its share."""
        return [min(s, _loss(*pair)) for s, pair in zip(self.shares(worst), worst, strict=True)]


def _loss(one: Drawn, other: Drawn) -> float:
    return float(max(one.step.loss(other.step), other.step.loss(one.step)))


def _entries(one: Drawn, other: Drawn) -> int:
    """Return how many entries differ: of equal losses, what more of them tell is seen sooner."""
    centres = [getattr(side.step, "centre", np.zeros(1)) for side in (one, other)]
    return int(np.count_nonzero(centres[0] - centres[1]))


def _cases() -> Iterator[Case]:
    numbers = MomentDomain(Design((Interval(-1, 1), Interval(-1, 1))), levels=3)
    middle, prior = (0.0, 0.0, 0.0), GaussianPrior(numbers.design, inference="noise_aware")
    for mechanism in (Laplace(), Fourier()):
        yield Case(mechanism, numbers, middle, 390, Fraction(5), prior)
    yield Case(Laplace(), numbers, middle, 450, Fraction(5), prior, two_stages=True)
    # A draw loses its whole share where residuals reach 1 + BR with BR = 1. Others at one end keep
    # most draws there, and the few at the other end tell most; so there are two of them.
    slope = MomentDomain(Design((Interval(-1, 1),), intercept=False), levels=3)
    flat = GaussianPrior(slope.design, precision=1e-6, coef_bound=1.0)
    for draws in (Sampler(), MAP()):
        yield Case(draws, slope, (1.0, -1.0), 2, Fraction(5), flat)


CASES = tuple(_cases())


def matrix_steps(epsilon: Fraction = Fraction(2)) -> Worst:
    """Return matrix noise on the moments of two records that are nearly orthogonal: the worst."""
    matrix, grid = GramMatrix.of(Design((Interval(-1, 1),)), deviations=1.0), 2**6
    law = matrix.law(epsilon, grid)
    sides = []
    for target in (1.0, -1.0):
        x, t = np.full((1, 1), float(grid)), np.array([target * grid])
        matrix.norm.clip(x, t, grid)
        z = np.array([grid, x[0, 0], t[0]]).astype(np.int64)
        sums = np.outer(z, z)[matrix.rows, matrix.columns]

        def draw(runs: int, sharper: bool, sums: Any = sums) -> Any:
            many = np.broadcast_to(sums, (runs, len(sums)))
            return add([many], halved(law) if sharper else law, random_source(runs + sharper))[0]

        sides.append(Drawn(Added(sums, law), draw, epsilon))
    return sides[0], sides[1]


def relative_bounds(case: Case, worst: Sequence[Worst], scale: float, sharper: bool) -> Any:
    """Return for every step the bound on its loss over its share.

    With half the noise, over what its worst neighbours lose with all of it.
    """
    bounds = []
    for one, other in progress(worst, f"steps of {case}"):
        full = RUNS["draws" if one.share is None else "noise"]
        runs = max(20_000, int(full * scale))
        bounds.append(audit_ratios([one], [other], runs, sharper).epsilon)
    return np.array(bounds) / (case.reached(worst) if sharper else case.shares(worst))


def run(scale: float) -> Iterator[Row]:
    """Audit every step of every mechanism, as it is and with half the noise."""
    one, other = matrix_steps()
    share, runs = float(one.share or 0), max(20_000, int(RUNS["noise"] * scale / 2))
    for sharper, what in ((False, "as it is"), (True, "with half the noise")):
        bound = audit_ratios([one], [other], runs, sharper).epsilon / share
        passed = bound > 1 if sharper else bound <= 1
        must = "> 1" if sharper else "<= 1"
        yield Row(
            "regression", f"matrix noise {what}", f"bound / share = {bound:.3f}", must, passed
        )
    for case in CASES:
        worst = case.worst_steps()
        total, name = sum(case.shares(worst)), str(case)
        what = f"linear regression, {name}: {len(worst)} steps"
        adds = bool(np.isclose(total, float(case.epsilon)))
        must = f"{case.epsilon}"
        if case.two_stages:
            adds, must = total < case.epsilon, f"< {case.epsilon}, less the first stage"
        yield Row("regression", what, f"shares add to {total:g}", must, adds)
        largest = relative_bounds(case, worst, scale, sharper=False).max()
        what = f"{name}, the step that shows most of its share"
        yield Row("regression", what, f"bound / share = {largest:.3f}", "<= 1", largest <= 1)
        least = relative_bounds(case, worst, scale, sharper=True).min()
        what = f"{name} with half the noise, the step that shows least"
        yield Row("regression", what, f"bound / loss = {least:.3f}", "> 1", least > 1)
