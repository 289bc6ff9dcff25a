"""What public numbers decide is refused before the charge, and what can be released is charged."""

from __future__ import annotations

import numpy as np
import pytest

from dpbayes_sklearn import (
    BayesianNaiveBayes,
    BudgetAccountant,
    Categories,
    Interval,
    Schema,
)


def test_tables_that_are_too_large_are_refused_before_they_are_counted():
    ledger = BudgetAccountant()
    schema = Schema({"a": Interval(0, 1, bins=2**16)}, Categories(range(1100)))
    model = BayesianNaiveBayes(schema=schema, accountant=ledger)
    with pytest.raises(ValueError, match="72,090,700 cells, and at most 67,108,864"):
        model.fit(np.zeros((4, 1)), [0, 1, 0, 1])
    assert len(ledger) == 0


@pytest.mark.parametrize("mechanism", ["gaussian", "sampler"])
def test_a_release_that_no_record_changes_can_be_charged(mechanism):
    ledger = BudgetAccountant(delta=0.1)
    model = BayesianNaiveBayes(
        schema=Schema({"a": Categories([0])}, Categories([0, 1])),
        privacy_unit="feature",
        mechanism=mechanism,
        delta=1e-3,
        temperature=1,
        accountant=ledger,
    )
    model.fit(np.zeros((4, 1)), np.zeros(4))
    assert len(ledger) == 1
    assert 0 < ledger.total().epsilon <= 1
