"""Errors of private quantiles, beside the recursive exponential mechanism of Kaplan et al. (2022).

The peer is ApproximateQuantiles as published: the exponential mechanism on intervals between
records, uniform within public bounds, budget shared by the levels of the recursion. It is written
here in floats, for the comparison only. Both protect one replaced record. The library is shown with
the same bounds, and without any. The error of a quantile is the number of records between it and
the exact one, the mean over seven octiles; all three see the same records. The last column is
the second divided by the first, with its standard error.

Run ``python -m benchmarks.accuracy.quantiles [--repeats 20] [--sizes 1000 100000]``; it prints
Markdown.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dpbayes_sklearn.preprocessing import PrivateKBinsDiscretizer

Numbers = npt.NDArray[np.float64]
BINS = 8
COLUMNS: dict[str, tuple[Callable[[np.random.Generator, int], Numbers], tuple[float, float]]] = {
    "normal, bounds ±10": (lambda rng, n: rng.normal(size=n), (-10.0, 10.0)),
    "normal, bounds ±1,000": (lambda rng, n: rng.normal(size=n), (-1000.0, 1000.0)),
    "log-normal": (lambda rng, n: rng.lognormal(8, 1.5, n), (0.0, 1e6)),
    "normal (50, 10)": (lambda rng, n: rng.normal(50, 10, n), (0.0, 200.0)),
    "integers 0 to 20": (lambda rng, n: rng.binomial(20, 0.4, n) + 0.0, (0.0, 100.0)),
    "half of the records 40": (
        lambda rng, n: np.where(rng.random(n) < 0.5, 40.0, rng.integers(1, 100, n)),
        (0.0, 168.0),
    ),
}


def kaplan(
    values: Numbers, bounds: tuple[float, float], epsilon: float, rng: np.random.Generator
) -> Numbers:
    """Return the octiles by recursion, each level with its share of epsilon."""
    levels = math.ceil(math.log2(BINS))
    edges = np.zeros(BINS - 1)

    def split(part: Numbers, first: int, last: int, low: float, high: float) -> None:
        if first > last:
            return
        middle = (first + last) // 2
        q = (middle - first + 1) / (last - first + 2)
        ends = np.concatenate([[low], np.clip(part, low, high), [high]])
        distance = np.abs(np.arange(len(part) + 1) - q * len(part))
        with np.errstate(divide="ignore"):
            log = np.log(np.diff(ends)) - 0.5 * epsilon / levels * distance
        if not np.isfinite(log).any():
            edges[middle] = low
        else:
            gumbel = log + rng.gumbel(size=len(log))
            i = int(np.argmax(gumbel))
            edges[middle] = rng.uniform(ends[i], ends[i + 1])
        cut = int(np.searchsorted(part, edges[middle]))
        split(part[:cut], first, middle - 1, low, edges[middle])
        split(part[cut:], middle + 1, last, edges[middle], high)

    split(np.sort(values), 0, BINS - 2, *bounds)
    return edges


def error(values: Numbers, edges: Numbers) -> float:
    """Return the mean number of records between the edges and the exact octiles."""
    ordered, wanted = np.sort(values), np.arange(1, BINS) / BINS * len(values)
    low, high = (np.searchsorted(ordered, edges, side=side) for side in ("left", "right"))
    return float(np.maximum(0, np.maximum(low - wanted, wanted - high)).mean())


def ratio(errors: Numbers) -> str:
    """Return the ratio of the means of the first two columns, and its standard error."""
    theirs, ours = errors[:, 0], errors[:, 1]
    quotient = ours.mean() / theirs.mean()
    spread = np.std(ours - quotient * theirs) / theirs.mean() / math.sqrt(len(errors))
    return f"{quotient:.2f} ± {spread:.2f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000, 100_000])
    options = parser.parse_args()
    heads = ["column", "n", "ε", "Kaplan et al.", "same bounds", "no bounds", "ratio"]
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for name, (draw, bounds) in COLUMNS.items():
        for n in options.sizes:
            for epsilon in (0.1, 1.0):
                found = []
                for seed in range(options.repeats):
                    rng = np.random.default_rng(seed)
                    values = np.asarray(draw(rng, n), float)
                    ours = [
                        PrivateKBinsDiscretizer(BINS, epsilon=epsilon, bounds=given)
                        .fit(values[:, None])
                        .bin_edges_[0]
                        for given in (bounds, None)
                    ]
                    edges = [kaplan(values, bounds, epsilon, rng), *ours]
                    found.append([error(values, e) for e in edges])
                cells = [f"{value:,.1f}" for value in np.mean(found, axis=0)]
                line = [name, f"{n:,}", f"{epsilon:g}", *cells, ratio(np.array(found))]
                print("| " + " | ".join(line) + " |", flush=True)


if __name__ == "__main__":
    main()
