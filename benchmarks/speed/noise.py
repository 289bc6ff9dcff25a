"""Nanoseconds a draw: exact discrete Laplace, discrete Gaussian and finite laws beside others.

Run ``python -m benchmarks.speed.noise``; it takes about half a minute. The float sampler of
numpy is no substitute (its low bits leak): it is the floor that exactness is measured against.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from dpbayes_sklearn.noise.discrete_gaussian import discrete_gaussian
from dpbayes_sklearn.noise.discrete_laplace import discrete_laplace
from dpbayes_sklearn.noise.finite import finite_draw, integer_weights

SIZES = (100, 1_000, 10_000, 100_000)
SCALES = {
    "1/3": Fraction(1, 3),
    "1": Fraction(1),
    "10": Fraction(10),
    "100/3": Fraction(100, 3),
    "10^6/7": Fraction(10**6, 7),
    "1/float(0.1)": 1 / Fraction(0.1),
    "57 bits": Fraction(2**57 - 1, 2**52 + 3),
}
VARIANCES = {
    "1": Fraction(1),
    "18": Fraction(18),
    "3600": Fraction(3600),
    "10^8/7": Fraction(10**8, 7),
    "54 bits": Fraction(2**57 - 1, 2**52 + 3),
    "2^70, of products": Fraction(2**70),
}
POINTS = (2, 16, 257)
SECONDS_A_CELL = 0.25

Sampler = Callable[[int], object]


def nanoseconds_a_draw(sampler: Sampler, size: int) -> float:
    """Best of as many runs as fit the time of a cell, and of three at least."""
    best, runs, start = float("inf"), 0, time.process_time()
    while runs < 3 or time.process_time() - start < SECONDS_A_CELL:
        before = time.process_time()
        sampler(size)
        best, runs = min(best, time.process_time() - before), runs + 1
    return best / size * 1e9


def print_row(name: str, sampler: Sampler, sizes: tuple[int, ...] = SIZES) -> None:
    """Print one line of the table."""
    cells = [f"{nanoseconds_a_draw(sampler, size):>9,.0f}" for size in sizes]
    cells += [" " * 9] * (len(SIZES) - len(sizes))
    print(f"{name:<42}" + "".join(cells), flush=True)


def opendp_sampler(scale: Fraction) -> Sampler:
    """Give the exact sampler of OpenDP on a vector of integers."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    measurement = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), float(scale))
    return lambda size: measurement([0] * size)


def laplace_sampler(scale: Fraction) -> Sampler:
    """Give the sampler of this package."""
    return lambda size: discrete_laplace(scale, size, os.urandom)


def gaussian_sampler(variance: Fraction) -> Sampler:
    """Give the discrete Gaussian sampler of this package."""
    return lambda size: discrete_gaussian(variance, size, os.urandom)


def finite_sampler(points: int) -> Sampler:
    """Give a sampler of one index from each of many rows, weights included."""
    log_row = -0.5 * np.linspace(-3, 3, points) ** 2
    return lambda size: finite_draw(
        integer_weights(np.broadcast_to(log_row, (size, points))), os.urandom
    )


def main() -> None:
    """Print the table."""
    print(f"{'ns a draw':<42}" + "".join(f"{size:>9,}" for size in SIZES))
    generator = np.random.default_rng(0)
    print_row("numpy Generator.laplace (floor, not exact)", lambda n: generator.laplace(0, 10, n))
    for name, scale in SCALES.items():
        print_row(f"discrete_laplace, scale {name}", laplace_sampler(scale))
    for name, variance in VARIANCES.items():
        print_row(f"discrete_gaussian, variance {name}", gaussian_sampler(variance))
    try:
        print_row("opendp make_laplace, scale 10", opendp_sampler(SCALES["10"]), SIZES[:3])
    except ImportError:
        print("opendp is not installed: its row is left out")
    for points in POINTS:
        print_row(
            f"integer_weights + finite_draw, {points} points",
            finite_sampler(points),
            SIZES if points < 100 else SIZES[:3],
        )


if __name__ == "__main__":
    main()
