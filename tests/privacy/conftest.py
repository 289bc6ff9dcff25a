"""A new ledger for tests of ledgers."""

from __future__ import annotations

import pytest

from dpbayes_sklearn.privacy.ledger import Ledger
from tests.privacy.ledgers import CEILING


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    return Ledger.create(str(tmp_path / "ledger"), CEILING)
