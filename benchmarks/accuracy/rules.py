"""Does every tuned constant pay? Each is halved and doubled in turn, or switched off.

Releases of all variants are of the same records with the same seeds. A figure is what the package
as it is has more of than the variant: R² (of classes, the fall of the log loss), the share of
intervals that hold the truth, or precision: the logarithm of the width of an interval, where both
hold in nine of ten; an interval of a slope that is not identified has the width 20. Of every rule
the table has the largest gain and the largest loss, over variants and cells; less than what is
called nothing here is within chance. A rule that pays nowhere goes, unless it is what the proof, or
another rule, rests on.

Run ``python -m benchmarks.accuracy.rules [linear] [mode] [logistic] [counts]``, a quarter of an
hour; ``--only _BENT --releases 20`` looks at some rules closely, and ``--output rules.csv`` writes
all figures. Constants of exactness, of speed and of memory are not varied.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss

from benchmarks.accuracy import honesty
from benchmarks.accuracy.regression import score
from benchmarks.data.regression import TABLES
from benchmarks.data.tables import table_split
from dpbayes_sklearn import BayesianNaiveBayes

RULES = {
    "linear": {
        "convex.linear": "_WHOLE _LENGTHS_SHARE _VOLUME _LEAST_RHO _RHO_EACH _EXPLAINED _LEVEL "
        "_USUAL_LENGTH _SEEN _MODE_NOISE _MODE_SAMPLING _LIMITS",
        "convex.estimates": "_ALIGNED _HIDDEN _ONE_SIDED _IGNORANCE "
        "_UNEVEN _LEAST_MIDDLE _MIDDLE_LIMIT _BELIEVED _FLAT _LEAST_CURVATURE _EXPLAINS _INSIDE "
        "_BENT _MOST_EXPLAINED _UNSEEN _EXPLAINED _HIDDEN_LENGTHS _SEEN_TIMES",
        "convex.slopes": "_LOST _SURE OUTWEIGHED _SQUARES",
        "convex.tails": "_SEEN _SEEN_APART _TOGETHER _RATIOS _BENDS _REBOUND _MISFIT _LEAST_SHARE "
        "_USUAL_SPREAD _USUAL_CENTRE _OF_MOMENTS _HIDDEN",
        "convex.losses": "_LARGEST_LIMIT",
    },
    "mode": {
        "convex.mode": "_LOOK_COUNTS _LEAST_LOOK _MOST_LOOK _LOCATED _LEVEL_COUNTS _MOST_LEVEL "
        "_VOLUME _REACH _USUAL_SPREAD _EXPLAINED _CENTRE _SKEW _LEVEL_WEIGHT _LIMITS",
        "convex.hull": "_NUMBER",
    },
    "logistic": {
        "logistic.release": "_LOOK_SHARE _CURVATURE_SHARE _LESS_CURVATURE_SHARE "
        "_MANY_PER_PARAMETER _HISTOGRAM_TRUST _COUNT_DOUBT _WINDOW_TAIL _SURE_TAIL "
        "_PREDICTION_SCALE",
        "logistic.mode": "_VOLUME _EXPECTED _RIDGE _LEAST_RIDGE _MOST_RIDGE",
        "logistic.curvature": "PRIOR_SD _INTERCEPT_WEIGHT _NORM_REACH _LEAST_NORM _DOUBT _RELATED",
        "logistic.posterior": "_ROUNDS",
        "convex.intervals": "_MOST_BY_PRIOR",
    },
    "counts": {
        "counts.adaptive": "_EVIDENCE _LINEAR_EFFECT _MESSAGE_ROUNDS _DAMPING",
        "counts.adaptive_rows": "_POOLING_ROUNDS _PSEUDO_FEATURES _SHARED_FREEDOM "
        "_CORRELATION_LENGTH _ROUGH_SHARE _NO_SPREAD _LOG_G_SD _SMOOTH",
        "counts.temperature": "_CLIP _LARGEST_GAP _MOST_TOLD _ENOUGH",
        "counts.tables": "_MISSING_DEVIATIONS _WEIGHT_STEPS",
    },
}
OFF: dict[str, Any] = {
    "_SEEN_APART": 0.0, "_REBOUND": 1.0, "_BENT": 0.0, "_MOST_EXPLAINED": math.inf,
    "_HIDDEN_LENGTHS": 0.0, "_ONE_SIDED": 0.0,
    "_SEEN_TIMES": math.inf, "OUTWEIGHED": math.inf, "_SQUARES": math.inf,
    "_UNSEEN": 0.0, "_PREDICTION_SCALE": 0.0, "_COUNT_DOUBT": 0.0, "_SKEW": 1e-9, "_DOUBT": 0.0,
    "_LEVEL_WEIGHT": 0.0, "_OF_MOMENTS": 0.0, "_NUMBER": Fraction(1), "_CENTRE": 0.0,
    "_NO_SPREAD": 1e-9, "_SMOOTH": 1e-9,
}  # fmt: skip
"""Values that switch a rule off."""
Cell = tuple[str, int, float]
CELLS: dict[str, list[Cell]] = {
    "linear": [
        *((name, 20_000, 1.0) for name in (
            "normal", "income", "wages", "yes_no", "zeros", "rare_level", "correlated",
            "no_effects", "saturating", "code_999", "log_normal_1_5", "nearly_constant",
            "sparse_columns", "far_group", "log_normal_2",
        )),
        *((name, 3000, 4.0) for name in ("hospital", "student", "hours", "interaction")),
        ("wages", 20_000, 4.0),
        *((name, 0, 3.0) for name in ("abalone", "airfare", "k401", "labsup")),
    ],
    "mode": [(name, 0, e) for name, e in (
        ("abalone", 0.1), ("abalone", 1.0), ("injury", 0.3), ("k401", 0.3), ("twoyear", 1.0),
        ("adult_hours", 0.3), ("labsup", 0.1), ("airfare", 0.3),
    )] + [("six", 2000, 0.3), ("factors", 3000, 1.0), ("wages", 500, 1.0), ("forty", 3000, 1.0)],
    "logistic": [
        (name, n, e)
        for name in ("plain_classes", "strong_effects", "income_classes", "rare_level_classes")
        for n, e in ((3000, 1.0), (20_000, 1.0))
    ] + [("twelve_level_classes", 20_000, 1.0), ("correlated_classes", 3000, 4.0)],
    "counts": [(name, 0, e) for name in ("spambase", "splice", "german", "rare_items", "chess")
               for e in (0.3, 1.0)],
}  # fmt: skip
HIDDEN = math.log(20.0)  # The logarithm of the width of what is not identified.
NOTHING = {"R²": 0.002, "log loss": 0.002, "coverage": 0.04, "precision": 0.04}


class Variant(NamedTuple):
    """A constant, and the value that it gets instead."""

    module: str
    name: str
    title: str
    value: Any


def variants(subject: str, only: list[str]) -> Iterator[Variant]:
    """Yield halved, doubled and switched off constants; shares grow at the cost of all others."""
    for module, names in RULES[subject].items():
        for name in names.split():
            if only and name not in only:
                continue
            now = getattr(import_module(f"dpbayes_sklearn.{module}"), name)
            for factor in (Fraction(1, 2), Fraction(2)):
                if not hasattr(now, "_fields"):
                    changes = {f"{name} × {factor}": scaled(now, factor)}
                else:
                    parts = [now._replace(**{f: getattr(now, f) * factor}) for f in now._fields]
                    whole = [type(now)(*(x / sum(one) for x in one)) for one in parts]
                    changes = {
                        f"share of the {f} × {factor}": one
                        for f, one in zip(now._fields, whole, strict=True)
                    }
                for title, value in changes.items():
                    yield Variant(module, name, title, value)
            if name in OFF:
                yield Variant(module, name, f"{name} off", OFF[name])


def scaled(now: Any, factor: Fraction) -> Any:
    """Return a constant times a factor, of its own type."""
    if isinstance(now, dict):
        return {key: value * float(factor) for key, value in now.items()}
    if isinstance(now, Fraction):
        return min(now * factor, Fraction(9, 10)) if now < 1 else now * factor
    return max(1, int(now * factor)) if isinstance(now, int) else now * float(factor)


@cache
def regression(name: str) -> Any:
    """Return a public table."""
    return TABLES[name]()


def measured(subject: str, cell: Cell, releases: int) -> dict[str, float]:
    """Return the figures of a cell."""
    name, n, epsilon = cell
    if subject == "counts":
        losses = []
        for seed in range(releases):
            X, y, test_X, test_y, declared = table_split(name, seed)
            model = BayesianNaiveBayes(epsilon, **declared, random_state=seed).fit(X, y)
            own = np.clip(model.predict_proba(test_X), 1e-15, 1.0)
            losses.append(log_loss(test_y, own, labels=model.classes_))
        return {"log loss": -float(np.mean(losses))}
    if not n:
        found = [score(regression(name), {"epsilon": epsilon}, seed) for seed in range(releases)]
        return {"R²": float(np.mean(found, axis=0)[0])}
    found = [honesty.release(name, n, epsilon, {}, 500 + seed) for seed in range(releases)]
    true = honesty.truth(name, n)
    first = int(found[0].intercept)
    low, high, sd = (np.array([r[i] for r in found])[:, first:] for i in (0, 1, 4))
    known, there = np.isfinite(high - low), np.isfinite(true[first:])
    with np.errstate(divide="ignore", invalid="ignore"):
        width = np.where(known, np.log((high - low) / (2 * honesty.WIDE * sd)), HIDDEN)
    held = ~known | ((low <= true[first:]) & (true[first:] <= high))
    wide = float(np.minimum(width, HIDDEN)[:, there].mean()) if there.any() else math.nan
    own = {"R²": float(np.mean([r.r2[0] for r in found]))}
    return own | {"coverage": float(held[:, there].mean()), "precision": -wide}


def main() -> None:
    """Print where every rule pays and costs most."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("subjects", nargs="*", default=[*RULES])
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--cells", nargs="+", default=[], help="families and tables")
    parser.add_argument("--releases", type=int, default=4)
    parser.add_argument("--output")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    print("| rule | value | pays most | costs most |\n" + "|---" * 4 + "|")
    for subject in options.subjects:
        cells = [c for c in CELLS[subject] if not options.cells or c[0] in options.cells]
        now = {cell: measured(subject, cell, options.releases) for cell in cells}
        for module, name, title, value in variants(subject, options.only):
            room = import_module(f"dpbayes_sklearn.{module}")
            before = getattr(room, name)
            setattr(room, name, value)
            gains = []
            for cell in cells:
                try:
                    other = measured(subject, cell, options.releases)
                except (ValueError, ArithmeticError, RuntimeError):
                    continue  # the variant cannot be planned
                for figure, least in NOTHING.items():
                    if figure not in other or (figure == "precision" and other["coverage"] < 0.9):
                        continue
                    gain = now[cell][figure] - other[figure]
                    where = f"{cell[0]}, {f'n = {cell[1]:,}, ' * (cell[1] > 0)}ε = {cell[2]:g}"
                    gains.append((gain / least, f"{figure} {gain:+.3f} ({where})"))
            setattr(room, name, before)
            best, worst = (max(gains), min(gains)) if gains else ((0.0, ""), (0.0, ""))
            texts = best[1] if best[0] > 1 else "nothing", worst[1] if worst[0] < -1 else "nothing"
            shown = f"{before:g}" if isinstance(before, float) else str(before)
            shown = shown if len(shown) < 20 else ""
            print(f"| {module}: {title} | {shown} | {texts[0]} | {texts[1]} |", flush=True)
            keys = ("module", "name", "variant", "value", "pays", "costs", "gain", "loss")
            own = (module, name, title, shown, *texts, round(best[0], 2), round(worst[0], 2))
            rows.append(dict(zip(keys, own, strict=True)))
            if options.output:
                pd.DataFrame(rows).to_csv(options.output, index=False)


if __name__ == "__main__":
    main()
