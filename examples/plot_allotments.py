"""
One budget, several analysts
============================

An allotment is a named part of a budget. Its holder can spend no more than that, and all of them
together no more than the total, which is what protects the people in the data.
"""

# %%
# Three analysts fit models to the same people. Their allotments add up to more than the total:
# who comes late may find nothing left.
import matplotlib.pyplot as plt
import numpy as np

from dpbayes_sklearn import BayesianNaiveBayes, BudgetAccountant, BudgetError

rng = np.random.default_rng(0)
y = rng.integers(0, 2, 2000)
X = (rng.random((2000, 4)) < 0.3 + 0.4 * y[:, None]).astype(int)
total = BudgetAccountant(epsilon=2.0)
analysts = {
    name: total.allotment(name, epsilon)
    for name, epsilon in (("anna", 0.6), ("bert", 1.0), ("carla", 1.0))
}
wishes = [
    ("anna", 0.4),
    ("bert", 0.5),
    ("anna", 0.4),
    ("bert", 0.5),
    ("carla", 0.5),
    ("carla", 0.5),
]
for name, epsilon in wishes:
    model = BayesianNaiveBayes(epsilon, classes=[0, 1], bounds=(0, 1), n_bins=2)
    try:
        model.set_params(accountant=analysts[name]).fit(X, y)
        print(f"{name}: fitted with ε = {epsilon}")
    except BudgetError as refused:
        print(f"{name}: refused, ε = {refused.remaining.epsilon} remains")

# %%
# What everybody has spent, and what their ceilings are.
parts = total.allotments()
names = ["all", *(part.name for part in parts)]
spent = [total.total().epsilon, *(float(part.spent.epsilon) for part in parts)]
ceilings = [total.epsilon, *(float(part.ceiling.epsilon) for part in parts)]
figure, ax = plt.subplots(figsize=(6.4, 2.8))
ax.barh(names, ceilings, color="0.88", label="ceiling")
ax.barh(names, spent, color="#2f7fc1", height=0.5, label="spent")
ax.invert_yaxis()
ax.set(xlabel="ε")
ax.legend(frameon=False, loc="lower right")
plt.show()
