"""Counts, sums, ranks and choices: by how much a record changes them, and what draws lose."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise, product
from operator import add, sub
from typing import Any, NamedTuple

import numpy as np

from checker.laws import (
    UP,
    Json,
    Loss,
    Unit,
    Unsupported,
    by_norm,
    expect,
    fraction,
    gaussian,
    over,
    upward,
    usual,
)

_MOST_CANDIDATES = 2_500  # So many outcomes are compared, pair by pair.
_LOSS_STEPS, _LOSS_CLIP = 1024, 3.3  # Losses: steps of a nat, and nats above a uniform guess.


class Graph(NamedTuple):
    """A network of discrete variables, the class last."""

    sizes: list[int]
    parents: list[list[int]]

    @classmethod
    def of(cls, json: Json) -> Graph:
        """Read it; without parents it is a star around the class."""
        sizes, last = list(json["sizes"]), len(json["sizes"]) - 1
        parents = json["parents"]
        return cls(sizes, [[last]] * last + [[]] if parents is None else [list(p) for p in parents])

    @property
    def star(self) -> bool:
        """Whether the class is the only parent of every other variable, and has none."""
        last = len(self.sizes) - 1
        return self.parents == [[last]] * last + [[]]

    @property
    def families(self) -> list[set[int]]:
        """The variables of every table."""
        return [{u, *above} for u, above in enumerate(self.parents)]

    @property
    def cells(self) -> list[int]:
        """How many cells every table has."""
        return [math.prod(self.sizes[u] for u in family) for family in self.families]

    def changes(self, unit: Unit) -> list[set[int]]:
        """Return the sets of tables that one record of the unit may change."""
        movable = {t for t, cells in enumerate(self.cells) if cells > 1}
        if unit.added:
            return [set(range(len(self.sizes)))]
        if unit.name != "feature":
            return [movable]
        features = [u for u in range(len(self.sizes) - 1) if self.sizes[u] > 1]
        return [{t for t in movable if u in self.families[t]} for u in features] or [set()]


def tables(asked: Json, law: Json, unit: Unit) -> Loss:
    """A record is in one cell of every table: it leaves one, and comes to another."""
    graph, sides = Graph.of(asked), 1 if unit.added else 2
    if law["type"] == "ClassRows":
        own = [*law["values"], law["n_classes"]]
        expect(own, "noise for the tables of naive Bayes", graph.star and own == graph.sizes)
        return by_norm(law, rows=unit.m * any(graph.changes(unit)))  # a record is in one class
    expect(
        law["numbers"], f"noise for tables of {graph.cells} cells", law["numbers"] == graph.cells
    )
    if law["type"] == "DiscreteGaussian":
        noise = [fraction(v) for v in law["parameters"]]
        each = [gaussian([(noise[t], sides) for t in s], unit.k) for s in graph.changes(unit)]
        return max(each, key=lambda loss: loss.rho or 0)
    noise = [fraction(b) for b in law["scales"]]
    return Loss(
        max(sum((over(unit.m, noise[t]) for t in s), Fraction(0)) for s in graph.changes(unit))
    )


def characters(asked: Json, law: Json, unit: Unit) -> Loss:
    """A record adds 1 or -1 to sums, or nothing: a replaced one changes each by 2 at most."""
    graph = Graph.of(asked)
    supports = {s for family in graph.families for s in subsets(sorted(family))}
    sums = sum(math.prod(graph.sizes[u] - 1 for u in s) for s in supports)
    numbers = sum(law["numbers"]) if "numbers" in law else len(law["sides"])
    expect(numbers, f"noise for {sums} sums", numbers == sums)
    l1 = {} if law["type"] == "SupNorm" else {"l1": unit.k * change_of_characters(graph, unit)}
    return by_norm(law, sup=unit.m, **l1)


def change_of_characters(graph: Graph, unit: Unit) -> int:
    """Return the L1 norm of the change that a record of naive Bayes makes in sums of characters.

    Values v, w have D and E characters, share r with one sign and s with both. Of a set of
    variables they have all products, of which those with an even number of signs cancel.
    """
    if not graph.star:
        raise Unsupported("independent noise of characters is derived for naive Bayes alone")

    def moved(*pairs: tuple[int, int, int, int]) -> int:
        d, e, r, s = zip(*pairs, strict=True)
        both = [math.prod(map(f, r, s)) for f in (add, sub)]
        return math.prod(d) if unit.added else math.prod(d) + math.prod(e) - sum(both)

    def pairs(size: int, same: bool = False) -> set[tuple[int, int, int, int]]:
        found, way = set(), paths(size)
        for v, w in product(range(size), repeat=2):
            signs = [way[v][split] == way[w][split] for split in way[v].keys() & way[w].keys()]
            if v == w or not same:
                found.add((len(way[v]), len(way[w]), sum(signs), len(signs) - sum(signs)))
        return found

    *sizes, last = graph.sizes
    if unit.name == "feature":
        each = (moved(t) + moved(t, c) for c in pairs(last, True) for n in sizes for t in pairs(n))
        return max(each, default=0)
    own = {c: [max(moved(t) + moved(t, c) for t in pairs(n)) for n in sizes] for c in pairs(last)}
    return max(moved(c) + sum(each) for c, each in own.items())


def subsets(items: list[int]) -> Iterator[tuple[int, ...]]:
    """Yield all subsets but the empty one."""
    if len(items) > 12:
        raise Unsupported("a table of more than 12 variables")
    for bits in range(1, 2 ** len(items)):
        yield tuple(u for i, u in enumerate(items) if bits >> i & 1)


@cache
def paths(size: int) -> list[dict[int, int]]:
    """Return, for every value, the splits above it and the side it is on: a balanced tree."""
    found: list[dict[int, int]] = [{} for _ in range(size)]
    waiting, split = [(0, size)], 0
    while waiting:
        start, stop = waiting.pop()
        if stop - start > 1:
            middle = (start + stop + 1) // 2
            for value in range(start, stop):
                found[value][split] = 1 if value < middle else -1
            waiting += [(middle, stop), (start, middle)]
            split += 1
    return found


def rounding(points: int, magnitude: float) -> float:
    """Return what integer weights of so many points add to a loss at most."""
    half = -(-(points - 1).bit_length() // 2)
    errors = 2.0 ** (half - 32) * (1 + 2.0**-20) + 2.0**-33 + magnitude * 2.0**-50
    return 2.0 ** (half - 31) + 4 * errors


def splits(asked: Json, law: Json, unit: Unit) -> Loss:
    """Rows are trees of splits, each drawn from its tempered law on a grid of log odds."""
    if law["type"] != "TemperedLaw":
        raise Unsupported("the exponential mechanism by posterior mass is not derived here")
    graph, n, tau = Graph.of(asked), asked["turns"], law["tau"]
    points, omega = law["grid"]["points"], law["grid"]["omega"]
    reach = math.log1p(-omega) - math.log(omega)
    left = -np.logaddexp(0.0, -np.linspace(-1.0, 1.0, points) * reach)
    right = left[::-1]

    def worst(a: float, b: float, change: Any, corners: list[tuple[float, float]]) -> float:
        """Return the largest log ratio of weights that are multiplied by exp(change)."""
        found = 0.0
        for more, less in corners:
            logs = (a + more) * left + (b + less) * right
            weight = np.exp(logs - logs.max())
            mean = math.log(float((weight * np.exp(change)).sum() / weight.sum()))
            found = max(found, float(change.max()) - mean, mean - float(change.min()))
        return found

    @cache
    def split(a: float, b: float) -> tuple[float, float, float, float]:
        """Return loss and rho of a split that is turned, and of one with a turn more or less."""
        extra = rounding(points, (abs(a) + abs(b) + tau * n) * -float(left[0]))
        ends = [(tau * (n - 1), 0.0), (0.0, tau * (n - 1))]
        turned = worst(a, b, tau * (left - right), [(tau * (n - 1), tau), (0.0, tau * n)])
        more = max(worst(a, b, tau * left, ends), worst(a, b, tau * right, ends))
        rhos = [(j * tau * reach + 4 * extra) ** 2 / 8 for j in (2, 1)]
        return turned + 2 * extra, more + 2 * extra, *rhos

    def whole(turn: int) -> float:
        """Return the loss (0), or the rho (2), of all tables for the worst change of a record."""
        within, path = [], []
        for size, (a, b) in zip(graph.sizes, law["powers"], strict=True):
            expect(size, "a split less than values", len(a) == len(b) == size - 1)
            cost = [split(float(x), float(y)) for x, y in zip(a, b, strict=True)]
            path.append(max(sum(cost[s][turn + 1] for s in one) for one in paths(size)))
            most = 0.0
            for one, other in product(paths(size), repeat=2):
                turned = (s for s in one.keys() & other.keys() if one[s] != other[s])
                apart = sum(cost[s][turn + 1] for s in one.keys() ^ other.keys())
                most = max(most, sum(cost[s][turn] for s in turned) + apart)
            within.append(most)
        if unit.added:
            return unit.k * sum(path)
        moved = [max(w, 2 * p) for w, p in zip(within, path, strict=True)]
        if unit.name != "feature":
            each = zip(graph.parents, moved, within, strict=True)
            return unit.k * max(sum(m if above else w for above, m, w in each), sum(path))
        below = (
            [i for i, above in enumerate(graph.parents) if u in above]
            for u in range(len(within) - 1)
        )
        return max(
            (within[u] + sum(moved[i] for i in own) for u, own in enumerate(below)), default=0
        )

    draws = asked["draws"]
    return Loss(draws * upward(whole(0)), draws * unit.k * upward(whole(2)))


def categories(asked: Json, law: Json, unit: Unit) -> Loss:
    """A record is in one category: a replaced one leaves a count for another."""
    size = asked["categories"]
    cells = law["cells"] if law["type"] == "ZeroSum" else law["numbers"][0]
    expect(cells, f"noise for {size} categories", size - (not unit.added) <= cells <= size)
    changed = 1 if unit.added else min(2, cells) if size > 1 else 0
    expect(law, "noise that hides the number", not unit.added or law["type"] != "ZeroSum")
    if law["type"] == "DiscreteGaussian":
        return gaussian([(fraction(law["parameters"][0]), changed)], unit.k)
    return by_norm(law, l1=unit.k * changed)


def candidates(asked: Json, law: Json, unit: Unit) -> Loss:
    """All data sets, neighbours and outcomes are gone through, with the weights that are drawn."""
    n, prior = asked["n"], asked["prior"]
    if unit.added or law["kind"] != "hellinger":
        raise Unsupported("only choices by Hellinger distance among a public number of records")
    if math.comb(n + len(prior) - 1, n) > _MOST_CANDIDATES:
        raise Unsupported(f"there are more than {_MOST_CANDIDATES:,} candidates to compare")
    counts = np.array(list(compositions(n, len(prior))))
    table = [np.array([math.lgamma(a + t / 2) for t in range(2 * n + 1)]) for a in prior]
    own = sum(t[2 * counts[:, i]] for i, t in enumerate(table))
    both = sum(t[counts[:, i][:, None] + counts[:, i]] for i, t in enumerate(table))
    distance = np.sqrt(-np.expm1(np.minimum(both - (own[:, None] + own) / 2, 0.0)))
    np.fill_diagonal(distance, 0.0)
    logs = -distance * law["exponent"] / np.array(law["sensitivity"])[:, None]
    logs -= logs.max(axis=1, keepdims=True)
    half = -(-(len(counts) - 1).bit_length() // 2)
    shares = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    weights = np.rint(np.ldexp(np.maximum(shares, 2.0 ** -(31 + half)), 62))
    logs = np.log(weights) - np.log(weights.sum(axis=1, keepdims=True))
    place, worst = {tuple(c): i for i, c in enumerate(counts.tolist())}, 0.0
    for x, row in place.items():
        for i in range(len(x)):
            for j in range(len(x)):
                if i != j and x[i]:
                    moved = tuple(c - (u == i) + (u == j) for u, c in enumerate(x))
                    worst = max(worst, float((logs[row] - logs[place[moved]]).max()))
    return Loss(unit.k * upward(worst + 1e-9))


def compositions(n: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield all lists of so many counts with sum n, in lexicographic order."""
    for bars in combinations(range(n + parts - 1), parts - 1):
        ends = (-1, *bars, n + parts - 1)
        yield tuple(stop - start - 1 for start, stop in pairwise(ends))


def sums(asked: Json, law: Json, unit: Unit) -> Loss:
    """A replaced record changes every sum by all steps of the grid at most."""
    if unit.added:
        raise Unsupported("sums of records that come or go")
    usual(asked["grid"], 2**20)
    moved = unit.k * asked["grid"]
    return by_norm(law, sup=moved, l1=moved * asked["columns"])


def tempered(asked: Json, law: Any, unit: Unit) -> Loss:
    """Draws from posteriors of means or rates, whose log ratios are extreme at the ends."""
    n, points, whole, rho = asked["n"], asked["points"], 0.0, 0.0
    for f, (low, high), t in zip(asked["families"], asked["bounds"], asked["tempers"], strict=True):
        if f["type"] == "NormalFamily":
            theta = np.linspace(f["low"], f["high"], points)
            eta, own = theta / f["noise_variance"], (theta - f["mean"]) ** 2 / f["variance"]
            own = -(own + t * n * theta**2 / f["noise_variance"]) / 2
        else:
            theta = np.geomspace(f["low"], f["high"], points)
            eta, own = -theta, (f["shape"] + t * f["weight"] * n) * np.log(theta)
            own = own - f["rate"] * theta
        moved = min(unit.k, n) * (high - low)
        ends = np.array([n * low, n * low + moved, n * high - moved, n * high])
        logs = t * eta * ends[:, None] + own
        largest = t * float(np.abs(eta).max()) * max(abs(n * low), abs(n * high))
        extra = rounding(points, largest + float(np.abs(own).max()))
        logs -= np.logaddexp.reduce(logs, axis=1, keepdims=True)
        ratios = np.abs(np.stack([logs[0] - logs[1], logs[2] - logs[3]]))
        whole += float(ratios.max()) + extra
        rho += (t * float(abs(eta[-1] - eta[0])) * unit.k * (high - low) + 2 * extra) ** 2 / 8
    # what rounding may add is far above the error of these floats, so they are not rounded up
    return Loss(asked["draws"] * Fraction(whole) / UP, asked["draws"] * upward(rho))


def losses(asked: Json, law: Json, unit: Unit) -> Loss:
    """A loss of a record lies between 0 and a bound; one that comes moves all sums one way."""
    most = math.ceil(_LOSS_STEPS * (_LOSS_CLIP + math.log(asked["classes"])))
    return Loss(fraction(law["epsilon"]) * unit.m * most / law["spread"])


def ranks(asked: Json, law: Json, unit: Unit) -> Loss:
    """The distance of a point from a quantile, in ranks, changes by a range of 2 max(q, 1-q)."""
    total = Fraction(0)
    for question, levels in zip(law["each"], asked["columns"], strict=True):
        bins = question.get("n_bins")
        known = tree_ranges(bins) if bins else []
        first = levels[: len(levels) - len(known)]
        allowed: list[list[Any]] = [[], [(2, 1), (2, 2)], [(2, 1), (4, 2)]]
        found = [(fraction(o["replaced"]), fraction(o["moved"])) for o in first]
        if question["type"] == "OuterQuantiles" and question["bounds"] is not None:
            ends = [fraction(question[side]) for side in ("low", "high")]
            allowed = [[(2, 2 * max(q, 1 - q)) for q in ends]]
        if found not in allowed:
            raise Unsupported(f"the questions of {question['type']} are not derived here")
        for level, (replaced, moved) in zip(levels, [*found, *known], strict=True):
            spent = fraction(level["rate"]) * unit.k * (moved if unit.added else replaced)
            total += spent
    return Loss(total * UP)


def tree_ranges(bins: int) -> list[tuple[Fraction, Fraction]]:
    """Return the ranges of the levels of a recursion from the median: replaced, come or gone."""
    found: dict[int, list[Fraction]] = {}
    waiting = [(0, bins - 2, 0)]
    while waiting:
        first, last, level = waiting.pop()
        if first <= last:
            middle = (first + last) // 2
            q = Fraction(middle - first + 1, last - first + 2)
            found.setdefault(level, []).append(2 * max(q, 1 - q))
            waiting += [(first, middle - 1, level + 1), (middle + 1, last, level + 1)]
    # parts of a level are disjoint: a record leaves one and comes to another
    each = [sorted(found[level])[-2:] for level in sorted(found)]
    return [(max(Fraction(2), sum(pair, Fraction(0))), pair[-1]) for pair in each]


def number_of_records(asked: str, law: Json, unit: Unit) -> Loss:
    """Those of a unit, k at most, change a number of records."""
    return by_norm(law, l1=unit.k)


COUNTS: dict[str, Callable[[Any, Any, Unit], Loss]] = {
    **dict.fromkeys(("records", "records without a target"), number_of_records),
    **{"tables": tables, "characters": characters, "splits": splits, "losses": losses},
    **{"categories": categories, "candidates": candidates, "sums": sums, "tempered": tempered},
    **{"ranks": ranks},
}
"""What may be asked about counts, and how its loss is derived."""
