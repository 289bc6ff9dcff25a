"""Whoever holds a copy charges the same ledger: clones, pickles, threads, forks, joblib."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import joblib
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dpbayes_sklearn.exceptions import BudgetError
from dpbayes_sklearn.privacy import BudgetAccountant
from dpbayes_sklearn.privacy.ledger import Ledger

# Python >= 3.12 warns of the forks that are tested here
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


class Holder(BaseEstimator):
    def __init__(self, accountant=None):
        self.accountant = accountant


def try_to_spend(accountant: BudgetAccountant, epsilon: float = 0.1) -> bool:
    try:
        accountant.spend(epsilon)
    except BudgetError:
        return False
    return True


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, clone], ids=lambda f: f.__name__)
def test_copies_in_one_process_are_the_same_object(duplicate):
    accountant = BudgetAccountant(1)
    assert duplicate(accountant) is accountant
    assert duplicate(Holder(accountant)).accountant is accountant


def test_clones_of_clones_hold_the_same_object():
    accountant = BudgetAccountant(1)
    step = FunctionTransformer(kw_args={"accountant": accountant})
    pipeline = clone(clone(make_pipeline(Holder(Holder(accountant)), step)))
    assert pipeline[0].accountant.accountant is accountant
    assert pipeline[1].kw_args["accountant"] is accountant


def test_pickles_refer_to_the_same_ledger():
    accountant = BudgetAccountant(1)
    twin = pickle.loads(pickle.dumps(accountant))
    twin.spend(0.6)
    accountant.spend(0.4)
    assert twin == accountant
    assert hash(twin) == hash(accountant)
    assert twin.total() == accountant.total() == (1, 0)
    assert twin != BudgetAccountant(1)


def test_spending_does_not_change_the_parameter():
    accountant = BudgetAccountant(1)
    before = joblib.hash(accountant)
    accountant.spend(0.5)
    assert joblib.hash(accountant) == before


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_joblib_workers_share_the_ceiling(backend):
    accountant = BudgetAccountant(10)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        entries = joblib.Parallel()(joblib.delayed(accountant.spend)(0.5) for _ in range(20))
    assert accountant.total() == (10, 0)
    assert sorted(entry.number for entry in entries) == list(range(1, 21))
    with pytest.raises(BudgetError):
        accountant.spend(0.5)


@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_the_refusal_reaches_the_parent_process(backend):
    accountant = BudgetAccountant(1)
    with (
        joblib.parallel_config(backend=backend, n_jobs=2),
        pytest.raises(BudgetError) as why,
    ):
        joblib.Parallel()(joblib.delayed(accountant.spend)(0.4) for _ in range(3))
    assert why.value.requested == (0.4, 0)
    assert why.value.remaining == (0.2, 0)
    assert len(accountant) == 2


def test_64_threads_get_exactly_what_the_ceiling_holds():
    accountant = BudgetAccountant(9.05)
    barrier = threading.Barrier(64)

    def work() -> int:
        barrier.wait()
        return sum(try_to_spend(accountant) for _ in range(2))

    with ThreadPoolExecutor(64) as pool:
        granted = sum(future.result() for future in [pool.submit(work) for _ in range(64)])
    assert granted == len(accountant) == 90
    assert accountant.total() == (9, 0)


def test_forked_children_without_exec_share_the_ceiling():
    accountant = BudgetAccountant(5)
    accountant.spend(0.1)
    children = []
    for _ in range(8):
        if not (child := os.fork()):
            os._exit(sum(try_to_spend(accountant) for _ in range(10)))
        children.append(child)
    granted = sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
    assert granted == 49
    assert len(accountant) == 50
    assert len(Ledger.open(accountant.path)) == 50


def test_forking_while_other_threads_charge():
    """A child that inherited an open connection would hang, or believe in locks it has not."""
    accountant = BudgetAccountant(1000)
    stop = threading.Event()

    def keep_charging() -> int:
        return sum(try_to_spend(accountant) for _ in iter(stop.is_set, True))

    with ThreadPoolExecutor(3) as pool:
        threads = [pool.submit(keep_charging) for _ in range(3)]
        granted = 0
        for _ in range(12):
            if not (child := os.fork()):
                signal.alarm(60)  # a child that waits for ever is a failure, not a long test
                os._exit(sum(try_to_spend(accountant) for _ in range(3)))
            if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 3:
                break
            granted += 1
        stop.set()
        charged_here = sum(thread.result() for thread in threads)
    assert granted == 12
    assert charged_here > 0
    assert len(Ledger.open(accountant.path)) == 3 * granted + charged_here


def test_processes_that_make_the_same_ledger_at_once_make_one(tmp_path):
    path = tmp_path / "ledger"
    children = []
    for _ in range(8):
        if not (child := os.fork()):
            os._exit(try_to_spend(BudgetAccountant(1, path=path)))
        children.append(child)
    granted = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert granted == [1] * 8
    assert BudgetAccountant(path=path).total() == (0.8, 0)
    assert [name for name in os.listdir(tmp_path) if name.endswith(".new")] == []
