"""
The posterior of a proportion
=============================

Sometimes you want to publish only a proportion, or the shares of several categories.
:class:`~dpbayes_sklearn.BetaBinomial` and :class:`~dpbayes_sklearn.DirichletMultinomial` release
the whole posterior, so readers can compute means, credible intervals or draws from it.
"""

# sphinx_gallery_thumbnail_number = 2

# %%
# Eight hundred people, 31 % of whom smoke. The exact posterior is not released. The released
# posteriors are random, and closer to the exact one for a larger budget.
import matplotlib.pyplot as plt
import numpy as np

from dpbayes_sklearn import BetaBinomial, DirichletMultinomial
from dpbayes_sklearn.conjugate import expected_distance
from dpbayes_sklearn.display import PosteriorDisplay

smokes = np.array([1] * 248 + [0] * 552)
exact = BetaBinomial(float("inf")).fit(smokes).posterior_
theta = np.linspace(0.22, 0.42, 300)
figure, axes = plt.subplots(1, 3, figsize=(11, 3), sharey=True)
for ax, epsilon in zip(axes, (1.0, 0.1, 0.03), strict=True):
    ax.fill_between(theta, exact.pdf(theta), color="0.85", label="exact (not released)")
    for seed in range(6):
        released = BetaBinomial(epsilon, random_state=seed).fit(smokes).posterior_
        ax.plot(theta, released.pdf(theta), lw=1, color="C0", label=None if seed else "released")
    ax.set(title=f"ε = {epsilon:g}", xlabel="share of smokers", yticks=[])
axes[0].legend(frameon=False)
plt.show()

# %%
# Blood groups: the shares of four categories, with 95 % credible intervals that include the noise.
groups = ["0", "A", "B", "AB"]
blood = np.repeat(groups, [430, 410, 110, 50])
figure, ax = plt.subplots(figsize=(7, 3.2))
for shift, epsilon in enumerate((float("inf"), 1.0, 0.1)):
    model = DirichletMultinomial(epsilon, categories=groups, random_state=0).fit(blood)
    low, high = model.posterior_.credible_interval(0.95).T
    place = np.arange(4) + 0.2 * (shift - 1)
    name = "exact (not released)" if np.isinf(epsilon) else f"released, ε = {epsilon:g}"
    mean = model.posterior_.mean()
    ax.errorbar(place, mean, [mean - low, high - mean], fmt="o", capsize=3, label=name)
ax.set_xticks(range(4), groups)
ax.set(ylabel="share", title="One release of four shares", ylim=(0, None))
ax.legend(frameon=False)
plt.show()

# %%
# :class:`~dpbayes_sklearn.display.PosteriorDisplay` draws the posterior of any fitted estimator,
# together with the prior.
figure, ax = plt.subplots(figsize=(7, 2.8))
display = PosteriorDisplay.from_estimator(model, ax=ax)
plt.show()

# %%
# Which mechanism? With ``inference="plug_in"``, which takes the released count as exact, the
# expected distance between released and exact posterior can be computed exactly, without data. For
# a proportion the geometric mechanism, the default, is optimal. Among
# the mechanisms that choose a posterior, smooth sensitivity ("hellinger") becomes more accurate
# with more records; global sensitivity ("exponential") does not.
sizes = [20, 50, 100, 200, 400]
figure, ax = plt.subplots(figsize=(6.5, 3.6))
for mechanism in ("laplace", "exponential", "hellinger", "geometric"):
    errors = [expected_distance(mechanism, n, (1, 1), epsilon=1.0, delta=1e-8) for n in sizes]
    ax.plot(sizes, errors, "o-", ms=4, label=mechanism)
ax.set(xscale="log", yscale="log", xlabel="records", ylabel="expected Hellinger distance")
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.set_yticks([0.05, 0.1, 0.2, 0.5], [0.05, 0.1, 0.2, 0.5])
ax.legend(frameon=False)
plt.show()
