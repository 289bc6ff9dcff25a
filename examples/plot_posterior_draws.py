"""
Draws from a released posterior
===============================

A released posterior can be drawn from at no further privacy cost: parameters, targets of given
rows, or whole records.
"""

# %%
# A private regression on few records, so that the noise leaves much open.
import matplotlib.pyplot as plt
import numpy as np

from dpbayes_sklearn import BayesianLinearRegression

rng = np.random.default_rng(1)
x = rng.uniform(0, 10, (1500, 1))
y = 2 + 0.8 * x[:, 0] + rng.normal(0, 1.5, 1500)
model = BayesianLinearRegression(0.3, bounds_X=(0, 10), bounds_y=(-5, 20), random_state=0)
model.fit(x, y)

# %%
# Left: targets drawn along the line, and two standard deviations. Right: those of one new record,
# whose spread includes the residuals, and the predictive distribution that ``predict`` states.
grid = np.linspace(0, 10, 50)[:, None]
draws = model.sample_targets(grid, n_draws=400, random_state=0)
mean, std = model.predict(grid, return_std=True)
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8))
left.plot(grid[:, 0], draws[:60].T, ".", color="#2f7fc1", ms=2, alpha=0.35)
left.plot(grid[:, 0], mean, color="#e08a1e", lw=2, label="expected target")
left.fill_between(grid[:, 0], mean - 2 * std, mean + 2 * std, color="#e08a1e", alpha=0.15)
left.set(xlabel="x", ylabel="drawn targets", title="60 draws of the posterior predictive")
left.legend(frameon=False)
one = np.array([[7.0]])
targets = model.sample_targets(one, n_draws=5000, random_state=0)[:, 0]
(centre,), (spread,) = model.predict(one, return_std=True)
right.hist(targets, bins=50, density=True, color="#2f7fc1", alpha=0.6)
at = np.linspace(centre - 4 * spread, centre + 4 * spread, 200)
density = np.exp(-0.5 * ((at - centre) / spread) ** 2) / (spread * np.sqrt(2 * np.pi))
right.plot(at, density, color="#e08a1e", lw=2)
right.set(xlabel="target at x = 7", title="5,000 draws and the stated density")
plt.show()
