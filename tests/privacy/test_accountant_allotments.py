"""Named parts of a budget: both ceilings are enforced, everywhere that an accountant goes."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from dpbayes_sklearn import BayesianNaiveBayes, BudgetAccountant, BudgetError, LedgerError
from dpbayes_sklearn.privacy.budget import PrivacyUnit

X = (np.random.default_rng(0).random((60, 2)) < 0.5).astype(int)
Y = np.arange(60) % 2
DECLARED = {"classes": [0, 1], "bounds": (0, 1), "n_bins": 2}


def test_either_ceiling_refuses():
    whole = BudgetAccountant(epsilon=1.0)
    anna, bert = whole.allotment("anna", 0.5), whole.allotment("bert", 0.8)
    anna.spend(0.3)
    with pytest.raises(BudgetError, match=r"allotment 'anna'.*epsilon=0.2.* remains") as refused:
        anna.spend(0.3)
    assert refused.value.remaining.epsilon == 0.2
    bert.spend(0.5)
    assert bert.remaining().epsilon == 0.2  # of 0.3, because the whole has no more
    with pytest.raises(BudgetError, match="cross the ceiling epsilon=1"):
        bert.spend(0.25)
    assert (anna.total().epsilon, bert.total().epsilon, whole.total().epsilon) == (0.3, 0.5, 0.8)
    assert (len(anna), len(bert), len(whole)) == (1, 1, 2)


def test_they_stay_in_the_file(tmp_path):
    path = tmp_path / "ledger"
    BudgetAccountant(epsilon=1.0, path=path).allotment("anna", 0.5).spend(0.3, label="one")
    later = BudgetAccountant(path=path, existing=True)
    assert later.allotment("anna").remaining().epsilon == 0.2
    assert [(p.name, float(p.left.epsilon)) for p in later.allotments()] == [("anna", 0.2)]
    assert [entry.allotment for entry in later] == ["anna"]
    assert "allotment('anna')" in repr(later.allotment("anna"))
    assert "anna" in later._repr_html_()
    assert "anna" in later.allotment("anna")._repr_html_()
    assert later.allotment("anna", 0.5) == later.allotment("anna") != later
    with pytest.raises(LedgerError, match="another ceiling"):
        later.allotment("anna", 0.6)
    with pytest.raises(LedgerError, match="no allotment 'carl'"):
        later.allotment("carl")


@pytest.mark.parametrize("name", ["", "x" * 201, None, 3])
def test_names_are_checked(name):
    with pytest.raises(ValueError, match="name of an allotment"):
        BudgetAccountant(epsilon=1.0).allotment(name, 0.5)


def test_an_allotment_is_not_divided():
    part = BudgetAccountant(epsilon=1.0).allotment("a", 0.5)
    with pytest.raises(ValueError, match="cannot be divided"):
        part.allotment("b", 0.1)


def test_clones_folds_and_pickles_charge_it():
    whole = BudgetAccountant(epsilon=10.0)
    part = whole.allotment("project", 1.0)
    model = BayesianNaiveBayes(0.25, accountant=part, **DECLARED)
    clone(model).fit(X, Y)
    pickle.loads(pickle.dumps(model)).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scores that are not private, and of a failed fit
        scores = cross_val_score(model, X, Y, cv=3)
    assert np.isnan(scores).sum() == 1  # the fifth fit is one too many
    assert part.remaining().epsilon == 0.0
    assert whole.remaining().epsilon == 9.0


def test_a_block_of_an_allotment_is_known_to_workers():
    whole = BudgetAccountant(epsilon=10.0)
    part = whole.allotment("project", 0.5)
    with part:
        assert BudgetAccountant.current() == part
        Parallel(n_jobs=2)(delayed(_fit)() for _ in range(2))
    assert (part.total().epsilon, whole.total().epsilon) == (0.5, 0.5)


def _fit():
    BayesianNaiveBayes(0.25, **DECLARED).fit(X, Y)


def test_threads_do_not_overspend(tmp_path):
    part = BudgetAccountant(epsilon=10.0, path=tmp_path / "ledger").allotment("a", 1.0)

    def spend(_):
        try:
            return bool(part.spend(0.1))
        except BudgetError:
            return False

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(spend, range(30))) == 10
    assert part.total().epsilon == 1.0


def test_parallel_groups_add_up_in_an_allotment():
    added = PrivacyUnit(neighbours="add_remove")
    whole = BudgetAccountant(epsilon=1.0)
    part = whole.allotment("a", 0.8)
    with part.parallel():
        for _ in range(2):
            part.spend(0.4, unit=added)
        with pytest.raises(BudgetError):
            part.spend(0.1, unit=added)
    assert (part.total().epsilon, whole.total().epsilon) == (0.8, 0.4)


def test_the_command_line_shows_what_is_left(tmp_path):
    path = tmp_path / "ledger"
    BudgetAccountant(epsilon=2.0, path=path).spend(0.5)
    command = [sys.executable, "-m", "dpbayes_sklearn", "budget", str(path), "--allot", "anna=0.5"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "all releases  spent epsilon=0.5" in shown
    assert "left epsilon=1.5" in shown
    assert "anna" in shown
    assert "1 release" in shown
