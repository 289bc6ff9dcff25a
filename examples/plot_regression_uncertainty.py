"""
Prediction intervals that include the privacy noise
===================================================

The standard deviation from ``predict(X, return_std=True)`` includes three things: the residual
variance, the uncertainty of the coefficients, and the privacy noise. With a smaller budget
intervals become wider, and cover no less than they state.
"""

# %%
# Wages against age and hours, simulated; the bounds are public.
import matplotlib.pyplot as plt
import numpy as np

from dpbayes_sklearn import BayesianLinearRegression

rng = np.random.default_rng(0)
n = 4000
X = np.column_stack([rng.uniform(18, 66, n), rng.uniform(5, 60, n)])
y = 3 + 0.15 * X[:, 0] + 0.4 * X[:, 1] + rng.normal(0, 4, n)
model = BayesianLinearRegression(bounds_X=([18, 5], [66, 60]), bounds_y=(0, 60), random_state=1)

# %%
# One release at each of three budgets: the line, and the interval for 95 % of new wages. At
# ε = 0.03 hardly anything can be learned: the slope is close to 0 and the interval is wide.
hours = np.linspace(5, 60, 40)
at = np.column_stack([np.full(40, 40.0), hours])
forties = abs(X[:, 0] - 40) < 5
figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), sharey=True)
for ax, epsilon in zip(axes, (1.0, 0.1, 0.03), strict=True):
    mean, std = model.set_params(epsilon=epsilon).fit(X, y).predict(at, return_std=True)
    ax.plot(X[forties, 1][:200], y[forties][:200], ".", color="0.6", ms=3)
    ax.plot(hours, mean)
    ax.fill_between(hours, mean - 1.96 * std, mean + 1.96 * std, alpha=0.2)
    ax.set(title=f"ε = {epsilon:g}", xlabel="hours a week")
axes[0].set_ylabel("wage at 40")
plt.show()

# %%
# Do the intervals have their stated coverage? Repeat the release, and count how many of 1,000 new
# wages are inside.
new = np.column_stack([rng.uniform(18, 66, 1000), rng.uniform(5, 60, 1000)])
wages = 3 + 0.15 * new[:, 0] + 0.4 * new[:, 1] + rng.normal(0, 4, 1000)


def coverage(epsilon, seed):
    released = model.set_params(epsilon=epsilon, random_state=seed).fit(X, y)
    mean, std = released.predict(new, return_std=True)
    return np.mean(abs(wages - mean) < 1.96 * std), std.mean()


epsilons = [0.03, 0.1, 0.3, 1.0, 3.0]
found = np.array([[coverage(e, seed) for seed in range(10)] for e in epsilons])
covered, width = found[..., 0], found[..., 1]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2))
left.boxplot(covered.T, tick_labels=[f"{e:g}" for e in epsilons])
left.axhline(0.95, color="0.5", ls="--", lw=1)
left.set(xlabel="epsilon", ylabel="share of new wages covered", ylim=(0.8, 1.01))
right.plot(epsilons, width.mean(1), "o-")
right.axhline(4, color="0.5", ls="--", lw=1, label="residual standard deviation")
right.set(xscale="log", xlabel="epsilon", ylabel="predicted standard deviation", ylim=(0, None))
right.legend(frameon=False)
plt.show()
