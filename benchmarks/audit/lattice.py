"""Every released number lies on a public lattice: low bits of floating-point noise betray data.

Counts and character sums are integers, moments whole multiples of 1/grid², draws of tables points
of the public grid, posteriors of one variable members of the public list. The draws of the
regression's sampler and MAP are rounded to a public lattice too, but their law is that of real
numbers, and the guarantee has to say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.audit._cases import Row
from benchmarks.audit._models import line
from dpbayes_sklearn import mechanisms
from dpbayes_sklearn.audit._universes import released
from dpbayes_sklearn.audit.releases import released_numbers
from dpbayes_sklearn.categories.candidates import Candidates
from dpbayes_sklearn.categories.counts import SimplexCounts
from dpbayes_sklearn.categories.posterior import Dirichlet, SimplexPrior
from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.fourier import sum_count
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.splits import SplitGrid, leaf_probabilities
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.mechanisms import Mechanism
from dpbayes_sklearn.noise import ClassRows, Noise, SupNorm
from dpbayes_sklearn.noise.discrete_gaussian import DRAW_LATTICE
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.regression.ball_draws import REAL_ARITHMETIC
from dpbayes_sklearn.regression.design import Design, Scale
from dpbayes_sklearn.regression.moments import Moments
from dpbayes_sklearn.regression.posterior import GaussianPrior
from dpbayes_sklearn.schema import Interval

VALUES = 1_000_000
BUDGET = Budget(Fraction(1, 3))
NETWORK = Network.star([2, 3, 3], 2)
PRIOR = DirichletPrior(NETWORK, tuple(np.full(k, 0.7) for k in NETWORK.sizes))
POINTS = 33
ROWS = "counts, laplace, joint noise, in steps of the grid"
JOINT = "character sums, fourier, joint noise, in steps of the grid"


def tables() -> CountTables:
    codes = np.random.default_rng(0).integers(0, 2, (50, 4), np.uint8)
    return CountTables.count(NETWORK, [(codes[:, :-1], codes[:, -1])])


def batches(mechanism: Mechanism, statistics: Any, prior: Any, wanted: float) -> Iterator[Any]:
    """Yield released numbers until there are enough."""
    seen = 0
    while seen < wanted:
        numbers = released_numbers(mechanism, statistics, prior, BUDGET, 2_000)
        seen += numbers.size
        yield numbers


def whole(numbers: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    return np.asarray(np.isfinite(numbers) & (numbers == np.rint(numbers)))


def row(what: str, seen: int, off: int) -> Row:
    return Row(f"{what}: {seen:,} released values", f"{off} off the lattice", "0", off == 0)


def integers(scale: float) -> Iterator[Row]:
    simplex = SimplexCounts(np.array([7, 3, 20]))
    belief = SimplexPrior(Dirichlet([0.5, 1.0, 2.0]))
    cases: list[tuple[str, Mechanism, Any, Any]] = [
        ("counts, laplace", mechanisms.Laplace(noise="independent"), tables(), PRIOR),
        (ROWS, mechanisms.Laplace(noise="joint"), tables(), PRIOR),
        ("character sums, fourier", mechanisms.Fourier(noise="independent"), tables(), PRIOR),
        (JOINT, mechanisms.Fourier(noise="joint"), tables(), PRIOR),
        ("one variable, laplace", mechanisms.Laplace(), simplex, belief),
        ("one variable, laplace_improved", mechanisms.LaplaceImproved(), simplex, belief),
        ("one variable, geometric", mechanisms.Geometric(), simplex, belief),
    ]
    *values, n_classes = NETWORK.sizes
    rows = ClassRows.of(tuple(values), n_classes, 2, Fraction(BUDGET.epsilon))
    joint = SupNorm.of((1,) * sum_count(NETWORK), 2, Fraction(BUDGET.epsilon))
    grids = {JOINT: joint.grid, ROWS: rows.grid}
    for what, mechanism, statistics, prior in cases:
        found = [
            (n.size, (~whole(n * grids.get(what, 1))).sum())
            for n in batches(mechanism, statistics, prior, VALUES * scale)
        ]
        yield row(what, *(int(sum(part)) for part in zip(*found, strict=True)))


def chosen(scale: float) -> Iterator[Row]:
    """Mechanisms that choose among all posteriors of n records choose one of them."""
    counts = SimplexCounts(np.array([2, 5, 5]))
    belief = SimplexPrior(Dirichlet([1.0, 1.0, 1.0]))
    public = {tuple(c) for c in Candidates(12, (1.0, 1.0, 1.0)).counts.tolist()}
    for mechanism in (mechanisms.Exponential(), mechanisms.Hellinger(), mechanisms.Local()):
        seen = off = 0
        for numbers in batches(mechanism, counts, belief, VALUES * scale):
            distinct, many = np.unique(numbers, axis=0, return_counts=True)
            off += sum(
                m for c, m in zip(distinct.tolist(), many, strict=True) if tuple(c) not in public
            )
            seen += numbers.size
        yield row(f"one variable, {mechanism.name()}", seen, int(off))


def draws(scale: float) -> Iterator[Row]:
    """Tables drawn by sampler and MAP are made of grid points, and nothing but them."""
    for mechanism in (
        mechanisms.Sampler(n_points=POINTS, omega=0.2),
        mechanisms.MAP(n_points=POINTS, omega=0.2),
        mechanisms.MAP(score="posterior", n_points=POINTS, omega=0.2),
    ):
        left = SplitGrid(0.2, POINTS).left
        public = np.unique(
            np.concatenate(
                [leaf_probabilities(np.array([*product(left, repeat=s)])).ravel() for s in (1, 2)]
            )
        )
        seen = off = 0
        for numbers in batches(mechanism, tables(), PRIOR, VALUES * scale):
            seen, off = seen + numbers.size, off + int((~np.isin(numbers, public)).sum())
        name = getattr(mechanism, "score", "draws")
        yield row(f"tables, {mechanism.name()} ({name})", seen, off)


def records(columns: int) -> Moments:
    rng = np.random.default_rng(0)
    design = Design((Interval(-1, 1),) * columns)
    X, y = rng.uniform(-1, 1, (100, columns)), rng.uniform(-1, 1, 100)
    return Moments(design, Scale(0.0, 1.0), LocalRecords([(Table(X), y)]))


def moments(scale: float, counted: type[Counted] | None = None) -> Iterator[Row]:
    statistics = records(40)
    prior = GaussianPrior(statistics.design)
    for mechanism in (mechanisms.Laplace(), mechanisms.Fourier()):
        noise = (counted or Counted)()
        while noise.values < VALUES * scale:
            released(mechanism, statistics, prior, BUDGET, noise)
        yield row(f"moments, {mechanism.name()}", noise.values, noise.off)


class Counted(Noise):
    """Counts the numbers that are released, and those that are off their lattice."""

    values = off = 0

    def _note(self, steps: Any) -> None:
        self.values += steps.size
        self.off += int((~whole(steps)).sum())

    def add(self, arrays: Any, law: Any) -> Any:
        """Look at sums in steps of the law's lattice."""
        noisy = super().add(arrays, law)
        self._note(np.concatenate([np.ravel(part) for part in noisy]) * law.grid)
        return noisy

    def ball(self, precision: Any, linear: Any, radius: float, n_draws: int) -> Any:
        """Look at draws in steps of theirs."""
        drawn = super().ball(precision, linear, radius, n_draws)
        self._note(drawn / (DRAW_LATTICE * radius))
        return drawn

    def minimum(self, objective: Any) -> Any:
        """Look at modes in steps of theirs."""
        found = super().minimum(objective)
        self._note(found / objective.step * objective.jitter.grid)
        return found


def coefficients(scale: float) -> Iterator[Row]:
    statistics = records(40)
    prior = GaussianPrior(statistics.design, noise_variance=0.1)
    for mechanism in (mechanisms.Sampler(500), mechanisms.MAP()):
        noise = Counted()
        while noise.values < VALUES * scale * (1.0 if mechanism.name() == "sampler" else 0.1):
            released(mechanism, statistics, prior, BUDGET, noise)
        yield row(f"coefficients, {mechanism.name()}", noise.values, noise.off)
    X, y = np.zeros((20, 1)), np.zeros(20)
    models = [
        line(mechanism=name, coef_bound=bound) for name, bound in (("sampler", None), ("map", 1))
    ]
    conditions = [model.fit(X, y).guarantee_.conditions for model in models]
    silent = [said for said in conditions if REAL_ARITHMETIC not in said]
    what = "regression draws say that they assume real arithmetic"
    yield Row(what, f"{len(silent)} silent", "0", not silent)


def run(scale: float) -> Iterator[Row]:
    for part in (integers, chosen, draws, moments, coefficients):
        yield from part(scale)
