"""Sampler and MAP by enumeration: the worst loss over all neighbouring data is within epsilon.

The laws come from the production release: its integer weights are read on their way into the
exact draw. Every row of counts that n records can make is released once; then all neighbouring
pairs of data sets are gone through, and what a pair loses is the sum over the splits of the
largest log ratio, because splits are drawn independently.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dpbayes_sklearn.mechanisms import MAP, Mechanism, Sampler, _split_release, sampler
from dpbayes_sklearn.mechanisms import map as map_module
from dpbayes_sklearn.noise.source import random_source
from dpbayes_sklearn.noise.truncated_beta import log_odds_of
from dpbayes_sklearn.posteriors.dirichlet import DirichletPrior
from dpbayes_sklearn.privacy.budget import Budget, exact
from dpbayes_sklearn.statistics.counts import CountTables
from dpbayes_sklearn.statistics.network import Network
from dpbayes_sklearn.statistics.splits import depths

Rows = npt.NDArray[np.int64]
TREE = Network((2, 3, 2), ((2,), (0,), ()))  # class -> x0 -> x1
COLLIDER = Network((2, 2, 2), ((), (), (0, 1)))  # both features are parents of the class


@lru_cache
def rows_of_counts(size: int, n: int) -> Rows:
    """All counts of at most n records over some values."""
    return np.array([r for r in product(range(n + 1), repeat=size) if sum(r) <= n])


@lru_cache
def neighbouring_pairs(network: Network, n: int, unit: str) -> list[tuple[Rows, Rows]]:
    """For every node and parents' values, the rows (indices) before and after, of all pairs."""
    kinds = list(product(*(range(k) for k in network.sizes)))
    changes = []
    for x, y in product(kinds, kinds):
        changed = [u for u in range(len(x)) if x[u] != y[u]]
        if changed and (unit == "record" or changed in [[u] for u in range(network.target)]):
            changes.append((x, y))
    tables: dict[tuple[int, ...], tuple[int, ...]] = {}

    def rows(data: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
        key = tuple(data.count(kind) for kind in kinds)
        if key not in tables:
            tables[key] = tuple(_row_indices(network, n, kinds, key))
        return tables[key]

    before, after = [], []
    for rest in combinations_with_replacement(kinds, n - 1):
        for x, y in changes:
            before.append(rows((*rest, x)))
            after.append(rows((*rest, y)))
    return list(zip(np.array(before).T, np.array(after).T, strict=True))


def _row_indices(network: Network, n: int, kinds: Any, times: tuple[int, ...]) -> list[int]:
    indices = []
    for family, shape in zip(network.families, network.shapes, strict=True):
        table = np.zeros(shape, int)
        for kind, count in zip(kinds, times, strict=True):
            table[tuple(kind[u] for u in family)] += count
        rows = rows_of_counts(shape[-1], n)
        place = {tuple(r): i for i, r in enumerate(rows.tolist())}
        indices += [place[tuple(r)] for r in table.reshape(-1, shape[-1]).tolist()]
    return indices


def released_weights(
    mechanism: Mechanism, prior: DirichletPrior, n: int, budget: Budget
) -> list[npt.NDArray[np.float64]]:
    """The integer weights that the release draws from, for every node and row of counts."""
    seen: list[npt.NDArray[np.float64]] = []
    real = _split_release.finite_draw

    def spy(weights: Any, source: Any) -> Any:
        seen.append(weights)
        return real(weights, source)

    rows = tuple(rows_of_counts(k, n) for k in prior.network.sizes)
    statistics = CountTables(prior.network, rows, n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_split_release, "finite_draw", spy)
        mechanism.release(statistics, prior, budget, random_source(0))
    assert len(seen) == len(rows)
    assert all(w.dtype == np.uint64 for w in seen)
    return seen


def row_losses(weights: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """max over points of log(q/q'), summed over splits, for all pairs of rows; rounded outward."""
    log_law = np.log(weights.astype(np.float64)) - np.log(
        weights.sum(axis=-1, keepdims=True, dtype=np.float64)
    )
    total = np.zeros((len(weights), len(weights)))
    for s in range(weights.shape[1]):
        law = log_law[:, s]
        for i, row in enumerate(law):
            total[i] += (row - law).max(axis=-1)
    return total + 1e-12


@dataclass(frozen=True)
class Case:
    """One release to be enumerated."""

    mechanism: Mechanism
    network: Network
    n: int
    epsilon: float
    alpha: tuple[float, ...] | float = 1.0
    unit: str = "record"

    @property
    def prior(self) -> DirichletPrior:
        alphas = [np.resize(np.array(self.alpha, float), k) for k in self.network.sizes]
        return DirichletPrior(self.network, tuple(alphas))

    @property
    def budget(self) -> Budget:
        return Budget(exact(self.epsilon), unit=self.unit)

    def worst(self) -> float:
        """The worst loss of all neighbouring pairs."""
        drawn = released_weights(self.mechanism, self.prior, self.n, self.budget)
        losses = [row_losses(w[0]) for w in drawn]
        draws = len(drawn[0])
        nodes = [i for i, s in enumerate(self.network.shapes) for _ in range(math.prod(s[:-1]))]
        pairs = neighbouring_pairs(self.network, self.n, self.unit)
        total = sum(losses[i][b, a] for i, (b, a) in zip(nodes, pairs, strict=True))
        return draws * float(np.max(total))

    @property
    def least(self) -> float:
        """The part of epsilon that the worst pair was measured to reach, at least."""
        if getattr(self.mechanism, "score", "") == "posterior":
            return 0.2  # exponential mechanism: twice the sensitivity is never all used
        if self.alpha == 50.0:
            return 0.35  # far points sink to the floor of the weights
        if self.unit == "feature" and self.network.is_star and self.epsilon < 8:
            return 0.99
        return 0.65

    def __str__(self) -> str:
        shape = "x".join(map(str, self.network.sizes))
        return f"{self.mechanism}-{shape}-{self.epsilon}-{self.alpha}-{self.unit}"


def star(*sizes: int) -> Network:
    return Network.star(sizes, 2)


NETWORKS = [(star(2), 8), (star(2, 2), 5), (star(3), 5), (TREE, 3), (COLLIDER, 4)]
BUDGETS_AND_PRIORS = [(0.1, 1.0), (8.0, 0.01), (1.0, 50.0), (2.0, (0.5, 3.0)), (1.0, 1.0)]
CASES = [
    Case(mechanism, network, n, epsilon, alpha, unit)
    for mechanism in (Sampler(), MAP(), MAP(score="posterior"))
    for network, n in NETWORKS
    for epsilon, alpha in BUDGETS_AND_PRIORS[: 5 if network.is_star else 3]
    for unit in ("record", "feature")
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_worst_loss_is_within_epsilon_and_not_far_below(case: Case) -> None:
    assert case.least * case.epsilon < case.worst() <= case.epsilon


OPTIONS = [
    Sampler(3),
    Sampler(omega=0.02),
    Sampler(omega=0.4, n_points=5),
    Sampler(2, n_points=2),
    MAP(omega=0.01),
    MAP(omega=0.3, n_points=5),
    MAP(score="posterior", omega=0.01, n_points=9),
]


@pytest.mark.parametrize("mechanism", OPTIONS, ids=str)
def test_options_keep_the_promise(mechanism: Mechanism) -> None:
    shares = []
    for epsilon, alpha in ((0.01, 1.0), (1.0, 1.0), (8.0, 0.01), (1.0, 50.0)):
        for unit in ("record", "feature"):
            case = Case(mechanism, star(2), 8, epsilon, alpha, unit)
            shares.append(case.worst() / epsilon)
    assert max(shares) <= 1
    assert max(shares) > (0.3 if getattr(mechanism, "score", "") == "posterior" else 0.99)


def test_hundreds_of_thousands_of_pairs_were_gone_through() -> None:
    pairs = {(c.network, c.n, c.unit) for c in CASES}
    per_round = {key: len(neighbouring_pairs(*key)[0][0]) for key in pairs}
    assert sum(per_round[c.network, c.n, c.unit] for c in CASES) > 500_000


# ------------------------------------------------------------------ planted faults

PLAIN = Case(Sampler(), star(2), 8, 1.0)
SHARP = replace(PLAIN, mechanism=MAP())
MASS = replace(PLAIN, mechanism=MAP(score="posterior"), unit="feature")


def with_tempering(factor: float) -> Sampler:
    class Wrong(Sampler):
        def plan(self, *args: Any) -> sampler.SamplerPlan:
            plan = super().plan(*args)
            return plan._replace(tau=factor * plan.tau)

    return Wrong()


@pytest.mark.parametrize("unit", ["record", "feature"])
def test_a_wrong_tempering_is_caught(unit: str) -> None:
    case = replace(PLAIN, unit=unit)
    assert replace(case, mechanism=with_tempering(1.0)).worst() == case.worst()
    assert replace(case, mechanism=with_tempering(2.0)).worst() > 1.5
    assert replace(case, mechanism=with_tempering(0.5)).worst() < case.least
    assert replace(case, unit="feature", mechanism=with_tempering(1.05)).worst() > 1


def test_one_draw_too_many_is_caught() -> None:
    class Wrong(Sampler):
        def plan(self, *args: Any) -> sampler.SamplerPlan:
            return Sampler(n_samples=1).plan(*args)

    assert replace(PLAIN, mechanism=Wrong(n_samples=2)).worst() > 1


@pytest.mark.parametrize("module", [sampler, map_module])
def test_half_of_the_loss_is_caught(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = module.release_loss
    monkeypatch.setattr(module, "release_loss", lambda *args: real(*args) / 2)
    assert (PLAIN if module is sampler else SHARP).worst() > 1.5


def test_a_forgotten_feature_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = _split_release.network_loss

    def without_the_first(network: Network, losses: Any, unit: str) -> float:
        return real(network, [(0.0, 0.0), *losses[1:]], unit)

    monkeypatch.setattr(_split_release, "network_loss", without_the_first)
    assert Case(Sampler(), star(2, 2), 5, 1.0).worst() > 1


def test_a_record_counted_as_one_feature_is_caught() -> None:
    class Wrong(Sampler):
        def plan(self, prior: Any, n: int, budget: Budget) -> sampler.SamplerPlan:
            return super().plan(prior, n, budget._replace(unit="feature"))

    assert replace(PLAIN, mechanism=Wrong()).worst() > 1


def test_a_sensitivity_of_masses_too_small_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right, real = MASS.worst(), map_module._mass_sensitivity
    monkeypatch.setattr(map_module, "_mass_sensitivity", lambda *args: real(*args) / 5)
    assert MASS.worst() > 1 > 3 * right / 3.5


# -------------------------------------------------------------- in exact arithmetic


def joint_law(weights: list[Any], rows: tuple[int, ...]) -> list[Fraction]:
    """Probability of every outcome of all splits, as fractions of integers."""
    splits = [w[0, r, 0] for w, r in zip(weights, rows, strict=True)]
    laws = [[Fraction(int(x), int(split.sum())) for x in split] for split in splits]
    return [math.prod(ps) for ps in product(*laws)]


@pytest.mark.parametrize("mechanism", [Sampler(n_points=5), MAP(n_points=5)], ids=str)
@pytest.mark.parametrize("unit", ["record", "feature"])
def test_the_joint_law_in_fractions(mechanism: Mechanism, unit: str) -> None:
    case = Case(mechanism, star(2), 3, 1.0, 1.0, unit)
    weights = released_weights(mechanism, case.prior, case.n, case.budget)
    by_row = [
        weights[0],
        weights[0],
        weights[1],
    ]  # two rows of the feature's table, one of the class
    pairs = neighbouring_pairs(case.network, case.n, unit)
    before, after = np.array([p[0] for p in pairs]).T, np.array([p[1] for p in pairs]).T
    laws = {
        tuple(r): joint_law(by_row, tuple(r)) for r in {*map(tuple, before), *map(tuple, after)}
    }
    assert all(sum(law) == 1 for law in laws.values())
    worst = max(
        max(p / q for p, q in zip(laws[tuple(b)], laws[tuple(a)], strict=True))
        for b, a in zip(before, after, strict=True)
    )
    assert worst <= Fraction(math.exp(1.0))
    assert math.log(worst) == pytest.approx(case.worst(), abs=1e-9)


# --------------------------------------------------------------- against closed forms


@pytest.mark.parametrize("omega", [0.01, 0.1, 0.4])
@pytest.mark.parametrize("tau", [1e-4, 0.02, 0.3, 1.0])
def test_the_exact_loss_is_never_above_the_closed_form(omega: float, tau: float) -> None:
    grid = _split_release.SplitGrid(omega, 257)
    for network in (star(2), star(2, 3, 5), Network.star([4, 7], 3), TREE, COLLIDER):
        tree_depths = [int(depths(k).max()) for k in network.sizes]
        for alpha in (0.01, 1.0, 50.0):
            alphas = tuple(np.full(k, alpha) for k in network.sizes)
            priors = _split_release.split_priors(alphas)
            for n in (1, 10, 1000):
                loss = _split_release.release_loss(network, grid, priors, tau, n, "record")
                bound = 2 * tau * sum(tree_depths) * log_odds_of(omega)
                assert loss <= bound + 1e-5
                if network.is_star:
                    loss = _split_release.release_loss(network, grid, priors, tau, n, "feature")
                    assert loss <= 2 * tau * max(tree_depths[:-1]) * log_odds_of(omega) + 1e-5
