"""Random use of an accountant and its copies against a model that just adds fractions."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from dpbayes_sklearn.exceptions import BudgetError
from dpbayes_sklearn.privacy import BudgetAccountant
from dpbayes_sklearn.privacy.cost import Cost
from dpbayes_sklearn.privacy.ledger import Ledger

decimals = st.sampled_from([0.1, 0.2, 0.3, 0.7, 1.0, 1e-9, 1e-300])
epsilons = decimals | st.fractions(Fraction(1, 50), 2, max_denominator=50) | st.just(math.inf)
deltas = st.sampled_from([0, 0, 0, 1e-6, 2e-6])


class AccountantMachine(RuleBasedStateMachine):
    @initialize(
        epsilon=st.sampled_from([0.3, 1.0, Fraction(7, 3), math.inf]),
        delta=st.sampled_from([0.0, 3e-6]),
    )
    def start(self, epsilon, delta):
        self.accountant = BudgetAccountant(epsilon, delta)
        self.ceiling = Cost.of(epsilon, delta)
        self.groups: list[list[Cost]] = []
        self.scope = None

    def spent(self, groups: list[list[Cost]]) -> Cost:
        """Each group costs its maxima; groups add up."""
        return Cost(
            sum((max(cost.epsilon for cost in group) for group in groups), Fraction(0)),
            sum((max(cost.delta for cost in group) for group in groups), Fraction(0)),
        )

    def after(self, cost: Cost) -> list[list[Cost]]:
        if self.scope and self.scope_used:
            return [*self.groups[:-1], [*self.groups[-1], cost]]
        return [*self.groups, [cost]]

    @rule(epsilon=epsilons, delta=deltas)
    def spend(self, epsilon, delta):
        after = self.after(Cost.of(epsilon, delta))
        if self.spent(after).within(self.ceiling):
            self.accountant.check(epsilon, delta)
            entry = self.accountant.spend(epsilon, delta)
            assert entry.spent == self.spent(after)
            self.groups, self.scope_used = after, True
        else:
            for attempt in (self.accountant.check, self.accountant.spend):
                with pytest.raises(BudgetError):
                    attempt(epsilon, delta)

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

    @invariant()
    def ledger_and_model_agree(self):
        spent = self.spent(self.groups)
        assert Ledger.open(self.accountant.path).spent() == spent
        assert len(self.accountant) == sum(map(len, self.groups))
        assert self.accountant.total() == spent.rounded_up()
        assert self.accountant.remaining() == self.ceiling.left_by(spent).rounded_down()

    def teardown(self):
        if getattr(self, "scope", None):
            self.scope.__exit__(None, None, None)


TestAccountant = AccountantMachine.TestCase
TestAccountant.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
