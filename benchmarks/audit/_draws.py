"""What is drawn: by the right law, from the given bytes and from nothing else, and no more told."""

from __future__ import annotations

import hashlib
import itertools
import os
import random
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import comb, ndtr

from benchmarks.audit._cases import Case
from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes, DirichletMultinomial
from dpbayes_sklearn.audit._domains import released
from dpbayes_sklearn.audit.leaks import fitted_numbers
from dpbayes_sklearn.audit.planting import planted
from dpbayes_sklearn.audit.recording import Recording
from dpbayes_sklearn.audit.releases import audit_release
from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.mechanisms import (
    MAP,
    Fourier,
    Gaussian,
    Laplace,
    Mechanism,
    Sampler,
)
from dpbayes_sklearn.noise import (
    ball_gaussian,
    discrete_laplace,
    finite,
    truncated_laplace,
    zero_sum,
)
from dpbayes_sklearn.noise import class_rows as rows
from dpbayes_sklearn.noise import discrete_gaussian as gaussian
from dpbayes_sklearn.noise import sup_norm as box
from dpbayes_sklearn.noise.discrete_laplace import discrete_laplace_pmf, discrete_laplace_survival
from dpbayes_sklearn.noise.source import random_source
from dpbayes_sklearn.noise.truncated_laplace import TruncatedLaplace
from dpbayes_sklearn.privacy import Budget, exact

__all__ = ["attacks", "laws", "origins"]

SIGMAS = 6.0  # a right law strays so far once in 500 million
NETWORK = Network.star([2], 2)
PRIOR = DirichletPrior(NETWORK, (np.ones(2), np.ones(2)))
SIDES = tuple(
    CountTables.count(NETWORK, [(np.array([[x]], np.uint8), np.array([x]))]) for x in (1, 0)
)


def _strays(what: str, hits: int, runs: int, chance: float) -> Iterator[str]:
    spread = np.sqrt(max(runs * chance * (1 - chance), 1e-9))
    if abs(hits - runs * chance) > SIGMAS * spread + 1:
        yield f"{what}: {hits / runs:.4f} in place of {chance:.4f}"


def laws() -> Iterator[str]:
    """Compare frequencies of every sampler with its law."""
    source, runs = random_source(0), 40_000
    for scale in (Fraction(1, 2), Fraction(4)):
        z = discrete_laplace.discrete_laplace(scale, runs, source)
        for k in range(6):
            chance = float(discrete_laplace_pmf(k, scale))
            yield from _strays(f"P(Z={k})", int((z == k).sum()), runs, chance)
        for k in (2, 8, 20):
            chance = float(discrete_laplace_survival(k, scale))
            yield from _strays(f"P(|Z|>={k})", int((abs(z) >= k).sum()), runs, chance)
    for scale, reach in ((Fraction(2), 5), (Fraction(9), 3)):
        z = truncated_laplace.truncated_laplace(TruncatedLaplace(scale, reach), runs, source)
        weights = np.exp(-abs(np.arange(-reach, reach + 1)) / float(scale))
        for k, chance in enumerate(weights / weights.sum(), -reach):
            yield from _strays(f"truncated P(Z={k})", int((z == k).sum()), runs, float(chance))
    pairs = zero_sum.zero_sum_laplace(Fraction(4), 2, runs // 4, source)[:, 0]
    for k in range(4):
        chance = float(discrete_laplace_pmf(k, 2.0))
        yield from _strays(f"zero-sum P(Z={k})", int((pairs == k).sum()), runs // 4, chance)
    radii = abs(box.discrete_boxes(np.array([1, 1]), Fraction(6), 900, source)).max(axis=1)
    weights = np.array([r * 8 or 1 for r in range(400)]) * np.exp(-np.arange(400) / 6)
    for r in (3, 12, 24):
        chance = float(weights[:r].sum() / weights.sum())
        yield from _strays(f"box P(R<{r})", int((radii < r).sum()), 900, chance)
    drawn = np.array([row for _, (row,) in rows.many_rows([4], Fraction(6), 1500, source)])
    norms, sizes = abs(drawn).sum(axis=1), np.arange(400.0)
    weights = (8 / 3 * sizes * (sizes**2 + 2) + (sizes == 0)) * np.exp(-sizes / 6)
    for r in (12, 24, 40):
        chance = float(weights[:r].sum() / weights.sum())
        yield from _strays(f"row P(R<{r})", int((norms < r).sum()), 1500, chance)
    one_sign = 2 * comb(sizes + 3, 3) * np.exp(-sizes / 6)
    chance = float((one_sign.sum() - 1) / weights.sum())
    hits = int((abs(drawn.sum(axis=1)) == norms).sum())
    yield from _strays("row P(one sign)", hits, 1500, chance)
    weights = finite.integer_weights(np.log([1, 2, 5]))
    chosen = finite.finite_draw(np.tile(weights, (runs // 4, 1)), source)
    for j, weight in enumerate((1, 2, 5)):
        yield from _strays(f"choice {j}", int((chosen == j).sum()), runs // 4, weight / 8)

    yield from _gaussians(source)
    yield from _carried()


def _gaussians(source: Any) -> Iterator[str]:
    """Compare draws of discrete Gaussian noise, and of a Gaussian in a ball, with their laws."""
    drawn = gaussian.discrete_gaussian(Fraction(9), 20_000, source)
    law = np.exp(-(np.arange(-60, 61) ** 2) / 18)
    for k in (0, 3, 6):
        chance = float(law[60 + k] / law.sum())
        yield from _strays(f"Gaussian P(Z={k})", int((drawn == k).sum()), 20_000, chance)
    inside = ball_gaussian.ball_gaussian(np.eye(1), np.zeros(1), 3.0, 2_000, source)[:, 0]
    chance = float((ndtr(1) - ndtr(-1)) / (ndtr(3) - ndtr(-3)))
    yield from _strays("ball P(|w|<1)", int((abs(inside) < 1).sum()), 2_000, chance)


def _carried() -> Iterator[str]:
    """See that what is released tells the law that was drawn, by which all else judges it."""
    for mechanism in (Laplace(), Laplace(noise="joint"), Gaussian(), Fourier()):
        drawn, budget = Recording(), Budget(Fraction(1), Fraction(1, 1000))
        posterior = released(mechanism, SIDES[0], PRIOR, budget, drawn.noise())
        if posterior.released.laws != (drawn.steps[0].law,):
            yield f"{mechanism}: another law is told than was drawn"


def attacks() -> list[Case]:
    """Attack releases of one record and of its opposite; half the noise is found out."""
    mechanisms = (Laplace(), Fourier(), Sampler(n_points=2), MAP(n_points=2), Gaussian())
    return [Case(str(mechanism), partial(_attack, mechanism)) for mechanism in mechanisms]


def _attack(mechanism: Mechanism) -> Iterator[str]:
    delta = 0.02 if mechanism.needs_delta else 0.0
    budget, options = Budget(Fraction(1), exact(delta)), {"random_state": 0, "verbose": False}
    bound = audit_release(mechanism, *SIDES, PRIOR, budget, 4_000, delta=delta, **options)
    if bound.epsilon > 1:
        yield f"{mechanism}: {bound}"


class Stream:
    """Stands in for the operating system's generator: bytes that depend on a key alone."""

    def __init__(self, key: int) -> None:
        self.key, self.turn = key, itertools.count()

    def __call__(self, size: int) -> bytes:
        seed = f"{self.key},{next(self.turn)}".encode()
        return hashlib.shake_256(seed).digest(size)


def origins() -> Iterator[str]:
    """See that the noise is a function of the system's bytes and of nothing else."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (50, 2)), rng.integers(0, 2, 50)
    common: dict[str, Any] = {"bounds": (0, 1), "classes": [0, 1], "n_bins": 2}
    models: list[Any] = [
        BayesianNaiveBayes(0.2, delta=1e-3, mechanism=m, **common)
        for m in ("laplace", Laplace(noise="joint"), "fourier", "sampler", "map", "gaussian")
    ]
    models += [
        BayesianLinearRegression(0.2, bounds_X=(0, 1), bounds_y=(0, 1), mechanism=m)
        for m in ("laplace", "sampler")
    ]
    models += [
        DirichletMultinomial(0.2, categories=3, mechanism=m) for m in ("geometric", "exponential")
    ]
    for model in models:
        data = (X[:, 0],) if isinstance(model, DirichletMultinomial) else (X, y)
        same, again, other = (_numbers(model, data, key, seed) for key, seed in _KEYS)
        if not np.array_equal(same, again):
            yield f"{type(model).__name__}, {model.mechanism}: noise from elsewhere"
        if np.array_equal(same, other):
            yield f"{type(model).__name__}, {model.mechanism}: noise that repeats"
    yield from _batches(common, X, y)


_KEYS = ((1, 7), (1, 8), (2, 7))  # of the system's bytes, and of everybody else's generators


def _numbers(model: Any, data: Any, key: int, seed: int) -> npt.NDArray[np.float64]:
    np.random.seed(seed)  # noqa: NPY002  what must have no say
    random.seed(seed)
    with planted((os, "urandom", Stream(key))):
        return fitted_numbers(model.fit(*data))


def _batches(common: dict[str, Any], X: Any, y: Any) -> Iterator[str]:
    """See that batches with one seed have noise of their own."""
    model = BayesianNaiveBayes(0.2, random_state=3, **common)
    one = model.partial_fit(X, y).posterior_.released.tables
    both = model.partial_fit(X, y).posterior_.released.tables
    if all(np.array_equal(2 * a, b) for a, b in zip(one, both, strict=True)):
        yield "two batches have the same noise"
