from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import joblib
import pytest

from dpbayes_sklearn.exceptions import BudgetError, LedgerError
from dpbayes_sklearn.privacy import BudgetAccountant, PrivacyUnit
from tests.privacy.ledgers import ADDED

# Python >= 3.12 warns of the forks that are tested here
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


def in_thread(function, *arguments):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *arguments).result()


# with accountant: --------------------------------------------------------------------------------


def test_the_innermost_block_is_in_force():
    outer, inner = BudgetAccountant(), BudgetAccountant()
    assert BudgetAccountant.current() is None
    with outer as entered:
        assert entered is outer
        with inner, inner:
            assert BudgetAccountant.current() is inner
        assert BudgetAccountant.current() is outer
    assert BudgetAccountant.current() is None


def test_the_block_ends_with_an_exception():
    with pytest.raises(KeyError), BudgetAccountant():
        raise KeyError
    assert BudgetAccountant.current() is None


def test_worker_threads_charge_the_block_they_were_started_in():
    with BudgetAccountant() as accountant:
        assert in_thread(BudgetAccountant.current) is accountant
    assert in_thread(BudgetAccountant.current) is None


def test_a_forked_child_stays_in_the_block():
    with BudgetAccountant() as accountant:
        if not (child := os.fork()):
            BudgetAccountant.current().spend(1)
            os._exit(0)
        os.waitpid(child, 0)
    assert accountant.total() == (1, 0)


def test_threads_with_blocks_of_their_own_keep_them():
    barrier = threading.Barrier(8)

    def work(accountant: BudgetAccountant) -> bool:
        with accountant:
            barrier.wait()
            return BudgetAccountant.current() is accountant

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, [BudgetAccountant() for _ in range(8)]))


def test_a_thread_that_cannot_tell_which_block_is_meant_refuses():
    with BudgetAccountant(), BudgetAccountant(), pytest.raises(LedgerError, match="Several"):
        in_thread(BudgetAccountant.current)


def test_a_block_entered_in_one_context_can_be_left_in_another():
    accountant = BudgetAccountant()
    contextvars.copy_context().run(accountant.__enter__)
    assert BudgetAccountant.current() is accountant
    accountant.__exit__()
    assert BudgetAccountant.current() is None


def test_tasks_keep_their_own_blocks():
    first, second = BudgetAccountant(), BudgetAccountant()

    async def work(accountant: BudgetAccountant) -> bool:
        with accountant:
            await asyncio.sleep(0.01)
            return BudgetAccountant.current() is accountant

    async def both() -> list[bool]:
        return await asyncio.gather(work(first), work(second))

    assert asyncio.run(both()) == [True, True]


# with accountant.parallel(): ---------------------------------------------------------------------


def test_a_parallel_scope_costs_its_maximum_in_each_part():
    accountant = BudgetAccountant(1, 1e-5)
    with accountant.parallel():
        accountant.spend(0.5, 1e-6, unit=ADDED)
        accountant.spend(0.7, unit=ADDED)
        accountant.spend(0.2, 5e-6, unit=ADDED)
    assert accountant.total() == (0.7, 5e-6)
    assert len(accountant) == 3
    assert len({entry.scope for entry in accountant}) == 1
    accountant.spend(0.3, unit=ADDED)
    assert [entry.scope is None for entry in accountant] == [False, False, False, True]


def test_two_scopes_add_up():
    accountant = BudgetAccountant()
    for _ in range(2):
        with accountant.parallel():
            accountant.spend(0.5, unit=ADDED)
            accountant.spend(0.5, unit=ADDED)
    assert accountant.total() == (1, 0)


def test_the_ceiling_holds_in_a_scope():
    accountant = BudgetAccountant(1)
    accountant.spend(0.5, unit=ADDED)
    with accountant.parallel():
        accountant.spend(0.4, unit=ADDED)
        accountant.check(0.5, unit=ADDED)
        with pytest.raises(BudgetError):
            accountant.check(0.6, unit=ADDED)
        with pytest.raises(BudgetError):
            accountant.spend(0.6, unit=ADDED)
        accountant.spend(0.5, unit=ADDED)
    assert accountant.total() == (1, 0)


def test_an_infinite_spend_in_a_scope():
    accountant = BudgetAccountant()
    with accountant.parallel():
        for epsilon in (1, float("inf"), float("inf"), 1):
            accountant.spend(epsilon, unit=ADDED)
    assert accountant.total() == (float("inf"), 0)


def test_a_nested_scope_is_part_of_the_outer_one():
    accountant = BudgetAccountant()
    with accountant.parallel():
        accountant.spend(0.5, unit=ADDED)
        with accountant.parallel():
            accountant.spend(0.6, unit=ADDED)
        accountant.spend(0.7, unit=ADDED)
    assert accountant.total() == (0.7, 0)


def test_a_scope_is_for_its_own_ledger_only():
    accountant, other = BudgetAccountant(), BudgetAccountant()
    with accountant.parallel(), other:
        other.spend(0.5)
        other.spend(0.5)
    assert other.total() == (1, 0)


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_charges_of_workers_add_up_inside_a_scope(backend):
    accountant = BudgetAccountant()
    with accountant.parallel(), joblib.parallel_config(backend=backend, n_jobs=2):
        joblib.Parallel()(joblib.delayed(accountant.spend)(0.5, unit=ADDED) for _ in range(4))
    assert accountant.total() == (2, 0)


def test_a_scope_is_over_when_it_is_left():
    accountant = BudgetAccountant()
    with accountant.parallel():
        accountant.spend(0.5, unit=ADDED)
        kept = contextvars.copy_context()
    kept.run(partial(accountant.spend, unit=ADDED), 0.5)
    assert accountant.total() == (1, 0)


def test_the_unit_that_a_refusal_in_a_parallel_scope_recommends_is_accepted():
    accountant = BudgetAccountant(1.0)
    with accountant.parallel():
        with pytest.raises(ValueError, match=r"unit=PrivacyUnit\(neighbours='add_remove'\)"):
            accountant.spend(0.5)
        accountant.spend(0.5, unit=PrivacyUnit(neighbours="add_remove"))
