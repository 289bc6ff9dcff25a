"""Random use of an accountant and its copies against a model that keeps lists of spends."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from dpbayes_sklearn.exceptions import BudgetError
from dpbayes_sklearn.privacy import BudgetAccountant
from dpbayes_sklearn.privacy.budget import Cost
from dpbayes_sklearn.privacy.composition import Filter, Spend, in_parallel, tightest
from dpbayes_sklearn.privacy.ledger import Ledger
from tests.privacy.ledgers import ADDED

decimals = st.sampled_from([0.1, 0.2, 0.3, 0.7, 1.0, 1e-9, 1e-300])
epsilons = decimals | st.fractions(Fraction(1, 50), 2, max_denominator=50) | st.just(math.inf)
deltas = st.sampled_from([0, 0, 0, 1e-6, 2e-6])
rhos = st.sampled_from([None, None, 1e-5, 0.02])


def sequence(groups: list[list[Spend]]) -> Counter[Spend]:
    """What composes in sequence: each group is a parallel scope, or one release."""
    return Counter(s for group in groups for s in (in_parallel(group) if len(group) > 1 else group))


class AccountantMachine(RuleBasedStateMachine):
    @initialize(
        epsilon=st.sampled_from([0.3, 1.0, Fraction(7, 3), math.inf]),
        delta=st.sampled_from([0.0, 3e-6]),
        composition=st.sampled_from(["sum", "zcdp"]),
    )
    def start(self, epsilon, delta, composition):
        if not delta or epsilon == math.inf:
            composition = "sum"
        self.accountant = BudgetAccountant(epsilon, delta, composition=composition)
        self.ceiling = Cost.of(epsilon, delta)
        self.filter = Filter.of(self.ceiling, composition)
        self.groups: list[list[Spend]] = []
        self.scope = None

    def spent(self, groups: list[list[Spend]]) -> Cost:
        """Each group costs its maxima; groups add up."""
        return Cost(
            sum((max(spend.cost.epsilon for spend in group) for group in groups), Fraction(0)),
            sum((max(spend.cost.delta for spend in group) for group in groups), Fraction(0)),
        )

    def total(self, groups: list[list[Spend]]) -> Cost:
        return tightest(self.filter, self.spent(groups), sequence(groups))

    def allowed(self, groups: list[list[Spend]]) -> bool:
        return self.filter.accepts(self.spent(groups), sequence(groups))

    def after(self, spend: Spend) -> list[list[Spend]]:
        if self.scope and self.scope_used:
            return [*self.groups[:-1], [*self.groups[-1], spend]]
        return [*self.groups, [spend]]

    @rule(epsilon=epsilons, delta=deltas, rho=rhos)
    def spend(self, epsilon, delta, rho):
        after = self.after(Spend.of(epsilon, delta, rho))
        if self.allowed(after):
            assert self.total(after) <= self.ceiling  # what is accepted is reported as such
            self.accountant.check(epsilon, delta, rho=rho, unit=ADDED)
            entry = self.accountant.spend(epsilon, delta, rho=rho, unit=ADDED)
            assert entry.spent == self.spent(after)
            self.groups, self.scope_used = after, True
        else:
            for attempt in (self.accountant.check, self.accountant.spend):
                with pytest.raises(BudgetError):
                    attempt(epsilon, delta, rho=rho, unit=ADDED)

    @rule(rho=st.sampled_from([1e-9, 1e-5, 1e-3]))
    def spend_only_zcdp(self, rho):
        self.spend(None, 0, rho)

    @rule()
    def toggle_parallel(self):
        if self.scope:
            self.scope.__exit__(None, None, None)
            self.scope = None
        else:
            self.scope, self.scope_used = self.accountant.parallel(), False
            self.scope.__enter__()

    @rule()
    def go_on_with_a_pickled_copy(self):
        self.accountant = pickle.loads(pickle.dumps(self.accountant))

    @rule()
    def go_on_from_the_file(self):
        self.accountant = BudgetAccountant(path=self.accountant.path)

    @rule()
    def spend_what_remains(self):
        epsilon, delta = self.accountant.remaining()
        if epsilon < math.inf and (epsilon or delta):
            before = sum(map(len, self.groups))
            self.spend(epsilon, delta, None)
            assert sum(map(len, self.groups)) == before + 1  # it was not refused

    @invariant()
    def ledger_and_model_agree(self):
        assert Ledger.open(self.accountant.path).spent() == self.spent(self.groups)
        assert len(self.accountant) == sum(map(len, self.groups))
        assert self.accountant.total("sum") == self.spent(self.groups).rounded_up()
        assert self.accountant.total() == self.total(self.groups).rounded_up()
        if self.ceiling.delta == 0:
            left = self.ceiling.left_by(self.spent(self.groups))
            assert self.accountant.remaining() == left.rounded_down()

    def teardown(self):
        if getattr(self, "scope", None):
            self.scope.__exit__(None, None, None)


TestAccountant = AccountantMachine.TestCase
TestAccountant.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
