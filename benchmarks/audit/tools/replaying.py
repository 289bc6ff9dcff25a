"""Freeze what was released on one data set, fit its neighbour with it, and look for differences.

Whatever differs did not come from the release, so it came from the data.
"""

from __future__ import annotations

import io
import math
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks.audit.tools.fuzzing import heard
from benchmarks.audit.tools.recording import planted
from benchmarks.audit.tools.shifts import Shift, shifts
from dpbayes_sklearn import release
from dpbayes_sklearn._typing import Positions
from dpbayes_sklearn.model_selection import search
from dpbayes_sklearn.noise import Noise, made_by
from dpbayes_sklearn.privacy import Budget, BudgetAccountant
from dpbayes_sklearn.privacy.budget import Copies, PrivacyUnit
from dpbayes_sklearn.privacy.ledger import Ledger
from dpbayes_sklearn.release import boundary

Frozen = Sequence[tuple[Any, str]]

CHOKE_POINT: Frozen = ((release, "carry_out"),)
"""The one boundary that private data cross."""

SEARCH: Frozen = (*CHOKE_POINT,)
"""The same boundary of a private search, which releases the best of many runs."""

DRAWS: Frozen = tuple(
    (Noise, name) for name in ("add", "choose", "place", "ball", "common", "minimum")
)
"""What is drawn inside the mechanisms: frozen, it shows what a mechanism does besides."""


@dataclass(frozen=True)
class Replay:
    """Result of a replay.

    Attributes
    ----------
    divergences : tuple of str
        All differences that are not allowed, and broken rules; empty if there are none.
    calls : tuple of str
        The frozen calls, in order, on the first data set.
    epsilon : float or None
        What the first fit charged to its accountant; None for an estimator that has none.
    shifts : tuple of Shift
        Changes of the exact statistics, and their declared sensitivity.
    status : str
        "fitted", or the type and message of the exception of the first fit.
    """

    divergences: tuple[str, ...]
    calls: tuple[str, ...]
    epsilon: float | None
    shifts: tuple[Shift, ...]
    status: str

    @property
    def sound(self) -> bool:
        """Return True if nothing but the release tells the two data sets apart."""
        return not self.divergences


def replay(
    estimator: Any,
    X: Any,
    y: Any,
    X2: Any,
    y2: Any,
    *,
    groups: Any = None,
    groups2: Any = None,
    freeze: Frozen = CHOKE_POINT,
) -> Replay:
    """Fit (X, y), then (X2, y2) with what was released on (X, y), and compare everything else.

    Compared are the calls and their public arguments, the epsilon charged and when, the exception
    of the fit if there was one, its warnings, and the bytes of the pickled object. Changes of the
    exact statistics must not exceed their sensitivity. While this runs, no other thread may fit.

    Parameters
    ----------
    estimator : object
        Any scikit-learn estimator; it is cloned. One that has an ``accountant`` parameter that
        is None is given an accountant.
    X, y, X2, y2
        Two neighbouring data sets, by the estimator's unit of privacy.
    groups, groups2 : array-like, optional
        Labels of the persons that the records belong to, for the unit "person". Of a person with
        more records than count, the first ones count in both fits, a draw that both may make.
    freeze : sequence of (object, attribute name), default=CHOKE_POINT
        The functions or methods that release. What they return on the first data set is handed
        out on the second. `DRAWS` goes deeper and freezes what carries noise inside mechanisms; for
        another library, name its noise, for example ``[(Laplace, "randomise")]``.

    Returns
    -------
    Replay

    Examples
    --------
    >>> from dpbayes_sklearn import BayesianNaiveBayes
    >>> from benchmarks.audit.tools import replay
    >>> X, y = [[0, 1], [1, 1], [0, 0]], [0, 1, 1]
    >>> model = BayesianNaiveBayes(bounds=(0, 1), classes=[0, 1], n_bins=2)
    >>> found = replay(model, X, y, [[float("nan"), 1e308], [1, 1], [0, 0]], [1, 1, 1])
    >>> found.sound, found.epsilon, found.shifts[0]
    (True, 1.0, Shift(what='counts', moved=6.0, sensitivity=6))
    """
    estimator = clone(estimator)
    if getattr(estimator, "accountant", 0) is None:
        estimator.set_params(accountant=BudgetAccountant(delta=1))
    tape: list[tuple[Call, Any]] = []
    one = _fit(estimator, (X, y, groups), _recording(tape), freeze)
    two = _fit(estimator, (X2, y2, groups2), _playing(tape), freeze)
    try:
        moved = [
            change
            for a, b in zip(one.releases, two.releases, strict=False)
            for change in shifts(a.statistics, b.statistics, a.unit)
        ]
    except Exception as error:  # of statistics that are made when they are asked for
        moved = [Shift(f"statistics ({type(error).__name__})", math.inf, 0.0)]
    steps = 1 if one.copies is None else one.copies.steps  # from one neighbour to the other
    divergences = [
        *one.broken,
        *two.broken,
        *_differences(one, two),
        *(
            f"{m.what}: moved by {m.moved:g}, sensitivity {m.sensitivity:g}"
            for m in moved
            if m.moved > steps * m.sensitivity
        ),
    ]
    charged = None if one.charged is None else float(sum(one.charged))
    return Replay(
        tuple(dict.fromkeys(divergences)), tuple(one.calls), charged, tuple(moved), one.status
    )


@dataclass(frozen=True)
class _Seen:
    """What a mechanism was handed at the choke point."""

    statistics: Any
    unit: PrivacyUnit
    epsilon: Any
    delta: Any
    told: bytes


@dataclass
class _Fit:
    """Everything about one fit that somebody outside could see, and what the choke point saw."""

    status: str = "fitted"
    warnings: list[tuple[str, str]] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    charged: list[Any] | None = None
    deltas: list[Any] = field(default_factory=list)
    releases: list[_Seen] = field(default_factory=list)
    pickled: bytes = b""
    broken: list[str] = field(default_factory=list)
    copies: Copies | None = None


Call = tuple[Any, str]
Answer = Callable[[Call, Callable[[], Any]], Any]


def _recording(tape: list[tuple[Call, Any]]) -> Answer:
    def answer(what: Call, call: Callable[[], Any]) -> Any:
        result = call()
        tape.append((what, result))
        return result

    return answer


def _playing(tape: list[tuple[Call, Any]]) -> Answer:
    def answer(what: Call, call: Callable[[], Any]) -> Any:
        if not (tape and tape[0][0] == what):
            return call()  # not in the first fit: the lists of calls will differ
        if what in DRAWS:
            call()  # in vain; but laws remember what they were asked, and so do models
        return tape.pop(0)[1]

    return answer


def _fit(estimator: Any, data: tuple[Any, ...], answer: Answer, freeze: Frozen) -> _Fit:
    """Fit a clone under observation."""
    X, y, groups = data
    whose = {} if groups is None else {"groups": groups}
    model, fit = clone(estimator), _Fit(copies=getattr(estimator, "_copies", None))
    ledger = getattr(estimator, "accountant", None)
    ledger = ledger if isinstance(ledger, BudgetAccountant) else None
    before = ledger._ledger.spent().epsilon if ledger else Fraction(0)
    fit.charged = None if ledger is None else []
    with (
        heard() as (caught, logged),
        _frozen(fit, answer, freeze),
        _watched(fit),
        made_by(_OfFit),
    ):
        try:
            model.fit(X, y, **whose)
            fit.pickled = _pickled(model, by_value=freeze is not CHOKE_POINT)
        except Exception as error:
            fit.status = f"{type(error).__name__}: {error}"
    fit.warnings, fit.logged = [(w.category.__name__, str(w.message)) for w in caught], logged
    if ledger is not None and ledger._ledger.spent().epsilon - before != sum(fit.charged or []):
        fit.broken.append("the balance of the ledger does not show what was charged")
    _check_spending(fit, model)
    return fit


class _OfFit(Noise):
    """The noise of a fit under observation; simulations of public laws have a noise of their own.

    The order by which records of a person count is random, for every person alone. So a draw of
    one neighbour belongs to a draw of the other in which the same records of everybody else count:
    here the first that are listed.
    """

    def order(self, n: int) -> Positions:
        """Return the order in which records are listed."""
        return np.arange(n)


def _pickled(thing: Any, *, by_value: bool, kind: Any = pickle.Pickler) -> bytes:
    """Return the pickle; by value, it does not matter which parts are one and the same object.

    What was frozen inside a mechanism brings its own parts along from the first fit.
    """
    stream = io.BytesIO()
    pickler = kind(stream)
    pickler.fast = by_value
    pickler.dump(thing)
    return stream.getvalue()


class _Forgetful(pickle.Pickler):
    """Leaves out cached properties: what the parts of a plan remember of earlier questions."""

    def reducer_override(self, thing: Any) -> Any:
        """Pickle an object by its other attributes."""
        kind = type(thing)
        bases = reversed(kind.__mro__)  # what a class defines anew counts
        attributes = {name: value for base in bases for name, value in vars(base).items()}
        cached = {n for n, value in attributes.items() if isinstance(value, cached_property)}
        if not cached:
            return NotImplemented
        return object.__new__, (kind,), {k: v for k, v in vars(thing).items() if k not in cached}


@contextmanager
def _frozen(fit: _Fit, answer: Answer, freeze: Frozen) -> Iterator[None]:
    """Let the answers to all frozen calls be noted, or given; not to calls inside of them."""
    within = [False]

    def stand_in(owner: Any, name: str, real: Any) -> Any:
        def called(*args: Any, **options: Any) -> Any:
            if within[0]:
                return real(*args, **options)
            fit.calls.append(name)
            within[0] = True
            try:
                return answer((owner, name), lambda: real(*args, **options))
            finally:
                within[0] = False

        return called

    def crossing(real: Any, *args: Any) -> Any:
        return stand_in(*CHOKE_POINT[0], real)(*args)

    with ExitStack() as stack:
        for owner, name in freeze:
            if (owner, name) in CHOKE_POINT:
                stack.enter_context(boundary(crossing))
            else:
                noise = _OfFit if owner is Noise else owner
                stack.enter_context(
                    planted((noise, name, stand_in(owner, name, getattr(owner, name))))
                )
        yield


@contextmanager
def _watched(fit: _Fit) -> Iterator[None]:
    """Note charges, what the choke point is handed, and whether it was paid for by then."""
    charge, rehearsed, nested = Ledger.charge, vars(search)["rehearsed"], [0]

    def charged(self: Any, cost: Any, *rest: Any) -> Any:
        entry = charge(self, cost, *rest)
        if fit.charged is not None:
            fit.charged.append(entry.cost.epsilon)
            fit.deltas.append(entry.cost.delta)
        return entry

    def watched(real: Any, plan: Any, statistics: Any, noise: Any) -> Any:
        if not nested[0]:
            cost, known = plan.cost, statistics
            told = _pickled(plan, by_value=True, kind=_Forgetful)
            fit.releases.append(_Seen(known, cost.unit, cost.epsilon, cost.delta, told))
            asked, asked_delta = _asked(fit)
            unpaid = sum(fit.charged or []) < asked or sum(fit.deltas) < asked_delta
            if fit.charged is not None and unpaid:
                fit.broken.append("released before it was charged")
        return apart(real)(plan, statistics, noise)

    def apart(call: Any) -> Any:
        """Run without a look at the releases inside: a search pays for them, or for none.

        A rehearsal releases nothing about the records, but about their stand-ins.
        """

        def called(*args: Any) -> Any:
            nested[0] += 1
            try:
                return call(*args)
            finally:
                nested[0] -= 1

        return called

    with (
        boundary(watched),
        planted((search, "rehearsed", apart(rehearsed)), (Ledger, "charge", charged)),
    ):
        yield


def _asked(fit: _Fit) -> tuple[Any, Any]:
    """Return epsilon and delta of all releases, added up, for who is protected."""
    pairs = [(seen.epsilon, seen.delta) for seen in fit.releases]
    if fit.copies is not None:
        pairs = [fit.copies.outer(Budget(*pair))[:2] for pair in pairs]
    return sum((e for e, _ in pairs), Fraction(0)), sum((d for _, d in pairs), Fraction(0))


def _check_spending(fit: _Fit, model: Any) -> None:
    """Compare what was charged, released and promised."""
    promise = getattr(model, "guarantee_", None)
    charges, asked = (fit.charged, fit.deltas), _asked(fit)
    for name, released, charged in zip(("epsilon", "delta"), asked, charges, strict=True):
        total = sum(charged or [])
        if fit.charged is not None and fit.status == "fitted" and total != released:
            fit.broken.append(f"charged {name} {float(total):g}, released {float(released):g}")
        promised = getattr(promise, name, None)
        if promised is not None and not math.isclose(promised, float(released), rel_tol=1e-12):
            fit.broken.append(f"promised {name} {promised:g}, released {float(released):g}")


def _differences(one: _Fit, two: _Fit) -> Iterator[str]:
    """Say what is not the same about two fits."""
    compared = {"status": "status", "warnings": "warnings", "calls": "calls"}
    compared |= {"charged": "epsilon charged", "deltas": "delta charged"}
    for name, what in compared.items():
        mine, theirs = getattr(one, name), getattr(two, name)
        if mine != theirs:
            yield f"{what}: {mine!r} and {theirs!r}"
    if one.logged != two.logged:
        yield f"log: {len(one.logged)} and {len(two.logged)} lines, or other texts"
    if [seen.told for seen in one.releases] != [seen.told for seen in two.releases]:
        yield "public facts that the mechanism was told"
    if one.pickled != two.pickled:
        yield f"pickles of {len(one.pickled)} and {len(two.pickled)} bytes"
