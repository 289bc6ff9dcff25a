"""How often the 95 % intervals of a released posterior hold the true probability.

Simulated records: probabilities are drawn from the prior, uniform over all of them, or fixed; the
share of repeated releases whose interval holds them is printed, beside the mean Hellinger distance
to the exact posterior. Run ``python -m benchmarks.posterior_release.coverage``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dpbayes_sklearn.categories.counts import SimplexCounts
from dpbayes_sklearn.categories.plans import plan
from dpbayes_sklearn.categories.posterior import Beta, Dirichlet, SimplexPrior
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.papers.certify import configured
from dpbayes_sklearn.privacy import Budget, PrivacyUnit, exact
from dpbayes_sklearn.release import Facts

SIZES = (20, 50, 100, 1000, 10_000)
EPSILONS = (0.1, 0.3, 1.0, 3.0)
READINGS = ("noise_aware", "median", "plug_in")
MECHANISMS = ("laplace", "laplace_improved", "gaussian", "exponential", "hellinger", "local")
FIXED = (0.5, 0.1, 0.01)
SKEWED = (0.5, 0.3, 0.1, 0.05, 0.04, 0.01)
SPARSE = ((20, 0.1, 500, 0.2), (5, 0.2, 100, 0.5), (10, 0.5, 1000, 0.1), (2, 0.5, 200, 0.1))
RECORD = PrivacyUnit()
SECRET = PrivacyUnit("record", neighbours="add_remove")
PERSON = PrivacyUnit("person", max_records=5, by_construction=True)


class Setting(NamedTuple):
    """What is released, and how it is read."""

    n: int
    epsilon: float
    mechanism: str = "geometric"
    inference: str = "noise_aware"
    k: int = 2
    fixed: tuple[float, ...] | None = None  # probabilities; drawn from the prior if None
    unit: PrivacyUnit = RECORD
    alpha: float = 1.0  # pseudo-count of every category: of the belief, and of what is drawn


def measured(setting: Setting, runs: int) -> tuple[np.ndarray, float]:
    """Return the coverage of every category's interval, and the mean Hellinger distance."""
    rng, noise = np.random.default_rng(0), Noise.of(0)
    held, distances = np.zeros(setting.k), []
    for _ in range(runs):
        p = np.array(setting.fixed or rng.dirichlet(np.full(setting.k, setting.alpha)))
        counts = rng.multinomial(setting.n, p)
        posterior = _released(setting, counts, noise)
        intervals = Dirichlet.credible_interval(posterior)
        held += (intervals[:, 0] <= p) & (p <= intervals[:, 1])
        distances.append(posterior.hellinger(Dirichlet(setting.alpha + counts)))
    return held / runs, float(np.mean(distances))


def _released(setting: Setting, counts, noise) -> Dirichlet:
    mechanism = configured(setting.mechanism, calibrate=True, delta=0.0)
    alphas = np.full(setting.k, setting.alpha)
    belief = Beta(*alphas) if setting.k == 2 else Dirichlet(alphas)
    delta = exact(1e-6 if mechanism.spends_delta else 0, "delta")
    budget = Budget(exact(setting.epsilon), delta, unit=setting.unit)
    prior = SimplexPrior(belief, setting.inference)
    planned = plan(mechanism, prior, Facts(int(counts.sum())), budget)
    return planned.release(SimplexCounts(counts), noise)


def tables() -> Iterator[tuple[str, list[Setting]]]:
    """Titles, and the settings that differ in n and epsilon."""

    def grid(sizes=SIZES, **options) -> list[Setting]:
        return [Setting(n, epsilon, **options) for n in sizes for epsilon in EPSILONS]

    for inference in READINGS:
        yield f"Beta, geometric, {inference}, p from the prior", grid(inference=inference)
    for p in FIXED:
        yield f"Beta, geometric, noise_aware, p = {p}", grid(fixed=(p, 1 - p))
    for mechanism in MECHANISMS:
        few = SIZES[:3] if mechanism in ("exponential", "hellinger", "local") else SIZES
        yield f"Beta, {mechanism}, noise_aware, p from the prior", grid(few, mechanism=mechanism)
    yield "Beta, geometric, noise_aware, secret n, p from the prior", grid(unit=SECRET)
    yield "Beta, geometric, noise_aware, 5 records a person, p from the prior", grid(unit=PERSON)
    for inference in READINGS:
        title = f"Dirichlet of 6, geometric, {inference}"
        yield f"{title}, p from the prior", grid(inference=inference, k=6)
        yield f"{title}, p = {SKEWED}", grid(inference=inference, k=6, fixed=SKEWED)
    for k, alpha, n, epsilon in SPARSE:
        title = f"Sparse prior, {k} categories, {alpha} each, geometric, noise_aware"
        yield title, [Setting(n, epsilon, k=k, alpha=alpha)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--only", default="", help="part of the titles of the tables to print")
    arguments = parser.parse_args()
    for title, settings in tables():
        if arguments.only in title:
            print(f"\n{title}\n| n | epsilon | least | mean | Hellinger |\n|---|---|---|---|---|")
        for setting in settings if arguments.only in title else []:
            held, distance = measured(setting, arguments.runs)
            print(
                f"| {setting.n} | {setting.epsilon:g} | {held.min():.3f} | {held.mean():.3f} "
                f"| {distance:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
