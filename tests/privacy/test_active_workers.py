"""``with accountant:`` charges every fit in it, also those that joblib sends to other processes."""

from __future__ import annotations

import contextvars
import copy
import multiprocessing
import pickle
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline

from dpbayes_sklearn import BayesianNaiveBayes, BudgetError, LedgerError
from dpbayes_sklearn.privacy import BudgetAccountant

pytestmark = [
    # Python >= 3.12 warns of the forks that are tested here
    pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Scores are computed:dpbayes_sklearn.PrivacyLeakWarning"),
]

X = np.random.default_rng(0).random((60, 2))
Y = (X[:, 0] > 0.5).astype(int)


def model() -> BayesianNaiveBayes:
    return BayesianNaiveBayes(1.0, bounds=(0, 1), n_bins=2, classes=[0, 1])


@pytest.mark.filterwarnings("ignore:An ensemble has set random_state")
@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
@pytest.mark.parametrize(
    ("estimator", "fits"),
    [
        (model(), 1),
        (make_pipeline(model()), 1),
        (VotingClassifier([("a", model()), ("b", make_pipeline(model()))]), 2),
        (BaggingClassifier(model(), 2), 2),
    ],
    ids=["alone", "pipeline", "voting", "bagging"],
)
def test_every_fit_in_the_block_is_charged(estimator, fits, backend):
    with BudgetAccountant() as accountant, joblib.parallel_config(backend, n_jobs=2):
        cross_validate(estimator, X, Y, cv=3)
    assert len(accountant) == 3 * fits
    assert accountant.total() == (3 * fits, 0)


def test_what_comes_back_from_a_worker_is_free_of_the_block():
    with BudgetAccountant() as accountant, joblib.parallel_config("loky", n_jobs=2):
        returned = cross_validate(model(), X, Y, cv=2, return_estimator=True)["estimator"]
    for fitted in returned:
        fitted.fit(X, Y)
        clone(fitted).fit(X, Y)
    assert len(accountant) == 2


def test_fits_after_the_block_are_not_charged():
    estimator = model()
    with BudgetAccountant() as accountant:
        copies = [clone(estimator), copy.deepcopy(estimator), pickle.loads(pickle.dumps(estimator))]
        estimator.fit(X, Y)
    for later in (estimator, *copies):
        later.fit(X, Y)
    assert len(accountant) == 1
    assert "_block" not in vars(estimator)


def test_the_parameter_comes_before_the_block():
    own = BudgetAccountant()
    with BudgetAccountant() as block, joblib.parallel_config("loky", n_jobs=2):
        cross_validate(model().set_params(accountant=own), X, Y, cv=2)
    assert (len(own), len(block)) == (2, 0)


# Estimators made inside workers, and work that begins after the block was left -----------------


def made_there(number: int, wait: float = 0.0) -> int:
    time.sleep(wait)
    model().fit(X, Y)
    return number


def sent_there(estimator: BayesianNaiveBayes) -> None:
    time.sleep(0.02)
    estimator.fit(X, Y)


def with_loky(work, jobs) -> list:
    return joblib.Parallel(2, "loky")(joblib.delayed(work)(job) for job in jobs)


def with_spawned_processes(work, jobs) -> list:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        return pool.map(work, jobs)


PROCESSES = [with_loky, with_spawned_processes]


@pytest.mark.parametrize("run", PROCESSES)
def test_estimators_made_in_a_worker_process_are_charged(run):
    run(int, range(2))  # joblib keeps processes that were started before the block
    with BudgetAccountant() as accountant:
        run(made_there, range(4))
    assert len(accountant) == 4
    run(made_there, range(2))
    assert len(accountant) == 4


def end_all_workers() -> None:
    get_reusable_executor().shutdown(wait=True)


def test_worker_processes_of_worker_processes_are_charged():
    end_all_workers()  # those that were started in another block would tell of it
    with BudgetAccountant() as accountant:
        joblib.Parallel(2, "loky")([joblib.delayed(nested_subprocess)()])
    assert len(accountant) == 1


def nested_subprocess() -> None:
    code = "from tests.privacy.test_active_workers import made_there; made_there(0)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_ceiling_of_the_block_holds_in_workers():
    with BudgetAccountant(2.0) as accountant, pytest.raises(BudgetError):
        with_loky(made_there, range(4))
    assert len(accountant) == 2


@pytest.mark.parametrize("early", [False, True])
def test_threads_that_begin_after_the_block_was_left_refuse(early):
    with ThreadPoolExecutor(2) as pool:
        if early:
            list(pool.map(int, range(8)))
        with BudgetAccountant() as accountant:
            futures = [pool.submit(made_there, k, 0.02) for k in range(8)]
        outcomes = [future.exception() for future in futures]
    refused = [error for error in outcomes if isinstance(error, LedgerError)]
    assert len(refused) + len(accountant) == 8
    assert all("Pass accountant=" in str(error) for error in refused)
    made_there(0)  # in this thread the block was left


@pytest.mark.parametrize("backend", ["loky", "threading"])
@pytest.mark.parametrize("sent", [False, True])
def test_a_generator_of_joblib_that_outlives_the_block_is_refused(backend, sent):
    tasks = [joblib.delayed(sent_there)(model()) if sent else joblib.delayed(made_there)(k, 0.02)
             for k in range(12)]  # fmt: skip
    with BudgetAccountant():
        results = joblib.Parallel(2, backend, return_as="generator")(tasks)
    with pytest.raises(LedgerError, match="Pass accountant="):
        list(results)
    end_all_workers()  # they have outlived a block


def test_a_generator_that_is_used_up_in_the_block_is_charged():
    with BudgetAccountant() as accountant:
        list(
            joblib.Parallel(2, return_as="generator")(joblib.delayed(made_there)(k) for k in "abc")
        )
    assert len(accountant) == 3


def test_nested_blocks_refuse_in_workers_and_say_why():
    with (
        BudgetAccountant() as outer,
        BudgetAccountant() as inner,
        pytest.raises(LedgerError, match="Several accountants"),
    ):
        cross_validate(model(), X, Y, cv=2, n_jobs=2, error_score="raise")
    with (
        BudgetAccountant(),
        BudgetAccountant(),
        pytest.raises(LedgerError, match="Several accountants"),
    ):
        with_loky(made_there, range(2))
    assert (len(outer), len(inner)) == (0, 0)


def test_a_thread_given_work_in_an_inner_block_does_not_charge_the_outer_one():
    with ThreadPoolExecutor(1) as pool, BudgetAccountant() as outer:
        with BudgetAccountant():
            future = pool.submit(made_there, 0, 0.1)
        assert isinstance(future.exception(), LedgerError)
    assert len(outer) == 0


def test_a_copied_context_goes_on_with_its_block():
    with BudgetAccountant() as accountant:
        context = contextvars.copy_context()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(context.run, made_there, 0).result()
    assert len(accountant) == 1
