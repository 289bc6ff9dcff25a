"""Threads: no more than joblib, BLAS and the user allow, and BLAS as it was afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes
from dpbayes_sklearn.data import records
from dpbayes_sklearn.data.records import blas_for, in_threads, threads_for

MANY = 1 << 40


def blas_threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.fixture
def many_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow more threads than this machine or the tests' settings do."""
    monkeypatch.setattr(records, "_allowed", lambda: 3)
    monkeypatch.setattr(records, "_CELLS_A_THREAD", 10)


def test_small_tables_have_one_thread(many_allowed: None) -> None:
    assert [threads_for(cells) for cells in (0, 19, 20, 1000)] == [1, 1, 2, 3]


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_joblib_decides_if_it_is_told(jobs: int) -> None:
    with joblib.parallel_config("threading", n_jobs=jobs):
        assert threads_for(MANY) == jobs


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_a_worker_of_joblib_has_one_thread(backend: str) -> None:
    calls = (joblib.delayed(threads_for)(MANY) for _ in range(2))
    assert joblib.Parallel(2, backend=backend)(calls) == [1, 1]


def test_limits_of_the_user_are_kept() -> None:
    with threadpool_limits(1):
        assert threads_for(MANY) == 1
    with threadpool_limits(1, user_api="blas"):
        assert threads_for(MANY) == 1


def test_blas_has_one_thread_inside_and_its_own_number_afterwards() -> None:
    both = threading.Barrier(2, timeout=30)

    def inside(_: int) -> list[int]:
        both.wait()
        return blas_threads()

    def nested(_: int) -> list[list[int]]:
        both.wait()
        return in_threads(lambda _: blas_threads(), [0, 1], 2)

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        assert before
        assert in_threads(inside, [0, 1], 2) == [[1] * len(before)] * 2
        assert in_threads(nested, [0, 1], 2) == [[[1] * len(before)] * 2] * 2
        assert blas_threads() == before
        with pytest.raises(ZeroDivisionError):
            in_threads(lambda x: 1 // x, [0, 1], 2)
        assert blas_threads() == before


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_joint_log_proba"])
def test_predictions_of_classes(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.random((501, 5)), rng.integers(0, 3, 501)
    model = BayesianNaiveBayes(classes=range(3), bounds=(0, 1), n_bins=4).fit(X, y)
    alone = getattr(model, method)(X)
    assert_same_in_threads(lambda: getattr(model, method)(X), alone, monkeypatch)


def test_predictions_of_a_regression(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).random((501, 5))
    model = BayesianLinearRegression(bounds_X=(0, 1), bounds_y=(0, 1)).fit(X, X[:, 0])
    alone = np.column_stack(model.predict(X, return_std=True))
    assert_same_in_threads(
        lambda: np.column_stack(model.predict(X, return_std=True)), alone, monkeypatch
    )


def assert_same_in_threads(call: Any, alone: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_CELLS_A_THREAD", 10)
    with joblib.parallel_config("threading", n_jobs=3):
        np.testing.assert_allclose(call(), alone, rtol=1e-12)


def test_small_matrices_have_one_thread_of_blas_and_large_ones_all() -> None:
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with blas_for(10):
            assert set(blas_threads()) == {1}
        with blas_for(10_000):
            assert blas_threads() == before
        assert blas_threads() == before


FORKS = """
import os, threading, time
from dpbayes_sklearn.data.records import _BLAS

def hold():
    while True:
        with _BLAS.lock:
            time.sleep(0.01)
        time.sleep(0.001)

threading.Thread(target=hold, daemon=True).start()
for _ in range(5):
    if not (child := os.fork()):
        with _BLAS.single():
            os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks on this system")
def test_a_forked_child_does_not_wait_for_a_thread_that_it_lacks() -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORKS]
    subprocess.run(command, check=True, timeout=60)
