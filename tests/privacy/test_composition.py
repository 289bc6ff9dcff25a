from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from scipy.special import gammaln

from dpbayes_sklearn.privacy import BudgetAccountant
from dpbayes_sklearn.privacy.composition import sequential_costs
from dpbayes_sklearn.privacy.cost import Cost


def best_delta(epsilon: float, each: float, times: int) -> float:
    """Return the exact delta of ``times`` pure releases (Kairouz, Oh and Viswanath, 2015).

    The worst release is randomised response, which tells the truth with e^each/(1 + e^each);
    delta = sum_j C(k, j) (e^{each(k-j)} - e^{epsilon + each j})_+ / (1 + e^each)^k.
    """
    j = np.arange(times + 1)
    ways = gammaln(times + 1) - gammaln(j + 1) - gammaln(times - j + 1)
    scale = ways - times * np.logaddexp(0, each)
    gain = np.exp(scale + each * (times - j)) - np.exp(scale + epsilon + each * j)
    return float(np.clip(gain, 0, None).sum())


def test_costs_of_a_scope_are_joined():
    accountant = BudgetAccountant(delta=1e-5)
    accountant.spend(0.1)
    with accountant.parallel():
        accountant.spend(0.2, 1e-6)
        accountant.spend(0.3)
    accountant.spend(0.1)
    costs = sequential_costs(accountant)
    assert costs == [Cost.of(0.1), Cost.of(0.3, 1e-6), Cost.of(0.1)]
    assert accountant.total() == (0.5, 1e-6)


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    with pytest.raises(ImportError, match=r"dpbayes_sklearn\[pld\]"):
        BudgetAccountant().total(method="pld")


class TestWithThePackage:
    @pytest.fixture(autouse=True)
    def package(self):
        pytest.importorskip("dp_accounting")

    def test_many_small_releases_cost_what_the_optimal_theorem_says(self):
        accountant = BudgetAccountant(10, 1e-6)
        for _ in range(100):
            accountant.spend(0.1)
        tight = accountant.total(method="pld")
        assert tight.delta == 1e-6
        assert tight.epsilon < 6 < accountant.total().epsilon == 10
        assert best_delta(tight.epsilon + 0.01, 0.1, 100) < 1e-6
        assert best_delta(tight.epsilon - 0.02, 0.1, 100) > 1e-6

    @pytest.mark.parametrize("times", [0, 1, 3])
    def test_it_is_the_sum_where_nothing_is_gained(self, times):
        accountant = BudgetAccountant(1)
        for _ in range(times):
            accountant.spend(0.3)
        assert accountant.total(method="pld") == accountant.total() == (times * 3 / 10, 0)

    def test_parallel_releases_count_once(self):
        accountant = BudgetAccountant(1, 1e-6)
        with accountant.parallel():
            for _ in range(50):
                accountant.spend(0.5)
        assert accountant.total(method="pld").epsilon <= 0.5

    def test_infinite_spends(self):
        accountant = BudgetAccountant(delta=1e-6)
        accountant.spend(math.inf)
        assert accountant.total(method="pld").epsilon == math.inf
