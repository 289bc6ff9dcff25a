"""
Selecting parameters at a known privacy cost
============================================

Trying twelve candidates on private records and keeping the best reveals something about the
records. The privacy cost of :class:`~dpbayes_sklearn.PrivateSearchCV` is known in advance and does
not grow with the number of candidates: it is that of three runs.
"""

# %%
# Records with eight features of five values each. Which pseudo-count and which mechanism are best?
import matplotlib.pyplot as plt
import numpy as np

from dpbayes_sklearn import BayesianNaiveBayes, BudgetAccountant, PrivateSearchCV

rng = np.random.default_rng(0)
shape = rng.dirichlet(np.full(5, 0.4), (8, 3))  # of eight features, for each of three classes


def people(n):
    y = rng.integers(0, 3, n)
    below = shape.cumsum(axis=2)[:, y]  # one row per feature and person
    return (rng.random((8, n, 1)) > below).sum(axis=2).T, y


X, y = people(2000)
X_new, y_new = people(1000)  # public, to see how good the choice was
model = BayesianNaiveBayes(classes=range(3), bounds=(0, 4), n_bins=5)
grid = {"mechanism": ["laplace", "fourier", "sampler", "map"], "alpha": [0.1, 1.0, 10.0]}

# %%
# The privacy cost is known before anything is spent.
print(PrivateSearchCV.cost(BayesianNaiveBayes(0.2), grid, n=2000))
ledger = BudgetAccountant(epsilon=1.0)
search = PrivateSearchCV(
    model, grid, epsilon=0.6, runs_per_candidate=3, accountant=ledger, random_state=0
).fit(X, y)
print(search.best_params_, f"score {search.best_score_:.3f}")
print(search.guarantee_)
print("charged:", ledger.total().epsilon)

# %%
# Was it a good choice? These records are simulated, so we can check: every candidate is fitted
# three times with a third of the budget, as in the search, and scored on further records.
scores = {}
for mechanism in grid["mechanism"]:
    for alpha in grid["alpha"]:
        model.set_params(epsilon=0.2, mechanism=mechanism, alpha=alpha)
        fits = [model.set_params(random_state=s).fit(X, y).score(X_new, y_new) for s in range(3)]
        scores[f"{mechanism}, α = {alpha:g}"] = fits
chosen = f"{search.best_params_['mechanism']}, α = {search.best_params_['alpha']:g}"
order = sorted(scores, key=lambda name: np.mean(scores[name]))
figure, ax = plt.subplots(figsize=(7, 4))
for row, name in enumerate(order):
    colour = "C3" if name == chosen else "C0"
    ax.plot(scores[name], [row] * 3, "o", color=colour, alpha=0.7)
ax.axvline(np.mean(search.predict(X_new) == y_new), color="C3", ls="--", lw=1)
ax.set_yticks(range(len(order)), order)
ax.set(xlabel="accuracy on new records", title="Selected candidate, and its model (dashed)")
plt.show()
