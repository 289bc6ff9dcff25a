"""
A grid over epsilon
===================

Which accuracy does a budget give, and does a coarser model need a smaller budget? On **public**
data of the same kind, a plain :class:`~sklearn.model_selection.GridSearchCV` answers this:
``epsilon`` and ``n_bins`` are ordinary parameters. On private data its scores would leak
information; use :class:`~dpbayes_sklearn.PrivateSearchCV` instead
(:ref:`sphx_glr_auto_examples_plot_private_search.py`).
"""

# %%
# Measurements of tumours, with ranges as in a codebook.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from dpbayes_sklearn import BayesianNaiveBayes

X, y = load_breast_cancer(return_X_y=True)
X = X[:, [0, 1, 4, 6]]  # radius, texture, smoothness, concavity
model = BayesianNaiveBayes(
    bounds=([6, 9, 0.05, 0], [30, 40, 0.17, 0.43]), classes=[0, 1], random_state=0
)

# %%
# Every combination is fitted in five folds. Fits take milliseconds, so this is quick.
grid = {"epsilon": [0.1, 0.2, 0.5, 1.0, 2.0, 5.0], "n_bins": [2, 4, 8, 16]}
folds = StratifiedKFold(5, shuffle=True, random_state=0)
search = GridSearchCV(model, grid, cv=folds, refit=False).fit(X, y)
accuracy = search.cv_results_["mean_test_score"].reshape(6, 4).T

# %%
# With few records and a small budget, few bins are better, here four (two are too coarse at any
# epsilon): more bins mean smaller counts with at least the same noise. The larger the number of
# records times epsilon, the more bins a model can have. ``n_bins="auto"`` follows this rule without
# using the data.
figure, ax = plt.subplots(figsize=(7, 3.4))
shown = ax.imshow(accuracy, cmap="viridis", aspect="auto", vmin=0.6)
for (row, column), value in np.ndenumerate(accuracy):
    colour = "black" if value > 0.8 else "white"
    ax.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour)
ax.set_xticks(range(6), [f"{e:g}" for e in grid["epsilon"]])
ax.set_yticks(range(4), grid["n_bins"])
ax.set(xlabel="epsilon", ylabel="bins per feature", title="Accuracy, 455 training records")
figure.colorbar(shown)
plt.show()
