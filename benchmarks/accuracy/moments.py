"""Ten regressions of one release: coverage, width, R², beside a release for each of them.

``PrivateMoments`` is fitted once to all columns, the target among them; then the target and every
number are regressed on all other columns, on every other one of them, and on one, ten regressions
at most. Every release is of new records of a family (``benchmarks.data.families``), or of records
drawn with replacement from a public table. The truth is least squares within the declared bounds,
of 64 times as many records of a family, of all records of a table. Per cell:

- slopes whose 95 % intervals hold the truth in less than 0.90 of the releases, if that is no chance
  (below 1 %), of all that have an interval in a fifth of the releases; then the mean coverage;
- median width over that of least squares with White's errors, and the share of slopes that are
  called not identified; the same of the regression of the target by ``BayesianLinearRegression``
  with all of epsilon, and with a tenth;
- error of R², where it is stated (root mean square), and in which share it is.

A star marks what was looked at while constants were chosen. ``python -m benchmarks.accuracy.moments
--page docs/benchmarks/many_regressions.md`` prints all cells and writes them into the page (half an
hour on one core); ``--releases 10 --names wages k401 --epsilon 1`` is a quick mode.
"""

from __future__ import annotations

import argparse
import math
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from benchmarks.accuracy.honesty import CHUNK, POPULATION, WIDE, inverted, put, table
from benchmarks.data.families import FAMILIES, Data, FloatArray
from benchmarks.data.regression import TABLES
from dpbayes_sklearn import BayesianLinearRegression, Interval, PrivateMoments, Schema

LOOKED_AT = (
    "tight", "correlated", "long_tails", "income", "log_normal_1_5", "wages", "costs", "student",
    "yes_no", "rare_target", "zeros", "hours", "uneven", "counts", "interaction", "rare_column",
    "twelve_levels", "triple", "no_effects", "k401", "labsup", "airfare", "nettfa", "abalone",
    "injury", "census2000", "nearly_constant",
)  # fmt: skip
# zipf has more coordinates than are taken.
FRESH_TABLES = "fertil2", "weeks_off", "arrests", "training", "mathematics", "flights"
FRESH = tuple(
    n for n, one in FAMILIES.items() if one.group == "fresh" and n not in (*LOOKED_AT, "zipf")
)
NAMES = (*LOOKED_AT, *FRESH, *FRESH_TABLES)
MOST = 10
TARGET = "the target"
HEAD = (
    "| records | n | ε | slopes too low, of | mean coverage | width (hidden) | own fit, ε | "
    "own fit, ε/10 | error of R² (stated) |\n" + "|---" * 9 + "|"
)


class Question(NamedTuple):
    """A regression: the target, and what explains it."""

    target: str
    on: tuple[str, ...]


def some(name: str, n: int, seed: int) -> Data:
    """Return n records of a family, or of a table, with the target as the last column."""
    rng = np.random.default_rng([seed, n])
    if name in TABLES:
        data = table(name)
        drawn = rng.integers(0, len(data.y), n) if seed else np.arange(len(data.y))
        data = data._replace(X=data.X.iloc[drawn].reset_index(drop=True), y=data.y[drawn])
    else:
        data = FAMILIES[name].make(n, rng)
    columns = {**data.schema.columns, TARGET: data.schema.target}
    return Data(data.X.assign(**{TARGET: data.y}), data.y, Schema(columns))


def questions(data: Data) -> list[Question]:
    """Return up to ten regressions."""
    names, targets = [*data.schema.columns], []
    for name, domain in reversed(data.schema.columns.items()):
        if isinstance(domain, Interval) and not (domain.marks_missing or domain.dates):
            targets.append(name)
    found = []
    for some_of in (slice(None), slice(None, None, 2), slice(-1, None)):
        for target in targets:
            on = tuple([name for name in names if name != target][some_of])
            found.append(Question(target, on))
    return [*dict.fromkeys(found)][:MOST]


def rows(data: Data, question: Question) -> tuple[FloatArray, FloatArray]:
    """Return the columns of a regression, and its target."""
    domains = {name: data.schema.columns[name] for name in question.on}
    target, bounds = data.X[question.target].to_numpy(float), data.schema.columns[question.target]
    missing = np.where(np.isnan(target), bounds.middle, target)
    return Data(data.X[[*question.on]], data.y, Schema(domains)).rows(), missing


@cache
def truth(name: str, n: int) -> list[FloatArray]:
    """Return the coefficients of all regressions."""
    grams: list[Any] = []
    parts = 1 if name in TABLES else math.ceil(POPULATION * n / CHUNK)
    for k in range(parts):
        data = some(name, n if name in TABLES else CHUNK, k)
        asked = questions(data)
        grams = grams or [0.0] * len(asked)
        for i, question in enumerate(asked):
            x, y = rows(data, question)
            both = np.column_stack([x, y])
            grams[i] = grams[i] + both.T @ both
    found = []
    for gram in grams:
        inverse, unknown = inverted(gram[:-1, :-1])
        found.append(np.asarray(inverse @ gram[:-1, -1] + unknown))
    return found


class Seen(NamedTuple):
    """What is stated about the slopes of a regression, and least squares with White's errors."""

    low: FloatArray
    high: FloatArray
    sd: FloatArray
    r2: float
    exact_r2: float


def seen(found: Any, data: Data, question: Question) -> Seen:
    """Return what a summary states."""
    low, high = np.array([(row.low, row.high) for row in found.table.rows]).T
    x, y = rows(data, question)
    inverse, unknown = inverted(x.T @ x)
    residuals = y - x @ inverse @ (x.T @ y)
    sd = np.sqrt((((x * residuals[:, None]) @ inverse) ** 2).sum(axis=0)) + unknown
    return Seen(low, high, sd, found.r2, 1 - float(residuals.var() / max(y.var(), 1e-300)))


def widths(found: list[Seen]) -> tuple[float, float]:
    """Return the median width of slopes over least squares, and the share without one."""
    pairs = [(one.high - one.low)[1:] / (2 * WIDE * one.sd[1:]) for one in found]
    every = np.concatenate(pairs)
    known = every[np.isfinite(every)]
    hidden = np.concatenate([~np.isfinite((one.high - one.low)[1:]) for one in found])
    return float(np.median(known)) if known.size else math.nan, float(hidden.mean())


def cell(name: str, n: int, epsilon: float, releases: int) -> str:
    """Return a line of the table."""
    true = truth(name, n)
    every: list[list[Seen]] = [[] for _ in true]
    own: dict[float, list[Seen]] = {1.0: [], 0.1: []}
    for seed in range(1, releases + 1):
        data = some(name, n, 10_000 + seed)
        options: dict[str, Any] = {"schema": data.schema, "random_state": seed}
        model = PrivateMoments(epsilon, **options).fit(data.X)
        asked = questions(data)
        for question, kept in zip(asked, every, strict=True):
            kept.append(seen(model.regress(*question), data, question))
        target, on = asked[0]
        schema = Schema({c: data.schema.columns[c] for c in on}, data.schema.columns[target])
        for share, kept in own.items():
            line: Any = BayesianLinearRegression(share * epsilon, schema=schema, random_state=seed)
            line.fit(data.X[[*on]], data.X[target].to_numpy(float))
            kept.append(seen(line.summary(), data, asked[0]))
    low, counted, held, times = 0, 0, 0, 0
    for w, kept in zip(true, every, strict=True):
        inside = np.array([(one.low <= w) & (w <= one.high) for one in kept])
        known = np.isfinite([one.high - one.low for one in kept]) & np.isfinite(w)
        for j in range(1, len(w)):
            own_times = int(known[:, j].sum())
            if own_times >= max(releases / 5, 1):
                misses = own_times - int((inside & known)[:, j].sum())
                low += bool(stats.binom.sf(misses - 1, own_times, 0.1) < 0.01)
                counted += 1
            held, times = held + int((inside & known)[:, j].sum()), times + own_times
    together = [one for kept in every for one in kept]
    stated = [one.r2 - one.exact_r2 for one in together if math.isfinite(one.r2)]
    (width, hidden), *others = (widths(each) for each in (together, own[1.0], own[0.1]))
    star = "\\*" if name in LOOKED_AT else ""
    cells = [
        f"{name}{star}", f"{n:,}", f"{epsilon:g}", f"{low} of {counted}",
        f"{held / times:.3f}" if times else "–", f"{width:.2g} ({hidden:.0%})".replace("nan", "–"),
        *(f"{w:.2g} ({h:.0%})".replace("nan", "–") for w, h in others),
        f"{math.sqrt(np.mean(np.square(stated))):.3f} ({len(stated) / len(together):.0%})"
        if stated else "– (0%)",
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Print a table, and write it into a page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--names", nargs="+", default=[*NAMES])
    parser.add_argument("--n", type=int, nargs="+", default=[3000, 20_000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--releases", type=int, default=20)
    parser.add_argument("--page")
    options = parser.parse_args()
    print(HEAD)
    lines = [HEAD]
    for name in options.names:
        for n in [len(table(name).y)] if name in TABLES else options.n:
            for epsilon in options.epsilon:
                lines.append(cell(name, n, epsilon, options.releases))
                print(lines[-1], flush=True)
    if options.page:
        put(Path(options.page), "cells", "\n".join(lines))


if __name__ == "__main__":
    main()
