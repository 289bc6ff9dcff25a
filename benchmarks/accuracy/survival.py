"""Coverage and width of life tables, type I error and power of the log-rank test.

Everything is simulated; for a real table see ``benchmarks.accuracy.event_times``. Times of several
families are censored at random and by the end of the study. A star marks families that the form of
the intervals and the limit of the tables were chosen on, with other seeds. Two groups are compared
in 12 intervals; hazards differ by a factor of 1.3 for the power, and the second group leaves more
often, or only at visits. Run ``python -m benchmarks.accuracy.survival [--repeats 300] [--tests
2000] [--sizes 300 1000 5000]``; half an hour.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpbayes_sklearn import Categories, Interval, LifeTable, Schema

SIZES, EPSILONS = (300, 1000, 5000), (0.3, 1.0, 3.0, math.inf)
ENDS = 20
"""Intervals of the tables; times end at 1."""

Quantile = Callable[[np.ndarray], np.ndarray]
"""Returns the times at which survival is so much; infinite for who never has the event."""

FAMILIES: dict[str, tuple[Quantile, Callable[[np.ndarray], np.ndarray]]] = {
    "exponential*": (lambda s: -np.log(s) / 0.7, lambda t: np.exp(-0.7 * t)),
    "rare*": (lambda s: -np.log(s) / 0.05, lambda t: np.exp(-0.05 * t)),
    "fast*": (lambda s: -np.log(s) / 3.0, lambda t: np.exp(-3.0 * t)),
    "early (Weibull 0.5)": (lambda s: np.log(s) ** 2, lambda t: np.exp(-np.sqrt(t))),
    "late (Weibull 3)": (lambda s: (-np.log(s)) ** (1 / 3), lambda t: np.exp(-(t**3))),
    "cured, 60 %": (
        lambda s: np.where(s > 0.6, -np.log(np.maximum(s - 0.6, 1e-12) / 0.4) / 4, np.inf),
        lambda t: 0.6 + 0.4 * np.exp(-4 * t),
    ),
}
Leave = Callable[[np.random.Generator, int], np.ndarray]


def leaving(rate: float) -> Leave:
    """Return times at which records leave at random, and in the end between 0.5 and 1.2."""
    return lambda rng, n: np.minimum(rng.exponential(1 / rate, n), rng.uniform(0.5, 1.2, n))


CENSORED: dict[str, Leave] = {
    "half leave": leaving(0.7),
    "most leave": leaving(3.0),
    "at visits*": lambda rng, n: rng.choice([0.25, 0.5, 0.75, 1.2], n, p=[0.2, 0.2, 0.2, 0.4]),
    "half in one interval": lambda rng, n: np.where(
        rng.random(n) < 0.5, rng.uniform(0.5, 0.55, n), 1.2
    ),
}
"""When records leave unobserved. Visits are at ends of intervals."""


def records(
    rng: np.random.Generator, n: int, quantile: Quantile, leave: Leave, ratio: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return times and events; ``ratio`` is that of the hazards."""
    event = quantile(rng.random(n) ** (1 / ratio))
    left = leave(rng, n)
    return np.minimum(event, left)[:, None], event <= left


def coverage(family: str, left: str, n: int, epsilon: float, repeats: int) -> tuple[float, ...]:
    """Return coverage, the lowest of an end that half of the tables reach, width, and reach."""
    quantile, survival = FAMILIES[family]
    rng = np.random.default_rng([n, *map(ord, family + left)])
    truth = survival(np.arange(1, ENDS + 1) / ENDS)
    held, seen, width = np.zeros(ENDS), np.zeros(ENDS), 0.0
    for seed in range(repeats):
        model = LifeTable(epsilon, bounds=(0, 1), n_bins=ENDS, random_state=seed)
        found = model.fit(*records(rng, n, quantile, CENSORED[left])).survival()
        k = len(found)
        held[:k] += (found.low <= truth[:k]) & (truth[:k] <= found.high)
        seen[:k] += 1
        width += float((found.high - found.low).sum())
    if not seen.any():
        return (math.nan,) * 3 + (0.0,)
    usual = seen >= repeats / 2
    lowest = float((held[usual] / seen[usual]).min()) if usual.any() else math.nan
    return held.sum() / seen.sum(), lowest, width / seen.sum(), seen.sum() / repeats / ENDS


def rejected(
    n: int, epsilon: float, tests: int, shares: tuple[float, ...], ratio: float, visits: bool
) -> float:
    """Return how often equality of groups with these shares is rejected at 5 %."""
    rng, found = np.random.default_rng([n, len(shares), int(10 * ratio)]), []
    names = [f"group {g}" for g in range(len(shares))]
    schema = Schema({"time": Interval(0, 1, bins=12), "group": Categories(names)})
    for seed in range(tests):
        sizes = rng.multinomial(n, shares)
        ratios = (1.0, *[ratio] * (len(shares) - 1))
        parts = [
            records(
                rng,
                size,
                FAMILIES["exponential*"][0],
                CENSORED["at visits*"] if visits and g else leaving(0.7 + 0.6 * g),
                own,
            )
            for g, (size, own) in enumerate(zip(sizes, ratios, strict=True))
        ]
        X = np.column_stack(
            [np.concatenate([X for X, _ in parts]), np.repeat(names, sizes).astype(object)]
        )
        model = LifeTable(epsilon, schema=schema, random_state=seed)
        p = model.fit(X, np.concatenate([event for _, event in parts])).logrank().p
        found.append(p < 0.05)
    return float(np.mean(found))


def table(
    heads: list[str], rows: list[tuple[str, Callable[[int, float], str]]], sizes: tuple[int, ...]
) -> None:
    """Print a table, one row for each case and size, one column for each epsilon."""
    columns = [*heads, *("no privacy" if math.isinf(e) else f"ε = {e:g}" for e in EPSILONS)]
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    for name, cell in rows:
        for n in sizes:
            cells = [cell(n, epsilon) for epsilon in EPSILONS]
            print(f"| {name} | {n:,} | " + " | ".join(cells) + " |", flush=True)
    print()


def covered(family: str, left: str, repeats: int) -> Callable[[int, float], str]:
    """Return what makes a cell of the table of coverages."""

    def cell(n: int, epsilon: float) -> str:
        held, lowest, width, reach = coverage(family, left, n, epsilon, repeats)
        return "–" if not reach else f"{held:.3f} ({lowest:.2f}), {width:.3f}, {reach:.0%}"

    return cell


def tested(shares: tuple[float, ...], tests: int, visits: bool) -> Callable[[int, float], str]:
    """Return what makes a cell of the table of tests."""

    def cell(n: int, epsilon: float) -> str:
        size, power = (rejected(n, epsilon, tests, shares, ratio, visits) for ratio in (1.0, 1.3))
        return f"{size:.3f} / {power:.2f}"

    return cell


def main() -> None:
    parser: Any = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=300)
    parser.add_argument("--tests", type=int, default=2000)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    asked = parser.parse_args()
    print(
        "Coverage (lowest end that half of the tables reach), mean width, part of the ends reached"
    )
    rows = [(f"{f}, {c}", covered(f, c, asked.repeats)) for f in FAMILIES for c in CENSORED]
    table(["survival, censoring", "n"], rows, asked.sizes)
    print("Log-rank test: type I error at 5 % / power at a ratio of hazards of 1.3")
    groups = {"halves": (0.5, 0.5), "a tenth": (0.9, 0.1), "three": (0.4, 0.3, 0.3)}
    tests = [(name, tested(some, asked.tests, visits=False)) for name, some in groups.items()]
    tests.append(("halves, one leaves at visits", tested((0.5, 0.5), asked.tests, visits=True)))
    table(["groups", "n"], tests, asked.sizes)


if __name__ == "__main__":
    main()
