"""Coverage of the 90 % intervals of cell probabilities, by number of values and features.

Two classes; every row of every feature is drawn from Dirichlet(1). Fresh data and fresh noise in
every repeat, epsilon = 1, the default noise. An interval lies between the 5 % and the 95 % quantile
of 400 posterior draws. Run ``python -m benchmarks.accuracy.cell_intervals [--repeats 20]``.
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np
from joblib import Parallel, delayed

from dpbayes_sklearn import BayesianNaiveBayes, Categories, Schema

RECORDS, VALUES, FEATURES = (1000, 5000), (2, 3, 4, 8), (16, 30, 64)
INFERENCES = ("adaptive", "noise_aware")


def coverage(inference: str, n: int, n_values: int, d: int, seed: int) -> float:
    """Return the share of cells inside their interval in one release."""
    rng = np.random.default_rng([seed, n, n_values, d])
    rows = rng.dirichlet(np.ones(n_values), (d, 2))
    y = (rng.random(n) < rng.uniform(0.3, 0.7)).astype(int)
    cumulative = rows.cumsum(axis=-1)[np.arange(d)[None], y[:, None]]
    X = (rng.random((n, d, 1)) > cumulative[..., :-1]).sum(axis=-1)
    schema = Schema({f"x{j}": Categories(range(n_values)) for j in range(d)}, Categories([0, 1]))
    model = BayesianNaiveBayes(
        1.0, schema=schema, temperature=1, inference=inference, random_state=seed
    ).fit(X, y)
    draws = np.stack(model.posterior_.sample(rng, 400)[:d])
    low, high = np.quantile(draws, [0.05, 0.95], axis=1)
    return float(((low <= rows) & (rows <= high)).mean())


def main() -> None:
    """Print one table for each inference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20, help="releases of each kind")
    options = parser.parse_args()
    for inference, n in product(INFERENCES, RECORDS):
        print(f"\n{inference}, n = {n}" + "".join(f"{f'd = {d}':>10}" for d in FEATURES))
        for n_values in VALUES:
            cells = []
            for d in FEATURES:
                found = Parallel(n_jobs=-1)(
                    delayed(coverage)(inference, n, n_values, d, seed)
                    for seed in range(options.repeats)
                )
                cells.append(f"{np.mean(found):>10.2f}")
            print(f"{n_values} values".rjust(len(f"{inference}, n = {n}")), *cells, sep="")


if __name__ == "__main__":
    main()
