"""Regression: histograms, bounded vectors and products, and the minimum of a perturbed loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from checker.laws import (
    Json,
    Loss,
    Unit,
    Unsupported,
    by_norm,
    delta_of_normal,
    delta_of_zcdp,
    expect,
    fraction,
    logarithm,
    upward,
    usual,
)

_STEPS = {"BallNoise": 2**20, "SupNorm": 2**30, "ClassRows": 2**40}  # Of a gradient.
_RECORD_STEPS = 2**15  # A vector of bounded length is counted in so many steps of its limit.


def histograms(asked: Json, law: Json, unit: Unit) -> Loss:
    """A record has one place in each column."""
    drawn = law["numbers"] if "numbers" in law else [*law["values"], law["n_classes"]]
    expect(drawn, f"noise for histograms of {asked['sizes']}", drawn == asked["sizes"])
    return by_norm(law, rows=unit.m, l1=unit.m * asked["columns"])


def vectors(asked: Json, law: Json, unit: Unit) -> Loss:
    """A record adds a vector of bounded length."""
    expect(asked["steps"], "the length of a vector", asked["steps"] == _RECORD_STEPS)
    return by_norm(law, l2=unit.m * asked["steps"])


def matrices(asked: Json, law: Json, unit: Unit) -> Loss:
    """A record adds vv' of bounded trace."""
    expect(asked["steps"], "the length of a vector", asked["steps"] == _RECORD_STEPS)
    expect(law["weights"], "equal weights", {*law["weights"]} == {"1/1"})
    return by_norm(law, trace=unit.m * asked["steps"] ** 2)


def curvature(asked: Json, law: Json, unit: Unit) -> Loss:
    """A record adds wq(1-q)xx', of trace at most w/4 times the limit on weighted squares."""
    weight = asked.get("heaviest", 1)
    usual(asked["grid"], 2**15)
    return by_norm(law, trace=unit.m * weight * Fraction(asked["limit"]) / 4 * asked["grid"] ** 2)


def bounded(asked: Json, law: Json, unit: Unit) -> Loss:
    """A record adds a number from 0 to 1 to every sum, in steps of the grid."""
    usual(asked["grid"], 2**20)
    expect(
        law["numbers"], f"noise for {asked['columns']} sums", law["numbers"] == [asked["columns"]]
    )
    return by_norm(law, l1=unit.k * asked["grid"] * asked["columns"])


def gradients(asked: Json, law: Json, unit: Unit) -> Loss:
    r"""The minimum of a loss with a perturbed gradient.

    The noise hides the gradient; determinants differ by :math:`(1+q/r)^{kr}` at most, q being the
    trace of a record's second derivatives over the ridge and r their rank; and jitter of the
    lattice hides where the search ended: one step from the minimum on either side, if the error of
    the gradient over the least ridge is no more than a step.
    """
    body, shape, ridge = law["body"], law["shape"], [Fraction(r) for r in law["ridge"]]
    errors = [0.0, body["inexact"], law["slack"], law["error"], law["step"] * float(min(ridge))]
    expect(errors, "a search that ends within a step", errors == sorted(errors))
    parts = [Fraction(s) / r for s, r in zip(shape["squares"], ridge, strict=True)]
    q = max(parts) if shape["together"] else sum(parts, Fraction(0))
    expect(law["jitter"], "noise of every parameter", law["jitter"]["sides"] == [1] * len(ridge))
    classes, one = asked.get("classes", 2), asked.get("ordered", False)
    # of second derivatives; a noise for each class, or one for a mean over the cuts of an order
    rank, noises = classes - 1, 1 if one or classes < 3 else classes
    expect(shape["rank"], f"a rank of {rank}", shape["rank"] == rank)
    jitter, volume = 2 / fraction(law["jitter"]["scale"]), unit.k * rank * logarithm(1 + q / rank)
    noise, moved = body["law"], unit.m * body["steps"]
    drawn, sizes = noise.get("n_classes", 1), noise.get("values", noise.get("numbers", [1])[:-1])
    usual(body["steps"], _STEPS.get(noise["type"], 1))
    p, copies = len(ridge), 1 if one else rank
    if not asked["signed"] and not one:
        least = [p + 2 * math.sqrt(2 * p) if shape["together"] else 1 / max(sizes, default=1)] * p
    else:
        heaviest = 1 if "classes" in asked else 2  # a record of a count is two of a label
        heaviest *= 4 * (1 - 1 / classes) / rank if copies > 1 else 1
        columns = [1 / k for k in sizes for _ in range(k - 1)]
        spread = [1.0] * (p // copies - len(columns)) + columns  # the constant, if any
        least = [heaviest / 4 * part for part in spread * copies]
    found = zip(least, shape["squares"], strict=True)
    expect(shape["squares"], "larger derivatives", all(x <= y * (1 + 1e-9) for x, y in found))
    expect(shape["together"], "sums", shape["together"] == (noise["type"] == "BallNoise"))
    expect(drawn, f"{noises} noises", drawn == noises)
    if noise["type"] != "DiscreteGaussian":
        # a point of a cell of rows is (K - 1/2) steps from its lattice point, in every copy
        cells = moved + noises * (2 * max(noise.get("values", [1])) - 1)
        loss = by_norm(noise, l2=moved, sup=moved, rows=cells).pure or Fraction(0)
        return Loss(loss + volume + jitter)
    expect(one, "Gaussian noise of classes without an order", not one)
    *blocks, constant = (fraction(v) for v in noise["parameters"])
    pairs = zip(noise["numbers"][:-1], blocks, strict=True)
    norm = 1 / constant + sum((1 - Fraction(1, size)) / v for size, v in pairs)
    ratio = moved * math.sqrt(norm) * (1 + 1e-12)
    eta = 45 * sum(noise["numbers"]) / (2 * math.sqrt(min(*blocks, constant)))

    def delta(epsilon: Fraction) -> float:
        left = float(epsilon - volume - jitter) - 2 * eta
        if left <= 0 or ratio**2 > 2 * (math.sqrt(1 + left**2) - 1):
            return 1.0
        if unit.m > 2:
            bound = 2 * delta_of_zcdp(Fraction(ratio) ** 2 / 2, Fraction(left))
        elif asked["signed"]:
            bound = delta_of_normal(ratio, left) + 2 * delta_of_normal(ratio / 2, left)
        else:
            bound = 2 * delta_of_normal(ratio, left)
        return bound * math.exp(eta + float(jitter) / 2) * (1 + 1e-9) + 1e-300

    return Loss(delta=delta)


def ball_scores(asked: Json, law: Json, unit: Unit) -> Loss:
    r"""Draws of a Gaussian in a ball: the score of a record has a bounded range there.

    :math:`ru - u^2/2` for :math:`|r| \le h, |u| \le b` has the range 2hb, or :math:`(h+b)^2/2` if
    b > h.
    """
    if asked["kind"].startswith("logistic"):
        spread = law["spread"]
        place = len(spread) - sum(k - 1 for k in law["sizes"])
        squares = sum(s**2 for s in spread[:place])
        for size in law["sizes"]:
            squares += (1 - 1 / size) * max(spread[place : place + size - 1], default=0.0) ** 2
            place += size - 1
        h, b = 2.0, law["radius"] * math.sqrt(squares) / 2
    else:
        h, b = law["limit"], law["radius"] * math.sqrt(law["squares"])
    one = unit.m * law["weight"] * (2 * h * b if b <= h else (h + b) ** 2 / 2)
    return Loss(law["draws"] * upward(one), law["draws"] * upward(one) ** 2 / 8)


def products(asked: Json, law: Json, unit: Unit) -> Loss:
    """Sums of products of coordinates in [-1, 1] or of levels, of which one in a column is 1."""
    kinds, column, grid = asked["kinds"], asked["column"], asked["grid"]
    usual(grid, 2**15)
    expect(kinds, "kinds of columns", {*kinds} <= {"constant", "number", "sign", "level"})
    pairs = list(zip(asked["rows"], asked["columns"], strict=True))
    present = sorted({i for pair in pairs for i in pair})
    weights = [fraction(w) for w in asked["weights"]]
    used = [i for i in range(len(kinds)) if i or len(weights) == len(kinds)]
    a = {i: w**2 for i, w in zip(used, weights, strict=True)}
    largest = {(column[i] if kinds[i] == "level" else ("", i)): a[i] for i in used}
    if any(kinds[i] == "level" and a[i] != largest[column[i]] for i in used):
        raise Unsupported("levels of a column with weights of their own")
    c, square = sum(largest.values(), Fraction(0)), Fraction(grid) ** 2
    if law["type"] == "DiscreteGaussian":
        return gaussian_products(pairs, kinds, a, c, law, square, unit)
    own = law.get("weights", asked["weights"])
    expect(own, "the weights of the plan", own == asked["weights"])
    sides = zip(pairs, law.get("sides", [1] * len(pairs)), strict=True)
    sup = max(Fraction(1 if unit.added or small(kinds, *pair) else 2, side) for pair, side in sides)
    levels = len({column[i] for i in present if kinds[i] == "level"})
    numbers = sum(kinds[i] == "number" for i in present)
    singles = numbers + sum(kinds[i] == "sign" for i in present)
    constant = any(i == 0 and kinds[j] in ("number", "sign") for i, j in pairs)
    l1 = Fraction((singles + constant) ** 2 + numbers, 2) + levels * (levels + 1 + 2 * singles)
    l1, sup = (
        len({(column[i], column[j]) for i, j in pairs}) if unit.added else l1,
        sup * min(law.get("sides", [1])),
    )
    # the trace of a weighted record is at most c
    return by_norm(
        law, l1=unit.k * l1 * square, sup=unit.k * sup * square, trace=unit.m * c * square
    )


def small(kinds: list[str], i: int, j: int) -> bool:
    """Tell whether a product lies between 0 and 1: a square, or levels and the constant."""
    return i == j or {kinds[i], kinds[j]} <= {"level", "constant"}


def gaussian_products(
    pairs: list[tuple[int, int]], kinds: list[str], a: dict[int, Fraction], c: Fraction,
    law: Json, square: Fraction, unit: Unit,
) -> Loss:  # fmt: skip
    r"""Weigh entries by :math:`a_i^2a_j^2`, squares by half of it and :math:`ca_i^2/2`.

    Then records have non-negative inner products, and a replaced one changes the sums by at most
    c² in squares; one that comes or goes by :math:`c(c + \ell)/2`, with the part of c that numbers
    have. Entries of less weight, that is of more noise, change by less.
    """
    noise = zip(map(fraction, law["parameters"]), law["numbers"], strict=True)
    variances = [v for v, count in noise for _ in range(count)]
    expect(len(pairs), "noise for every product", len(pairs) == len(variances))

    def weight(i: int, j: int) -> Fraction:
        if i != j:
            return a[i] * a[j]
        return a[i] * (a[i] / 2 + (c / 2 if kinds[i] == "number" else 0))

    # in units of the noise: the least variance for each weight that the bound needs
    scale = min(v * weight(*pair) for v, pair in zip(variances, pairs, strict=True))
    numeric = sum((a[i] for i in a if kinds[i] == "number"), Fraction(0))
    bound = c * (c + numeric) / 2 if unit.added else c * c
    rho = unit.k**2 * bound * square**2 / (2 * scale)
    eta = sum(Fraction(61**2, 8) / v for v in variances)

    def delta(epsilon: Fraction) -> float:
        """Wide discrete noise is continuous noise up to a factor of exp(eta)."""
        if 2 * rho > 256:
            return 1.0
        left = float(epsilon - 2 * eta)
        bound = delta_of_normal(math.sqrt(2 * rho) * (1 + 1e-12), left)
        return math.exp(float(eta)) * bound * (1 + 1e-9) + 1e-300

    return Loss(None, rho, delta)


REGRESSION: dict[str, Callable[[Any, Any, Unit], Loss]] = {
    **{"Histograms": histograms, "VectorSum": vectors, "ProductSum": matrices},
    **{"curvature": curvature, "gradients": gradients, "products": products, "bounded": bounded},
    **dict.fromkeys(("scores in a ball", "logistic scores in a ball"), ball_scores),
}
"""What may be asked for a regression, and how its loss is derived."""
