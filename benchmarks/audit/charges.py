"""Every charge, epsilon, delta and zCDP, compared with what was drawn, whatever way records take.

A way is what a user may do with a model: count records by weights, leave targets out, pass sparse
rows, fit in batches or from shards, ask queries, evaluate, or cross-validate. Every way is gone for
every unit, with a delta and without one. The laws are recorded at the samplers: what they lose
between neighbours is never more than was charged and promised, and neither is what all releases
cost that tell neighbours apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, clone, is_classifier

import dpbayes_sklearn as dp
from benchmarks.audit._cases import Case, Row, cases_of, crossings, refused, silent
from benchmarks.audit._models import ADDED, FEATURE, PERSON, RECORD, THERE, line, naive_bayes
from benchmarks.audit._pairs import Answers
from benchmarks.audit._parts import CORNERS, NAN, SCHEMA, Neighbourhood, frame, judged, numbers
from benchmarks.audit.tools.recording import Part, Recording, covered
from dpbayes_sklearn._presenting import progress
from dpbayes_sklearn.bayesian_network import PrivateTree
from dpbayes_sklearn.feature_selection import PrivateSelectKBest
from dpbayes_sklearn.mechanisms import MAP, Sampler
from dpbayes_sklearn.metrics import private_cross_validate, private_score
from dpbayes_sklearn.noise import made_by
from dpbayes_sklearn.shards import ExactStatistics, merge


def run(scale: float) -> Iterator[Row]:
    """Go every way for every unit with every mechanism."""
    cases = [*(Case(w.name, partial(judged, w)) for w in worlds(True)), *_others()]
    some = cases[:: max(1, round(1 / scale))]
    wrong = (finding for case in progress(some, "cases") for finding in case.findings())
    yield silent(f"charges, promises and draws of {len(some)} cases", wrong)


def charges() -> list[Case]:
    """Return every way with a few mechanisms, and what is left of a budget."""
    return [*(Case(w.name, partial(judged, w)) for w in worlds()), *_others()]


def _others() -> list[Case]:
    return [
        *(Case(f"sparse rows, {u.label}", partial(_sparse_rows, u)) for u in (*UNITS, FEATURE)),
        *cases_of(_proven_for_persons, _allotments, _what_is_left),
    ]


class Way(BaseEstimator):
    """A way to use a model; what it tells of the records besides the model is ``told_``."""

    def __init__(
        self,
        model: Any,
        delta: float = 0.0,
        privacy_unit: Any = RECORD,
        accountant: Any = None,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.delta = delta
        self.privacy_unit = privacy_unit
        self.accountant = accountant
        self.random_state = random_state

    @property
    def own(self) -> Any:
        """The model with the unit, ledger and seed of the way."""
        given = {name: getattr(self, name) for name in ("accountant", "random_state")}
        return clone(self.model).set_params(privacy_unit=self.privacy_unit, **given)

    def fit(self, X: Any, y: Any, groups: Any = None) -> Way:
        """Go."""
        self.guarantee_ = self.gone(X, y, groups)
        return self

    def gone(self, X: Any, y: Any, groups: Any) -> Any:
        """Return what is promised."""
        raise NotImplementedError

    @property
    def _asked(self) -> dict[str, Any]:
        given = {name: getattr(self, name) for name in ("delta", "accountant", "random_state")}
        return {"scoring": SCORING[is_classifier(self.model)], "epsilon": 1.0, **given}

    def _told(self, found: Any) -> Any:
        self.told_ = found.scores, found.n_records
        return found.guarantee


class Weighted(Way):
    """Count records by the weights in the last column."""

    def gone(self, X: Any, y: Any, groups: Any) -> Any:
        """Fit with weights."""
        return self.own.fit(X, y, groups, sample_weight=X.columns[-1]).guarantee_


class Sparse(Way):
    """Pass a sparse matrix."""

    def gone(self, X: Any, y: Any, groups: Any) -> Any:
        """Fit to it."""
        return self.own.fit(csr_array(X.to_numpy(float)), y, groups).guarantee_


class Batches(Way):
    """Add a batch of others, of a smaller delta; a column says who is in it."""

    def gone(self, X: Any, y: Any, groups: Any) -> Any:
        """Fit in turn."""
        model = self.own
        for part, delta in ((0, model.delta), (1, model.delta / 1000)):
            model.set_params(delta=delta).partial_fit(**_part(part, X, y, groups))
        return model.guarantee_


class Shards(Way):
    """Merge exact statistics, of which some were sent; a column says whose they are."""

    def gone(self, X: Any, y: Any, groups: Any) -> Any:
        """Merge and fit."""
        model = self.own
        sent, kept = (model.exact_statistics(**_part(part, X, y, groups)) for part in (0, 1))
        arrived = ExactStatistics.from_bytes(sent.to_bytes())
        return model.fit_statistics(merge([arrived, kept])).guarantee_


class Scored(Way):
    """Evaluate a model of public records."""

    def gone(self, X: Any, y: Any, groups: Any) -> Any:
        """Score it."""
        model = self.own.set_params(accountant=None, privacy_unit="record")
        model.fit(BITS_X, BITS_Y)
        more = {"groups": groups, "privacy_unit": self.privacy_unit, **self._asked}
        return self._told(private_score(model, X, y, **more))


class CrossValidated(Way):
    """Evaluate fits to all folds but one."""

    def gone(self, X: Any, y: Any, groups: Any) -> Any:
        """Cross-validate."""
        model = self.own.set_params(accountant=None, random_state=None)
        return self._told(private_cross_validate(model, X, y, cv=3, groups=groups, **self._asked))


def _part(part: int, X: Any, y: Any, groups: Any) -> dict[str, Any]:
    """Return the arguments of some records, with their weights if there are any."""
    rows = np.flatnonzero(X["part"] == part)
    own = X.iloc[rows]
    found = {"X": own.drop(columns=["part", "w"], errors="ignore"), "y": y[rows]}
    found |= {} if groups is None else {"groups": groups[rows]}
    return found | ({"sample_weight": own["w"].to_numpy()} if "w" in own else {})


SCORING = {
    True: ("accuracy", "log_loss", "confusion_matrix"),
    False: ("r2", "rmse", "mae"),
}
UNITS = (RECORD, ADDED, PERSON, THERE)
BITS = ((0, 0, 0), (1, 1, 1), (1, 1, 0), (0, 0, 1))
BITS_X, BITS_Y = np.tile([[0, 0], [1, 1]], (30, 1)), np.tile([0, 1], 30)
_RNG = np.random.default_rng(0)
EVEN = _RNG.integers(0, 2, (300, 3)).tolist()
FEW = (("laplace", 0.0), ("gaussian", 1e-6))
MORE = (("fourier", 0.0), ("map", 0.0), (Sampler(30), 1e-6), ("auto", 1e-6))


def worlds(every: bool = False) -> Iterator[Neighbourhood]:
    """Yield every way for every unit, with a few mechanisms or with all."""
    mechanisms = (*FEW, *MORE) if every else FEW
    for (mechanism, delta), unit in product(mechanisms, (*UNITS, FEATURE)):
        model = naive_bayes(delta=delta, mechanism=mechanism, inference="plug_in", temperature=1.0)
        tight = 0.9 if mechanism == "laplace" else 0.0
        yield from _of_bits(f"{mechanism}, {unit.label}", model, unit, tight)
        if unit.whole_records:
            yield from _of_whole_records(f"{mechanism}, {unit.label}", model, unit, tight)
    for unit in UNITS:
        yield from _of_numbers(unit, every)
        yield from _of_one_variable(unit)
        if every:
            yield from _of_several_steps(unit)
        draws = naive_bayes(mechanism="sampler", delta=0.3, privacy_unit=unit)
        others, own = frame([(0, 0, 0)] * 40), BITS
        yield Neighbourhood(f"queries, {unit.label}", Answers(draws, 3), others, own, unit, 0.5)
    sure = naive_bayes(8.0, mechanism=MAP(score="posterior", omega=0.01, n_points=3))
    sure.set_params(inference="plug_in", temperature=1.0)
    four = tuple((row[0], *row) for row in BITS)
    yield Neighbourhood("masses", sure, frame([(0, 0, 0, 0)]), four, RECORD, 0.9)


LABELLED = tuple((*r, y) for *r, y in (*BITS, (0, 0, NAN), (1, 1, 9.0), (1, 0, 0)))
OTHERS = frame([(*r, float(y) if i % 20 else NAN) for i, (*r, y) in enumerate(EVEN)])


def _of_bits(what: str, model: Any, unit: Any, tight: float) -> Iterator[Neighbourhood]:
    """Yield ways of a classifier, of which some records have no class."""
    yield Neighbourhood(f"missing targets, {what}", model, OTHERS, LABELLED, unit, tight)
    sparse = Sparse(model)
    yield Neighbourhood(f"missing targets, sparse, {what}", sparse, OTHERS, LABELLED, unit, tight)
    one = dp.Schema({"a": dp.Categories([0, 1]), "b": dp.Categories([0])}, dp.Categories([0, 1]))
    given = {
        **model.get_params(deep=False),
        "bounds": None,
        "classes": None,
        "n_bins": "auto",
        "schema": one,
    }
    single = dp.BayesianNetworkClassifier(parents={"b": []}, **given)
    yield Neighbourhood(f"one value, {what}", single, OTHERS, LABELLED, unit)
    parts = OTHERS.copy()
    parts.insert(2, "part", np.arange(len(parts)) % 2)
    own = tuple((*r, 0, y) for *r, y in LABELLED)
    first = clone(model).set_params(delta=1000 * float(model.delta))
    yield Neighbourhood(f"batches, {what}", Batches(first), parts, own, unit)
    yield Neighbourhood(f"shards, {what}", Shards(model), parts, own, unit, tight)


def _of_whole_records(what: str, model: Any, unit: Any, tight: float) -> Iterator[Neighbourhood]:
    """Yield ways in which whole records are counted by weights, or held out."""
    weighted = clone(model).set_params(max_weight=3)
    own = tuple((*r, w, y) for *r, y in (*BITS, (1, 0, NAN)) for w in (3.0, 1.4, NAN))
    others = OTHERS.copy()
    others.insert(2, "w", 1.0 + np.arange(len(others)) % 3)
    yield Neighbourhood(f"weights, {what}", Weighted(weighted), others, own, unit, tight)
    others = others.copy()
    others.insert(2, "part", np.arange(len(others)) % 2)
    own = tuple((a, b, 0, *rest) for a, b, *rest in own)
    first = clone(weighted).set_params(delta=1000 * float(model.delta))
    yield Neighbourhood(f"weights, batches, {what}", Batches(first), others, own, unit)
    yield Neighbourhood(f"weights, shards, {what}", Shards(weighted), others, own, unit, tight)
    yield from _evaluated(what, model, unit)


def _evaluated(what: str, model: Any, unit: Any) -> Iterator[Neighbourhood]:
    """Yield evaluations, whose parts share what they lose, and cross-validations."""
    some, delta = OTHERS.head(60), float(model.delta)
    scored = Scored(model, delta)
    yield Neighbourhood(f"scored, {what}", scored, some, LABELLED, unit, 0.5, together=True)
    folds = CrossValidated(clone(model).set_params(epsilon=0.5), delta)
    yield Neighbourhood(
        f"cross-validated, {what}", folds, some, LABELLED, unit, place=len(some), together=True
    )


def _of_numbers(unit: Any, every: bool) -> Iterator[Neighbourhood]:
    """Yield regressions with weights, and with targets that are missing."""
    own = (*CORNERS, (*CORNERS[0][:-1], NAN))
    mechanisms = (("laplace", 0.0), ("gaussian", 1e-6), ("sampler", 0.0), ("map", 0.0))
    labels = dp.Schema(SCHEMA.columns, dp.Categories([0, 1]))
    models: list[Any] = [
        dp.BayesianLinearRegression(mechanism=m, delta=delta, schema=SCHEMA)
        for m, delta in mechanisms[: None if every else 2]
    ]
    models += [dp.BayesianLogisticRegression(schema=labels)]
    slopes = line(delta=1e-6 if every else 0.0)
    scored, folds = _evaluated(f"{type(slopes).__name__}, {unit.label}", slopes, unit)
    yield from (scored, folds) if every else (scored,)
    for model in models:
        others, sides = numbers(300), own
        if model.schema is labels:
            others["y"] = (others["y"] > 0).astype(float)
            sides = tuple((*r, y if math.isnan(y) else float(y > 0)) for *r, y in own)
        what = f"{type(model).__name__}, {model.mechanism}, {unit.label}"
        others.loc[::20, "y"] = NAN
        yield Neighbourhood(f"missing targets, {what}", model, others, sides, unit)
        weighted = clone(model).set_params(max_weight=3)
        others = others.copy()
        others.insert(len(others.columns) - 1, "w", 1.0 + np.arange(len(others)) % 3)
        heavy = tuple((*r[:-1], w, r[-1]) for r in sides[:5] for w in (3.0, 0.0))
        yield Neighbourhood(f"weights, {what}", Weighted(weighted), others, heavy, unit)


def _of_one_variable(unit: Any) -> Iterator[Neighbourhood]:
    """Yield posteriors of one variable with weights."""
    others = frame([(i % 2, 1.0, 0) for i in range(40)])
    own = tuple((value, w, 0) for value in (0, 1) for w in (3.0, 0.0))
    for model in (
        dp.BetaBinomial(max_weight=3),
        dp.DirichletMultinomial(categories=2, max_weight=3),
    ):
        what = f"{type(model).__name__}, {unit.label}"
        yield Neighbourhood(f"weights, {what}", Weighted(model), others, own, unit, 0.9)


def _of_several_steps(unit: Any) -> Iterator[Neighbourhood]:
    """Yield releases whose later steps use what earlier ones said, of weighted or unlabelled."""
    schema = dp.Schema({n: dp.Interval(0, 1, bins=2) for n in "ab"}, dp.Categories([0, 1]))
    others = pd.concat([OTHERS] * 5, ignore_index=True)
    own = tuple((*r, w, y) for *r, y in (*BITS, (0, 1, NAN)) for w in (3.0, NAN))
    for model in (PrivateSelectKBest(1, schema=schema), PrivateTree(schema=schema)):
        what = f"missing targets, {type(model).__name__}, {unit.label}"
        yield Neighbourhood(what, model, others, LABELLED, unit)
    yield from _evaluated(
        f"logistic, {unit.label}", dp.BayesianLogisticRegression(schema=schema), unit
    )
    others = others.copy()
    others.insert(2, "w", 1.0 + np.arange(len(others)) % 3)
    learns = [naive_bayes(delta=delta, mechanism=m) for m, delta in (*FEW, *MORE)]
    modes: list[Any] = [
        dp.BayesianLogisticRegression(schema=schema, mechanism="sampler"),
        dp.BayesianLogisticRegression(schema=schema, intervals=True),
    ]
    for i, model in enumerate([*learns, *modes]):
        what = f"weights, step by step, {i}, {unit.label}"
        some, weighted = others.head(300 if model in modes else len(others)), Weighted(model)
        weighted.model.set_params(max_weight=3)
        yield Neighbourhood(what, weighted, some, own, unit)


def _sparse_rows(unit: Any) -> Iterator[str]:
    """See that sparse rows, some without a class, have the laws of the same dense rows."""
    X, y = np.array(EVEN)[:, :2], np.array(EVEN)[:, 2].astype(float)
    y[::7] = NAN
    groups = np.arange(len(y)) // 2 if unit.name == "person" else None
    laws = []
    for rows in (X, csr_array(X.astype(float))):
        model, drawn = naive_bayes(privacy_unit=unit, temperature=1.0, random_state=0), Recording()
        with made_by(drawn.noise):
            model.fit(rows, y, groups)
        laws.append([step.key() for step in drawn.steps])
    if laws[0] != laws[1]:
        yield f"sparse rows, {unit.label}: other counts than of dense rows"


def _proven_for_persons() -> Iterator[str]:
    """See that the zCDP of Gaussian counts of several records, all patterns alike, is enough."""
    for unit, weight in product(UNITS, (None, 3)):
        counts = naive_bayes(delta=1e-6, mechanism="gaussian", privacy_unit=unit, temperature=1.0)
        groups = np.arange(60) if unit.name == "person" else None
        with crossings() as seen:
            counts.set_params(max_weight=weight).fit(BITS_X, BITS_Y, groups)
        cost = seen[-1].plan.cost
        by_zcdp = [Part(pure=1e100, rho=float(cost.rho))]
        several = cost.unit.max_records > 1
        if several and not covered(by_zcdp, float(cost.epsilon) * (1 + 1e-6), float(cost.delta)):
            yield f"{unit.label}, max_weight={weight}: more than the zCDP of all patterns allows"


def _allotments() -> Iterator[str]:
    """See that whoever has an allotment charges it, epsilon and delta."""
    some = {"scoring": "accuracy", "epsilon": 1.0, "delta": 1e-5}
    counts = naive_bayes(delta=1e-5, mechanism="gaussian")
    draws = naive_bayes(mechanism="sampler")
    uses: dict[str, Any] = {
        "fit": lambda part: clone(counts).set_params(accountant=part).fit(BITS_X, BITS_Y),
        "partial_fit": lambda part: (
            clone(counts).set_params(accountant=part).partial_fit(BITS_X, BITS_Y)
        ),
        "private_score": lambda part: private_score(
            clone(counts).fit(BITS_X, BITS_Y), BITS_X, BITS_Y, **some, accountant=part
        ),
        "private_cross_validate": lambda part: private_cross_validate(
            counts, BITS_X, BITS_Y, **some, accountant=part
        ),
        "session": lambda part: Answers(draws, 2, part).fit(BITS_X, BITS_Y),
        "search": lambda part: dp.PrivateSearchCV(
            naive_bayes(), {"alpha": [1.0]}, runs_per_candidate=1, accountant=part
        ).fit(BITS_X, BITS_Y),
    }
    for name, use in uses.items():
        ledger = dp.BudgetAccountant(delta=1)
        use(ledger.allotment("part", 99, 0.5))
        (part,) = ledger.allotments()
        if part.spent.rounded_up() != ledger.total("sum") or not len(ledger):
            yield f"{name}: {part.spent} is charged to an allotment, {ledger.total('sum')} in all"


def _what_is_left() -> Iterator[str]:
    """See that what is said to be left can be spent, in epsilon and in delta, and no more."""
    for composition, allotted, spent in product(
        ("sum", "zcdp"), ((0.5, 1e-6), (0.5, 0.0), (2.0, 1e-2)), ((0.1, 1e-7), (0.2, 0.0), (0, 0))
    ):
        ledger = dp.BudgetAccountant(1.0, 1e-3, composition=composition)
        part = ledger.allotment("part", *allotted)
        if spent[1] <= allotted[1] and any(spent):
            part.spend(*spent)
        for where, own in (("allotment", part), ("ledger", ledger)):
            left, what = own.remaining(), f"{composition}, {allotted}, {spent}, {where}"
            if any(left) and refused(lambda own=own, left=left: own.check(*left), dp.BudgetError):
                yield f"{what}: {left} is said to be left and refused"
            for more in ((left[0] + 1e-3, left[1]), (left[0], left[1] + 1e-9)):
                if composition == "sum" and not refused(
                    lambda own=own, more=more: own.check(*more), dp.BudgetError
                ):
                    yield f"{what}: {left} is said to be left, and more is not refused"
