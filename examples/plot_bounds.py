"""
How bounds affect accuracy
==========================

Bounds are public, and noise is scaled to them. If they are too wide, noise is large and bins are
empty. If they are too narrow, values are clipped and the model is biased. Bounds that are slightly
too narrow are better than bounds that are far too wide.
"""

# %%
# Incomes are skewed: most are modest, a few are huge. This is general knowledge, but it does not
# say which upper bound to use. The target is a health score that rises with income and levels off.
import matplotlib.pyplot as plt
import numpy as np

from dpbayes_sklearn import BayesianLinearRegression, BayesianNaiveBayes

rng = np.random.default_rng(0)
n = 3000
income = rng.lognormal(np.log(30_000), 0.5, n)
age = rng.uniform(20, 80, n)
health = 60 + 30 * np.tanh(income / 60_000) - 0.3 * (age - 50) + rng.normal(0, 5, n)
X = np.column_stack([income, age])
half = n // 2


def r2(upper, seed):
    model = BayesianLinearRegression(
        0.5, bounds_X=([0, 20], [upper, 80]), bounds_y=(30, 110), random_state=seed
    )
    return model.fit(X[:half], health[:half]).score(X[half:], health[half:])


def accuracy(upper, seed):
    healthy = (health > 75).astype(int)
    model = BayesianNaiveBayes(
        0.5, bounds=([0, 20], [upper, 80]), n_bins=8, classes=[0, 1], random_state=seed
    )
    return model.fit(X[:half], healthy[:half]).score(X[half:], healthy[half:])


# %%
# Five releases at each upper bound, with the share of clipped incomes on the top axis. The best
# bounds here clip about one income in twelve. Half as wide, they lose much of the information in
# income. Fifty times as wide, naive Bayes loses all of it, because nearly all incomes are in one
# bin; a regression first finds, privately, where the incomes lie, and loses less.
uppers = np.array([15e3, 30e3, 60e3, 120e3, 300e3, 1e6, 3e6])
figure, axes = plt.subplots(1, 2, figsize=(10, 3.8))
for ax, score, name in zip(axes, (r2, accuracy), ("R²", "accuracy"), strict=True):
    found = np.array([[score(upper, seed) for seed in range(5)] for upper in uppers])
    ax.plot(uppers, found.mean(1), "o-")
    ax.fill_between(uppers, found.min(1), found.max(1), alpha=0.15)
    ax.set(xscale="log", xlabel="upper bound of income", ylabel=name)
    ax.set_xticks([1e4, 1e5, 1e6], ["10,000", "100,000", "1,000,000"])
    top = ax.secondary_xaxis("top")
    top.set_xticks(uppers[:5], [f"{np.mean(income > u):.1%}" for u in uppers[:5]], fontsize=8)
    top.set_xlabel("clipped")
plt.show()
