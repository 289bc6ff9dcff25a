"""
Evaluation on private records
=============================

A test set is private too. ``metrics.private_score`` releases metrics with noise, in one charge,
with intervals that contain the privacy noise and the sampling error.
"""

# %%
# A model, and test sets of several sizes from the same population.
import matplotlib.pyplot as plt
import numpy as np

from dpbayes_sklearn import BayesianNaiveBayes, ReliabilityDisplay
from dpbayes_sklearn.metrics import private_score

rng = np.random.default_rng(0)
n = 42_000
illness = rng.normal(0, 1, n)
X = illness[:, None] + rng.normal(0, 1.5, (n, 10))
y = (illness + rng.normal(0, 0.7, n) > 0).astype(int)
model = BayesianNaiveBayes(1.0, bounds=(-5, 5), n_bins=8, classes=[0, 1], random_state=0)
model.fit(X[:2000], y[:2000])

# %%
# The sampling error falls with the square root of the number of records, the noise with the number
# itself: from some size on, privacy costs nothing.
sizes, epsilon = [300, 1000, 3000, 10_000, 40_000], 0.5
metrics = {"accuracy": "#2f7fc1", "roc_auc": "#e08a1e"}
figure, ax = plt.subplots(figsize=(7, 4))
for shift, (metric, colour) in zip((0.94, 1.06), metrics.items(), strict=True):
    scores = [
        private_score(
            model,
            X[2000 : 2000 + size],
            y[2000 : 2000 + size],
            scoring=metric,
            epsilon=epsilon,
            random_state=0,
        )[metric]
        for size in sizes
    ]
    values = np.array([score.value for score in scores])
    ends = np.abs(np.array([[s.low, s.high] for s in scores]).T - values)
    place = shift * np.array(sizes)
    ax.errorbar(place, values, ends, fmt="o", color=colour, capsize=3, label=metric)
    noise = np.array([score.noise_std for score in scores])
    ax.errorbar(place, values, 2 * noise, fmt="none", color=colour, lw=5, alpha=0.35)
exact = private_score(model, X[2000:], y[2000:], scoring=list(metrics), epsilon=np.inf)
for metric, colour in metrics.items():
    ax.axhline(exact[metric].value, color=colour, lw=1, ls="--")
ax.set(
    xscale="log", xlabel="test records", ylabel="metric", title=f"ε = {epsilon:g} for each point"
)
ax.legend(frameon=False, loc="lower right")
plt.show()

# %%
# Thick bars are two standard deviations of the noise alone. The calibration curve is private too:
found = private_score(
    model,
    X[2000:],
    y[2000:],
    scoring=["accuracy", "log_loss", "calibration_curve"],
    epsilon=1.0,
    random_state=0,
)
figure, ax = plt.subplots(figsize=(5.2, 4.6))
ReliabilityDisplay.from_evaluation(found, label="private, ε = 1", ax=ax)
plt.show()
print(found)
