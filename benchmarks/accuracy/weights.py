"""Shares of a population from a survey with unequal chances: with weights and without.

Of the population 30 % live in the country, 60 % of the sample do. ``python -m
benchmarks.accuracy.weights`` prints the table of ``docs/user_guide/weights.md``.
"""

from __future__ import annotations

import argparse

import numpy as np

from dpbayes_sklearn import BetaBinomial

COUNTRY, SAMPLED, YES = 0.3, 0.6, np.array([0.4, 0.7])  # of town and country
SHARE = float((1 - COUNTRY) * YES[0] + COUNTRY * YES[1])
WEIGHTS = np.array([(1 - COUNTRY) / (1 - SAMPLED), COUNTRY / SAMPLED])  # of mean 1
DESIGN_EFFECT = float(np.average(WEIGHTS**2, weights=[1 - SAMPLED, SAMPLED]))
RULES = {"none": None, "mean 1": 1.0, "mean 1 / design effect": 1 / DESIGN_EFFECT, "mean 0.5": 0.5}


def survey(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return answers, and where people live."""
    place = (rng.random(n) < SAMPLED).astype(int)
    return (rng.random(n) < YES[place]).astype(int), place


def measured(n: int, epsilon: float, scale: float | None, repeats: int) -> tuple[float, ...]:
    """Return bias, root mean squared error and coverage of 95 % intervals."""
    errors, covered = [], []
    for seed in range(repeats):
        answers, place = survey(n, np.random.default_rng(seed))
        if scale is None:
            model = BetaBinomial(epsilon).fit(answers)
        else:
            weighted = BetaBinomial(epsilon, max_weight=2)
            model = weighted.fit(answers, sample_weight=scale * WEIGHTS[place])
        errors.append(float(model.posterior_.mean()) - SHARE)
        low, high = model.posterior_.credible_interval(0.95)
        covered.append(low <= SHARE <= high)
    return float(np.mean(errors)), float(np.sqrt(np.mean(np.square(errors)))), np.mean(covered)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=1000)
    repeats = parser.parse_args().repeats
    print(f"share {SHARE:.2f}, design effect {DESIGN_EFFECT:.3f}, {repeats} surveys a row")
    print("| n | ε | weights | bias | RMSE | coverage |\n|---|---|---|---|---|---|")
    for n in (500, 5000):
        for epsilon in (0.1, 1.0):
            for name, scale in RULES.items():
                bias, error, coverage = measured(n, epsilon, scale, repeats)
                print(
                    f"| {n:,} | {epsilon} | {name} | {bias:+.3f} | {error:.3f} | {coverage:.3f} |"
                )


if __name__ == "__main__":
    main()
