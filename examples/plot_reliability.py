"""
Calibration of probabilities and intervals
==========================================

Predictions with a probability of 90 % should be correct for nine records out of ten, and a 90 %
interval should contain nine targets out of ten. A model that treats noisy counts as exact is
overconfident. The defaults account for the noise. Both figures are computed without noise, so use
public records, or do not publish them.
"""

# %%
# A classifier on simulated patients. ``inference="plug_in", temperature=1`` treats the released
# counts as exact and the features as independent.
import matplotlib.pyplot as plt
import numpy as np

from dpbayes_sklearn import (
    BayesianLinearRegression,
    BayesianNaiveBayes,
    CoverageDisplay,
    ReliabilityDisplay,
)

rng = np.random.default_rng(0)
n = 6000
illness = rng.normal(0, 1, n)  # what all measurements depend on
X = illness[:, None] + rng.normal(0, 1.5, (n, 20))
y = (illness + rng.normal(0, 0.7, n) > 0).astype(int)
train, test = slice(0, 3000), slice(3000, None)

public = {"bounds": (-5, 5), "n_bins": 8, "classes": [0, 1], "random_state": 0}
models = {
    "default": BayesianNaiveBayes(0.5, **public),
    "noisy counts treated as exact": BayesianNaiveBayes(
        0.5, inference="plug_in", temperature=1, **public
    ),
}

figure, left = plt.subplots(figsize=(5.4, 4.6))
for (label, model), colour in zip(models.items(), ("#2f7fc1", "#e08a1e"), strict=True):
    model.fit(X[train], y[train])
    display = ReliabilityDisplay.from_estimator(
        model, X[test], y[test], label=label, ax=left, color=colour
    )
    print(f"{label}: calibration error {display.calibration_error_:.3f}")
left.set_title("classifier, ε = 0.5")
plt.show()

# %%
# A regression. Its standard deviations include the residual variance and the noise of the release,
# and are rather too large than too small.
target = X[:, :3].sum(axis=1) + rng.normal(0, 2, n)
regression = BayesianLinearRegression(1.0, bounds_X=(-5, 5), bounds_y=(-15, 15), random_state=0)
regression.fit(X[train, :3], target[train])
figure, right = plt.subplots(figsize=(5.4, 4.6))
CoverageDisplay.from_estimator(regression, X[test, :3], target[test], label="default", ax=right)
right.set_title("regression, ε = 1")
plt.show()
