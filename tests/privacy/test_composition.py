from __future__ import annotations

import math
import pickle
import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import gammaln

from dpbayes_sklearn.counts.dirichlet import DirichletPrior
from dpbayes_sklearn.counts.network import Network
from dpbayes_sklearn.counts.plans import plan
from dpbayes_sklearn.counts.tables import CountTables
from dpbayes_sklearn.exceptions import BudgetError, LedgerError
from dpbayes_sklearn.mechanisms import Gaussian
from dpbayes_sklearn.privacy import Budget, BudgetAccountant, composition
from dpbayes_sklearn.privacy.budget import round_up
from dpbayes_sklearn.privacy.composition import (
    Spend,
    best_order,
    in_parallel,
    renyi_epsilon,
    zcdp_epsilon,
    zcdp_rho,
)
from dpbayes_sklearn.release import Facts
from tests.privacy.ledgers import ADDED

CONVERTS = Fraction(14, 16 * 10**6)  # what a zCDP ledger converts with, of a ceiling of 1e-6


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


HOT = {"epsilon": 0.38, "rho": 0.00884}  # tells neighbours apart well, with probability 0.02
PATHS = ({"rho": 0.0152}, {"epsilon": 0.62, "delta": 1e-6})  # after a hot, or another result


@pytest.mark.parametrize(("rule", "accepted"), [("sum", [False, True]), ("zcdp", [True, False])])
def test_results_cannot_decide_which_rule_is_relied_on(rule, accepted):
    """Both paths together have a delta of 1.2e-6 at epsilon 1."""

    def accepts(second: dict[str, float]) -> bool:
        accountant = BudgetAccountant(1, 1e-6, composition=rule)
        accountant.spend(**HOT)
        return granted(accountant, **second) == 1

    assert [accepts(second) for second in PATHS] == accepted


def test_a_ledger_with_a_delta_adds_unless_it_is_told_otherwise(tmp_path):
    assert BudgetAccountant(1, 1e-6).composition == "sum"
    path = tmp_path / "ledger"
    BudgetAccountant(1, 1e-6, path=path, composition="zcdp").spend(rho=0.001)
    assert BudgetAccountant(path=path, existing=True).composition == "zcdp"
    assert BudgetAccountant(1, 1e-6, path=path, composition="zcdp").composition == "zcdp"
    with pytest.raises(LedgerError, match=r"delta=1e-06, by zCDP, not epsilon=1\.0, delta=1e-06"):
        BudgetAccountant(1, 1e-6, path=path)
    assert pickle.loads(pickle.dumps(BudgetAccountant(path=path))).composition == "zcdp"


def test_pure_releases_add_up_in_every_ledger():
    for rule in ("sum", "zcdp"):
        accountant = BudgetAccountant(1, 1e-6, composition=rule)
        assert granted(accountant, epsilon=Fraction(1, 2)) == 2
    assert granted(BudgetAccountant(1, 1e-6), epsilon=Fraction(1, 100)) == 100


@pytest.mark.parametrize("ceiling", [(1, 0), (math.inf, 1e-6), (0, 1e-6), (1, 1)])
def test_zcdp_needs_something_to_convert_to(ceiling):
    with pytest.raises(ValueError, match="needs a ceiling with a finite epsilon and a delta"):
        BudgetAccountant(*ceiling, composition="zcdp")
    with pytest.raises(ValueError, match="composition must be 'sum' or 'zcdp'"):
        BudgetAccountant(1, 1e-6, composition="pld")


def test_costs_of_a_scope_are_joined():
    accountant = BudgetAccountant(delta=1e-5)
    accountant.spend(0.1)
    with accountant.parallel():
        accountant.spend(0.2, 1e-6, unit=ADDED)
        accountant.spend(0.3, unit=ADDED)
    accountant.spend(0.1)
    assert accountant._ledger.spends() == {Spend.of(0.1): 2, Spend.of(0.3, 1e-6): 1}
    assert accountant.total() == (0.5, 1e-6)


@pytest.fixture
def gaussian() -> dict[str, Fraction]:
    """A release of ε = 1/20, δ = 1e-7 by the zCDP conversion."""
    epsilon, delta = Fraction(1, 20), Fraction(1, 10**7)
    return {"epsilon": epsilon, "delta": delta, "rho": zcdp_rho(epsilon, delta)}


def granted(accountant: BudgetAccountant, **spend: Fraction) -> int:
    """How often a spend is accepted before it is refused."""
    for count in range(10_000):
        try:
            accountant.spend(**spend)
        except BudgetError:
            return count
    raise AssertionError("never refused")


def test_zcdp_adds_up_and_is_converted_at_the_ceilings_delta(gaussian):
    accountant = BudgetAccountant(1, 1e-6, composition="zcdp")
    times = granted(accountant, **gaussian)
    # the sum would allow 10 (δ) or 20 (ε)
    assert times == zcdp_rho(Fraction(1), CONVERTS) // gaussian["rho"] > 200
    assert accountant.total().delta == 1e-6
    assert 0.99 < accountant.total().epsilon <= 1
    assert accountant.total("sum") == (times / 20, times / 10**7)
    with pytest.raises(BudgetError, match=r"rho=.* would cross the ceiling"):
        accountant.spend(**gaussian)


def test_a_release_known_only_by_its_zcdp(gaussian):
    accountant = BudgetAccountant(1, 1e-6, composition="zcdp")
    entry = accountant.spend(rho=gaussian["rho"], label="a query")
    assert (entry.epsilon, entry.rho) == (math.inf, pytest.approx(float(gaussian["rho"])))
    assert accountant.total() == (
        round_up(zcdp_epsilon(gaussian["rho"], Fraction(1, 10**6))), 1e-6,
    )  # fmt: skip
    assert accountant.total("sum").epsilon == math.inf
    for refused in (BudgetAccountant(1), BudgetAccountant(1, 1e-6, composition="zcdp")):
        with pytest.raises(BudgetError):
            refused.spend(rho=0.1)
    with pytest.raises(BudgetError, match=r"composition='zcdp', for releases .* by rho only"):
        BudgetAccountant(1, 1e-6).spend(rho=1e-9)


def test_one_release_may_use_the_ceiling_up_by_its_own_figures():
    """Noise calibrated to (ε, δ) exactly is more than its zCDP alone would allow."""
    accountant = BudgetAccountant(1, 1e-6)
    accountant.spend(1, 1e-6, rho=Fraction(28, 1000))
    assert zcdp_epsilon(Fraction(28, 1000), Fraction(1, 10**6)) > 1
    assert accountant.total() == (1, 1e-6)
    assert accountant.remaining() == (0, 0)
    with pytest.raises(BudgetError):
        accountant.spend(rho=1e-9)


def test_mixtures_are_no_dearer_than_apart_and_no_dearer_than_all_as_zcdp(gaussian):
    accountant = BudgetAccountant(2, 1e-6, composition="zcdp")
    accountant.spend(0.5)  # better left as it is
    for _ in range(50):
        accountant.spend(0.01)  # better as zCDP
        accountant.spend(**gaussian)
    rho, delta = 50 * gaussian["rho"], Fraction(1, 10**6)
    apart = 1 + zcdp_epsilon(rho, delta)
    all_zcdp = zcdp_epsilon(rho + Fraction(1, 8) + 50 * Fraction(1, 20_000), delta)
    half_apart = Fraction(1, 2) + zcdp_epsilon(rho + 50 * Fraction(1, 20_000), delta)
    best = float(half_apart)
    assert 0.9 * best < accountant.total().epsilon < best < min(apart, all_zcdp)


def test_deltas_without_rho_have_a_share_of_the_ceilings(gaussian):
    accountant = BudgetAccountant(1, 1e-6, composition="zcdp")
    accountant.spend(0.001, 4e-8)
    for _ in range(10):
        accountant.spend(**gaussian)  # by the sum, δ is now 1.04e-6
    converted = Fraction(96, 10**8)  # of what the first release has left
    expected = zcdp_epsilon(10 * gaussian["rho"], converted, {Fraction(1, 1000): 1})
    assert accountant.total() == (round_up(expected), 1e-6)
    accountant.check(0.001, 2e-8)
    with pytest.raises(BudgetError):  # more than a sixteenth of δ together
        accountant.spend(0.001, 3e-8)


def test_results_cannot_decide_what_is_left_to_convert_with():
    """Half the zCDP, and then, as its result suggests, the other half or a δ: never both in full.

    Failures of more than a sixteenth would add to the conversion of the first release.
    """
    rho = zcdp_rho(Fraction(1), CONVERTS) * Fraction(49, 100)
    for second in ({"rho": rho}, {"epsilon": 0, "delta": Fraction(1, 16 * 10**6)}):
        accountant = BudgetAccountant(1, 1e-6, composition="zcdp")
        accountant.spend(rho=rho)
        accountant.spend(**second)
        with pytest.raises(BudgetError):
            accountant.spend(0, Fraction(1, 10**6) / 16 + Fraction(1, 10**9))


def test_a_delta_spent_twice_would_be_seen(gaussian, monkeypatch):
    """Forget the deltas of releases without rho: more is granted than the ceiling holds."""

    def times() -> int:
        accountant = BudgetAccountant(1, 1e-6, composition="zcdp")
        accountant.spend(0.01, 6e-8)
        return granted(accountant, epsilon=0.01, delta=1e-9)

    honest, parts = times(), composition._parts
    monkeypatch.setattr(composition, "_parts", lambda s: parts(s)._replace(failure=Fraction(0)))
    assert honest == 2  # of a sixteenth of δ, 62.5e-9
    assert times() > 400


def test_what_is_enforced_does_not_look_for_the_best_order(gaussian):
    """Budgets may depend on results: the order is fixed by the ceiling, before any release."""
    accountant = BudgetAccountant(1, 1e-6, composition="zcdp")
    for _ in range(30):
        accountant.spend(**gaussian)
    half = Fraction(1, 2) + Fraction(3, 100)
    rho, order = 30 * gaussian["rho"], best_order(Fraction(1), Fraction(1, 10**6))
    reported = zcdp_epsilon(rho, Fraction(1, 10**6), {half: 1})
    at_order = renyi_epsilon(order, rho, Fraction(1, 10**6), {half: 1})
    assert reported < 1 < at_order
    with pytest.raises(BudgetError):
        accountant.spend(half)
    accountant.spend(accountant.remaining().epsilon)
    assert accountant.total() <= (1, 1e-6)


def test_without_a_delta_only_the_sum_counts(gaussian):
    accountant = BudgetAccountant(1)
    assert granted(accountant, epsilon=Fraction(1, 100)) == 100
    with pytest.raises(BudgetError):
        BudgetAccountant(1).spend(**gaussian)


def test_many_pure_releases_fit_under_a_ceiling_with_a_delta():
    accountant = BudgetAccountant(1, 1e-6, composition="zcdp")
    times = granted(accountant, epsilon=Fraction(1, 100))
    assert times > zcdp_rho(Fraction(1), CONVERTS) // Fraction(1, 20_000) > 400
    assert best_delta(1.0, 0.01, times) < 1e-6
    assert granted(BudgetAccountant(3, 1e-6, composition="zcdp"), epsilon=Fraction(1, 10)) == 40


def test_parallel_releases_are_joined_in_zcdp_too(gaussian):
    accountant = BudgetAccountant(1, 1e-6, composition="zcdp")
    with accountant.parallel():
        for _ in range(40):
            accountant.spend(**gaussian, unit=ADDED)
        accountant.spend(0.01)
    assert accountant._ledger.spends() == {Spend.of(rho=gaussian["rho"]): 1}
    with accountant.parallel():
        accountant.spend(rho=1e-4)
        accountant.spend(0.1)  # 1/200-zCDP, which is more, and at most 0.1
    assert accountant._ledger.spends() == {
        Spend.of(rho=gaussian["rho"]): 1, Spend.of(rho=1e-4): 1, Spend.of(0.1): 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "unless rho is given"),
        ({"rho": 0}, "rho must not be 0"),
        ({"rho": -1}, "rho must not be negative"),
        ({"rho": "1"}, "rho must be a real number"),
        ({"epsilon": 1, "rho": Fraction(1, 7**1000)}, "fewer digits"),
    ],
)
def test_what_is_no_spend_is_refused(given, message):
    accountant = BudgetAccountant(1, 1e-6, composition="zcdp")
    for attempt in (accountant.spend, accountant.check):
        with pytest.raises((TypeError, ValueError), match=message):
            attempt(**given)
    assert len(accountant) == 0


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    with pytest.raises(ImportError, match="pip install dp-accounting"):
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
        assert (
            tight.epsilon < accountant.total().epsilon < 6 < accountant.total("sum").epsilon == 10
        )
        assert best_delta(tight.epsilon + 0.01, 0.1, 100) < 1e-6
        assert best_delta(tight.epsilon - 0.02, 0.1, 100) > 1e-6

    @pytest.mark.parametrize("times", [0, 1, 3])
    def test_it_is_the_sum_where_nothing_is_gained(self, times):
        accountant = BudgetAccountant(1)
        for _ in range(times):
            accountant.spend(0.3)
        assert accountant.total(method="pld") == accountant.total() == (times * 3 / 10, 0)

    def test_parallel_releases_count_once(self):
        accountant = BudgetAccountant(1, 1e-6, composition="zcdp")
        with accountant.parallel():
            for _ in range(50):
                accountant.spend(0.5, unit=ADDED)
        assert accountant.total(method="pld").epsilon <= 0.5

    def test_infinite_spends(self):
        accountant = BudgetAccountant(delta=1e-6)
        accountant.spend(math.inf)
        assert accountant.total(method="pld").epsilon == math.inf

    def test_a_thousand_gaussian_releases_cost_what_its_renyi_accountant_says(self):
        import dp_accounting
        from dp_accounting.rdp import RdpAccountant

        accountant = BudgetAccountant(100, 1e-6, composition="zcdp")
        sigma = 400
        for _ in range(1000):
            accountant.spend(rho=Fraction(1, 2 * sigma**2))
        theirs = RdpAccountant(np.linspace(1.5, 200, 4000))
        theirs.compose(dp_accounting.GaussianDpEvent(sigma), 1000)
        ratio = accountant.total().epsilon / theirs.get_epsilon(1e-6)
        assert 1 - 1e-6 < ratio < 1.01  # their orders are a grid, which can only cost

    def test_it_is_never_below_the_exact_composition_of_gaussians(self):
        from dp_accounting.pld import privacy_loss_distribution

        accountant = BudgetAccountant(100, 1e-6, composition="zcdp")
        for _ in range(1000):
            accountant.spend(rho=Fraction(1, 2 * 400**2))
        for _ in range(20):
            accountant.spend(0.05)
        law = privacy_loss_distribution.from_gaussian_mechanism(400).self_compose(1000)
        pure = privacy_loss_distribution.from_laplace_mechanism(20).self_compose(20)
        exact = law.compose(pure).get_epsilon_for_delta(1e-6)
        assert exact <= accountant.total().epsilon < 1.25 * exact
        assert accountant.total(method="pld") <= accountant.total()

    def test_only_zcdp(self):
        accountant = BudgetAccountant(1, 1e-6, composition="zcdp")
        accountant.spend(rho=0.01)
        ratio = accountant.total(method="pld").epsilon / accountant.total().epsilon
        assert 0.99 < ratio <= 1

    @pytest.mark.parametrize("epsilon", [0.01, 0.03])
    def test_a_thousand_fits_of_naive_bayes_cost_what_its_accountants_say(self, epsilon):
        import dp_accounting
        from dp_accounting.pld import PLDAccountant
        from dp_accounting.rdp import RdpAccountant

        counts = CountTables(Network.star([2] * 20, 2), (), 1000)
        budget = Budget(Fraction(str(epsilon)), Fraction(1, 10**9))
        prior = DirichletPrior(counts.network, (), temperature=1)
        cost = plan(Gaussian(), prior, Facts(counts.n), budget).cost
        accountant = BudgetAccountant(100, 1e-6, composition="zcdp")
        for _ in range(1000):
            accountant.spend(cost.epsilon, cost.delta, rho=cost.rho)
        fits = dp_accounting.SelfComposedDpEvent(
            dp_accounting.GaussianDpEvent(math.sqrt(1 / (2 * cost.rho))), 1000
        )
        renyi, exact = RdpAccountant(np.linspace(1.5, 200, 4000)), PLDAccountant()
        ours = accountant.total().epsilon
        assert 1 - 1e-6 < ours / renyi.compose(fits).get_epsilon(1e-6) < 1.01
        assert exact.compose(fits).get_epsilon(1e-6) < ours < accountant.total("sum").epsilon
        assert 0.99 < accountant.total(method="pld").epsilon / ours <= 1

    def test_mixed_with_pure_fits_it_is_never_below_the_worst_pure_releases(self):
        """Randomised response is the worst that is purely private."""
        from dp_accounting.pld import common, privacy_loss_distribution

        accountant, interval = BudgetAccountant(100, 1e-6, composition="zcdp"), 1e-3
        total = privacy_loss_distribution.from_gaussian_mechanism(
            50, value_discretization_interval=interval
        ).self_compose(30)
        for epsilon, times in ((0.02, 40), (0.3, 1)):
            worst = privacy_loss_distribution.from_privacy_parameters(
                common.DifferentialPrivacyParameters(epsilon, 0),
                value_discretization_interval=interval,
            )
            total = total.compose(worst.self_compose(times))
            for _ in range(times):
                accountant.spend(epsilon)
        for _ in range(30):
            accountant.spend(rho=Fraction(1, 2 * 50**2))
        exact = total.get_epsilon_for_delta(1e-6)
        assert 0.99 * exact <= accountant.total().epsilon < 1.3 * exact
        assert accountant.total(method="pld").epsilon >= 0.99 * exact


@pytest.mark.parametrize("turned", [1, -1])
def test_branches_cost_as_much_as_the_largest_in_any_order(turned):
    rhos = [Spend.of(rho=r) for r in (0.01, 0.03, 0.02)][::turned]
    assert in_parallel(rhos) == [Spend.of(rho=0.03)]
    costs = [Spend.of(1), Spend.of(2, 1e-7), Spend.of(1, 1e-6)][::turned]
    assert in_parallel(costs) == [Spend.of(2, 1e-6)]
    assert in_parallel([*rhos, *costs]) == [Spend.of(rho=0.03), Spend.of(2, 1e-6)]
