"""Every released number lies on a public lattice: low bits of floating-point noise betray data.

Counts and character sums are integers, moments whole multiples of 1/grid², draws of tables points
of the public grid, posteriors of one variable members of the public list. The draws of the
regression's sampler and MAP are rounded to a public lattice too, but their law is that of real
numbers, and the guarantee has to say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.audit._cases import Row
from benchmarks.audit._models import line
from benchmarks.audit.tools.releases import released_numbers
from benchmarks.audit.tools.universes import released
from dpbayes_sklearn import mechanisms
from dpbayes_sklearn.categories.counts import SimplexCounts
from dpbayes_sklearn.categories.posterior import Dirichlet, SimplexPrior
from dpbayes_sklearn.convex.design import Design, Scale
from dpbayes_sklearn.convex.draws import REAL_ARITHMETIC
from dpbayes_sklearn.convex.posterior import GaussianPrior
from dpbayes_sklearn.convex.records import LinearRecords
from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.fourier import sum_count
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.splits import SplitGrid, leaf_probabilities
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.data.records import LocalRecords, Table
from dpbayes_sklearn.mechanisms import Mechanism
from dpbayes_sklearn.noise import ClassRows, Noise, SupNorm
from dpbayes_sklearn.noise.discrete_gaussian import DRAW_LATTICE
from dpbayes_sklearn.papers.candidates import Candidates
from dpbayes_sklearn.privacy import Budget
from dpbayes_sklearn.schema import Interval

VALUES = 1_000_000
BUDGET = Budget(Fraction(1, 3))
NETWORK = Network.star([2, 3, 3], 2)
PRIOR = DirichletPrior(NETWORK, tuple(np.full(k, 0.7) for k in NETWORK.sizes))
POINTS = 33
SUMS = "character sums, fourier"


def tables() -> CountTables:
    codes = np.random.default_rng(0).integers(0, 2, (50, 4), np.uint8)
    return CountTables.count(NETWORK, [(codes[:, :-1], codes[:, -1])])


def whole(numbers: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    return np.asarray(np.isfinite(numbers) & (numbers == np.rint(numbers)))


def row(what: str, seen: int, off: int) -> Row:
    return Row(f"{what}: {seen:,} released values", f"{off} off the lattice", "0", off == 0)


class OnLattice(NamedTuple):
    """What is released, and which of the numbers that come out lie on the lattice."""

    what: str
    mechanism: Mechanism
    statistics: Any
    prior: Any
    on_lattice: Callable[[npt.NDArray[Any]], Any]

    def row(self, wanted: float) -> Row:
        """Count released numbers until there are enough."""
        seen = off = 0
        while seen < wanted:
            given = self.mechanism, self.statistics, self.prior
            numbers = released_numbers(*given, BUDGET, 2_000)
            seen, off = seen + numbers.size, off + int((~self.on_lattice(numbers)).sum())
        return row(self.what, seen, off)


def integers() -> Iterator[OnLattice]:
    """Yield noisy counts and sums: integers, or in whole steps of the grid of their noise."""
    *values, n_classes = NETWORK.sizes
    rows = ClassRows.of(tuple(values), n_classes, 2, Fraction(BUDGET.epsilon))
    joint = SupNorm.of((1,) * sum_count(NETWORK), 2, Fraction(BUDGET.epsilon))
    steps = "joint noise, in steps of the grid"
    for kind, what, law in (
        (mechanisms.Laplace, "counts, laplace", rows),
        (mechanisms.Fourier, SUMS, joint),
    ):
        yield OnLattice(what, kind(noise="independent"), tables(), PRIOR, whole)
        on_grid = partial(_on_grid, law.grid)
        yield OnLattice(f"{what}, {steps}", kind(noise="joint"), tables(), PRIOR, on_grid)
    simplex, belief = SimplexCounts(np.array([7, 3, 20])), SimplexPrior(Dirichlet([0.5, 1.0, 2.0]))
    for mechanism in (mechanisms.Laplace(), mechanisms.LaplaceImproved(), mechanisms.Geometric()):
        yield OnLattice(f"one variable, {mechanism.name()}", mechanism, simplex, belief, whole)


def _on_grid(grid: int, numbers: npt.NDArray[Any]) -> Any:
    return whole(numbers * grid)


def chosen() -> Iterator[OnLattice]:
    """Yield mechanisms that choose among all posteriors of n records: they choose one of them."""
    counts, belief = SimplexCounts(np.array([2, 5, 5])), SimplexPrior(Dirichlet([1.0, 1.0, 1.0]))
    public = {tuple(c) for c in Candidates(12, (1.0, 1.0, 1.0)).counts.tolist()}

    def among(numbers: npt.NDArray[Any]) -> Any:
        return np.array([tuple(one) in public for one in numbers.tolist()])

    for mechanism in (mechanisms.Exponential(), mechanisms.Hellinger(), mechanisms.Local()):
        yield OnLattice(f"one variable, {mechanism.name()}", mechanism, counts, belief, among)


def draws() -> Iterator[OnLattice]:
    """Yield tables drawn by sampler and MAP: they are made of grid points alone."""
    options: dict[str, Any] = {"n_points": POINTS, "omega": 0.2}
    left = SplitGrid(0.2, POINTS).left
    leaves = (leaf_probabilities(np.array([*product(left, repeat=s)])).ravel() for s in (1, 2))
    public = np.unique(np.concatenate([*leaves]))
    for mechanism in (
        mechanisms.Sampler(**options),
        mechanisms.MAP(**options),
        mechanisms.MAP(score="posterior", **options),
    ):
        what = f"tables, {mechanism.name()} ({getattr(mechanism, 'score', 'draws')})"
        yield OnLattice(what, mechanism, tables(), PRIOR, partial(np.isin, test_elements=public))


def records(columns: int) -> LinearRecords:
    rng = np.random.default_rng(0)
    design = Design((Interval(-1, 1),) * columns)
    X, y = rng.uniform(-1, 1, (100, columns)), rng.uniform(-1, 1, 100)
    return LinearRecords(design, Scale(0.0, 1.0), LocalRecords([(Table(X), y)]))


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
    for case in (*integers(), *chosen(), *draws()):
        yield case.row(VALUES * scale)
    yield from moments(scale)
    yield from coefficients(scale)
