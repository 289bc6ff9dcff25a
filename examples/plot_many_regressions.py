"""
One release, many regressions
=============================

All second moments of the declared columns are released once. Regressions of any column on any
others follow from them as often as you ask. Several sites can pool what they released.
"""

# %%
# A survey of three sites with disjoint people.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dpbayes_sklearn import BayesianLinearRegression, Interval, PrivateMoments, Schema, pool

rng = np.random.default_rng(0)


def survey(n):
    school = rng.normal(12, 2, n)
    income = 10 + 2 * school + rng.normal(0, 6, n)
    savings = 0.3 * income + rng.normal(0, 4, n)
    return pd.DataFrame({"school": school, "income": income, "savings": savings})


columns = {"school": Interval(0, 24), "income": Interval(-10, 80)}
schema = Schema(columns, target=Interval(-15, 40))
bounds = ([0, -10, -15], [24, 80, 40])
sites = [survey(10_000) for _ in range(3)]

# %%
# Two regressions from the release of one site, for one charge.
moments = PrivateMoments(1.0, bounds=bounds, random_state=0).fit(sites[0])
moments.regress("income", on=["school"])

# %%
moments.regress("savings", on=["school", "income"])

# %%
# One regression only is better released as such. Each site hands over its model, as JSON. Nobody is
# at two sites, so the epsilons of the sites do not add up, and pooled intervals are narrower.
models = [
    BayesianLinearRegression(1.0, schema=schema, random_state=seed).fit(site, target="savings")
    for seed, site in enumerate(sites)
]
pooled = pool([model.to_json() for model in models])
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
names = ["site 1", "site 2", "site 3", "pooled"]
for place, (name, model) in enumerate(zip(names, [*models, pooled], strict=True)):
    row = model.coefficients()["income"]
    ax.plot([row.low, row.high], [place, place], lw=3, color="C1" if name == "pooled" else "C0")
ax.axvline(0.3, color="0.5", ls="--", label="true")
ax.set(yticks=range(4), yticklabels=names, xlabel="savings per unit of income, 95 % intervals")
ax.legend()
plt.show()
