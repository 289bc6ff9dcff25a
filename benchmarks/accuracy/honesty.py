"""Are the published numbers of a private regression true? Intervals, level, R², time.

Every release is of new records of a family (``benchmarks.data.families``) or of the same records of
a public table, with new noise, and goes through ``fit``, ``coefficients()`` and ``predict``. The
truth is least squares within the declared bounds: for a family that of so many records that its
error is an eighth of that of the n records, for a table that of the very same records. Where the
target has classes, the model is the logistic one, with linear effects and maximum likelihood in
the place of least squares, and predictions are probabilities. Per cell:

- coverage of the 95 % intervals, lowest slope among those that have an interval in a fifth of the
  releases or more; that of the intercept, and that of least squares with White's errors;
- median width of an interval over that of least squares with White's errors;
- lowest and highest standard deviation of (estimate - truth)/sd, where sd is the width over 3.92;
- share of coefficients without an interval ("not identified");
- error of the mean prediction: its mean over the releases with two standard errors, in units of the
  mean target, or of the target's deviation if that is more; and root mean square, in standard
  errors of the mean target ("se");
- R² on the same records, mean and lowest, and that of least squares; share of their targets within
  1.96 of the deviations that ``predict`` states; sampling errors that the table states, over
  White's, the median of all slopes, identified or not; seconds of a fit.

A star marks what rules of the library were chosen on. Bars: a coverage of 0.90 (a question mark
where one of 0.95 may miss it by chance), the width of the family at n = 20,000 and epsilon = 1, a
level within 1 % or two standard errors over the releases, R² not below 0 from n epsilon = 1,000 on
(-0.01 where least squares has less than 0.01), 0.90 of the targets within their intervals, sampling
errors right within a factor of 2.

Run ``python -m benchmarks.accuracy.honesty`` for all cells, in an hour. Quick modes, of seconds:

    --n 20000 --epsilon 1 --releases 12 --families income,wages
    --n 3000 --epsilon 1 --releases 12 --families fresh      # groups: older, awkward, ...
    --families tables --releases 20 --epsilon 1 4            # the public tables, of their own sizes
    --n 2000 --epsilon 0.5 --releases 60 --families six      # R² of the worst release

``--output cells.csv`` writes the cells, ``--before cells.csv`` prints those of another run in
square brackets; ``--print cells.csv`` only prints a file: coverage, and in brackets the width and
the share of slopes without an interval, then means over families; with ``--page page.md`` these go
into the page, too, between its lines ``<!-- cells: begin -->`` and ``<!-- cells: end -->``.
``--mechanism gaussian`` has a delta of 1e-6; ``--jobs 2`` has two processes.
"""

from __future__ import annotations

import argparse
import math
import time
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import stats

import benchmarks.data.sought_families  # noqa: F401
from benchmarks.data.families import FAMILIES, Data, FloatArray, seen
from benchmarks.data.regression import CHOSEN_ON, TABLES
from benchmarks.pages import folded
from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    Categories,
    Interval,
)

RECORDS = (3000, 20_000, 100_000)
EPSILONS = (0.5, 1.0, 4.0)
POPULATION = 64  # times n records are the truth of a family
CHUNK = 100_000
WIDE = 1.959964
LOGISTIC = {"effects": "linear", "intervals": True}
LEAST = 0.9  # coverage
CELL = ["family", "n", "epsilon", "mechanism"]


class Exact(NamedTuple):
    """Coefficients without privacy, White's standard errors and fitted values."""

    w: FloatArray
    sd: FloatArray
    fitted: FloatArray


def inverted(gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the inverse of X'X, and which coefficients are not determined: NaN, of others 0."""
    scale = 1 / np.sqrt(np.where(np.diag(gram) > 0, np.diag(gram), 1.0))
    equal = scale[:, None] * gram * scale
    inverse = np.linalg.pinv(equal, hermitian=True)
    unknown = np.abs(np.diag(inverse @ equal) - 1) > 1e-6
    return scale[:, None] * inverse * scale, np.where(unknown, np.nan, 0.0)


def least_squares(data: Data) -> Exact:
    """Return least squares of these records."""
    x = data.rows()
    inverse, unknown = inverted(x.T @ x)
    w = inverse @ (x.T @ data.y)
    fitted = x @ w
    half = x * (data.y - fitted)[:, None] @ inverse
    return Exact(w + unknown, np.sqrt((half**2).sum(axis=0)) + unknown, fitted)


def maximum_likelihood(data: Data) -> Exact:
    """Return the logistic regression of these records."""
    x, w = data.rows(), 0.0
    for _ in range(25):
        p = 1 / (1 + np.exp(-x @ np.broadcast_to(w, x.shape[1])))
        inverse, unknown = inverted((x * (p * (1 - p))[:, None]).T @ x)
        step = inverse @ (x.T @ (data.y - p))
        w = w + np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-9:
            break
    half = x * (data.y - p)[:, None] @ inverse
    return Exact(np.asarray(w) + unknown, np.sqrt((half**2).sum(axis=0)) + unknown, p)


def exact_of(data: Data) -> Exact:
    """Return what the model is without privacy."""
    logistic = isinstance(data.schema.target, Categories)
    return maximum_likelihood(data) if logistic else least_squares(data)


@cache
def table(name: str) -> Data:
    """Return a public table, within its declared bounds."""
    data = Data(*TABLES[name]())
    X, bounds = data.X.copy(), data.schema.target
    for column, domain in data.schema.columns.items():
        if isinstance(domain, Interval) and not domain.dates:
            X[column] = X[column].clip(domain.low, domain.high)
    y = np.clip(data.y, bounds.low, bounds.high) if isinstance(bounds, Interval) else data.y
    return data._replace(X=X, y=y)


@cache
def truth(name: str, n: int) -> FloatArray:
    """Return the coefficients that intervals for n records should hold."""
    if name in TABLES:
        return least_squares(table(name)).w
    known = FAMILIES[name].make(10, np.random.default_rng(0)).truth
    if known is not None:
        return known
    gram, products = 0.0, 0.0
    for k in range(math.ceil(POPULATION * n / CHUNK)):
        data = FAMILIES[name].make(CHUNK, np.random.default_rng([k, 1]))
        x = data.rows()
        gram, products = gram + x.T @ x, products + x.T @ data.y
    inverse, unknown = inverted(np.asarray(gram))
    return np.asarray(inverse @ products + unknown)


class Release(NamedTuple):
    """What one release states, and what is true of its records."""

    low: FloatArray
    high: FloatArray
    estimate: FloatArray
    exact: FloatArray
    sd: FloatArray
    level: tuple[float, float, float]  # error of the mean prediction, mean target, standard error
    r2: tuple[float, float]  # of the release and of least squares
    inside: float  # targets within their intervals
    sampling: float  # stated sampling errors over White's
    seconds: float
    intercept: bool


def release(name: str, n: int, epsilon: float, how: dict[str, Any], seed: int) -> Release:
    """Fit records of a family, or a table, and read what is published."""
    rng = np.random.default_rng([seed, n])
    data = table(name) if name in TABLES else FAMILIES[name].make(n, rng)
    exact, spread = exact_of(data), np.var(data.y)
    how = {"schema": data.schema, "fit_intercept": data.intercept, "random_state": seed, **how}
    logistic = isinstance(data.schema.target, Categories)
    kind = BayesianLogisticRegression if logistic else BayesianLinearRegression
    model: Any = kind(epsilon, **how, **(LOGISTIC if logistic else {}))
    start = time.perf_counter()
    model.fit(data.X, data.y.astype(int) if logistic else data.y)
    seconds = time.perf_counter() - start
    stated = model.coefficients().to_frame()
    if logistic:
        predicted, inside = model.predict_proba(data.X)[:, 1], np.nan
    else:
        predicted, reach = model.predict(data.X, return_std=True)
        inside = float(np.mean(np.abs(data.y - predicted) <= WIDE * reach))
    error = float(np.mean(predicted) - np.mean(exact.fitted))
    r2 = [1 - float(np.mean((data.y - z) ** 2) / spread) for z in (predicted, exact.fitted)]
    return Release(
        *(stated[column].to_numpy(float) for column in ("low", "high", "estimate")),
        *(exact.w, exact.sd),
        (error, float(np.mean(data.y)), math.sqrt(spread / len(data.y))),
        (r2[0], r2[1]),
        inside,
        float((stated["sampling_sd"] / exact.sd)[int(data.intercept) :].median()),
        seconds,
        data.intercept,
    )


def spread_of(found: list[Release], true: FloatArray) -> dict[str, Any]:
    """Return coverage, widths and deviations of the intervals of all releases."""
    there = np.isfinite(true)
    low, high, estimate, exact, sd = (np.array([r[i] for r in found])[:, there] for i in range(5))
    true, first = true[there], int(found[0].intercept and there[0])
    known = np.isfinite(high - low)
    own = np.where(known & (high > low), (high - low) / (2 * WIDE), np.nan)
    times = known.sum(axis=0)
    held = (known & (low <= true) & (true <= high)).sum(axis=0)
    counted = times >= max(1, len(found) / 5)
    shares = np.where(counted, held / np.maximum(times, 1), np.nan)
    plain = ((np.abs(exact - true) <= WIDE * sd) | np.isnan(sd)).mean(axis=0)
    stated = {
        "coefficients": len(true) - first,
        "coverage": np.nan,
        "coverage_releases": 0,
        "intercept_coverage": shares[0] if first else np.nan,
        "least_squares_coverage": plain[first:].min(),
        **dict.fromkeys(("width", "z_low", "z_high"), np.nan),
        "not_identified": 1 - known[:, first:].mean(),
    }
    slopes = np.flatnonzero(counted)
    slopes = slopes[slopes >= first]
    if not slopes.size:
        return stated
    worst = slopes[np.argmin(shares[slopes])]
    deviations = np.nanstd(((estimate - true) / own)[:, slopes], axis=0)
    return {
        **stated,
        "coverage": shares[worst],
        "coverage_releases": int(times[worst]),
        "width": np.nanmedian((own / np.where(sd > 0, sd, np.nan))[:, slopes]),
        "z_low": deviations.min(),
        "z_high": deviations.max(),
    }


def cell(name: str, n: int, found: list[Release]) -> dict[str, Any]:
    """Return what the releases of a cell have in common, a column of the file each."""
    error, mean, standard = np.array([r.level for r in found]).T
    unit = max(np.abs(mean).mean(), standard.mean() * math.sqrt(n))
    r2, best = np.array([r.r2 for r in found]).T
    return {
        "chosen_on": name in CHOSEN_ON or (name in FAMILIES and seen(name)),
        "releases": len(found),
        **spread_of(found, truth(name, n)),
        "level": error.mean() / unit,
        "level_error": error.std() / math.sqrt(max(len(error) - 1, 1)) / unit,
        "level_in_standard_errors": math.sqrt(np.mean((error / standard) ** 2)),
        "r2": r2.mean(),
        "r2_lowest": r2.min(),
        "least_squares_r2": best.mean(),
        "targets_inside": np.mean([r.inside for r in found]),
        "sampling": np.median([r.sampling for r in found]),
        "seconds": np.median([r.seconds for r in found]),
    }


def failures(row: Any) -> list[str]:
    """Return which bars a cell misses; what chance may have done has a question mark."""
    missed = []
    for what, share, of, times in (
        ("coverage", row.coverage, row.coefficients, row.coverage_releases),
        ("intercept", row.intercept_coverage, 1, row.releases),
    ):
        if share < LEAST:
            chance = of * stats.binom.sf(round((1 - share) * times) - 1, times, 0.05)
            missed.append(f"{what} {share:.2f}{'?' if chance > 0.01 else ''}")
    limit = FAMILIES[row.family].width if row.family in FAMILIES else math.inf
    if (row.n, row.epsilon) == (20_000, 1) and row.width > limit:
        missed.append(f"width {row.width:.2f}")
    if abs(row.level) > max(0.01, 2 * row.level_error):
        missed.append(f"level {row.level:+.1%}")
    least = 0 if row.least_squares_r2 > 0.01 else -0.01
    if row.n * row.epsilon >= 1000 and row.r2_lowest < least:
        missed.append(f"R² {row.r2_lowest:.2f}")
    if row.targets_inside < LEAST:
        missed.append(f"targets {row.targets_inside:.2f}")
    if not (0.5 < row.sampling < 2 or math.isnan(row.sampling)):
        missed.append(f"sampling {row.sampling:.2g}")
    return missed


HEAD = (
    "| family | n | ε | coverage | width | sd of z | not identified | level | se | R² (lowest) "
    "| exact R² | targets | sampling | seconds | missed |\n" + "|---" * 15 + "|"
)


def line(row: Any) -> str:
    """Return a cell as a line of a Markdown table."""
    none = math.isnan(row.coverage)
    cells = [
        f"{row.family}{'*' if row.chosen_on else ''}",
        f"{row.n:,}",
        f"{row.epsilon:g}",
        "none" if none else f"{row.coverage:.2f}",
        "–" if none else f"{row.width:.2g}",
        "–" if none else f"{row.z_low:.2f} to {row.z_high:.2f}",
        f"{row.not_identified:.2f}",
        f"{row.level:+.1%} ± {2 * row.level_error:.1%}",
        f"{row.level_in_standard_errors:.1f}",
        f"{row.r2:.3f} ({row.r2_lowest:.2f})",
        f"{row.least_squares_r2:.3f}",
        f"{row.targets_inside:.2f}".replace("nan", "–"),
        f"{row.sampling:.2g}".replace("nan", "–"),
        f"{row.seconds:.2g}",
        ", ".join(failures(row)),
    ]
    return "| " + " | ".join(cells) + " |"


def overview(cells: pd.DataFrame, before: dict[Any, Any]) -> str:
    """Return coverage and width of all cells as a Markdown table, a row for each family."""

    def short(row: Any) -> str:
        if math.isnan(row.coverage):
            return "none"
        hidden = f", {row.not_identified:.0%} hidden" if row.not_identified > 0.02 else ""
        return f"{row.coverage:.2f} ({row.width:.2g}{hidden})"

    columns: dict[str, dict[str, str]] = {}
    for _, row in cells.iterrows():
        size = "" if row.family in TABLES else f"n = {row.n:,}, "
        name = f"{row.family} ({row.n:,})" if row.family in TABLES else row.family
        old = before.get(tuple(row[CELL]))
        text = short(row) if old is None else f"{short(row)} [{short(old)}]"
        columns.setdefault(f"{size}ε = {row.epsilon:g}", {})[name + "*" * row.chosen_on] = text
    rows = dict.fromkeys(name for own in columns.values() for name in own)
    lines = [["family", *columns], ["---"] * (1 + len(columns))]
    lines += [[name, *(own.get(name, "") for own in columns.values())] for name in rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def pooled(cells: pd.DataFrame, before: pd.DataFrame) -> str:
    """Return means over families as a Markdown table: of cells in both files, and of others."""
    both = {"now": cells, "before": before}
    if len(before):
        shared = cells.merge(before[CELL], on=CELL)[CELL]
        both = {key: each.merge(shared, on=CELL) for key, each in both.items()}
        rest = cells.merge(shared, on=CELL, how="left", indicator=True)
        both["now, others"] = rest[rest["_merge"] == "left_only"]
    lines = [
        "| n | ε | | families | none | not identified | coverage | below 0.8 | width | sd of z "
        "| R² | R² below 0 |\n" + "|---" * 12 + "|",
    ]
    rows = []
    for order, (which, own) in enumerate(both.items()):
        for (n, epsilon), some in own.groupby(["n", "epsilon"]):
            figures = [
                f"{len(some)}",
                f"{some.coverage.isna().sum()}",
                f"{some.not_identified.mean():.0%}",
                f"{some.coverage.mean():.2f}",
                f"{(some.coverage < 0.8).sum()}",
                f"{some.width.median():.2f}",
                f"{some[['z_low', 'z_high']].mean(axis=1).median():.2f}",
                f"{some.r2.mean():.3f}",
                f"{((some.r2_lowest < 0) & (some.least_squares_r2 > 0.01)).sum()}",
            ]
            rows.append((n, epsilon, order, [f"{n:,}", f"{epsilon:g}", which, *figures]))
    lines += ["| " + " | ".join(row[3]) + " |" for row in sorted(rows)]
    return "\n".join(lines)


def summary(cells: pd.DataFrame) -> str:
    """Return how many cells miss a bar, of those that rules were chosen on and of the others."""
    lines = []
    for chosen, own in cells.groupby("chosen_on"):
        missed = [failures(row) for _, row in own.iterrows()]
        sure = sum(any("?" not in one for one in each) for each in missed)
        with_intervals = own[own.coverage.notna()]
        lines.append(
            f"{'Chosen on' if chosen else 'Not chosen on'}: {len(own)} cells, "
            f"{len(with_intervals)} with intervals; coverage below {LEAST:.2f} in "
            f"{(with_intervals.coverage < LEAST).sum()}, lowest {with_intervals.coverage.min():.2f}"
            f"; median width {with_intervals.width.median():.2f}; a bar missed in "
            f"{sure}, perhaps by chance in {sum(map(bool, missed)) - sure} more."
        )
    return "\n".join(lines)


def put(page: Path, name: str, table: str) -> None:
    """Write a table between the lines of a page that have its name; a long one into a file."""
    ends = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, start, rest = page.read_text("utf-8").partition(ends[0])
    after = rest.partition(ends[1])[2]
    if not start:
        raise SystemExit(f"{page} has no line {ends[0]}.")
    table = folded(table, page.parent, name).rstrip("\n")
    page.write_text(f"{before}{ends[0]}\n\n{table}\n\n{ends[1]}{after}", "utf-8")


def names(wanted: list[str]) -> list[str]:
    """Return families by their names, or those of a group; ``tables`` are the public tables."""
    groups: dict[str, list[str]] = {"tables": [*TABLES]}
    for name, one in FAMILIES.items():
        groups.setdefault(one.group, []).append(name)
    found = [n for one in wanted for own in one.split(",") for n in groups.get(own, [own])]
    if unknown := {*found} - {*FAMILIES, *TABLES}:
        raise SystemExit(f"No such families: {', '.join(sorted(unknown))}.")
    return found


def written(path: str) -> pd.DataFrame:
    """Return the cells of a file."""
    return pd.read_csv(path, dtype={"mechanism": str, "epsilon": float}).fillna({"mechanism": ""})


def main() -> None:
    """Print a table, and write it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--families", nargs="+", default=[*FAMILIES], help="names, groups, tables")
    parser.add_argument("--n", type=int, nargs="+", default=[*RECORDS])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[*EPSILONS])
    parser.add_argument("--releases", type=int, default=100)
    parser.add_argument("--mechanism", default="")
    parser.add_argument("--seed", type=int, default=10_000, help="seed of the first release")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--output")
    parser.add_argument("--before")
    parser.add_argument("--print", dest="shown")
    parser.add_argument("--page")
    options = parser.parse_args()
    how = {"mechanism": options.mechanism} if options.mechanism else {}
    how |= {"delta": 1e-6} if options.mechanism == "gaussian" else {}
    earlier = written(options.before) if options.before else pd.DataFrame(columns=CELL)
    before = {tuple(row[CELL]): row for _, row in earlier.iterrows()}
    if options.shown:
        cells = written(options.shown)
        print("\n\n".join([overview(cells, before), pooled(cells, earlier), summary(cells)]))
        if options.page:
            own = (
                overview(cells, before)
                if cells.family.isin(TABLES).all()
                else pooled(cells, earlier)
            )
            put(Path(options.page), Path(options.shown).stem, own)
        return
    print(HEAD)
    rows: list[dict[str, Any]] = []
    settings = [
        (name, n, epsilon)
        for name in names(options.families)
        for n in ([len(table(name).y)] if name in TABLES else options.n)
        for epsilon in options.epsilon
    ]
    seeds = range(options.seed, options.seed + options.releases)
    with Parallel(n_jobs=options.jobs) as parallel:
        for own in settings:
            found = parallel(delayed(release)(*own, how, seed) for seed in seeds)
            key = dict(zip(CELL, (*own, options.mechanism), strict=True))
            rows.append({**key, **cell(*own[:2], found)})
            print(line(pd.Series(rows[-1])), flush=True)
            if options.output:
                pd.DataFrame(rows).to_csv(options.output, index=False, float_format="%.4g")
    cells = pd.DataFrame(rows)
    print(f"\n{overview(cells, before)}\n\n{summary(cells)}")


if __name__ == "__main__":
    main()
