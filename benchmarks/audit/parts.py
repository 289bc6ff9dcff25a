"""Parts of every release, also where answers are forced, as a share of what was charged."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.pipeline import Pipeline

import dpbayes_sklearn as dp
from benchmarks.audit._cases import Case, Row, cases_of, silent
from benchmarks.audit._models import ADDED, PERSON, RECORD, THERE, line, naive_bayes
from benchmarks.audit._pairs import Answers
from benchmarks.audit._parts import (
    BINARY,
    BITS,
    CORNERS,
    NAN,
    SCHEMA,
    UNITS,
    Neighbourhood,
    added_up,
    claims,
    frame,
    judged,
    numbers,
    reached,
    recordings,
    same_steps,
    worlds,
)
from benchmarks.audit.tools.recording import (
    ModeSearch,
    Recording,
    ScoredChoice,
    Texts,
    planted,
    together,
)
from benchmarks.audit.tools.steps import Added, Choice
from dpbayes_sklearn._presenting import progress
from dpbayes_sklearn.bayesian_network import PrivateTree
from dpbayes_sklearn.convex.losses import HuberLoss
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.mechanisms import Sampler
from dpbayes_sklearn.model_selection.runs import held_out
from dpbayes_sklearn.noise import Noise
from dpbayes_sklearn.preprocessing import scalers
from dpbayes_sklearn.preprocessing.learned_schema import FrameDomains
from dpbayes_sklearn.privacy.budget import PrivacyUnit


def run(scale: float) -> Iterator[Row]:
    """Compare all worlds, or some, with their claims; then look at those with forced answers."""
    every = max(1, round(1 / scale))
    found = defaultdict[str, list[float]](list)
    for world in progress(worlds()[::every], "worlds"):
        found[world.name.partition(",")[0]].append(reached(world))
    for kind, drawn in found.items():
        figure, what = f"{min(drawn):.3f} to {max(drawn):.6f}", f"{kind}: {len(drawn)} worlds"
        yield Row(what, f"drawn / charged = {figure}", "<= 1", max(drawn) <= 1 + 1e-9)
    cases = parts()[::every]
    wrong = (finding for case in progress(cases, "cases") for finding in case.findings())
    yield silent(f"claims of {len(cases)} cases", wrong)


def parts() -> list[Case]:
    """Return all worlds, and those whose answers are forced."""
    searches = [(stop, delta) for stop in ("geometric", "logarithmic") for delta in (0.0, 1e-3)]
    return [
        *(Case(world.name, partial(judged, world)) for world in worlds()),
        *(Case(f"tree, {u.label}", partial(_tree, u)) for u in UNITS),
        *(Case(f"schema, {u.label}", partial(_schema, u)) for u in UNITS),
        *(Case(f"search, {s}, {d}", partial(_search, s, d)) for s, d in searches),
        *(
            Case(f"search, {u.label}, {d}", partial(_search_of, u, d))
            for u, d in product(UNITS, (0.0, 1e-3))
        ),
        *(Case(world.name, partial(judged, world)) for world in sessions()),
        *(Case(f"empty, {name}", partial(_empty, name)) for name in _SECRET),
        *cases_of(_small_released_size, _records_beyond_a_released_number, _end_of_a_search),
        *cases_of(_wide_columns, _search_of_nobody_knows_how_many),
    ]


def _search_of_nobody_knows_how_many() -> Iterator[str]:
    """See that nothing but the answers tells how many records a search has held out."""
    bayes = naive_bayes(inference="plug_in", privacy_unit=ADDED)
    search = dp.PrivateSearchCV(bayes, {"alpha": [1.0]}, test_size=0.5, runs_per_candidate=1)
    others = frame([(i % 2, i % 3 % 2, i % 2) for i in range(40)])
    for place in (38, 39, 40):  # others keep their coins
        world = Neighbourhood(
            "search", search, others.head(place), ((1, 1, 0),), ADDED, place=place
        )
        found, fitted = recordings(world)
        if not same_steps(found) or len({model.best_score_ for model, _ in fitted}) > 1:
            yield "a search tells how many records were held out"


def _said(kind: Any, answer: Any) -> Recording:
    """Return a past in which the first step said something."""
    past = Recording()
    past.said.append((kind, answer))
    return past


def _tree(unit: PrivacyUnit) -> Iterator[str]:
    """Add up the question and all edges, if the answer is that there is a tree."""
    bits = frame([(i % 2, i % 2, 0, i % 2) for i in range(120)])
    world = Neighbourhood(f"tree, {unit.label}", PrivateTree(2.0, schema=BINARY), bits, BITS, unit)
    lengths = []
    for answer in (0, 1):
        past = _said(ScoredChoice, np.array([answer]))
        lengths.append(len(recordings(world, past)[0][0].steps))
        yield from judged(world, past)
    if max(lengths) < 3:
        yield f"tree, {unit.label}: no edge was chosen"


def _schema(unit: PrivacyUnit) -> Iterator[str]:
    """Learn ranges and categories where texts are nearly never or always published, or as often."""
    for bins in (4, None):
        model = FrameDomains(8.0, delta=1e-3, bins=bins)
        reach = _reach(model, unit)
        k = unit.max_records
        counts = {"edge": 2 * reach - k + 1, "less": reach - k, "more": reach + 1}
        texts = [text for text, count in counts.items() for _ in range(count)] + ["common"] * 400
        rows = [(float(i % 7), float(i % 3), text, text, 0) for i, text in enumerate(texts)]
        own = [
            (v, v, t, t, 0) for v, t in ((-1e6, "u"), (1e6, "edge"), (-1e6, "less"), (9, "more"))
        ]
        name = f"schema of {bins} bins, {unit.label}"
        yield from judged(Neighbourhood(name, model, frame(rows), tuple(own), unit, 0.6))


def _reach(model: Any, unit: PrivacyUnit) -> int:
    world = Neighbourhood(
        "", model, frame([(0.0, 1.0, "t", "t", 0)] * 400), ((0.0, 1.0, "t", "t", 0),), unit
    )
    (texts,) = (s for s in recordings(world)[0][0].steps if isinstance(s, Texts))
    return texts.columns[0][0].reach


def _search(stopping: str, delta: float) -> Iterator[str]:
    """Add up every run: one whom it was fitted to, or who was held out, sees one of its parts."""
    rng = np.random.default_rng(2)
    bayes = naive_bayes(inference="plug_in")
    others = frame(rng.integers(0, 2, (60, 3)).tolist())
    own = ((0, 0, 0), (1, 1, 1), (0, 0, 1), (1, 1, 0))
    steps = Pipeline([("bins", scalers.PrivateKBinsDiscretizer(2)), ("model", bayes)])
    models = [(bayes, ""), (line(), ""), *([] if delta else [(steps, "model__")])]
    sides = held_out(len(others) + 1, None, RECORD, 0.5, Noise.of(0, stream=1))
    searches = []
    for (model, of), place in product(models, [int(side[0]) for side in sides]):
        grid = {f"{of}mechanism": ["gaussian" if delta else "laplace"]}
        found = _halves(model, grid, delta, stopping=stopping)
        searches.append(Neighbourhood("", found, others, own, place=place))
    yield from _searched(f"search, {stopping}, {delta:g}", searches)


def _halves(model: Any, grid: Any, delta: float, **options: Any) -> dp.PrivateSearchCV:
    return dp.PrivateSearchCV(
        model, grid, epsilon=0.9, delta=delta, test_size=0.5, runs_per_candidate=2, **options
    )


def _search_of(unit: PrivacyUnit, delta: float) -> Iterator[str]:
    """Do the same for another unit, of whom some records lack their class."""
    rng = np.random.default_rng(2)
    rows = [(*row, float(y)) for *row, y in rng.integers(0, 2, (60, 3)).tolist()]
    others = frame([(*row[:2], NAN) if i % 9 == 0 else row for i, row in enumerate(rows)])
    own = ((0, 0, 0), (1, 1, 1), (0, 0, 1), (1, 1, 0), (1, 1, NAN))
    model = naive_bayes(inference="plug_in", privacy_unit=unit)
    found = _halves(model, {"mechanism": ["gaussian" if delta else "laplace"]}, delta)
    # whoever comes last changes nobody's coin
    worlds = [Neighbourhood("", found, others.head(n), own, unit, place=n) for n in range(56, 61)]
    yield from _searched(f"search, {unit.label}, {delta:g}", worlds)


def _searched(name: str, searches: list[Neighbourhood]) -> Iterator[str]:
    """Compare what every run loses, by its fit or by its score, with the price of the search."""
    seen = np.zeros(2, bool)
    for world in searches:
        found, fitted = recordings(world)
        if not same_steps(found):
            yield f"{name}: which steps are taken depends on the data"
            continue
        law, delta = world.model._mechanism.law_of_runs(1), world.model.delta
        claim = min(float(epsilon) for _, epsilon, *_ in claims(*fitted[0]))
        for first, last in zip(found[0].runs, [*found[0].runs[1:], None], strict=True):
            *fit, score, asked = added_up(found, world.pairs, 0.0, slice(first, last))
            costs = [_price(together(part), law, delta) for part in ([*fit, asked], [score])]
            seen |= np.array(costs) > 0.3
            if max(costs) > claim * (1 + 1e-9):
                yield f"{name}: the best of all runs loses {max(costs):g}"
    if not seen.all():
        yield f"{name}: nobody was fitted to, or nobody held out"


def _price(part: Any, law: Any, delta: float) -> float:
    """Return what the best of all runs loses; by zCDP (Papernot and Steinke 2022, Theorem 2)."""
    if not delta:
        return float((2 + law.eta) * part.pure)
    rho, shape, log_inverse = max(part.rho, 1e-12), 1 + law.eta, math.log(law.inverse)
    others = 1 + np.geomspace(1e-6, 1e4, 4001)
    of_others = shape * ((others - 1) * rho + log_inverse / others)
    orders = 1 + np.geomspace(1e-3, 1e5, 40_001)
    winner = orders * rho + of_others.min() + math.log(law.mean) / (orders - 1)
    gap = np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    return float((winner + gap).min())


def sessions(queries: int = 3, epsilon: float = 1.0) -> Iterator[Neighbourhood]:
    """Yield sessions of several queries, whose draws, and a secret number, are added up."""
    bits, codes = frame([(0, 0, 0, 0)] * 200), frame([(0, 0)] * 40)
    bayes = naive_bayes(mechanism="sampler")
    slopes = dp.BayesianLinearRegression(mechanism="sampler", schema=SCHEMA)
    shares = dp.DirichletMultinomial(categories=3, mechanism=Sampler())
    numeric, ends = frame([(0.0, 0.5, 0)] * 40), ((-1e6, 0.0, 0), (1e6, 1.0, 0), (NAN, 0.5, 0))
    some = ((0, 0), (1, 0), (2, 0))
    for model, others, own, units in (
        (bayes, bits, BITS, UNITS),
        (slopes, numbers(2000), CORNERS, (RECORD, ADDED)),
        (dp.BetaBinomial(mechanism=Sampler()), codes, some[:2], UNITS),
        (shares, codes, some, UNITS),
        (dp.NormalMean(mechanism="sampler", bounds=(0, 1)), numeric, ends, (RECORD, PERSON)),
        (dp.GammaExponential(mechanism="sampler", bounds=(0, 1)), numeric, ends, (RECORD, PERSON)),
    ):
        for unit in units:
            name = f"session, {unit.label}, {type(model).__name__}"
            asked = clone(model).set_params(epsilon=epsilon, privacy_unit=unit)
            yield Neighbourhood(name, Answers(asked, queries), others, own, unit, 0.6)


def _secret() -> dict[str, tuple[Any, Any, Any]]:
    """Return models that release the number of records, records of nobody, and own ones."""
    bits, table = frame([(0, 0, 0, 0)]), frame([(0.5, 0.5, 0)])
    models: dict[str, tuple[Any, Any, Any]] = {
        f"counts, {m}": (naive_bayes(mechanism=m), bits, BITS)
        for m in ("laplace", "fourier", "sampler", "map")
    }
    for m in ("laplace", "sampler"):
        slopes = dp.BayesianLinearRegression(mechanism=m, schema=SCHEMA)
        models[f"regression, {m}"] = slopes, numbers(1), CORNERS
    ends = ((-1e6, -1e6, 0), (1e6, 1e6, 0), (NAN, NAN, 0))
    for model in (
        scalers.PrivateMinMaxScaler(),
        scalers.PrivateStandardScaler(),
        scalers.PrivateKBinsDiscretizer(4),
    ):
        models[type(model).__name__] = model, table, ends
    models["coin"] = dp.BetaBinomial(), frame([(0, 0)]), ((0, 0), (1, 0))
    models["columns"] = PrivateSelectKBest(2, schema=BINARY), bits, BITS
    models["tree"] = PrivateTree(schema=BINARY), bits, BITS
    return models


def _empty(name: str) -> Iterator[str]:
    """Compare nobody with one unit: even that must not show."""
    model, others, own = _secret()[name]
    for unit in (ADDED, THERE):
        world = Neighbourhood(f"empty, {name}, {unit.label}", model, others.head(0), own, unit)
        try:
            yield from judged(world)
        except (ValueError, IndexError, ZeroDivisionError) as error:
            yield f"{world.name}: {type(error).__name__}"


def _small_released_size() -> Iterator[str]:
    """Release a number of records that is far too small, which noise can make."""
    past = _said(Added, (np.array([1]),))
    for name in ("counts, sampler", "counts, map", "counts, laplace", "regression, sampler"):
        model, others, own = _secret()[name]
        many = pd.concat([others] * 1500, ignore_index=True)
        for unit in (ADDED, THERE):
            world = Neighbourhood(f"a small number, {name}, {unit.label}", model, many, own, unit)
            yield from judged(replace(world, model=clone(model).set_params(epsilon=10.0)), past)


def _records_beyond_a_released_number() -> Iterator[str]:
    """See that counts and losses beyond a released number of records change nothing."""
    rng = np.random.default_rng(3)
    for mechanism, known, size in (("laplace", 100, 1400), ("sampler", 1, 9000), ("map", 1, 9000)):
        model = naive_bayes(10.0, mechanism=mechanism, inference="plug_in")
        sides = [_said(Added, (np.array([known]),))]
        for n in (size, size + 100):
            others = frame(rng.integers(0, 2, (n, 4)).tolist())
            world = Neighbourhood("", model, others, BITS[:1], ADDED)
            sides.append(recordings(world, sides[-1])[0][0])
        one, two = ([s for s in side.steps if isinstance(s, Choice)] for side in sides[1:])
        if not one or any((a.weights != b.weights).any() for a, b in zip(one, two, strict=True)):
            yield f"{mechanism}: more records are drawn from than were released"


def _end_of_a_search() -> Iterator[str]:
    """See that the search for a mode ends near it: by small steps, or from a part of the records.

    One of every few records of a long table is where it starts.
    """
    real = HuberLoss.curvature

    def steep(self: Any, w: Any) -> Any:
        return 3 * real(self, w) + np.eye(len(w))

    for mechanism, n in (("map", 2000), ("sampler", 2000), ("auto", 45_000)):
        model = dp.BayesianLinearRegression(mechanism=mechanism, schema=SCHEMA)
        world = Neighbourhood(f"mode, {mechanism}", model, numbers(n), CORNERS[:1])
        with planted((HuberLoss, "curvature", steep)):
            found = recordings(world)[0][0].steps
        ends = [step.distance for step in found if isinstance(step, ModeSearch)]
        if not (ends and max(ends) <= 1):
            yield f"the search for a mode ends {ends} steps away"


def _wide_columns() -> Iterator[str]:
    """Choose among columns of four values for three classes, of few records."""
    columns = {name: dp.Interval(0, 3, bins=4) for name in "ab"}
    schema = dp.Schema(columns, dp.Categories([0, 1, 2]))
    own = [(0, 0, 0), (1, 1, 1), (2, 2, 2), (3, 0, 1)]
    others = frame([(0, 0, 0), (0, 0, 1), (1, 1, 0)])  # where a new value of a new class tells most
    yield from judged(
        Neighbourhood("wide columns", PrivateSelectKBest(1, schema=schema), others, tuple(own))
    )


_SECRET = tuple(_secret())
