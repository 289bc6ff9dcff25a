"""
One budget for all releases
===========================

One ledger records everything that is released about the same people. Folds, threads, processes and
later runs share it. A fit that would exceed the ceiling is refused before any noise is drawn.
"""

# %%
# A hospital decides on a total of ε = 2. The ledger is a file.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_predict

from dpbayes_sklearn import BayesianNaiveBayes, BetaBinomial, BudgetAccountant, BudgetError
from dpbayes_sklearn.privacy.budget import PrivacyUnit

rng = np.random.default_rng(0)
y = rng.integers(0, 2, 3000)
X = (rng.random((3000, 6)) < 0.25 + 0.5 * y[:, None]).astype(int)
ward = rng.choice(["east", "west"], 3000)
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "patients.sqlite"
ledger = BudgetAccountant(epsilon=2.0, path=path)

# %%
# Monday: a proportion. Tuesday: five folds, in two processes. Wednesday: two wards without common
# patients, so the privacy cost is the larger of the two, not the sum. That needs
# ``neighbours="add_remove"``: the number of records is secret, and released by each fit. The ward
# is a label of the patient's own; a position in the table must not decide it.
common = {"privacy_unit": PrivacyUnit("record", neighbours="add_remove"), "accountant": ledger}
model = BayesianNaiveBayes(0.2, classes=[0, 1], bounds=(0, 1), n_bins=2, **common)
BetaBinomial(0.1, **common).fit(y == 1)
guesses = cross_val_predict(model, X, y, cv=5, n_jobs=2)
with ledger.parallel():
    for name in ("east", "west"):
        model.set_params(epsilon=0.5).fit(X[ward == name], y[ward == name])

# %%
# Thursday: another program opens the file and sees the remaining budget.
tomorrow = BudgetAccountant(path=path, existing=True)  # refuses a mistyped path
print(f"spent {tomorrow.total().epsilon}, remaining {tomorrow.remaining().epsilon}")
try:
    model.set_params(epsilon=0.5, accountant=tomorrow).fit(X, y)
except BudgetError as error:
    print(f"refused: asked for {error.requested.epsilon}, {error.remaining.epsilon} remains")

# %%
# The ledger lists all releases.
entries = list(tomorrow)
total = [float(entry.spent.epsilon) for entry in entries]
figure, ax = plt.subplots(figsize=(8, 3.4))
ax.bar(range(len(total)), total, width=0.8)
ax.axhline(2.0, color="C3", ls="--", lw=1, label="ceiling")
labels = [entry.label.split(",")[0] for entry in entries]
ax.set_xticks(range(len(labels)), labels, rotation=30, ha="right", fontsize=7)
ax.set(ylabel="total spent", ylim=(0, 2.2), title="The two wards are disjoint: charged as one")
ax.legend(frameon=False)
plt.show()

# %%
# A notebook shows the accountant as a card:
tomorrow

# %%
# In practice you would keep the ledger; this one was only for the example.
folder.cleanup()
