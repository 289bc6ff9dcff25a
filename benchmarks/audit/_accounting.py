"""What is charged, alone and together: all of it, before it is released, in exact fractions.

And ledgers that were tampered with, moved or mistyped.
"""

from __future__ import annotations

import math
import os
import pickle
import shutil
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from fractions import Fraction
from itertools import product
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from scipy.special import expit, log_ndtr
from scipy.stats import binom
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import cross_val_predict

import dpbayes_sklearn as dp
from benchmarks.audit._cases import Case, cases_of, crossings, in_a_folder, refused, run_at_once
from benchmarks.audit._models import ADDED, FEATURE, X, Y, line, naive_bayes
from benchmarks.audit.tools.steps import gaussian_delta
from dpbayes_sklearn.base.estimator import SEEDED
from dpbayes_sklearn.counts.temperature import temperature_share
from dpbayes_sklearn.mechanisms import Hellinger
from dpbayes_sklearn.privacy import Budget, exact
from dpbayes_sklearn.privacy.gaussian import gaussian_variance, squared_norm
from dpbayes_sklearn.release import boundary
from dpbayes_sklearn.shards import merge


def accounting() -> Iterator[str]:
    """Spend in every way there is."""
    yield from _exact_sums()
    yield from _order_and_amount()
    yield from _who_is_charged()
    yield from _no_refund()
    yield from _one_unit()
    yield from _race()


def _over_budget(model: Any) -> bool:
    return refused(lambda: model.fit(X, Y), dp.BudgetError)


def _exact_sums() -> Iterator[str]:
    ledger = dp.BudgetAccountant(epsilon=0.3)
    model = naive_bayes(0.1, accountant=ledger)
    if any(_over_budget(model) for _ in range(3)):
        yield "three times 0.1 does not fit into 0.3"
    if not _over_budget(naive_bayes(1e-9, accountant=ledger)):
        yield "a ledger that is used up lets something through"
    if len(ledger) != 3 or ledger._ledger.spent().epsilon != Fraction(3, 10):
        yield "the balance is not what was charged"


def _order_and_amount() -> Iterator[str]:
    """See at the choke point that everything is paid for by then, and no more than once."""
    for model, data in (
        (naive_bayes(0.1), (X, Y)),
        (naive_bayes(0.1, mechanism="sampler"), (X, Y)),
        (line(0.1), (X, Y)),
        (dp.DirichletMultinomial(0.1, categories=2), (Y,)),
    ):
        ledger, name = dp.BudgetAccountant(), type(model).__name__

        def paid(plan: Any, *_: Any, ledger: Any = ledger) -> tuple[Any, Any]:
            return plan.cost.epsilon, ledger._ledger.spent().epsilon

        with crossings(paid) as seen:
            fitted = model.set_params(accountant=ledger).fit(*data)
        asked = sum(epsilon for epsilon, _ in seen)
        if any(spent < epsilon for epsilon, spent in seen):
            yield f"{name}: released before it was charged"
        if not asked == ledger._ledger.spent().epsilon == Fraction(1, 10):
            yield f"{name}: 1/10 asked, {asked} released, {ledger.total().epsilon} charged"
        if fitted.guarantee_.epsilon != 0.1:
            yield f"{name}: promises {fitted.guarantee_.epsilon}"


def _who_is_charged() -> Iterator[str]:
    ledger = dp.BudgetAccountant()
    model = naive_bayes(0.1, accountant=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cross_val_predict(model, X, Y, cv=3)
    clone(model).fit(X, Y)
    pickle.loads(pickle.dumps(model)).fit(X, Y)
    model.partial_fit(X, Y).partial_fit(X, Y)
    if len(ledger) != 7:
        yield f"{len(ledger)} charges for 7 releases of folds, clones, pickles and batches"
    with dp.BudgetAccountant() as around:
        naive_bayes(0.1).fit(X, Y)
    if len(around) != 1:
        yield "a fit inside a block is not charged"


def _no_refund() -> Iterator[str]:
    def broken(*args: Any) -> Any:
        raise MemoryError

    ledger = dp.BudgetAccountant()
    with boundary(broken), suppress(MemoryError):
        naive_bayes(0.1, accountant=ledger).fit(X, Y)
    if len(ledger) != 1:
        yield "a release that failed half-way was not charged"


def _one_unit() -> Iterator[str]:
    """Release for two units, whose epsilons have no sum, to one ledger."""
    for other in (FEATURE, ADDED):
        ledger = dp.BudgetAccountant()
        naive_bayes(0.1, accountant=ledger).fit(X, Y)
        with suppress(ValueError):
            naive_bayes(0.1, accountant=ledger, privacy_unit=other).fit(X, Y)
        if len(ledger) != 1 or {entry.unit for entry in ledger} != {"record"}:
            yield f"one ledger adds up releases for records and for {other.label}"


def _race() -> Iterator[str]:
    """Spend 12 times 0.1 of 0.5 in threads that all have looked before any of them spends."""
    ledger = dp.BudgetAccountant(epsilon=0.5)

    def spend() -> None:
        with suppress(dp.BudgetError):
            ledger.spend(0.1)

    run_at_once([Thread(target=spend) for _ in range(12)])
    if ledger._ledger.spent().epsilon != Fraction(1, 2):
        yield f"{ledger.total().epsilon} spent of 0.5"


def composition() -> list[Case]:
    """Compose, restore, replace and mistype."""
    return [
        *cases_of(_totals, _gaussian_fits, _delta, _smallest_deltas, _figures),
        *cases_of(_files, _batches, _queries, _seeds),
    ]


def _totals() -> Iterator[str]:
    """Compare totals with the exact loss of Gaussian noise and of randomised response."""
    for rho, times in ((0.02, 1), (0.05, 4)):
        ledger = dp.BudgetAccountant(100, 1e-6, composition="zcdp")
        for _ in range(times):
            ledger.spend(rho=rho)
        spread = math.sqrt(2 * rho * times)  # sensitivity over standard deviation, of all together
        if gaussian_delta(spread, ledger.total().epsilon) > 1e-6:
            yield f"{times} releases of rho {rho}: {ledger.total().epsilon:.3g} is too little"
    ledger = dp.BudgetAccountant(100, 1e-6)
    for _ in range(200):
        ledger.spend(0.1)
    if _response_delta(200, 0.1, ledger.total().epsilon) > 1e-6:
        yield f"200 releases of 0.1: {ledger.total().epsilon:.3g} is too little"


def _gaussian_fits() -> Iterator[str]:
    """Compare the totals of Gaussian fits with their exact loss, a temperature included."""
    records, labels = np.tile(X, (200, 1)), np.tile(Y, 200)
    ledger = dp.BudgetAccountant(9, 1e-5, composition="zcdp")
    options = {"delta": 1e-6, "mechanism": "gaussian", "accountant": ledger}
    model = naive_bayes(0.3, temperature=1, **options)
    for _ in range(10):
        model.fit(records, labels)
    spread = math.sqrt(10) * _worst_spread(model.posterior_.released)
    if gaussian_delta(spread, ledger.total().epsilon) > 1e-5:
        yield f"10 fits with Gaussian noise: {ledger.total().epsilon:.3g} is too little"
    model.set_params(epsilon=1.0, temperature="auto").fit(records, labels)
    share = float(temperature_share(len(labels), Fraction(1)))  # of a randomised response besides
    spread, p = _worst_spread(model.posterior_.released), expit(share)
    deltas = [gaussian_delta(spread, 1 + sign * share) for sign in (-1, 1)]
    if p * deltas[0] + (1 - p) * deltas[1] > 1.1e-6:
        yield "the temperature is not paid for"


def _worst_spread(released: Any) -> float:
    """Return the distance of neighbours in standard deviations: two cells of every table change."""
    nodes = range(len(released.tables))
    return math.sqrt(sum(2 / released.noise(node).variance for node in nodes))


def _response_delta(times: int, each: float, epsilon: float) -> float:
    """Return the exact delta at epsilon of randomised response, many times."""
    k, share = np.arange(times + 1), math.exp(each) / (1 + math.exp(each))
    p, q = binom.pmf(k, times, share), binom.pmf(k, times, 1 - share)
    return float(np.clip(p - math.exp(epsilon) * q, 0, None).sum())


def _delta() -> Iterator[str]:
    """Spend all of delta on releases that may fail: none is left to convert with."""
    account = dp.BudgetAccountant(10, 0.01)
    model = dp.BetaBinomial(delta=0.001, mechanism=Hellinger(calibrate=False), accountant=account)
    model.set_params(calibrate=False).fit([0, 1] * 20)
    if account.total("sum").delta != model.guarantee_.delta or not model.guarantee_.delta:
        yield "a delta is promised and not charged"
    ledger = dp.BudgetAccountant(100, 1e-6)
    for _ in range(50):
        ledger.spend(0.1, 2e-8)
    if ledger.total().epsilon < 4.99:
        yield "delta is used up by releases and used again for their total"


def _smallest_deltas() -> Iterator[str]:
    """Compare the noise for deltas that no float holds with their logarithms; refuse such deltas.

    Continuous noise is a little more private.
    """
    for digits, shifts in product((299, 315, 330, 1000), ({(1, 1): 2}, {(1, 2): 20, (1, 3): 100})):
        variance = gaussian_variance(Fraction(1), Fraction(1, 10**digits), shifts)
        spread = math.sqrt(squared_norm(shifts) / variance)
        far, near = (float(log_ndtr(side * spread / 2 - 1 / spread)) for side in (-1, 1))
        found = (near + math.log(-math.expm1(1 + far - near))) / math.log(10)
        if found > 0.01 - digits:
            yield f"delta 1e-{digits} was asked for, it is 1e{found:.1f}"
    tiny, ledger = Fraction(1, 10**330), dp.BudgetAccountant(1, 1e-6)
    model = naive_bayes(0.1, delta=tiny, mechanism="gaussian", accountant=ledger)
    for ask in (lambda: model.fit(X, Y), lambda: ledger.spend(0.1, tiny)):
        if not refused(ask, ValueError) or len(ledger):
            yield "a delta of 1e-330 is taken"
    small = dp.BetaBinomial(1e-12, delta=1e-100, mechanism="gaussian", accountant=ledger)
    if not refused(lambda: small.fit(Y), ValueError) or len(ledger):
        yield "noise that cannot be drawn is refused after the charge"


def _figures() -> Iterator[str]:
    """See that what is left is rounded down and what was spent is rounded up."""
    budget, spent = Budget(exact(1.0000004), exact(1.0000004e-6)), dp.BudgetAccountant(2, 0.5)
    spent.spend(*budget[:2])
    promised = dp.PrivacyGuarantee.of(budget, "laplace")
    shown = {
        "epsilon = 1.00001, delta = 1.00001e-06": str(promised),
        "(plus 1.00001e-06)": promised.meaning,
        "<dd>1.00001</dd>": promised.card(),
        "<dt>spent</dt><dd>ε = 1.00001, δ = 1.00001e-06</dd>": spent._repr_html_(),
        "<dt>left</dt><dd>ε = 0.999999, δ = 0.499998</dd>": spent._repr_html_(),
    }
    for figures, text in shown.items():
        if figures not in text:
            yield f"printed figures are not rounded to the private side: {figures} is not there"
    ledger = dp.BudgetAccountant(1)
    ledger.spend(Fraction(1, 3))
    if Fraction(str(ledger.remaining().epsilon)) > Fraction(2, 3):
        yield "more is said to remain than does"
    if Fraction(str(ledger.total().epsilon)) < Fraction(1, 3):
        yield "less is said to be spent than was"


@in_a_folder
def _files(folder: Path) -> Iterator[str]:
    path, copy = str(folder / "ledger"), str(folder / "copy")
    ledger = dp.BudgetAccountant(1, path=path)
    ledger.spend(0.4)
    shutil.copy(path, copy)
    ledger.spend(0.4)
    shutil.copy(copy, path)
    if not refused(lambda: ledger.spend(0.4), dp.LedgerError):
        yield "an earlier copy of a ledger is taken for it"
    other = dp.BudgetAccountant(9, path=str(folder / "other"))
    for _ in range(5):
        other.spend(0.1)
    shutil.copy(other.path, path)
    if not refused(lambda: ledger.spend(0.4), dp.LedgerError):
        yield "another ledger is taken for it"
    elsewhere = pickle.loads(pickle.dumps(ledger))  # as in another process
    os.unlink(path)
    if not refused(lambda: elsewhere.spend(0.4), dp.LedgerError):
        yield "a ledger that is gone lets something through"
    typo = str(folder / "typo")
    if not refused(lambda: dp.BudgetAccountant(path=typo, existing=True), dp.LedgerError):
        yield "a mistyped path makes a new ledger"
    other_version = dp.BudgetAccountant(1, path=str(folder / "version"))
    with closing(sqlite3.connect(other_version.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA user_version = 99")
    if not refused(lambda: other_version.spend(0.4), dp.LedgerError):
        yield "a ledger of another format is read as one of this"


def _batches() -> Iterator[str]:
    model = naive_bayes(0.1).partial_fit(X, Y)
    model.set_params(epsilon=0.3).partial_fit(X, Y)
    if model.guarantee_.epsilon != 0.3:
        yield f"batches of 0.1 and 0.3 promise {model.guarantee_.epsilon}"
    exact = model.set_params(epsilon=math.inf)
    if not refused(lambda: exact.partial_fit(X, Y), ValueError):
        yield "a batch without noise joins private ones"
    shard = naive_bayes(temperature=1).exact_statistics(X, Y)
    if not refused(lambda: merge([merge([shard]), shard]), ValueError):
        yield "a shard is counted twice"
    head, _, counts = shard.to_bytes().partition(b"\n")
    forged = np.frombuffer(counts, "<i8") + np.resize([-99, 99], len(counts) // 8)
    sent = head + b"\n" + forged.tobytes()
    if not refused(lambda: dp.shards.ExactStatistics.from_bytes(sent), ValueError):
        yield "negative counts are taken"


def _queries() -> Iterator[str]:
    ledger = dp.BudgetAccountant(1)
    model = naive_bayes(0.25, mechanism="sampler")
    session = dp.PosteriorQuerySession(model, X, Y, accountant=ledger)
    answers = [session.query(lambda tables: tables[0].tolist()) for _ in range(4)]
    if len(ledger) != 4 or len({str(answer) for answer in answers}) == 1:
        yield f"{len(ledger)} charges for 4 queries, or one draw for all"
    if not refused(lambda: pickle.dumps(session), TypeError):
        yield "a session with exact counts can be pickled"
    session.close()
    if "CountTables" in repr(vars(session)):
        yield "a closed session keeps exact counts"


@in_a_folder
def _seeds(folder: Path) -> Iterator[str]:
    def warned(fit: Callable[[], Any]) -> bool:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit()
        return any("random_state" in str(w.message) for w in caught)

    seeded = naive_bayes(0.1, random_state=0)
    beside = clone(seeded).set_params(accountant=dp.BudgetAccountant(path=str(folder / "ledger")))
    if not warned(lambda: beside.fit(X, Y)):
        yield "a seed meets a ledger on disk, and nobody is warned"
    if SEEDED not in seeded.fit(X, Y).guarantee_.conditions:
        yield "a guarantee does not say that it rests on a secret seed"
    plain = naive_bayes(0.1)
    if not warned(lambda: BaggingClassifier(plain, n_estimators=1, random_state=0).fit(X, Y)):
        yield "an ensemble hands out seeds, and nobody is warned"
