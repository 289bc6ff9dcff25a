"""Coverage and width of private intervals of means and rates.

Parameters are drawn from the prior, records from the model; bounds hold nearly all records, except
for "mean, clipped", where one true mean in twenty is near a bound or beyond. Run
``python -m benchmarks.accuracy.means [--repeats 200]``, a quarter of it for draws; some minutes.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from dpbayes_sklearn import GammaExponential, NormalMean

SIZES, EPSILONS = (200, 2_000, 20_000), (0.1, 1.0)


def case(data: str, rng: np.random.Generator, n: int):
    """Return the true parameter, records and an estimator without a budget."""
    if data.startswith("mean"):
        spread = 8 if data == "mean" else 15
        truth = rng.normal(50, spread)
        model = NormalMean(bounds=(0, 100), sigma=10, prior=(50, spread))
        return truth, rng.normal(truth, 10, (n, 1)), model
    truth = rng.gamma(20.0, 1 / 20.0)
    bounds = (0, 15) if data == "exponential" else (-12, 12)
    model = GammaExponential(data=data, bounds=bounds, prior=(20.0, 20.0))
    draws = {
        "exponential": lambda: rng.exponential(1 / truth, (n, 1)),
        "laplace": lambda: rng.laplace(0, 1 / truth, (n, 1)),
        "normal": lambda: rng.normal(0, truth**-0.5, (n, 1)),
    }
    return truth, draws[data](), model


def cell(data: str, mechanism: str, n: int, epsilon: float, repeats: int) -> str:
    """Return coverage of 95 % intervals, and their median width over that of exact ones."""
    rng, held, widths = np.random.default_rng(0), [], []
    for seed in range(repeats):
        truth, X, model = case(data, rng, n)
        model.set_params(mechanism=mechanism, epsilon=epsilon, random_state=seed)
        low, high = model.fit(X).posterior_.credible_interval()[0]
        exact = model.set_params(epsilon=math.inf, random_state=None).fit(X).posterior_
        held.append(low < truth < high)
        widths.append((high - low) / np.diff(exact.credible_interval()[0])[0])
    return f"{np.mean(held):.2f} ({np.median(widths):.2g})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=200)
    repeats = parser.parse_args().repeats
    columns = [(n, epsilon) for n in SIZES for epsilon in EPSILONS]
    print("| | " + " | ".join(f"{n:,}, ε = {e:g}" for n, e in columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for data in ("mean", "mean, clipped", "exponential", "laplace", "normal"):
        for mechanism in ("laplace", "sampler"):
            runs = repeats if mechanism == "laplace" else repeats // 4
            cells = [cell(data, mechanism, n, e, runs) for n, e in columns]
            print(f"| {data}, `{mechanism}` | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
