"""The package on a system without fork, flock and numbers of users, such as Windows."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import os, sys
import sklearn.linear_model, sklearn.model_selection  # and what it needs of the system
del os.register_at_fork
sys.modules["fcntl"] = None  # importing it fails
from dpbayes_sklearn import BayesianNaiveBayes, BudgetAccountant
del os.getuid
accountant = BudgetAccountant(epsilon=1.0, path="ledger.db")
with accountant:
    BayesianNaiveBayes(0.4, bounds=(0, 1), n_bins=2, classes=[0, 1]).fit([[0], [1]], [0, 1])
print(BudgetAccountant(path="ledger.db", epsilon=1.0).total().epsilon)
"""


def test_fits_and_charges(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        cwd=tmp_path,
        env={"PYTHONPATH": ":".join(sys.path), "PATH": "", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "0.4\n", done.stderr
