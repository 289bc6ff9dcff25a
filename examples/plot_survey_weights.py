"""
A survey with weights
=====================

A survey asked more people in the country than live there. Without weights its shares are those of
the sample; with weights they are those of the population. A public bound on the weights keeps the
promise.
"""

# %%
# Of the population 30 % live in the country, of the sample 60 %. Wages differ between them.
import matplotlib.pyplot as plt
import numpy as np

from dpbayes_sklearn import DirichletMultinomial

rng = np.random.default_rng(0)
country = rng.random(4000) < 0.6
shares = np.where(country[:, None], [0.5, 0.35, 0.15], [0.2, 0.45, 0.35])
answers = (rng.random(4000)[:, None] > shares.cumsum(axis=1)).sum(axis=1)
weights = np.where(country, 0.3 / 0.6, 0.7 / 0.4)  # at most 1.75, and 1 on average
population = 0.3 * shares[country][0] + 0.7 * shares[~country][0]

# %%
# Noise is calibrated to the bound, so it is twice as large with ``max_weight=2``.
plain = DirichletMultinomial(1.0, categories=[0, 1, 2]).fit(answers)
weighted = DirichletMultinomial(1.0, categories=[0, 1, 2], max_weight=2)
weighted.fit(answers, sample_weight=weights)
print(weighted.guarantee_)

# %%
# The intervals contain the noise. They take the total weight for a number of independent people,
# so those of weights are a little too short.
figure, ax = plt.subplots(figsize=(6, 3.4))
for name, model, shift in (("no weights", plain, -0.12), ("weights", weighted, 0.12)):
    mean, ends = model.posterior_.mean(), model.posterior_.credible_interval(0.95)
    errors = np.abs(ends.T - mean)
    ax.errorbar(np.arange(3) + shift, mean, errors, fmt="o", capsize=4, label=name)
ax.plot(np.arange(3), population, "_", ms=40, color="0.4", label="population")
ax.set(xticks=range(3), xticklabels=["low wage", "middle", "high"], ylabel="share")
ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.62, 0.62))
plt.show()
