"""
A Bayesian network and synthetic records
========================================

A graph describes which columns depend on which. :class:`~dpbayes_sklearn.BayesianNetworkClassifier`
learns its tables privately, classifies, and draws **synthetic records**: rows of the same form as
the data that may be given to anyone, because they depend only on the released posterior.
"""

# %%
# Smoking and pollution cause an illness, which causes a cough and fatigue. The class is in the
# middle of the graph.
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dpbayes_sklearn import BayesianNetworkClassifier, Categories, Schema

rng = np.random.default_rng(0)
n = 10_000
smoker, pollution = rng.random(n) < 0.3, rng.choice(3, n, p=[0.5, 0.3, 0.2])
ill = rng.random(n) < 0.03 + 0.25 * smoker + 0.12 * pollution
cough = rng.random(n) < np.where(ill, 0.8, 0.15)
fatigue = rng.random(n) < np.where(ill, 0.6, 0.1) + 0.15 * cough
yes_no, levels = np.array(["no", "yes"]), np.array(["low", "medium", "high"])
X = pd.DataFrame(
    {
        "smoker": yes_no[smoker.astype(int)],
        "pollution": levels[pollution],
        "cough": yes_no[cough.astype(int)],
        "fatigue": yes_no[fatigue.astype(int)],
    }
)
y = np.where(ill, "ill", "well")

# %%
# The graph is public: it comes from prior knowledge, not from these records.
coin = Categories(["no", "yes"])
schema = Schema(
    {"smoker": coin, "pollution": Categories([*levels]), "cough": coin, "fatigue": coin},
    target=Categories(["ill", "well"]),
)
graph = {"class": ["smoker", "pollution"], "cough": ["class"], "fatigue": ["class", "cough"]}
model = BayesianNetworkClassifier(1.0, parents=graph, schema=schema, random_state=0).fit(X, y)
print(model.guarantee_)

# %%
# You can draw any number of synthetic records without further privacy cost. Up to noise, every pair
# of columns has the same joint distribution as in the data.
synthetic_X, synthetic_y = model.sample(n, random_state=1)
synthetic_X.assign(health=synthetic_y).head(3)

# %%
# To see the noise, compare the share of every pair of values, at two budgets.


def pair_shares(features, health):
    """Return the share of every combination of values, for all pairs of columns."""
    table = pd.DataFrame(np.asarray(features), columns=X.columns).assign(health=health)
    coded = {name: pd.get_dummies(table[name]).astype(float) for name in table}
    products = [coded[a].T @ coded[b] for a, b in combinations(coded, 2)]
    return np.concatenate([product.to_numpy().ravel() for product in products]) / len(table)


figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
for epsilon, colour in ((0.05, "C1"), (1.0, "C0")):
    drawn = model.set_params(epsilon=epsilon).fit(X, y).sample(n, random_state=1)
    label = f"ε = {epsilon:g}"
    left.plot(pair_shares(X, y), pair_shares(*drawn), "o", ms=4, color=colour, label=label)
left.plot([0, 0.8], [0, 0.8], color="0.6", lw=1, zorder=0)
left.set(xlabel="share among the records", ylabel="share among synthetic records")
left.set_title("Every pair of values")
left.legend(frameon=False)

# The question of a doctor: how likely is the illness, given the symptoms?
grid = pd.DataFrame(
    [(s, p, c, "no") for s in yes_no for p in levels for c in yes_no], columns=X.columns
)
chance = model.predict_proba(grid)[:, 0].reshape(2, 3, 2)
for i, (name, ls) in enumerate((("non-smoker", "--"), ("smoker", "-"))):
    for j, (sign, colour) in enumerate((("no cough", "C2"), ("cough", "C3"))):
        label = f"{name}, {sign}"
        right.plot(levels, chance[i, :, j], ls, marker="o", color=colour, label=label)
right.set(xlabel="pollution", ylabel="P(ill)", ylim=(0, 1), title="Released at ε = 1")
right.legend(frameon=False)
plt.show()
