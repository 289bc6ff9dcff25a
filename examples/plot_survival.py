"""
Survival in two groups
======================

A life table is released once. Survival with intervals that include the privacy noise, the
difference of two groups and the log-rank test are computed from it.
"""

# %%
# Patients of two arms of a trial, who leave by death or unobserved.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dpbayes_sklearn import Categories, Interval, LifeTable, Schema

rng = np.random.default_rng(0)
n = 2000
arm = rng.choice(["new", "old"], n)
death, left = rng.exponential(np.where(arm == "new", 40, 28)), rng.uniform(6, 60, n)
patients = pd.DataFrame({"months": np.minimum(death, left), "arm": arm, "died": death <= left})
schema = Schema(
    {"months": Interval(0, 48, bins=16), "arm": Categories(["new", "old"])},
    target=Categories([False, True]),
)

# %%
# With a smaller budget intervals are wider, and tables end earlier: where the noise hides how many
# are still at risk, nothing is said.
figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
for ax, epsilon in zip(axes, (0.2, 1.0, float("inf")), strict=True):
    model = LifeTable(epsilon, schema=schema, random_state=0).fit(patients, target="died")
    model.plot(ax)
    ax.set_title(f"ε = {epsilon:g}, log-rank p = {model.logrank().p:.2g}")
plt.show()

# %%
# By how much the new treatment changes survival, at ε = 1:
model = LifeTable(1.0, schema=schema, random_state=0).fit(patients, target="died")
model.difference("new", "old")

# %%
# Who has the event earlier, by several columns: a fifth of ε tells the hazard that everybody was
# exposed to, and a regression of events with this exposure gets the rest. Its effects are those of
# odds, not hazard ratios.
from dpbayes_sklearn import BayesianCountRegression

table = LifeTable(0.2, bounds=(0, 48), random_state=0).fit(patients[["months"]], patients["died"])
X = patients[["arm"]].assign(
    age=rng.uniform(40, 80, n), hazard=table.cumulative_hazard(patients["months"])
)
columns = {"arm": Categories(["new", "old"]), "age": Interval(40, 80), "hazard": Interval(0.005, 3)}
risk = BayesianCountRegression(
    0.8, cap=1, exposure="hazard", schema=Schema(columns), intervals=False, random_state=0
).fit(X, patients["died"].astype(int))
risk.coefficients()
