"""The package on a system without fork, flock, /proc and numbers of users, such as Windows."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import os, sys
import sklearn.linear_model, sklearn.model_selection  # and what it needs of the system
del os.register_at_fork
def no_proc(event, arguments):  # threadpoolctl looks for libraries there, and elsewhere not at all
    name = str(arguments[0]) if event == "open" else ""
    if name.startswith("/proc") and name != "/proc/self/maps":
        raise FileNotFoundError(arguments[0])
sys.addaudithook(no_proc)
sys.modules["fcntl"] = None  # importing it fails
from dpbayes_sklearn import BayesianNaiveBayes, BudgetAccountant
del os.getuid
accountant = BudgetAccountant(epsilon=1.0, path="ledger.db")
with accountant:
    BayesianNaiveBayes(0.4, bounds=(0, 1), n_bins=2, classes=[0, 1]).fit([[0], [1]], [0, 1])
print(BudgetAccountant(path="ledger.db", epsilon=1.0).total().epsilon)
try:
    open("/proc/self/stat")
except FileNotFoundError:
    print("no /proc")
"""


def test_fits_are_charged_without_proc_fork_and_flock(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        cwd=tmp_path,
        env={"PYTHONPATH": ":".join(sys.path), "PATH": "", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "0.4\nno /proc\n", done.stderr
