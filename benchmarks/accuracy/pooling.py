"""Three sites beside one trusted centre: coverage and width of pooled posteriors.

Every site has n records and releases a model with epsilon; ``pool`` makes one of them. The centre
fits one model with epsilon to all records. ``python -m benchmarks.accuracy.pooling --page
docs/benchmarks/many_regressions.md`` prints the table and writes it into the page (five minutes).
Nothing was chosen on these settings.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.accuracy.honesty import put
from benchmarks.data.families import FloatArray
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BetaBinomial,
    DirichletMultinomial,
    GammaExponential,
    Interval,
    NormalMean,
    PrivateMoments,
    Schema,
    pool,
)

SITES = 3
SLOPES, SHARES = (0.0, 0.5, -0.3, 0.0), (0.5, 0.3, 0.15, 0.04, 0.01)
BOUNDS = {name: Interval(-4, 4) for name in "abc"}
Rng = np.random.Generator
HEAD = "| parameter | records a site | ε | pooled | centre | width |\n|---|---|---|---|---|---|"


def _columns(rng: Rng, n: int) -> pd.DataFrame:
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=[*"abc"])
    frame["y"] = frame.to_numpy() @ SLOPES[1:] + rng.normal(0, 0.7, n)
    return frame


class Kind(NamedTuple):
    """What is estimated: records, a fit, the intervals of a model, and the truth."""

    records: Callable[[Rng, int], Any]
    fit: Callable[[float, Any, int], Any]
    ends: Callable[[Any], Any]
    truth: tuple[float, ...]


def _of_one(make: Callable[..., Any]) -> Callable[[float, Any, int], Any]:
    return lambda epsilon, x, seed: make(epsilon, random_state=seed).fit(x)


def _interval(model: Any) -> Any:
    return np.atleast_2d(model.posterior_.credible_interval())


def _rows(table: Any) -> Any:
    return np.array([(row.low, row.high) for row in table.rows])


def _line(epsilon: float, frame: Any, seed: int) -> Any:
    model = BayesianLinearRegression(
        epsilon, schema=Schema(BOUNDS, Interval(-4, 4)), random_state=seed
    )
    return model.fit(frame[[*"abc"]], frame["y"])


def _moments(epsilon: float, frame: Any, seed: int) -> Any:
    schema = Schema({**BOUNDS, "y": Interval(-4, 4)})
    return PrivateMoments(epsilon, schema=schema, random_state=seed).fit(frame)


KINDS = {
    "a share of 0.23": Kind(
        lambda rng, n: (rng.random(n) < 0.23).astype(int), _of_one(BetaBinomial), _interval, (0.23,)
    ),
    "a share of 0.02": Kind(
        lambda rng, n: (rng.random(n) < 0.02).astype(int), _of_one(BetaBinomial), _interval, (0.02,)
    ),
    "shares of five": Kind(
        lambda rng, n: rng.choice(5, n, p=SHARES),
        _of_one(lambda *own, **more: DirichletMultinomial(*own, categories=5, **more)),
        _interval,
        SHARES,
    ),
    "a mean": Kind(
        lambda rng, n: rng.normal(45, 12, (n, 1)),
        _of_one(lambda *own, **more: NormalMean(*own, bounds=(0, 100), sigma=12, **more)),
        _interval,
        (45.0,),
    ),
    "a rate": Kind(
        lambda rng, n: rng.exponential(5, (n, 1)),
        _of_one(lambda *own, **more: GammaExponential(*own, bounds=(0, 60), **more)),
        _interval,
        (0.2,),
    ),
    "slopes": Kind(_columns, _line, lambda model: _rows(model.coefficients()), SLOPES),
    "slopes, `PrivateMoments`": Kind(
        _columns, _moments, lambda model: _rows(model.regress("y").table), SLOPES
    ),
}
SETTINGS = ((300, 1.0), (3000, 0.3), (3000, 1.0), (10_000, 1.0))


def held(kind: Kind, n: int, epsilon: float, seed: int) -> tuple[FloatArray, ...]:
    """Return whether intervals of sites and centre hold the truth, and their widths."""
    everything = kind.records(np.random.default_rng([seed, n]), SITES * n)
    parts = [everything[k * n : (k + 1) * n] for k in range(SITES)]
    sites = [kind.fit(epsilon, part, SITES * seed + k) for k, part in enumerate(parts)]
    ends = [kind.ends(m) for m in (pool(sites), kind.fit(epsilon, everything, seed))]
    truth = np.array(kind.truth)
    return *((e[:, 0] <= truth) & (truth <= e[:, 1]) for e in ends), *(
        e[:, 1] - e[:, 0] for e in ends
    )


def line(name: str, n: int, epsilon: float, releases: int) -> str:
    """Return a row: lowest coverage of a parameter, median width."""
    pairs = zip(*(held(KINDS[name], n, epsilon, s) for s in range(releases)), strict=True)
    pooled, centre, width, usual = (np.array(each, float) for each in pairs)
    known = np.isfinite(width) & np.isfinite(usual)
    ratio = np.median((width / usual)[known]) if known.any() else np.nan
    hidden = f" ({1 - np.isfinite(width).mean():.0%} hidden)" if not known.all() else ""
    shares = [f"{each.mean(axis=0).min():.2f}" for each in (pooled, centre)]
    return f"| {name} | {n:,} | {epsilon:g} | {' | '.join(shares)} | {ratio:.2f}{hidden} |"


def main() -> None:
    """Print a table, and write it into a page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--releases", type=int, default=100)
    parser.add_argument("--page")
    options = parser.parse_args()
    print(HEAD)
    lines = [HEAD]
    for name in KINDS:
        for n, epsilon in SETTINGS[2:] if "slopes" in name else SETTINGS[:3]:
            lines.append(line(name, n, epsilon, options.releases))
            print(lines[-1], flush=True)
    if options.page:
        put(Path(options.page), "sites", "\n".join(lines))


if __name__ == "__main__":
    main()
